"""Judge rows by a source's pandera schemas. Pure; pandas and pandera are imported by whoever judges first.

A schema judges *rows*: types and ranges. What needs the whole window (uniqueness, counts, rates) is judged in SQL by
`process.py`. Types are read value by value (`columns.py`), then one lazy pandera validation per frame runs the checks;
so a row's verdict is the same in every frame, and all reasons are kept.
"""

from __future__ import annotations

import copy
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from collector_assets import columns
from collector_assets.columns import Column, Unfit, is_missing, json_text, plain, shown, shown_json, text_json
from collector_assets.contract import Source
from collector_assets.errors import ContractError
from collector_assets.facts import fact
from collector_assets.record import Unreadable
from collector_assets.storable import REPLACEMENT, clean_text

MAX_ENTITY: Final = 500
"""Characters of an entity: it is part of index keys, which Postgres bounds at 2,704 bytes."""
MAX_REASONS: Final = 50
"""Of one record; a frame-wide check fails every column at once."""
USABLE: Final = "text, integer, float, Decimal, bool, datetime, date, list or dict"


@fact
class Origin:
    """The page that a row came from."""

    page_id: int
    request_id: int
    collected_at: datetime
    late: bool = False
    suspect: bool = False
    """Its text did not fit its encoding, so a U+FFFD in it stands for something that was lost."""


@fact
class Candidate:
    """A row as an extractor yielded it."""

    origin: Origin
    ordinal: int
    """Which row of the page, from 0."""
    values: Any
    """A mapping, if the extractor kept to the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a row did not pass."""

    column: str | None
    check: str
    value: str | None = None

    def json(self) -> str:
        """As stored in `rejects.reasons`."""
        value = "null" if self.value is None else text_json(self.value)
        column = "null" if self.column is None else text_json(self.column)
        return f'{{"check":{text_json(self.check)},"column":{column},"value":{value}}}'


@fact
class Good:
    """A row that passed."""

    origin: Origin
    ordinal: int
    entity: str
    data: str
    """Canonical JSON."""
    digest: bytes
    """BLAKE2b-128 of `data`: what decides whether a record changed."""
    source_revised_at: datetime | None
    cleaned: bool = False
    """Whether text lost characters that cannot be stored (NUL, halves of surrogate pairs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A row that did not pass, with every reason."""

    origin: Origin
    ordinal: int
    record_type: str
    entity: str | None
    reasons: tuple[Reason, ...]
    data: str
    """JSON of the row as it was yielded; what has no JSON form is shown as text."""


@fact
class Judged:
    """Every row, on one side or the other."""

    good: list[Good]
    rejects: list[Reject]


def judge(source: Source, record_type: str, rows: Sequence[Candidate]) -> Judged:
    """Judge rows of one record type; keep a `Judge` where it happens more than once."""
    return Judge(source, record_type).judge(rows)


def reject(row: Candidate, record_type: str, *reasons: Reason, entity: str | None = None) -> Reject:
    """The row on the wrong side."""
    return Reject(
        origin=row.origin,
        ordinal=row.ordinal,
        record_type=record_type,
        entity=entity,
        reasons=reasons[:MAX_REASONS],
        data=shown_json(row.values),
    )


def entity_of(value: Any) -> str:
    """The text that names an entity, of a value as it was yielded; raises `Unfit`."""
    value = plain(value)
    if is_missing(value):
        raise Unfit("entity_is_given")
    text = value.isoformat() if hasattr(value, "isoformat") else columns.read_text(value, coerce=True)
    if not text.strip():
        raise Unfit("entity_is_given")
    if REPLACEMENT in text:  # what was lost may have told two entities apart
        raise Unfit("entity_is_decoded")
    if len(text) > MAX_ENTITY:
        raise Unfit(f"entity_has_at_most({MAX_ENTITY})_characters")
    return text


def reason_of(unreadable: Unreadable, *, column: str | None) -> Reason:
    """Why a value or a row cannot be read, in the extractor's words."""
    return Reason(column=column, check=unreadable.check, value=shown(str(unreadable)))


