"""What a source file may say, and what it is told when it says something else (design.md §4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import contract_page
from collector_assets.contract import (
    FOREVER,
    Budget,
    Cron,
    Daily,
    Expect,
    Hourly,
    Kind,
    Link,
    Page,
    Record,
    Retention,
    Secret,
    Source,
    days,
    hours,
    replace,
    seconds,
)
from collector_assets.errors import ContractError, NotBuiltYet
from collector_assets.window import Window, cron_problem

CONTRACT_PAGE = Path(__file__).parents[2] / "docs" / "source-contract.md"


class Book(pa.DataFrameModel):
    upc: str
    price: float


class Person(pa.DataFrameModel):
    id: str
    born: str


def discover(_page: Page) -> Iterator[Link]:
    yield Link("/a")


def extract(_page: Page) -> Iterator[Record]:
    yield Record("record", {})


LONG: dict[str, Any] = {"discover": ..., "extract": ...}
"""The short form's fields taken away."""


def source(**changes: Any) -> Source:
    """A right source, changed; `...` removes a field."""
    said: dict[str, Any] = {
        "name": "books",
        "start_urls": ("https://shop.example/p-1.html",),
        "discover": discover,
        "extract": extract,
        "schema": Book,
        "entity": "upc",
        "extractor_version": "1",
        "window": Daily(start="2026-01-01", timezone="Europe/London"),
        **changes,
    }
    return Source(**{name: value for name, value in said.items() if value is not ...})


def test_short_form_of_the_design_is_accepted() -> None:
    made = source(
        budget=Budget(gap=seconds(2), slots=1, weight=1),
        capacity=500,
        max_requests=5_000,
        lanes={"travel": 3, "*": 1},
        expect=Expect(min_records=50, max_records=5_000, max_error_rate=0.05, max_reject_rate=0.02),
        freshness=hours(26),
        retention=Retention(raw_pages=days(30), rejects=days(90), history=FOREVER),
    )
    assert list(made.kind_map) == ["listing", "detail"]
    assert (made.discovering, made.with_extract, made.first_kind) == (("listing",), ("detail",), "listing")
    assert (made.schemas, made.entity_field("record")) == ({"record": Book}, "upc")
    assert (made.lane_weight("travel"), made.lane_weight("poetry")) == (3, 1)
    assert (made.domain, made.hosts, made.is_demo) == ("shop.example", ("shop.example",), False)


def test_long_form_has_several_kinds_and_record_types() -> None:
    made = source(
        discover=..., extract=..., schema=...,
        kinds={"rows": Kind(discover=discover, extract=extract), "file": Kind(extract=extract, dedupe="entity")},
        records={"book": Book, "person": Person},
        entity={"book": "upc", "person": "id"},
        revised_at="born",
        combine=lambda _entity, rows: rows[0],
        headers={"Authorization": Secret("SHOP_TOKEN", prefix="Bearer ")},
    )  # fmt: skip
    assert (made.discovering, made.with_extract) == (("rows",), ("file", "rows"))
    assert made.entity_field("person") == "id"
    assert replace(made, name="other").kinds == made.kinds


def test_interleaving_source_has_no_discovering_pass() -> None:
    made = source(interleave=True)
    assert (made.discovering, made.with_discover) == ((), ("listing",))


def test_starts_name_the_window_in_the_time_zone_of_the_source() -> None:
    made = source(
        start_urls=(
            "https://shop.example/{window.start:%Y/%m}/{window.end}/{window.key}",
            Link("https://shop.example/x"),
        )
    )
    window = Window(key="2026-01-05", start=datetime(2026, 1, 5, tzinfo=UTC), end=datetime(2026, 1, 6, tzinfo=UTC))
    assert made.is_window_named
    assert list(made.starts(window)) == [
        Link("https://shop.example/2026/01/2026-01-06/2026-01-05", kind="listing"),
        Link("https://shop.example/x"),
    ]
    assert not source().is_window_named
    assert source(names_window=True).is_window_named


def test_start_function_adds_links() -> None:
    made = source(
        start_urls=(),
        start=lambda window, _inputs: [Link(f"https://shop.example/{window.key}")],
        scope=("shop.example",),
    )
    window = Window(key="k", start=datetime(2026, 1, 5, tzinfo=UTC), end=datetime(2026, 1, 6, tzinfo=UTC))
    assert [link.url for link in made.starts(window)] == ["https://shop.example/k"]
    assert made.domain == "shop.example"


