"""Values of which there are several for each page: immutable by the type checker's word.

A frozen dataclass sets each field of a new object through `object.__setattr__`, which costs four times as much as a
plain assignment: a thirtieth of the whole path. Pyright, which `make lint` runs, refuses to change one all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def fact(cls: type[T]) -> type[T]:
    """As `dataclass(frozen=True, slots=True, kw_only=True)`, but that nobody watches at run time."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
