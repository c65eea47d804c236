"""How a wrong contract is refused: strictly, when the object is made, with the name of the field."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ArgsKwargs

from collector_assets.errors import ContractError

if TYPE_CHECKING:
    from collector_assets.contract.source import Source

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True, extra="forbid")


class Refusing:
    """A part of the contract: what pydantic finds wrong becomes one `ContractError` that names the field."""

    _is_whole = False
    """Whether this is the source itself, whose fields are named without it and whose `name` an error carries."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return make(given)
        except ValidationError as error:
            if not isinstance(given, ArgsKwargs):  # a value inside another part, which names the field better
                raise
            raise _refusal(cls, given, error, is_whole=cls._is_whole) from None


def wrong(source: Source, field: str, problem: str) -> ContractError:
    """What is wrong with one field of a source whose fields each are what they should be."""
    return ContractError(field, problem, source=source.name)


def _refusal(of: type, given: ArgsKwargs, error: ValidationError, *, is_whole: bool) -> ContractError:
    """The first thing that is wrong, in the words of a source file; `given` holds the arguments of the call."""
    first, *others = error.errors(include_url=False)
    at = first["loc"]
    name = str(at[0]) if at else of.__name__
    field = name + "".join(f"[{part!r}]" for part in at[1:2])
    source = str((given.kwargs or {}).get("name", "")) if is_whole else ""
    problem = _problem(of, name, first) + (f" (and {len(others)} more)" if others else "")
    return ContractError(field if is_whole else f"{of.__name__}.{field}", problem, source=source)


def _problem(of: type, name: str, found: Mapping[str, Any]) -> str:
    match found["type"]:
        case "unexpected_keyword_argument":
            near = difflib.get_close_matches(name, getattr(of, "__dataclass_fields__", ()), n=1)
            return (
                f"unknown field; did you mean {near[0]!r}?"
                if near
                else "unknown field; docs/source-contract.md lists all"
            )
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return "is required"
        case "unexpected_positional_argument":
            return "fields are given by name"
        case "time_delta_type":
            return f"{found['input']!r} is not a length of time: write seconds(2), minutes(2), hours(2) or days(2)"
        case "dataclass_exact_type" if name == "window":
            return f"{_short(found['input'])} is no schedule: write Daily(start=…), Hourly(start=…) or Cron(…, start=…)"
        case _:
            return f"{found['msg'][0].lower()}{found['msg'][1:]}, not {_short(found['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
