"""Records: what an extractor yields, and what it yields where a page does not say one thing (`Unreadable`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a named record type; an extractor of a source with one type may yield plain mappings."""

    type: str
    """One of the source's `records`."""
    values: Any
    """The row, a mapping by column; or why it could not be read: `Record("filing", attempt(filing_of, row))`."""


class Unreadable(ValueError):
    """What stands on a page is not one value of the wanted sort; `check` says in one word why.

    Raised, it costs the page. In the place of a value, or of a whole row, it makes that row a reject with this reason
    and leaves the rest of the page alone: `attempt` is how it gets there.
    """

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(problem)
        self.check = check
        """ambiguous: can be read in more than one way; malformed: in none; impossible: of the right form, but no such
        value; missing: not there."""


def attempt(read: Callable[..., T], *args: Any, **kwargs: Any) -> T | Unreadable:
    """What `read` returns; where the page is to blame that it fails (ValueError, LookupError), the reason instead.

        yield {"sku": sku, "price": attempt(normalize.price, text, decimal=",")}     # one value
        yield attempt(row_of, card)                                                  # a whole row

    An argument that is `Unreadable` itself is handed on.
    """
    for given in args:
        if isinstance(given, Unreadable):
            return given
    try:
        return read(*args, **kwargs)
    except Unreadable as error:
        return error
    except LookupError as error:
        return Unreadable("missing", f"{type(error).__name__}: {error}")
    except ValueError as error:
        return Unreadable("malformed", str(error))
