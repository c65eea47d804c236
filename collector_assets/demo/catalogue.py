"""The shop's books: made from (seed, number) by a hash, so that any process on any machine makes the same ones."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from hashlib import blake2b

RATINGS = ("One", "Two", "Three", "Four", "Five")


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A category with the number that books.toscrape.com has for it, and its share of every twenty books."""

    name: str
    number: int
    share: int

    @property
    def slug(self) -> str:
        """As in /catalogue/category/books/<slug>/index.html."""
        return f"{slugged(self.name)}_{self.number}"


CATEGORIES = (
    Category(name="Travel", number=2, share=4),
    Category(name="Mystery", number=3, share=8),
    Category(name="Historical Fiction", number=4, share=1),
    Category(name="Classics", number=6, share=1),
    Category(name="Fiction", number=10, share=2),
    Category(name="Science Fiction", number=16, share=1),
    Category(name="Poetry", number=23, share=3),
)
_TURN = tuple(  # twenty in all
    category for category in CATEGORIES for _ in range(category.share)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """One product of the shop."""

    number: int
    title: str
    category: Category
    price: Decimal  # GBP
    rating: int  # 1..5
    upc: str
    stock: int
    changed_in: int  # the edition that gave it its price
    description: str

    @property
    def slug(self) -> str:
        """As in /catalogue/<slug>/index.html."""
        return f"{slugged(self.title)}_{self.number}"


def book(number: int, *, seed: str, edition: int) -> Book:
    """The book `number` (from 1) as it is in an edition."""
    draw = draws(f"{seed}:{number}")
    price, changed_in = _price(seed, number, edition)
    return Book(
        number=number,
        title=_title(draw),
        category=_TURN[number * 7 % 20],  # 7 and 20 share no divisor: each twenty books hold every category's share
        price=price,
        rating=next(draw) % 5 + 1,
        upc=_digest(f"{seed}:{number}:upc").hex()[:16],
        stock=next(draw) % 22 + 1,
        changed_in=changed_in,
        description=" ".join(sentence(draw) for _ in range(4 + next(draw) % 5)),
    )


def _price(seed: str, number: int, edition: int) -> tuple[Decimal, int]:
    """The price in pounds and the edition it dates from; an edition changes one book in ten, to another price."""
    pence, changed_in = 1000 + next(draws(f"{seed}:{number}:price")) % 5000, 1
    for each in range(2, edition + 1):
        draw = draws(f"{seed}:{number}:price:{each}")
        if next(draw) % 10 == 0:
            pence, changed_in = 1000 + (pence - 1000 + 1 + next(draw) % 4999) % 5000, each
    return Decimal(pence) / 100, changed_in


def draws(key: str) -> Iterator[int]:
    """Endless numbers 0..65535 that depend on nothing but the key."""
    block = 0
    while True:
        digest = _digest(f"{key}/{block}")
        for at in range(0, len(digest), 2):
            yield digest[at] << 8 | digest[at + 1]
        block += 1


def _digest(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=64).digest()


def slugged(title: str) -> str:
    """ASCII letters, digits and hyphens of a title, in lower case."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower().replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


_OPENINGS = (
    "The", "A", "My", "Our", "Beyond the", "Under the", "It's Only the", "Letters from the", "Notes on the",
    "Return to the",
)  # fmt: skip
_QUALITIES = (
    "Silent", "Crooked", "Winter", "Last", "Borrowed", "Paper", "Café", "Invisible", "Salt", "Hollow", "Second",
    "Distant", "Burning", "Patient", "Forgotten", "Northern", "Glass", "Restless", "Sunday", "Quiet",
)  # fmt: skip
_THINGS = (
    "Lighthouse", "Garden", "Cartographer", "Orchard", "Harbour", "Archive", "Violin", "Detective", "River",
    "Clockmaker", "Kitchen", "Telescope", "Letter", "Mountain", "Island", "Witness", "Señora", "Railway", "Attic",
    "Dictionary",
)  # fmt: skip
_ENDINGS = (
    "", "", "", "", "", ": A Novel", ": Poems & Drawings", " (The Harbour Trilogy #1)", " (The Harbour Trilogy #2)",
    ": The Extraordinary True Story of a Family, a House and a Very Long Winter", " in Five Acts",
    ": Stories 1800–1849",
)  # fmt: skip


def _title(draw: Iterator[int]) -> str:
    return f"{_pick(_OPENINGS, draw)} {_pick(_QUALITIES, draw)} {_pick(_THINGS, draw)}{_pick(_ENDINGS, draw)}"


def _pick(words: tuple[str, ...], draw: Iterator[int]) -> str:
    return words[next(draw) % len(words)]


def sentence(draw: Iterator[int]) -> str:
    """One sentence of the prose that descriptions and reviews are made of."""
    return _pick(_prose(), draw)


@cache
def _prose() -> tuple[str, ...]:
    draw = draws("prose")
    return tuple(_one_sentence(draw) for _ in range(512))


_WHO = (
    "The narrator", "Her brother", "A stranger", "The village doctor", "Nobody", "An old friend",
    "The publisher’s widow", "Inspector Béla",
)  # fmt: skip
_DOES = (
    "remembers", "opens", "refuses to sell", "quietly repairs", "cannot forget", "writes about", "sets out to find",
    "never mentions",
)  # fmt: skip
_WHAT = (
    "the letter", "a house by the sea", "the missing photograph", "their grandmother’s recipe book",
    "the winter of 1849", "an impossible map",
)  # fmt: skip
_WHEN = (
    "before the trial begins", "on the last page", "while the town sleeps", "without knowing why",
    "— and everything changes", "as promised",
)  # fmt: skip


def _one_sentence(draw: Iterator[int]) -> str:
    return f"{_pick(_WHO, draw)} {_pick(_DOES, draw)} {_pick(_WHAT, draw)} {_pick(_WHEN, draw)}."
