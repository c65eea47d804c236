"""Starts from data: a query, a file, another source; read once per window, counted and digested."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from collector_assets import inputs, window_inputs
from collector_assets.contract import FromFile, FromQuery, FromSource, Link, Secret, Source, Window, replace
from collector_assets.errors import ContractError, InputUnavailable, InputUnreadable
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands

SHOP = "http://shop.localhost:8765"
DSN = Secret("WAREHOUSE")


def by_slug(window: Window, given: Mapping[str, Any]) -> Iterator[Link]:
    """A detail page for each row that has a slug."""
    assert window.key
    for row in given["books"]:
        yield Link(f"{SHOP}/catalogue/{row['slug']}/index.html")


def from_books(given: FromQuery | FromFile | FromSource, **changes: Any) -> Source:
    return replace(
        QUICK, name="watched", start_urls=(), scope=("shop.localhost",), discover=None, start=by_slug,
        inputs={"books": given}, **changes,
    )  # fmt: skip


def slugs(hands: Hands, number: int) -> list[str]:
    """Of books that the shop has."""
    hands.discover(QUICK)
    urls = hands.column("SELECT url FROM requests WHERE kind = 'detail' ORDER BY request_id LIMIT %s", number)
    return [url.split("/")[-2] for url in urls]


def read(hands: Hands, given: FromQuery | FromFile | FromSource) -> list[Mapping[str, Any]]:
    with inputs.opened(from_books(given), TODAY, hands.database) as rows:
        assert len(rows["books"]) == len(list(rows["books"]))
        return list(rows["books"])


def noted(hands: Hands, source: Source) -> list[window_inputs.WindowInput]:
    with hands.database.transaction() as connection:
        return window_inputs.listed(connection, source.name, TODAY.start)


# --- A query ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def warehouse(hands: Hands, worker_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    """A table of somebody else's, and its DSN in the environment."""
    monkeypatch.setenv("WAREHOUSE", worker_dsn)
    hands.do("CREATE TABLE watchlist (slug text, price numeric, since date)")
    yield hands
    hands.do("DROP TABLE watchlist")


def watch(hands: Hands, found: list[str]) -> None:
    for slug in found:
        hands.do("INSERT INTO watchlist VALUES (%s, 12.50, '2026-01-25')", slug)


def test_rows_of_a_query_become_starts_once_and_are_counted_and_digested(warehouse: Hands) -> None:
    watch(warehouse, slugs(warehouse, 3))
    source = from_books(FromQuery("SELECT slug FROM watchlist", dsn=DSN))
    assert warehouse.open(source).added == 3
    watch(warehouse, ["another"])
    assert warehouse.open(source).added == 0, "a window's starts are what was there when it opened"
    [seen] = noted(warehouse, source)
    assert (seen.input, seen.row_count, seen.edition) == ("books", 3, 1)
    assert warehouse.status(source).inputs == [seen]
    assert warehouse.open(source, TOMORROW).added == 4
    assert warehouse.open(replace(source, edition=2)).added == 4, "a new edition collects again, from what is there now"


def test_values_keep_their_types_and_the_digest_does_not_depend_on_the_order(warehouse: Hands) -> None:
    watch(warehouse, ["a", "b", "a"])
    assert read(warehouse, FromQuery("SELECT * FROM watchlist", dsn=DSN))[0] == {
        "slug": "a", "price": Decimal("12.50"), "since": date(2026, 1, 25),
    }  # fmt: skip
    digests = set()
    for query in ("SELECT slug FROM watchlist ORDER BY 1", "SELECT slug FROM watchlist ORDER BY 1 DESC"):
        with inputs.opened(from_books(FromQuery(query, dsn=DSN)), TODAY, warehouse.database) as rows:
            digests.add(rows["books"].digest)
    assert len(digests) == 1


