"""A first draft of a source: what a page seems to hold, and a file that reads exactly this."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest

from collector_assets import cases, draft, guess, registry
from collector_assets.guess import Bare, Cards, Detail, Grid, Objects
from collector_assets.page import Page

CARD = """
<li class="col-3"><article class="thing"><h3><a href="/t/{0}" title="The whole title {0}">The whole…</a></h3>
<a href="/t/{0}"><img></a><p class="price">{1}</p></article></li>
"""
NAVIGATION = "<ul>" + "".join(f'<li class="nav"><a href="/{n}">{n}</a></li>' for n in range(30)) + "</ul>"
LISTING = (
    f"<html><body>{NAVIGATION}<ol>"
    + "".join(CARD.format(n, f"1.23{n},50 €") for n in range(4))
    + '</ol><ul><li class="next"><a href="?page=2">next</a></li></ul></body></html>'
)
DETAIL = """<html><body><h1>The harbour</h1><div class="main"><p class="price_color">£12.50</p></div>
<aside><p class="price_color">£1.00</p></aside>
<table class="facts"><tr><th>SKU</th><td>00123</td></tr><tr><th>Class</th><td>NA</td></tr></table></body></html>"""
GRID = """<table id="filings"><thead><tr><th>Number</th><th>Filed on</th><th>Form</th></tr></thead><tbody>
<tr><td>001</td><td>2026-01-02</td><td>10-K</td></tr><tr><td>002</td><td>2026-01-02</td><td>8-K</td></tr>
<tr><td>003</td><td>2026-01-03</td><td>8-K</td></tr></tbody></table>"""
OBJECTS = {"page": 1, "items": [{"id": 7, "name": "a", "rate": 1, "tags": []}, {"id": 8, "rate": 1.5, "tags": [1]}]}


def page(body: str, *, kind: str = "detail", is_json: bool = False) -> Page:
    headers = {"content-type": "application/json"} if is_json else None
    return cases.page(body, url="https://shop.example/list", kind=kind, headers=headers)


def outcomes(body: str, tmp_path: Path, *, is_json: bool = False) -> tuple[str, dict[str, Any]]:
    """The draft, and what it makes of its page."""
    stored = page(body, is_json=is_json)
    shape = guess.shape_of(stored)
    code = draft.source_file(shape, name="drafted", url=stored.url, start="2026-01-01", records=1)
    file = tmp_path / "drafted.py"
    file.write_text(code, "utf-8")
    kind = "listing" if isinstance(shape, Cards | Grid) else "detail"
    return code, cases.outcomes(registry.load_one(f"{file}::drafted"), page(body, kind=kind, is_json=is_json))


def test_cards_are_told_from_navigation_and_from_what_surrounds_them() -> None:
    found = guess.shape_of(page(LISTING))
    assert isinstance(found, Cards)
    assert (found.css, found.number, found.link, found.title_attribute) == ("article.thing", 4, "h3 a", True)
    assert found.price
    assert (found.price.css, found.price.decimal, found.following) == ("p.price", ",", "li.next a")


def test_a_draft_of_cards_reads_each_card_and_the_next_link(tmp_path: Path) -> None:
    _, found = outcomes(LISTING, tmp_path)
    assert found["links"] == [["https://shop.example/list?page=2", "listing", None]]
    assert found["rejects"] == []
    assert found["records"][1] == {
        "url": "https://shop.example/t/1", "title": "The whole title 1", "price": 1231.5,
    }  # fmt: skip


def test_a_detail_page_is_read_by_selectors_that_match_once(tmp_path: Path) -> None:
    found = guess.shape_of(page(DETAIL))
    assert isinstance(found, Detail)
    assert found.price
    assert (found.price.css, found.table, found.entity) == ("div.main p.price_color", "table.facts", "sku")
    _, read = outcomes(DETAIL, tmp_path)
    assert read["rejects"] == []
    assert read["records"] == [
        {"url": "https://shop.example/list", "title": "The harbour", "price": 12.5, "sku": "00123", "field_class": "NA"}
    ]


def test_a_table_with_a_header_is_one_record_a_row(tmp_path: Path) -> None:
    found = guess.shape_of(page(GRID))
    assert isinstance(found, Grid)
    assert (found.css, found.entity) == ("#filings", "number")
    _, read = outcomes(GRID, tmp_path)
    assert [row["filed_on"] for row in read["records"]] == ["2026-01-02", "2026-01-02", "2026-01-03"]


def test_json_is_read_by_the_types_of_its_values(tmp_path: Path) -> None:
    found = guess.shape_of(page(json.dumps(OBJECTS), is_json=True))
    assert isinstance(found, Objects)
    assert (found.path, found.entity, found.ignored) == (("items",), "id", ("tags",))
    assert found.fields == {
        "id": ("id", "int", False), "name": ("name", "str", True), "rate": ("rate", "float", False),
    }  # fmt: skip
    _, read = outcomes(json.dumps(OBJECTS), tmp_path, is_json=True)
    assert read["records"] == [{"id": 7, "name": "a", "rate": 1.0}, {"id": 8, "name": None, "rate": 1.5}]


@pytest.mark.parametrize(
    "body", ["", "plain text", "<p>one</p>", "<h1>a</h1><h1>b</h1>", "\x00\x01", "{]", "<table></table>"]
)
def test_what_is_not_recognized_is_not_guessed(body: str, tmp_path: Path) -> None:
    assert isinstance(guess.shape_of(page(body)), Bare)
    code, read = outcomes(body, tmp_path)
    assert "error" not in read
    assert draft.MARK in code


HOSTILE = (
    'x"""', "'; import os  #", "\\", "{0}", "{name}", "</script>", "\u202egnp.exe", "a\nb", "class", "to_schema", "é",
    "'\"", "__import__('os')", "\N{PILE OF POO}", "config", "0", "_",
)  # fmt: skip


def test_nothing_that_a_site_wrote_becomes_code_or_a_comment(tmp_path: Path) -> None:
    # Mutation: in draft._literal return f'"{text}"'
    rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(label)}</td></tr>" for label in HOSTILE)
    body = f'<h1>t</h1><table class="x&quot;]y ok">{rows}</table>'
    code, read = outcomes(body, tmp_path)
    assert read["rejects"] == []
    assert len(read["records"][0]) == len(HOSTILE) + 2
    allowed = {"Iterator", "pa", "html", "Item", "extract", "SOURCE", "Source", "Page", "Daily", "Budget", "Expect",
               "facts", "page", "seconds", "strict", "hours", "str", "dict", "object"}  # fmt: skip
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    assert names - allowed - set(read["records"][0]) == set()
    comments = [line.partition("#")[2] for line in code.splitlines() if " # " in line]
    assert all(comment.strip().startswith(draft.MARK) for comment in comments)
    assert all(line.isprintable() for line in code.splitlines())


@pytest.mark.parametrize("body", [LISTING, DETAIL, GRID, json.dumps(OBJECTS), "<title>t</title>"])
def test_a_draft_is_written_as_its_owner_would_write_it(body: str, tmp_path: Path) -> None:
    outcomes(body, tmp_path, is_json=body.startswith("{"))
    ours = [
        "--isolated",
        "--config",
        "line-length=120",
        "--config",
        'lint.isort.known-first-party=["collector_assets"]',
    ]
    for command in (["check", "--select", "E,F,I,W,UP"], ["format", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *ours, "drafted.py"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
