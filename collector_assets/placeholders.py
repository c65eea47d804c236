"""Secrets in queries and bodies: a placeholder stands for each wherever a request is kept, shown or compared. Pure.

`{secret+SHOP_TOKEN}` looks the same in a URL, in a form and in the archive. Values are put in right before sending, and
taken out again of whatever comes back. Only the variables that a request names are filled in, in URL and body: a
placeholder that a page or a redirect brings along is text, so no site can ask for what is in our environment.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import quote

from collector_assets.queries import form_coded
from collector_assets.request import Pairs, Secret

SHORTEST: Final = 6
"""Characters of a value that is masked in what comes back; a shorter one would mangle pages and hide nothing."""


def placeholder(name: str) -> str:
    """What stands for the value of a variable."""
    return f"{{secret+{name}}}"


def coded(pairs: Pairs) -> tuple[str, tuple[str, ...]]:
    """Names and values as a query or a form's body, secrets as placeholders; and the variables of those."""
    listed = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    text = "&".join(f"{form_coded(_bytes(name))}={_value(value)}" for name, value in listed)
    return text, tuple(dict.fromkeys(value.name for _, value in listed if isinstance(value, Secret)))


def with_query(url: str, pairs: Pairs) -> tuple[str, tuple[str, ...]]:
    """The URL with these parameters in place of its own of the same name; and the variables in them."""
    added, names = coded(pairs)
    ours = {pair.partition("=")[0] for pair in added.split("&")}
    base, _, query = url.partition("?")
    kept = [pair for pair in query.split("&") if pair and form_coded(_plain(pair.partition("=")[0])) not in ours]
    return f"{base}?{'&'.join([*kept, added])}", names


def filled(text: str, values: Mapping[str, str]) -> str:
    """A URL or a form's body as it is sent. In a path, where a redirect may have put it, the braces are escaped."""
    for name, value in values.items():
        for each in (placeholder(name), f"%7Bsecret+{name}%7D"):
            text = text.replace(each, form_coded(_bytes(value)))
    return text


def _value(value: str | Secret) -> str:
    if isinstance(value, Secret):
        return form_coded(_bytes(value.prefix)) + placeholder(value.name)
    return form_coded(_bytes(value))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _plain(name: str) -> bytes:
    """A parameter's name, however it is escaped."""
    raw = name.replace("+", " ").encode("utf-8", "surrogatepass")
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), raw)


@dataclass(frozen=True)
class Veil:
    """Values of secrets, by what is shown instead, in every spelling that a site may send them back in."""

    values: Sequence[tuple[str, str]]
    """(value, what stands for it)"""

    def text(self, said: str) -> str:
        """One of our own lines, without any of the values."""
        for value, _ in self.values:
            for each in _spellings(value):
                said = said.replace(each, "{secret}")
        return said

    def raw(self, received: bytes) -> bytes:
        """What came, without values; the same object where there is none in it."""
        pattern = self._pattern
        if pattern is None or pattern.search(received) is None:
            return received
        return pattern.sub(lambda found: self._by_spelling[found[0].lower()], received)

    @cached_property
    def _by_spelling(self) -> dict[bytes, bytes]:
        return {
            _bytes(each).lower(): _bytes(shown)
            for value, shown in self.values
            if len(value) >= SHORTEST
            for each in _spellings(value)
        }

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        # Whole spellings without regard to case: %2b is %2B, and a value in other letters is not worth showing either.
        longest_first = sorted(self._by_spelling, key=len, reverse=True)
        return re.compile(b"|".join(map(re.escape, longest_first)), re.IGNORECASE) if longest_first else None


def _spellings(value: str) -> tuple[str, ...]:
    """A value as it is, as in queries and forms, in JSON and in HTML; longer ones first."""
    found = {
        value,
        form_coded(_bytes(value)),
        quote(_bytes(value), safe=""),
        quote(_bytes(value), safe="/:@!$&'()*+,;=?"),
        json.dumps(value)[1:-1],
        json.dumps(value)[1:-1].replace("/", "\\/"),
        html.escape(value),
    }
    return tuple(sorted(found, key=len, reverse=True))
