"""Cases of the kind HTML: markup, tables, embedded data, prices and dates as pages have them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import html, normalize
from collector_assets.cases import page
from collector_assets.contract import Daily, Expect, Page, Source, Unreadable, attempt
from collector_assets.normalize import DecimalMark
from collector_tests.fixtures.stored import Stored

HTML = {"content-type": "text/html; charset=utf-8"}


def reason(found: Any) -> str:
    assert isinstance(found, Unreadable), found
    return found.check


def test_html_01_nul_bytes_in_markup() -> None:
    given = page(b'<p>a\0b</p><link href="file:///C:\0x.xml" rel=a><p>after</p>')
    assert [html.text(each) for each in html.all(given, "p")] == ["ab", "after"]
    assert [html.attribute(each, "href") for each in html.all(given, "[href]")] == ["file:///C:x.xml"]
    assert b"\0" in given.body


def test_html_03_text_node_over_10_mb() -> None:
    given = page("<p>" + "x" * 11_000_000 + "</p><p>TAIL</p>")
    long, tail = html.all(given, "p", at_least=2)
    assert (len(html.text(long)), html.text(tail)) == (11_000_000, "TAIL")


def test_html_04_tables_in_tables() -> None:
    table = html.one(
        page("<table id=t><tr><td>A<table><tr><td>inner</td></tr></table></td><td>1</td></tr></table>"), "#t"
    )
    (cells,) = html.rows(table)
    assert [html.own_text(cell) for cell in cells] == ["A", "1"]
    assert html.fields(table) == {"A": "1"}
    bodied = html.one(page("<table id=t><tbody><tr><td>A<td>1<tbody><tr><td>B<td>2</table>"), "#t")
    assert html.fields(bodied) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("attribute", "width"),
    [('colspan="2;"', 3), ("colspan=x", 2), ("colspan=0", 2), ("colspan=-2", 2), ("colspan=' +2'", 3), ("", 2),
     ("colspan=100000", 1_001)],
)  # fmt: skip
def test_html_05_broken_column_spans(attribute: str, width: int) -> None:
    table = html.one(page(f"<table><tr><td {attribute}>a</td><td>b</td></table>"), "table")
    assert [len(row) for row in html.grid(table)] == [width]


def test_html_05_row_spans_end_with_their_group_and_shift_nothing() -> None:
    table = html.one(
        page("<table><thead><tr><th rowspan=2>Name<th colspan=2>Price<tr><th>old<th>new"
             "<tbody><tr><td rowspan=0>A<td>1<td>2<tr><td>3<td>4<tbody><tr><td>B<td>5<td>6</table>"),
        "table",
    )  # fmt: skip
    assert list(html.records(table, header_rows=2)) == [
        {"Name": "A", "Price old": "1", "Price new": "2"},
        {"Name": "A", "Price old": "3", "Price new": "4"},
        {"Name": "B", "Price old": "5", "Price new": "6"},
    ]


def test_html_05_a_row_without_the_declared_columns_is_rejected_alone() -> None:
    table = html.one(page("<table><tr><th>a<th>b<tr><td>1<td>2<tr><td>only one<tr><td>3<td>4</table>"), "table")
    good, bad, last = html.records(table)
    assert (good, last) == ({"a": "1", "b": "2"}, {"a": "3", "b": "4"})
    assert reason(bad) == "malformed"
    wide = html.one(page("<table><tr><th>a<tr><td>1<td>2</table>"), "table")
    with pytest.raises(Unreadable, match="are empty or repeat"):
        list(html.records(wide))


def test_html_05_spans_ask_for_billions_of_places_and_get_none() -> None:
    bomb = "<table>" + "<tr>" + "<td rowspan=65534 colspan=1000>x" * 50 + "<tr><td>y" * 100 + "</table>"
    with pytest.raises(Unreadable, match="more than 1,000,000 places"):
        html.grid(html.one(page(bomb), "table"))


def test_html_06_numbers_of_a_table_are_read_once_by_the_mark_of_the_source() -> None:
    table = html.one(page("<table><tr><th>price<tr><td>1.234,56<tr><td>12,50</table>"), "table")
    rows = [row for row in html.records(table) if not isinstance(row, Unreadable)]
    assert [row["price"] for row in rows] == ["1.234,56", "12,50"]
    assert [normalize.number(row["price"], decimal=",") for row in rows] == [Decimal("1234.56"), Decimal("12.50")]


SHOWN = (
    "<template><p class=price>1</p></template><noscript><p class=price>2</p></noscript>"
    '<p class=price style="display:none">3</p><p class=price>4</p><title>T</title><svg><title>icon</title></svg>'
    "<div>Price<script>var p=9</script> 5</div>"
)


def test_html_07_several_prices_are_ambiguous_and_never_the_first() -> None:
    assert reason(attempt(html.one, page(SHOWN), ".price")) == "ambiguous"


def test_html_07_text_that_is_not_shown_is_no_text() -> None:
    given = page(SHOWN)
    assert html.text(html.one(given, "div")) == "Price 5"
    assert html.title(given) == "T"
    button = page("<a><svg><title>icon</title><desc>d</desc></svg><style>a{}</style>Buy<template>x</template></a>")
    assert html.text(html.one(button, "a")) == "Buy"


class Item(pa.DataFrameModel):
    """What a listing says."""

    sku: str
    price: object


def rows_of(given: Page) -> Iterator[Any]:
    for card in html.all(given, ".item"):
        yield attempt(_row, card)


def _row(card: Any) -> dict[str, Any]:
    return {"sku": html.text(html.one(card, "b")), "price": str(normalize.price(html.text(html.one(card, "i"))))}


SHOP = Source(
    name="things", start_urls=("http://shop.localhost:8765/",), extract=rows_of, schema=Item, entity="sku",
    extractor_version="1", window=Daily(start="2026-01-01"), expect=Expect(min_records=10, max_reject_rate=0.5),
)  # fmt: skip


def listing(number: int, css: str = "item") -> bytes:
    return "".join(f"<p class={css}><b>{each}</b><i>£{each}</i></p>" for each in range(number)).encode()


def test_html_07_an_ambiguous_row_is_a_reject_and_the_others_pass(stored: Stored) -> None:
    row = stored.window(SHOP)
    two = b"<p class=item><b>x</b><i>1</i><i>2</i></p><p class=item><b>y</b><i>5 to 6</i></p>"
    stored.add(SHOP, row, [listing(12) + two], headers=HTML)
    report = stored.process(SHOP, row)
    assert (report.records, report.rejects, report.verdict.passed) == ({"record": 12}, 2, True)
    assert [each.reasons[0]["check"] for each in report.reject_examples] == ["ambiguous", "ambiguous"]


def test_html_08_redesign_gives_zero_rows_and_leaves_latest_alone(stored: Stored) -> None:
    before = stored.window(SHOP)
    stored.add(SHOP, before, [listing(40)], headers=HTML)
    stored.process(SHOP, before)
    stored.publish(SHOP, before)
    held = stored.rows("SELECT entity, data FROM latest ORDER BY entity")
    after = stored.window(SHOP, 1)
    stored.add(SHOP, after, [listing(40, css="card") + b" " * 60_000], headers=HTML)
    report = stored.process(SHOP, after)
    assert report.outcomes == {"no_records": 1}
    assert {finding.check for finding in report.verdict.objections} == {"pages_readable", "record_count_expected"}
    assert stored.rows("SELECT entity, data FROM latest ORDER BY entity") == held
    assert len(held) == 40


@pytest.mark.parametrize(
    "block",
    ['{"a":"x\ny"}', '{"a":1};', '// <![CDATA[\n{"a":1}\n// ]]>', '<!--\n{"a":1}\n-->', "\ufeff{}",
     '/* <![CDATA[ */ {"a":[1]} /* ]]> */', '<![CDATA[{"a":1}]]>', '{"a":"]]> -->"}', " [[1]] "],
)  # fmt: skip
def test_html_10_json_ld_in_its_wrappers_is_read(block: str) -> None:
    found = html.json_ld(page(f"<script type=application/ld+json>{block}</script>"))
    assert (len(found.blocks), found.skipped) == (1, 0)


@pytest.mark.parametrize(
    "block", ['{"a":1,}', '{"a":1}{"b":2}', "{'a':1}", "", "undefined", "[" * 100_000, '{"a": 1 /* c */}', "<!--"]
)
def test_html_10_json_ld_that_is_none_is_skipped_and_counted(block: str) -> None:
    good = '<script type="application/ld+json">{"@type": "Product", "sku": "7"}</script>'
    found = html.json_ld(page(f"{good}<script type='Application/LD+JSON; charset=utf-8'>{block}</script><p>x</p>"))
    assert found.skipped == 1
    assert found.of_type("Product") == [{"@type": "Product", "sku": "7"}]


def test_data_in_a_script_is_read_behind_its_name() -> None:
    given = page('<script>var a = 1; window.__STATE__ = {"sku": "7", "b": [1]};\n window.x = "}";</script>')
    script = html.one(given, "script")
    assert html.json_after(script, "window.__STATE__ =") == {"sku": "7", "b": [1]}
    assert reason(attempt(html.json_after, script, "window.__OTHER__ =")) == "missing"
    assert reason(attempt(html.json_after, script, " = ")) == "ambiguous"
    assert reason(attempt(html.json_after, script, "window.x")) == "malformed"
    assert html.json_in(html.one(page('<script type="application/json">{"a": 1}</script>'), "script")) == {"a": 1}


def test_html_12_bare_less_than_in_text() -> None:
    given = page("<p>section (<2cm), length 93</p>")
    assert html.text(html.one(given, "p")) == "section (<2cm), length 93"


@pytest.mark.parametrize(
    ("decimal", "text", "amount"),
    [
        (",", "1.234,56 €", "1234.56"), (",", "1.234", "1234"), (",", ",89 €", "0.89"),
        (",", "1\u00a0298,00 €", "1298.00"), (",", "1\u202f298,00", "1298.00"),
        (".", "1,234.56", "1234.56"), (".", "3.350", "3.350"), (".", ".75", "0.75"), (".", "£51.77", "51.77"),
        (".", "1,234", "1234"),
    ],
)  # fmt: skip
def test_html_13_plain_price_shapes(decimal: DecimalMark, text: str, amount: str) -> None:
    assert str(normalize.price(text, decimal=decimal)) == amount


def test_html_15_day_and_month_do_not_flip_inside_one_column() -> None:
    assert [normalize.date(text, order="dmy") for text in ("13/04/2026", "14/04/2026", "02/05/2026")] == [
        date(2026, 4, 13), date(2026, 4, 14), date(2026, 5, 2),
    ]  # fmt: skip
    assert [normalize.date(text, order="mdy") for text in ("04/13/2026", "05/02/2026")] == [
        date(2026, 4, 13), date(2026, 5, 2),
    ]  # fmt: skip
    assert reason(attempt(normalize.date, "13/04/2026", order="mdy")) == "impossible"
    assert reason(attempt(normalize.date, "02/05/2026")) == "ambiguous"


def test_html_18_dates_are_not_quietly_repaired() -> None:
    now = datetime(2026, 3, 10, tzinfo=UTC)
    for text in ("2026-13-01", "31/02/2026", "29 Feb 2025", "6/4/25 0730", "0000-00-00"):
        assert reason(attempt(normalize.date, text, order="dmy")) in ("impossible", "malformed")
    assert reason(attempt(normalize.date, "Mar 3")) == "ambiguous"
    assert normalize.date("Mar 3", year="past", now=now) == date(2026, 3, 3)
    assert normalize.epoch("1712345678000", unit="ms") == datetime(2024, 4, 5, 19, 34, 38, tzinfo=UTC)
    assert reason(attempt(normalize.epoch, "1712345678000", unit="s")) == "impossible"


def test_html_19_value_in_a_class_name() -> None:
    assert normalize.rating("star-rating Three") == normalize.rating("Three star-rating extra") == 3
    assert normalize.rating("star-rating Zero", words={"Zero": 0, **normalize.STARS}) == 0
    assert reason(attempt(normalize.rating, "star-rating Seven")) == "malformed"
    assert normalize.rating("star-rating") is None
