"""Bombs of nested tags are seen before a parser meets them."""

from __future__ import annotations

import time

import pytest

from collector_assets import html
from collector_assets.cases import page
from collector_assets.nesting import DEEPEST, is_too_deep

N = 60_000


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * N,
        "<div></x>" * N,
        "<div><!--</div>-->" * N,
        "<div><a title='</div>'></a>" * N,
        "<div><script></div></script>" * N,
        "<ul><li>" * N,
        "<b a=1><div></b>" * N,
        "<DIV\n>" * N,
    ],
)
def test_deep_markup_is_refused_quickly(markup: str) -> None:
    # Mutation: never refuse in Page.tree -> minutes of processor time.
    before = time.process_time()
    with pytest.raises(ValueError, match="inside each other"):
        html.all(page(markup), "p")
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "markup",
    [
        "<div></div>" * N,
        "<ul>" + "<li>a" * N,
        "<table>" + "<tr><td>a<td><div>b</div>" * N,
        "<p>a" * N,
        "<br><img src=x>" * N,
        "<" * N,
        "<!-- <div> -->" * N,
        "<div>" * (DEEPEST - 1),
    ],
)
def test_long_markup_is_not_deep(markup: str) -> None:
    assert not is_too_deep(markup)


@pytest.mark.parametrize("markup", ["<a ", "<a b='", "<!--", "<", "= ", "<script>", "<title>", '<a x="" '])
def test_no_markup_takes_more_than_linear_time(markup: str) -> None:
    before = time.process_time()
    is_too_deep(markup * 200_000)
    assert time.process_time() - before < 2


def test_text_of_deep_elements_needs_no_recursion() -> None:
    assert html.text(html.all(page("<div>" * 5_000 + "x"), "div")[0]) == "x"
