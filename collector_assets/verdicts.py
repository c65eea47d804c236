"""Store of verdicts: the judgement on a window's records, written in their transaction (rule 16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from collector_assets.database import Connection, statements

SQL: Final = statements("verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of a window's records."""

    check: str
    passed: bool
    severity: Literal["WARN", "ERROR"]
    """What it means when it did not pass: an ERROR fails the verdict."""
    message: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement on a window's records by one extractor version."""

    extractor_version: str
    passed: bool
    """No finding is a failed ERROR."""
    findings: tuple[Finding, ...]
    counts: Mapping[str, Any]

    @property
    def objections(self) -> tuple[Finding, ...]:
        """The findings for which it is not a pass."""
        return tuple(finding for finding in self.findings if not finding.passed and finding.severity == "ERROR")


def verdict_of(extractor_version: str, findings: tuple[Finding, ...], counts: Mapping[str, Any]) -> Verdict:
    """The verdict that follows from the findings."""
    passed = all(finding.passed or finding.severity == "WARN" for finding in findings)
    return Verdict(extractor_version=extractor_version, passed=passed, findings=findings, counts=counts)


def add(connection: Connection, *, source: str, window_start: datetime, verdict: Verdict) -> bool:
    """Make this the newest verdict; False when the newest says exactly this already."""
    values = {
        "source": source,
        "window_start": window_start,
        "version": verdict.extractor_version,
        "passed": verdict.passed,
        "findings": Jsonb([asdict(finding) for finding in verdict.findings]),
        "counts": Jsonb(dict(verdict.counts)),
    }
    return connection.execute(SQL["insert_verdict"], values).rowcount == 1


def newest(connection: Connection, source: str, window_start: datetime) -> Verdict | None:
    """The newest verdict on a window, by whichever extractor version."""
    values = {"source": source, "window_start": window_start}
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL["newest_verdict"], values).fetchone()
    if row is None:
        return None
    found = tuple(Finding(**finding) for finding in row.pop("findings"))
    return Verdict(findings=found, **row)