def test_every_value_comes_back_as_it_was_and_an_odd_type_is_refused_by_its_column(warehouse: Hands) -> None:
    """What is kept in a file meanwhile is JSON, nothing pickled; Postgres has more types than JSON."""
    # Mutation: in inputs._unpacked give the content without its reader
    values = (
        "1.50::numeric AS a, '2026-01-25 12:00+02'::timestamptz AS b, '12:30'::time AS c, '1 day 2 s'::interval AS d,"
        "'00000000-0000-0000-0000-000000000007'::uuid AS e, '\\x00ff'::bytea AS f, ARRAY[1.5::numeric, NULL] AS g,"
        """'{"list": ["Decimal", "1"], "x": null}'::jsonb AS h, true AS i, 2.5::float8 AS j, NULL AS k, 7 AS l"""
    )
    assert read(warehouse, FromQuery(f"SELECT {values}", dsn=DSN)) == [{
        "a": Decimal("1.50"), "b": datetime(2026, 1, 25, 10, tzinfo=UTC), "c": time(12, 30),
        "d": timedelta(days=1, seconds=2), "e": UUID(int=7), "f": b"\x00\xff", "g": [Decimal("1.5"), None],
        "h": {"list": ["Decimal", "1"], "x": None}, "i": True, "j": 2.5, "k": None, "l": 7,
    }]  # fmt: skip
    with pytest.raises(InputUnreadable, match="column 'net' is a IPv4Address: cast it to text"):
        read(warehouse, FromQuery("SELECT '192.0.2.1'::inet AS net", dsn=DSN))


def test_a_query_may_name_the_window_and_can_only_read(warehouse: Hands) -> None:
    named = FromQuery("SELECT %(window_key)s AS slug WHERE 'a' LIKE 'a%%'", dsn=DSN)
    assert read(warehouse, named) == [{"slug": TODAY.key}]
    assert read(warehouse, FromQuery("SELECT 'a%' AS slug", dsn=DSN)) == [{"slug": "a%"}]
    with pytest.raises(InputUnreadable, match="read-only"):
        read(warehouse, FromQuery("SELECT nextval('fences') AS slug", dsn=DSN))


def test_what_is_wrong_with_a_query_is_said_without_the_password(
    warehouse: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputUnreadable, match="input 'books': .*nowhere"):
        read(warehouse, FromQuery("SELECT * FROM nowhere", dsn=DSN))
    monkeypatch.setenv("WAREHOUSE", "postgresql://me:hunter2@127.0.0.1:1/dwh?connect_timeout=2")
    with pytest.raises(InputUnavailable) as caught:
        read(warehouse, FromQuery("SELECT 1", dsn=DSN))
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("WAREHOUSE", "hunter2 is my password")
    with pytest.raises(InputUnreadable, match="^input 'books': WAREHOUSE holds no Postgres DSN$"):
        read(warehouse, FromQuery("SELECT 1", dsn=DSN))
    monkeypatch.delenv("WAREHOUSE")
    with pytest.raises(InputUnreadable, match="WAREHOUSE is not set"):
        read(warehouse, FromQuery("SELECT 1", dsn=DSN))


def test_more_rows_than_one_transaction_takes_all_get_in(warehouse: Hands) -> None:
    many = from_books(FromQuery("SELECT 'book-' || n AS slug FROM generate_series(1, 2500) AS n", dsn=DSN))
    opened = warehouse.open(many)
    assert (opened.added, noted(warehouse, many)[0].row_count) == (2_500, 2_500)


def test_an_opening_that_dies_in_the_middle_is_made_good_by_the_next(warehouse: Hands) -> None:
    """Not all starts are in before the input is noted."""
    many = from_books(FromQuery("SELECT 'book-' || n AS slug FROM generate_series(1, 1500) AS n", dsn=DSN))
    with warehouse.refusing("requests", "url NOT LIKE '%%book-1200/%%'"), pytest.raises(Exception, match="refused"):
        warehouse.open(many)
    assert noted(warehouse, many) == []
    assert warehouse.open(many).added == 500