def test_scope_is_the_domain_of_the_starts_with_its_subdomains() -> None:
    made = source(start_urls=("https://www.shop.example/",))
    assert [made.in_scope(host) for host in ("shop.example", "img.shop.example", "notshop.example", "example")] == [
        True,
        True,
        False,
        False,
    ]
    narrow = source(scope=("www.shop.example",), start_urls=("https://www.shop.example/",))
    assert [narrow.in_scope(host) for host in ("shop.example", "www.shop.example")] == [False, True]


def test_budget_key_is_the_domain_unless_the_source_says_host() -> None:
    url = "https://www.shop.example/"
    assert source().budget_key(url) == "shop.example"
    assert source(budget=Budget(per="host")).budget_key(url) == "www.shop.example"


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"start_ulrs": ()}, "start_ulrs", "unknown field; did you mean 'start_urls'?"),
        ({"zzz": 1}, "zzz", "unknown field; docs/source-contract.md lists all"),
        ({"entity": ...}, "entity", "is required"),
        ({"extractor_version": 1}, "extractor_version", "valid string, not 1"),
        ({"freshness": 3600}, "freshness", "3600 is not a length of time: write seconds(2)"),
        ({"start_urls": ["https://shop.example/"]}, "start_urls", "valid tuple"),
        ({"start_urls": ("https://shop.example/", 5)}, "start_urls[1]", "not 5"),
        ({"max_attempts": 0}, "max_attempts", "greater than or equal to 1, not 0"),
        ({"budget": {"gap": 2}}, "budget", "instance of Budget"),
        ({"window": "daily"}, "window", "'daily' is no schedule: write Daily("),
        ({"late": "maybe"}, "late", "'allow' or 'refuse', not 'maybe'"),
        ({"name": "My Books"}, "name", "must be lower case letters"),
        ({"name": "multi"}, "name", "must be lower case letters"),
        ({"kinds": {"Detail": Kind(extract=extract)}, **LONG}, "kinds", "'Detail' must be lower case"),
        ({"kinds": {"detail": Kind(extract=extract)}}, "kinds", "not both"),
        ({"kinds": {"a": Kind(extract=extract), "b": Kind()}, **LONG}, "kinds", "'b' has neither"),
        ({"extract": ...}, "extract", "no record can ever come out"),
        ({"start_urls": ...}, "start_urls", "a window would have nothing to do"),
        ({"start_urls": ..., "start": lambda _w, _i: ()}, "scope", "the hosts must be named here"),
        ({"start_urls": ("/p-1.html",)}, "start_urls", "is not an absolute http(s) URL"),
        ({"start_urls": ("ftp://shop.example/",)}, "start_urls", "is not an absolute http(s) URL"),
        ({"start_urls": ("https://shop.example/{window.begin}",)}, "start_urls", "in braces only window.start"),
        ({"start_urls": (Link("https://shop.example/", kind="page"),)}, "start_urls", "the kinds are listing, detail"),
        ({"start_urls": ("https://a.example/", "https://b.example/")}, "start_urls", "one source is one domain"),
        ({"scope": ("https://shop.example",)}, "scope", "is not a host name"),
        ({"scope": ("Shop.example",)}, "scope", "is not a host name"),
        ({"scope": ("other.example",)}, "scope", "starts outside of it"),
        ({"allow_addresses": ("0.0.0.0/0",)}, "allow_addresses", "0.0.0.0/0 is too wide"),
        ({"allow_addresses": ("169.254.169.254",)}, "allow_addresses", "is link-local, which no source may reach"),
        ({"allow_addresses": ("localhost",)}, "allow_addresses", "does not appear to be an IPv4 or IPv6 network"),
        ({"headers": {"User-Agent": "Mozilla/5.0"}}, "headers", "User-Agent is ours to say"),
        ({"headers": {"X Y": "z"}}, "headers", "'X Y' is not a header name"),
        ({"headers": {"X-Y": "a\r\nHost: b"}}, "headers", "control characters"),
        ({"schema": ...}, "schema", "give either schema"),
        ({"records": {"book": Book}}, "schema", "not both"),
        ({"schema": dict}, "schema", "needs a pandera"),
        ({"entity": "isbn"}, "entity", "'isbn' is not a column of record type 'record' (upc, price)"),
        ({"entity": {"record": "upc", "book": "upc"}}, "entity", "'book' is not a record type"),
        ({"entity": {}}, "entity", "has no entity field"),
        ({"revised_at": "changed"}, "revised_at", "not a column of any record type"),
        ({"lanes": {"travel": 0}}, "lanes", "a weight is at least 1"),
        ({"expect": Expect(min_records=5, max_records=4)}, "expect.max_records", "less than min_records"),
        ({"total_timeout": seconds(1)}, "total_timeout", "shorter than"),
    ],
)  # fmt: skip
def test_wrong_source_is_told_the_field_and_the_problem(changes: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(ContractError, match=re.escape(problem)) as caught:
        source(**changes)
    assert caught.value.source == str(changes.get("name", "books"))
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Budget(gap=2), "Budget.gap: 2 is not a length of time"),  # pyright: ignore[reportArgumentType]
        (lambda: Budget(gpa=seconds(2)), "Budget.gpa: unknown field; did you mean 'gap'?"),  # pyright: ignore[reportCallIssue]
        (lambda: Budget(gap=seconds(-1)), "Budget.gap: input should be greater than or equal to 0 seconds"),
        (lambda: Budget(slots=0), "Budget.slots"),
        (lambda: Expect(max_error_rate=5), "Expect.max_error_rate"),
        (lambda: Kind(fetcher="ftp"), "Kind.fetcher: input should be 'http'"),  # pyright: ignore[reportArgumentType]
        (lambda: Kind(method="get"), "Kind.method"),
        (lambda: Retention(history=seconds(0)), "Retention.history"),
        (lambda: Daily(start="1 January"), "window.start: '1 January' is not like '%Y-%m-%d'"),
        (lambda: Hourly(start="2026-01-01"), "window.start"),
        (lambda: Daily(start="2026-01-01", timezone="Europe/Londres"), "window.timezone: unknown"),
        (lambda: Cron("0 24 * * *", start="2026-01-01-00:00"), "window.cron: '0 24 * * *': '24' is no hour (0 to 23)"),
    ],
)  # fmt: skip
def test_wrong_part_is_told_part_and_field(make: Any, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        make()
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("line", "is_right"),
    [
        ("0 9 * * mon-fri", True), ("*/15 0-6,22-23 1,15 JAN-mar 0-7/2", True), ("0 0 31 12 sun", True),
        ("60 * * * *", False), ("* * 0 * *", False), ("* * * 13 *", False), ("* * * * 8", False),
        ("5-1 * * * *", False),
        ("*/0 * * * *", False), ("@daily", False), ("* * * *", False), ("* * * * * *", False), ("a * * * *", False),
        (", * * * *", False),
    ],
)  # fmt: skip
def test_cron_line_is_judged_before_dagster_sees_it(line: str, is_right: bool) -> None:  # noqa: FBT001
    assert (cron_problem(line) == "") is is_right