def unreadable_in(values: Any) -> list[Reason]:
    """What the extractor could not read of a row, or the row as a whole; found before its type is looked at."""
    if isinstance(values, Unreadable):
        return [reason_of(values, column=None)]
    if not isinstance(values, Mapping):
        return []
    return [reason_of(each, column=str(name)) for name, each in values.items() if isinstance(each, Unreadable)]


class Judge:
    """The schema of one record type, ready to judge; raises `ContractError` when it says what no row can answer."""

    def __init__(self, source: Source, record_type: str) -> None:
        schema = source.schemas[record_type]
        self._schema = schema.to_schema() if hasattr(schema, "to_schema") else schema
        self.record_type = record_type
        self.entity_field = source.entity_field(record_type)
        self._source = source
        self.columns = tuple(self._column(name, column) for name, column in self._schema.columns.items())
        self._by_name = {column.name: column for column in self.columns}
        self._revised_at = source.revised_at if source.revised_at in self._by_name else None
        self._refuse_what_rows_cannot_answer()

    def warm(self) -> None:
        """Have pandera make now what it makes at its first use: importing its back end takes a quarter of a second."""
        from pandera.errors import SchemaErrors  # noqa: PLC0415

        with suppress(SchemaErrors):  # what no rows say about the whole frame is nobody's fault
            self._checks.validate(self.frame([]), lazy=True)

    def judge(self, rows: Sequence[Candidate]) -> Judged:
        """Every row on one side or the other, in the order of `rows` on each."""
        read = [self._read(row) for row in rows]
        by_presence: dict[frozenset[str], list[_Read]] = defaultdict(list)
        for row in read:
            if row.values is not None:
                by_presence[frozenset(row.values)].append(row)
        for group in by_presence.values():  # one, unless the schema has optional columns
            self._check(group)
        judged = Judged(good=[], rejects=[])
        for row in read:
            self._sort(row, judged)
        return judged

    def frame(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The pandas frame that checks see: typed by the schema also when it is empty, missing values kept as such."""
        import pandas as pd  # noqa: PLC0415

        present = [column for column in self.columns if column.required or any(column.name in row for row in rows)]
        return pd.DataFrame({column.name: series(column, [row.get(column.name) for row in rows]) for column in present})

    # --- the schema --------------------------------------------------------------------------------------------------

    def _problem(self, problem: str) -> ContractError:
        return ContractError("schema", f"record type {self.record_type!r}: {problem}", source=self._source.name)

    def _column(self, name: str, column: Any) -> Column:
        if column.regex:
            raise self._problem(f"column {name!r} is a pattern; name the columns")
        return Column(
            name=name,
            type=self._type(name, column.dtype),
            nullable=column.nullable,
            required=column.required,
            default=None if is_missing(column.default) else column.default,
            coerce=bool(column.coerce or self._schema.coerce),
            time_zone=getattr(column.dtype, "tz", None),
        )

    def _type(self, name: str, dtype: Any) -> columns.Type:
        from pandera import dtypes  # noqa: PLC0415

        of: Any = dtypes  # its classes are made by a decorator that no type checker sees through
        if dtype is None or str(dtype) == "object" or _is_generic(dtype):
            return columns.JSON
        if isinstance(dtype, of.Decimal):
            return columns.decimal(dtype.precision, dtype.scale)
        if isinstance(dtype, of.Int):
            return columns.integer(dtype.bit_width or 64, signed=not isinstance(dtype, of.UInt))
        plain_types = {
            of.Bool: columns.BOOL, of.Float: columns.FLOAT, of.String: columns.TEXT, of.Timestamp: columns.TIME,
            of.Date: columns.DATE,
        }  # fmt: skip
        for kind, type_ in plain_types.items():  # a Timestamp is a Date too, so it comes first
            if isinstance(dtype, kind):
                return type_
        raise self._problem(f"column {name!r} has type {dtype}; use {USABLE}")

    def _refuse_what_rows_cannot_answer(self) -> None:
        schema, entity = self._schema, self._by_name[self.entity_field]
        if entity.type.sql not in ("text", "bigint", "numeric", "date"):
            raise self._problem(f"column {entity.name!r} names the entity and must be text, an integer or a date")
        if self._revised_at and self._by_name[self._revised_at].type is not columns.TIME:
            raise self._problem(f"column {self._revised_at!r} is the source's revised_at and must be a datetime")
        for name, column in schema.columns.items():
            if column.unique and name != self.entity_field:
                raise self._problem(
                    f"column {name!r}: unique=True needs the whole window; only the entity is unique in it"
                )
            if column.parsers:
                raise self._problem(f"column {name!r} has a parser; convert in extract()")
        if schema.unique and list(schema.unique) != [self.entity_field]:
            raise self._problem("Config.unique needs the whole window; only the entity is unique in it")
        if schema.parsers:
            raise self._problem("has a frame-wide parser; convert in extract()")
        if schema.index is not None:
            raise self._problem("has an index; make it a column")

    @cached_property
    def _checks(self) -> Any:
        """The checks of the schema without its types, which are read already: pandas knows them less exactly.

        Types of Python's own (`list[str]`) stay, because pandera knows what is inside them.
        """
        import pandera.pandas as pa  # noqa: PLC0415

        alone = {
            name: pa.Column(
                column.dtype if _is_generic(column.dtype) else None,
                checks=_all_failures(column.checks),
                nullable=column.nullable,
                required=False,
            )
            for name, column in self._schema.columns.items()
        }
        return pa.DataFrameSchema(alone, checks=_all_failures(self._schema.checks), name=self._schema.name)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _read(self, candidate: Candidate) -> _Read:
        """The values of a row, each of its column's type or missing with a reason."""
        given = candidate.values
        if isinstance(given, Unreadable):
            return _Read(candidate=candidate, values=None, reasons=[reason_of(given, column=None)])
        if not isinstance(given, Mapping):
            wrong = Reason(column=None, check="is_a_mapping", value=type(given).__name__)
            return _Read(candidate=candidate, values=None, reasons=[wrong])
        row = _Read(candidate=candidate, values={})
        for column in self.columns:
            if column.name in given or column.required:
                row.take(column, plain(given.get(column.name)))
        if candidate.origin.suspect:
            row.refuse_lost_text(self.columns)
        if self._schema.strict != "filter" and not given.keys() <= self._by_name.keys():
            self._read_extras(row, given)
        return row

    def _read_extras(self, row: _Read, given: Mapping[Any, Any]) -> None:
        """Fields that the schema does not name: refused with `strict = True`, else kept beside its columns."""
        for name in given.keys() - self._by_name.keys():
            if self._schema.strict or not isinstance(name, str):
                row.reasons.append(Reason(column=shown(name), check="column_in_schema", value=shown(given[name])))
                continue
            if isinstance(given[name], Unreadable):
                row.reasons.append(reason_of(given[name], column=shown(name)))
                continue
            try:
                row.extras[clean_text(name)] = json_text(given[name])
            except Unfit as unfit:
                row.reasons.append(Reason(column=shown(name), check=str(unfit), value=shown(given[name])))

    def _check(self, group: Sequence[_Read]) -> None:
        """Run the schema's checks; one that cannot say which row it means is asked again about fewer of them."""
        from pandera.errors import SchemaErrors  # noqa: PLC0415

        try:
            self._checks.validate(self.frame([row.values or {} for row in group]), lazy=True)
        except SchemaErrors as errors:
            cases = errors.failure_cases
        else:
            return
        if len(group) > 1 and cases["index"].isna().any():
            self._check(group[: len(group) // 2])
            self._check(group[len(group) // 2 :])
            return
        for context, column, check, value, index in zip(
            cases["schema_context"], cases["column"], cases["check"], cases["failure_case"], cases["index"], strict=True
        ):
            row = group[0 if is_missing(index) else int(index)]
            if context == "Column":
                row.add(Reason(column=column, check=shown(check), value=None if is_missing(value) else shown(value)))
            else:  # of the whole row; with an index pandera repeats it for each of its columns
                row.add(Reason(column=None, check=shown(check), value=shown(value) if is_missing(index) else None))

    def _sort(self, row: _Read, judged: Judged) -> None:
        entity = self._entity(row)
        if row.reasons or row.values is None or entity is None:
            reasons = sorted(row.reasons, key=lambda reason: (reason.column or "", reason.check))
            judged.rejects.append(reject(row.candidate, self.record_type, *reasons, entity=entity))
        else:
            judged.good.append(self._good(row, entity, row.values))

    def _entity(self, row: _Read) -> str | None:
        if row.values is None:
            return None
        try:
            return entity_of(row.values.get(self.entity_field))
        except Unfit as unfit:
            row.reasons = [
                reason for reason in row.reasons if reason.column != self.entity_field or reason.check != "not_nullable"
            ]
            row.add(Reason(column=self.entity_field, check=str(unfit)))
            return None

    def _good(self, row: _Read, entity: str, values: Mapping[str, Any]) -> Good:
        members = {
            name: "null" if value is None else self._by_name[name].type.json(value) for name, value in values.items()
        }
        members |= row.extras
        data = "{" + ",".join([f"{text_json(name)}:{members[name]}" for name in sorted(members)]) + "}"
        return Good(
            origin=row.candidate.origin,
            ordinal=row.candidate.ordinal,
            entity=entity,
            data=data,
            digest=hashlib.blake2b(data.encode(), digest_size=16).digest(),
            source_revised_at=values.get(self._revised_at) if self._revised_at else None,
            cleaned=row.cleaned,
        )


@dataclass(slots=True, kw_only=True)
class _Read:
    """A row on its way through a judge."""

    candidate: Candidate
    values: dict[str, Any] | None
    extras: dict[str, str] = field(default_factory=dict)
    """JSON of fields that the schema does not name."""
    reasons: list[Reason] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    """Columns whose value was not of their type."""
    cleaned: bool = False

    def take(self, column: Column, value: Any) -> None:
        """Read one value; one that does not fit is missing from now on, with its reason."""
        assert self.values is not None  # noqa: S101  for the type checker
        if is_missing(value):
            self.values[column.name] = column.default
            return
        if isinstance(value, Unreadable):
            self.lose(column, reason_of(value, column=column.name))
            return
        try:
            self.values[column.name] = read = column.type.read(value, coerce=column.coerce)
            self.cleaned |= read is not value and isinstance(value, str) and isinstance(read, str)
        except Unfit as unfit:
            self.lose(column, Reason(column=column.name, check=str(unfit), value=shown(value)))

    def lose(self, column: Column, reason: Reason) -> None:
        """A value that could not be read: missing from now on."""
        assert self.values is not None  # noqa: S101
        self.values[column.name] = None
        self.unread.add(column.name)
        self.reasons.append(reason)

    def refuse_lost_text(self, columns: Iterable[Column]) -> None:
        """Required text of a page in doubt must be whole; text that may be missing may be damaged."""
        for column in columns:
            value = (self.values or {}).get(column.name)
            if not column.nullable and isinstance(value, str) and REPLACEMENT in value:
                self.lose(column, Reason(column=column.name, check="is_decoded", value=shown(value)))

    def add(self, reason: Reason) -> None:
        """One more reason; once, and not about a value that could not even be read."""
        if reason.column not in self.unread and reason not in self.reasons:
            self.reasons.append(reason)


def series(column: Column, values: list[Any]) -> Any:
    """Values of a column as pandas has them: missing ones stay missing, times in the column's zone."""
    import pandas as pd  # noqa: PLC0415

    if column.type.frame != "time":
        return pd.Series(values, dtype=column.type.frame)
    instants = pd.Series(values, dtype="datetime64[us, UTC]")
    return instants.dt.tz_convert(column.time_zone) if column.time_zone else instants.dt.tz_localize(None)


def _is_generic(dtype: Any) -> bool:
    return str(dtype).startswith(("list", "dict", "tuple"))


def _all_failures(checks: Iterable[Any]) -> list[Any]:
    """The checks, each told to report every row: a row that is left out of the report would pass."""
    complete = [copy.copy(check) for check in checks]
    for check in complete:
        check.n_failure_cases = None
    return complete
