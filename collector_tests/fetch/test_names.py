"""Names to addresses: one probe for all, and patience with names that have none (cases.md HTTP-32)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from collector_assets.fetch.names import MOST_NAMES, Names, NameUnresolved, system_lookup

NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
NOT_NOW = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@dataclass
class Resolver:
    """Says what it is told to, in turn, the last for ever; and knows what it was asked."""

    says: list[Sequence[str] | OSError]
    asked: list[str] = field(default_factory=list)
    now: float = 1_000.0
    pause_s: float = 0.0

    async def look_up(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        await asyncio.sleep(self.pause_s)
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, OSError):
            raise said
        return said

    def names(self) -> Names:
        return Names(self.look_up, clock=lambda: self.now)


async def wait_of(names: Names, name: str = "gone.example") -> float:
    """How long the name is spared."""
    with pytest.raises(NameUnresolved) as failed:
        await names.addresses(name)
    return failed.value.retry_in_s


class TestAddresses:
    def test_are_remembered_for_half_a_minute(self):
        resolver = Resolver([["192.0.2.1"], ["192.0.2.2"]])

        async def scenario() -> list[tuple[str, ...]]:
            names, seen = resolver.names(), []
            for _ in range(4):
                seen.append(await names.addresses("Shop.example."))
                resolver.now += 14
            return seen

        assert asyncio.run(scenario()) == 3 * [("192.0.2.1",)] + [("192.0.2.2",)]
        assert resolver.asked == 2 * ["shop.example"]

    def test_are_looked_up_once_for_all_who_ask_at_a_time(self):
        resolver = Resolver([["192.0.2.1"]], pause_s=0.01)

        async def scenario() -> list[tuple[str, ...]]:
            names = resolver.names()
            return await asyncio.gather(*(names.addresses("shop.example") for _ in range(50)))

        assert asyncio.run(scenario()) == 50 * [("192.0.2.1",)]
        assert resolver.asked == ["shop.example"]

    def test_come_also_when_who_asked_first_gave_up(self):
        resolver = Resolver([["192.0.2.1"]], pause_s=0.05)

        async def scenario() -> tuple[str, ...]:
            names = resolver.names()
            first = asyncio.create_task(names.addresses("shop.example"))
            second = asyncio.create_task(names.addresses("shop.example"))
            await asyncio.sleep(0.01)
            first.cancel()
            return await second

        assert asyncio.run(scenario()) == ("192.0.2.1",)
        assert len(resolver.asked) == 1

    def test_come_from_the_system_in_both_families(self):
        assert set(asyncio.run(Names().addresses("localhost"))) & {"127.0.0.1", "::1"}

    def test_of_unusable_names_are_an_error_of_the_system(self):
        with pytest.raises(socket.gaierror):
            asyncio.run(system_lookup("no-such-name.invalid"))

    def test_are_kept_of_a_bounded_number_of_names(self):
        async def scenario() -> int:
            names = Resolver([["192.0.2.1"]]).names()
            for number in range(MOST_NAMES + 10):
                await names.addresses(f"h{number}.example")
            return len(names._answers)

        assert asyncio.run(scenario()) == MOST_NAMES


class TestTrouble:
    @pytest.mark.parametrize("said", [NO_NAME, []], ids=["no-name", "no-address"])
    def test_no_address_is_asked_again_after_a_minute_doubling_to_fifteen(self, said: Sequence[str] | OSError):
        """HTTP-32."""
        # Mutation: `2.0 ** 0` in `Names._failed`.
        resolver = Resolver([said])

        async def scenario() -> list[float]:
            names, waits = resolver.names(), []
            for _ in range(7):
                waits.append(await wait_of(names))
                resolver.now += waits[-1]
            return waits

        assert asyncio.run(scenario()) == [60, 120, 240, 480, 900, 900, 900]

    def test_no_address_is_one_probe_for_all_of_its_urls(self):
        """HTTP-32: no hammering."""
        # Mutation: `self._answers[name] = answer` only with addresses.
        resolver = Resolver([NO_NAME])

        async def scenario() -> list[float]:
            names, waits = resolver.names(), []
            for _ in range(100):
                waits.append(await wait_of(names))
                resolver.now += 0.5
            return waits

        waits = asyncio.run(scenario())

        assert waits[0] == 60
        assert waits[-1] == 10.5
        assert len(resolver.asked) == 1

    def test_of_the_resolver_is_over_sooner(self):
        """HTTP-32: twice EAI_AGAIN, then an address."""
        resolver = Resolver([NOT_NOW, NOT_NOW, ["192.0.2.1"]])

        async def scenario() -> tuple[list[float], tuple[str, ...]]:
            names, waits = resolver.names(), []
            for _ in range(2):
                waits.append(await wait_of(names))
                resolver.now += waits[-1]
            return waits, await names.addresses("gone.example")

        waits, addresses = asyncio.run(scenario())

        assert waits == [2, 4]
        assert addresses == ("192.0.2.1",)

    def test_begins_anew_after_an_address(self):
        resolver = Resolver([NO_NAME, NO_NAME, ["192.0.2.1"], NO_NAME])

        async def scenario() -> list[float]:
            names, waits = resolver.names(), []
            for _ in range(2):
                waits.append(await wait_of(names))
                resolver.now += 1_000
            await names.addresses("gone.example")
            resolver.now += 1_000
            return [*waits, await wait_of(names)]

        assert asyncio.run(scenario()) == [60, 120, 60]