# --- A file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("books.csv", '\ufeffslug,note\na,"x, y"\nb,\n'.encode()),
        ("books.tsv", b"slug\tnote\r\na\tx, y\r\nb\t\r\n"),
        ("books.csv.gz", gzip.compress(b'slug,note\na,"x, y"\n\nb,\n')),
        ("books.jsonl", b'{"slug": "a", "note": "x, y"}\n\n{"slug": "b", "note": ""}\n'),
        ("books.ndjson.gz", gzip.compress(b'{"slug": "a", "note": "x, y"}\n{"slug": "b", "note": ""}')),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_of_a_file(hands: Hands, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(hands, FromFile(str(tmp_path / name))) == [{"slug": "a", "note": "x, y"}, {"slug": "b", "note": ""}]


def test_a_file_may_name_the_window_and_be_elsewhere(hands: Hands) -> None:
    import fsspec  # noqa: PLC0415

    with fsspec.open(f"memory://in/{TODAY.key}.csv", "wb") as file:
        file.write(b"slug\na\n")  # pyright: ignore[reportAttributeAccessIssue]
    assert read(hands, FromFile("memory://in/{window.key}.csv")) == [{"slug": "a"}]


def test_a_file_in_an_object_store(hands: Hands, bucket: str) -> None:
    """s3://, by the usual AWS environment."""
    import fsspec  # noqa: PLC0415

    with fsspec.open(f"{bucket}/books.csv.gz", "wb") as file:
        file.write(gzip.compress(b"slug\na\nb\n"))  # pyright: ignore[reportAttributeAccessIssue]
    assert read(hands, FromFile(f"{bucket}/books.csv.gz")) == [{"slug": "a"}, {"slug": "b"}]
    with pytest.raises(InputUnreadable, match=r"nowhere\.csv: no such file"):
        read(hands, FromFile(f"{bucket}/nowhere.csv"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("slug,slug\na,b\n", "must name each column once"),
        ("slug,\na,b\n", "must name each column once"),
        ("slug,note\na\n", "line 2: 1 cells; the first line names 2 columns"),
        ("slug\na,b\n", "line 2: 2 cells"),
        ('slug\n"a\n', "unexpected end of data"),
        ("slug\n\xff\n", "can't decode"),
    ],
)
def test_a_file_that_cannot_be_meant_says_where(hands: Hands, tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "books.csv"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputUnreadable, match=problem) as caught:
        read(hands, FromFile(str(file)))
    assert str(file) in str(caught.value)


def test_an_empty_file_has_no_rows(hands: Hands, tmp_path: Path) -> None:
    """And no columns to miss."""
    for name in ("books.csv", "books.jsonl"):
        (tmp_path / name).write_bytes(b"")
        assert read(hands, FromFile(str(tmp_path / name))) == []


def test_a_file_that_is_not_there_or_no_json_is_said(hands: Hands, tmp_path: Path) -> None:
    with pytest.raises(InputUnreadable, match=r"nowhere\.csv: no such file"):
        read(hands, FromFile("nowhere.csv"))
    (tmp_path / "books.jsonl").write_text(json.dumps({"slug": "a"}) + "\n[1]\n")
    with pytest.raises(InputUnreadable, match="line 2 is no JSON object"):
        read(hands, FromFile(str(tmp_path / "books.jsonl")))


# --- Another source --------------------------------------------------------------------------------------------------


def by_url(_: Window, given: Mapping[str, Any]) -> Iterator[Link]:
    """The page of each book that the other source knows."""
    for row in given["books"]:
        yield Link(row["url"], hints={"upc": row["upc"]})


def test_another_source_s_entities_become_starts(hands: Hands) -> None:
    again = replace(from_books(FromSource("shop")), start=by_url)
    with pytest.raises(InputUnreadable, match="nothing of source 'shop' is in `latest` yet"):
        hands.open(again)
    hands.whole(QUICK)
    hands.publish(QUICK)
    assert hands.open(again).added == 60
    assert hands.open(replace(again, name="typed", inputs={"books": FromSource("shop", record="person")})).added == 0


@pytest.mark.parametrize(
    "url", ["https://shop.example/books.csv", "ftp://shop.example/b.csv", "simplecache::https://shop.example/b.csv"]
)
def test_a_file_on_the_web_is_a_page_and_no_input(url: str) -> None:
    """Rule 13: nothing leaves past the guard."""
    with pytest.raises(ContractError, match="a file on the web is a page"):
        from_books(FromFile(url))


def test_inputs_without_a_start_function_are_refused() -> None:
    with pytest.raises(ContractError, match="nothing reads them"):
        replace(QUICK, inputs={"books": FromSource("shop")})
