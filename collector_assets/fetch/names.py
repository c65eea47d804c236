"""Names to addresses: looked up once for all who ask at a time, remembered for a moment, and spared in trouble.

A name without an address is asked for again after a minute, then after two, four … fifteen (cases.md HTTP-32): one
probe per name, however many of its URLs wait. A resolver that is in trouble itself says nothing about the name, so it
is asked again sooner.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a name, both families, as literals. Raises OSError, `socket.gaierror` as a rule."""

MOST_NAMES: Final = 4_096
_HAS_NONE: Final = frozenset((socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)))
"""What the resolver says of a name that has no address; all else is its own trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How long answers count, in seconds."""

    addresses_s: float = 30.0
    """Sites move by changing them; with a connection kept alive they are not asked for at all."""
    none_s: float = 60.0
    """After the first answer that there is none; doubles with each further one."""
    trouble_s: float = 2.0
    """After the first time that no answer came; doubles too."""
    most_s: float = 900.0


class NameUnresolved(OSError):
    """The name has no address now; it will not be asked for again before `retry_in_s` is over."""

    def __init__(self, said: str, retry_in_s: float) -> None:
        super().__init__(socket.EAI_NONAME, said)
        self.retry_in_s = retry_in_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What the resolver said last."""

    addresses: tuple[str, ...] = ()
    said: str = ""
    until: float
    failures: int = 0
    """In a row."""


async def system_lookup(name: str) -> Sequence[str]:
    """The system's resolver: /etc/hosts, DNS, whatever this machine is set up with."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in found]


class Names:
    """Addresses of names, for one event loop."""

    def __init__(
        self,
        lookup: Lookup = system_lookup,
        *,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup, self._memory, self._clock = lookup, memory or Memory(), clock
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._asking: dict[str, asyncio.Task[_Answer]] = {}

    async def addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a name; raises `NameUnresolved`."""
        name = name.lower().removesuffix(".")
        answer = self._answers.get(name)
        if answer is None or self._clock() >= answer.until:
            answer = await self._asked(name)
        if not answer.addresses:
            raise NameUnresolved(answer.said, max(0.0, answer.until - self._clock()))
        return answer.addresses

    async def _asked(self, name: str) -> _Answer:
        """The answer to a new question; who asks while it is open gets the same."""
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.create_task(self._ask(name))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return await asyncio.shield(task)  # one who gives up does not take it from the others

    async def _ask(self, name: str) -> _Answer:
        try:
            addresses = tuple(dict.fromkeys(await self._lookup(name)))
            answer = _Answer(addresses=addresses, until=self._clock() + self._memory.addresses_s)
            if not addresses:
                answer = self._failed(name, "no address", self._memory.none_s)
        except OSError as error:
            first_s = self._memory.none_s if error.errno in _HAS_NONE else self._memory.trouble_s
            answer = self._failed(name, error.strerror or str(error), first_s)
        self._answers[name] = answer
        self._answers.move_to_end(name)
        while len(self._answers) > MOST_NAMES:
            self._answers.popitem(last=False)
        return answer

    def _failed(self, name: str, said: str, first_s: float) -> _Answer:
        before = self._answers.get(name)
        failures = 1 + (before.failures if before else 0)
        wait_s = min(first_s * 2.0 ** min(failures - 1, 60), self._memory.most_s)
        return _Answer(said=said, until=self._clock() + wait_s, failures=failures)

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()
