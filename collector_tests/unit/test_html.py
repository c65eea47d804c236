"""Reading HTML strictly."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborNode

from collector_assets import html
from collector_assets.cases import page


def node(markup: str, css: str) -> LexborNode:
    return html.one(page(markup), css)


def test_all_names_selector_and_count_when_too_few_match() -> None:
    shelf = page("<p class=a>1</p><p class=a>2</p>")
    assert [html.text(each) for each in html.all(shelf, "p.a", at_least=2)] == ["1", "2"]
    assert html.all(shelf, "p.b") == []
    with pytest.raises(ValueError, match=r"'p\.a' matches 2 elements, not at least 3"):
        html.all(shelf, "p.a", at_least=3)


def test_html_07_several_matches_are_ambiguous_and_never_the_first() -> None:
    shown = page(
        "<template><p class=price>1</p></template><noscript><p class=price>2</p></noscript>"
        '<p class=price style="display:none">3</p><p class=price>4</p><title>T</title><svg><title>icon</title></svg>'
        "<div>Price<script>var p=9</script> 5</div>"
    )
    with pytest.raises(ValueError, match=r"'\.price' matches \d elements, not exactly 1"):
        html.one(shown, ".price")
    with pytest.raises(ValueError, match="not 0 or 1"):
        html.maybe(shown, ".price")
    assert html.text(html.one(shown, "div")) == "Price 5"


def test_maybe_is_none_where_nothing_matches() -> None:
    assert html.maybe(page("<p>"), "b") is None
    assert html.text(html.maybe(page("<p><b>x</b>"), "b") or node("<i>", "i")) == "x"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p> a \n b\u00a0c </p>", "a b c"),
        ("<p>a<br>b</p>", "a b"),
        ("<p>5<b>1</b>.77</p>", "51.77"),
        ("<p>section (<2cm), length 93</p>", "section (<2cm), length 93"),  # HTML-12
        ("<p>a\0b</p>", "ab"),  # HTML-01
        ("<p>a<style>p{}</style><template>t</template><!-- c --><script>s</script>b</p>", "ab"),
        ("<p>&amp;amp; &pound;5</p>", "&amp; £5"),
        ("<p></p>", ""),
    ],
)
def test_text_is_what_is_shown(markup: str, text: str) -> None:
    assert html.text(node(markup, "p")) == text


def test_text_separates_blocks_as_they_are_shown() -> None:
    assert html.text(node("<section><h1>a</h1><ul><li>b</li><li>c</li></ul>d</section>", "section")) == "a b c d"


def test_html_03_text_of_eleven_megabytes_hides_nothing_behind_it() -> None:
    long = page("<p>" + "x" * 11_000_000 + "</p><p>TAIL</p>")
    assert html.text(html.all(long, "p", at_least=2)[1]) == "TAIL"


def test_html_04_rows_of_an_inner_table_are_not_rows() -> None:
    table = node("<table id=t><tr><td>A<table><tr><td>inner</td></tr></table></td><td>1</td></tr></table>", "#t")
    assert [len(cells) for cells in html.rows(table)] == [2]


def test_rows_are_found_in_every_section_of_a_table() -> None:
    table = node(
        "<table><thead><tr><th>a</thead><tbody><tr><td>b<td>c<tbody><tr><td>d<tfoot><tr><td>e</table>", "table"
    )
    assert [[html.text(cell) for cell in cells] for cells in html.rows(table)] == [["a"], ["b", "c"], ["d"], ["e"]]


def test_fields_are_the_labels_and_values_of_a_table() -> None:
    table = node("<table><tr><th>UPC</th><td> 1 </td></tr><tr><td>Tax</td><td>£0</td></tr></table>", "table")
    assert html.fields(table) == {"UPC": "1", "Tax": "£0"}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("<tr><th>a</th><td>1</td></tr><tr><th>a</th><td>2</td></tr>", "the label 'a' stands twice"),
        ("<tr><th>a</th><td>1</td><td>2</td></tr>", "has 3 cells"),
        ("<tr><th>a</th></tr>", "has 1 cells"),
    ],
)
def test_fields_of_another_shape_are_refused(rows: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        html.fields(node(f"<table>{rows}</table>", "table"))


def test_what_is_neither_read_nor_ignored_is_named() -> None:
    html.expect_empty({})
    html.expect_empty({"badge": "new"}, ignore={"badge"})
    with pytest.raises(ValueError, match="neither read nor ignored: 'weight'"):
        html.expect_empty({"badge": "new", "weight": "1 kg"}, ignore={"badge"})


def test_missing_attribute_is_named() -> None:
    assert html.attribute(node("<a href=x>", "a"), "href") == "x"
    with pytest.raises(ValueError, match="<a> has no href"):
        html.attribute(node("<a>", "a"), "href")


def test_url_03_first_usable_base_wins_wherever_it_stands() -> None:
    late = page(
        f"<!--{'x' * 6000}--><body><base target=_top><base href='/forum/'><base href='/x/'>",
        url="https://shop.example/old",
        final_url="https://shop.example/a/b/c/",
    )
    assert html.absolute(late, "t.html") == "https://shop.example/forum/t.html"


def test_url_03_unusable_base_is_ignored() -> None:
    odd = page("<base href='javascript:1'>", url="https://shop.example/old", final_url="https://shop.example/a/b/c/")
    assert html.absolute(odd, "t.html") == "https://shop.example/a/b/c/t.html"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("\n\t https://shop.example/item/7 \n", "https://shop.example/item/7"),
        ("ht\ntps://shop.example/item/8", "https://shop.example/item/8"),
        ("\u00a0/item/9", "https://shop.example/l/%C2%A0/item/9"),
        ("?p=2#top", "https://shop.example/l/?p=2"),
        ("", "https://shop.example/l/?p=1"),
        ("mailto:a@shop.example", "mailto:a@shop.example"),  # discovery counts it, with its reason
        ("http://[", "http://["),
    ],
)
def test_url_01_link_is_followed_as_a_browser_would(href: str, url: str) -> None:
    assert html.absolute(page(url="https://shop.example/l/?p=1"), href) == url