@pytest.mark.parametrize(
    ("changes", "issue"),
    [
        ({"retention": Retention(requests=days(30))}, "C"),
    ],
)
def test_declared_feature_of_a_later_release_is_refused_by_name(changes: dict[str, Any], issue: str) -> None:
    with pytest.raises(NotBuiltYet, match="not alive in this release") as caught:
        source(**changes)
    assert caught.value.issue == issue
    assert "'books'" in str(caught.value)


def test_a_source_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="cannot assign to field"):
        source().capacity = 5  # pyright: ignore[reportAttributeAccessIssue]


def test_contract_page_is_what_the_generator_makes() -> None:
    assert CONTRACT_PAGE.read_text("utf-8") == contract_page.contract_page(), (
        "run: python -m collector_assets.contract_page > docs/source-contract.md"
    )


@pytest.mark.parametrize("part", contract_page.PARTS, ids=lambda part: part.__name__)
def test_contract_page_tells_meaning_and_unit_of_every_field(part: type) -> None:
    rows = {row.name: row for row in contract_page.rows(part)}
    assert list(rows) == [each.name for each in fields(part)]
    assert [name for name, row in rows.items() if not row.meaning] == []
    numbers = [name for name, row in rows.items() if re.match(r"`(int|float)`", row.type)]
    assert [name for name in numbers if name not in contract_page.UNITS] == []
    assert "typing." not in str(rows)


def test_forever_is_longer_than_any_window() -> None:
    assert timedelta(days=300_000) < FOREVER
