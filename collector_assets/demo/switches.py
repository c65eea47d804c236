"""What the demo site can be told to do: its switches, per host, and its misbehaviours, per path prefix."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ROBOTS = "User-agent: *\nAllow: /\n"


class DemoError(Exception):
    """The demo site cannot do what it was asked; the message is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """How the shop of one host looks. Equal switches give equal bytes, on any machine."""

    books: int = 60  # in the catalogue
    per_page: int = 20  # cards on a listing page
    detail_bytes: int = 0  # a detail page is padded with reviews to about this size; 0: its natural 6 KB
    edition: int = 1  # each edition changes the price of about one book in ten
    redesign: int = 0  # 1: detail pages have other class names, so that an extractor finds nothing; 2: listings too
    currency: str = "£"  # the sign before every price
    gzip: int = 0  # 1: compress pages for clients that accept gzip
    seed: str = "demo"  # another seed is another catalogue
    robots: str = ROBOTS  # the text of /robots.txt; empty: 404
    session_pages: int = 0  # a session of the members' area ends after so many pages; 0: never
    session_rotates: int = 0  # 1: each page of the members' area sets another cookie
    token_seconds: int = 3_600  # the life of an OAuth token
    accept_delay: float = 0.0  # seconds a new connection is left unread ("slow accept"); for all hosts alike

    def changed(self, values: Mapping[str, object]) -> Switches:
        """These switches with `values` (numbers may be strings); DemoError for an unknown name or a bad value."""
        return dataclasses.replace(self, **{name: _coerced(name, value) for name, value in values.items()})


_DEFAULTS = dataclasses.asdict(Switches())
_LEAST = {
    "books": 0, "per_page": 1, "detail_bytes": 0, "edition": 1, "redesign": 0, "session_pages": 0, "session_rotates": 0,
    "token_seconds": 1, "gzip": 0, "accept_delay": 0.0,
}  # fmt: skip


def _coerced(name: str, value: object) -> int | float | str:
    if name not in _DEFAULTS:
        raise DemoError(f"no switch is named {name!r}; there are: {', '.join(_DEFAULTS)}")
    wanted: type[int | float | str] = type(_DEFAULTS[name])
    try:
        result = wanted(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise DemoError(f"switch {name}: {value!r} is not a {wanted.__name__}") from None
    if not isinstance(result, str) and result < _LEAST[name]:
        raise DemoError(f"switch {name}: {value!r} is less than {_LEAST[name]}")
    return result


@dataclass(slots=True, kw_only=True)
class Rule:
    """Requests whose path starts with `prefix` get the misbehaviour `do`."""

    do: str  # a name of misbehave.TABLE
    prefix: str = "/"
    arg: str = ""
    host: str | None = None  # without port; None: every host
    times: int | None = None  # only so often, then as usual; None: always
    every: int = 1  # only each n-th request that matches, beginning with the n-th
    _seen: int = field(default=0, init=False, repr=False, compare=False)
    _done: int = field(default=0, init=False, repr=False, compare=False)

    def applies(self, host: str, path: str) -> bool:
        """Whether this request misbehaves; counts it."""
        if not path.startswith(self.prefix) or (self.host is not None and self.host != host):
            return False
        self._seen += 1
        if self._seen % self.every or (self.times is not None and self._done >= self.times):
            return False
        self._done += 1
        return True

    def wish(self) -> dict[str, object]:
        """The rule as it was asked for, without its counters."""
        return {
            "do": self.do,
            "prefix": self.prefix,
            "arg": self.arg,
            "host": self.host,
            "times": self.times,
            "every": self.every,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be switched, at the start (--config) and at run time (POST /switch).

    As JSON: `{"switches": {"books": 600}, "hosts": {"books.localhost": {"books": 1000}},
    "misbehave": [{"prefix": "/catalogue/", "do": "delay", "arg": "0.2"}]}`; each key may be absent.
    """

    switches: Switches = Switches()
    hosts: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: {"books.localhost": {"books": 1000}})
    misbehave: tuple[Rule, ...] = ()

    def changed(self, wish: Mapping[str, object], misbehaviours: Iterable[str]) -> Config:
        """This configuration with a wish of the shape above; `misbehave`, when present, replaces all rules."""
        if unknown := set(_mapping(wish, "a change")) - {"switches", "hosts", "misbehave"}:
            raise DemoError(f"unknown key {min(unknown)!r}: a change has switches, hosts and misbehave")
        changed = Config(
            switches=self.switches.changed(_mapping(wish.get("switches", {}), "switches")),
            hosts={
                **self.hosts,
                **{
                    host: {**self.hosts.get(host, {}), **_mapping(values, f"hosts.{host}")}
                    for host, values in _mapping(wish.get("hosts", {}), "hosts").items()
                },
            },
            misbehave=_rules(wish["misbehave"], frozenset(misbehaviours)) if "misbehave" in wish else self.misbehave,
        )
        for host in changed.hosts:
            changed.of(host)
        return changed

    def fresh(self) -> Config:
        """The same, with rules that have not counted anything."""
        return dataclasses.replace(self, misbehave=tuple(Rule(**rule.wish()) for rule in self.misbehave))  # type: ignore[arg-type]

    def of(self, host: str) -> Switches:
        """The switches in force for a host."""
        return self.switches.changed(self.hosts.get(host, {}))


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise DemoError(f"{where} must be an object, not {value!r}")
    return value


def _rules(wish: object, known: frozenset[str]) -> tuple[Rule, ...]:
    if not isinstance(wish, list):
        raise DemoError(f"misbehave must be a list of rules, not {wish!r}")
    return tuple(_rule(each, known) for each in wish)


def _rule(wish: object, known: frozenset[str]) -> Rule:
    try:
        rule = Rule(**_mapping(wish, "misbehave"))  # type: ignore[arg-type]
    except TypeError as error:
        raise DemoError(f"a rule of misbehave: {error}") from None
    if rule.do not in known:
        raise DemoError(f"no misbehaviour is named {rule.do!r}; there are: {', '.join(sorted(known))}")
    if rule.every < 1:
        raise DemoError(f"misbehave: every={rule.every} is less than 1")
    rule.arg = str(rule.arg)
    return rule
