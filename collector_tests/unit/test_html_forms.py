"""Forms as browsers send them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from collector_assets import html
from collector_assets.cases import page
from collector_assets.record import Unreadable
from collector_assets.request import Link, Secret

SEARCH = """
<form id=f action="/find?old=1#x" method=post>
  <input type=hidden name=__VIEWSTATE value="a+b/c= &amp;é"> <input name=q value=x>
  <input type=checkbox name=c value=1 checked><input type=checkbox name=c value=2><input type=checkbox name=d checked>
  <input type=radio name=r value=a checked><input type=radio name=r value=b>
  <select name=s><option>One <option value=2 selected>Two</select>
  <select name=m multiple><option value=1 selected><option value=2 selected><option value=3></select>
  <select name=e><optgroup disabled><option value=1></optgroup><option disabled value=2><option value=3></select>
  <textarea name=t>
line1
line2</textarea>
  <input disabled name=off value=1>
  <fieldset disabled><legend><input name=legend value=1></legend><input name=inner value=2></fieldset>
  <datalist><input name=listed></datalist> <input value=nameless> <input type=file name=up>
  <input type=reset name=reset value=1><button type=button name=js>
  <button name=go value=Go>Go</button><input type=submit name=other value=Other formaction=/other formmethod=get>
</form><input form=f name=outside value=o><input form=g name=foreign>
"""


def sent(link: Link) -> list[tuple[str, str]]:
    assert link.body is None or isinstance(link.body, bytes)
    query = link.body.decode() if link.body else link.url.partition("?")[2]
    return parse_qsl(query, keep_blank_values=True)


def test_everything_is_sent_that_a_browser_would_send() -> None:
    link = html.form(page(SEARCH), "#f")
    assert (link.url, link.method) == ("https://shop.example/find?old=1", "POST")
    assert link.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert sent(link) == [
        ("__VIEWSTATE", "a+b/c= &é"), ("q", "x"), ("c", "1"), ("d", "on"), ("r", "a"), ("s", "2"), ("m", "1"),
        ("m", "2"), ("e", "3"), ("t", "line1\r\nline2"), ("legend", "1"), ("up", ""), ("go", "Go"), ("outside", "o"),
    ]  # fmt: skip
    assert isinstance(link.body, bytes)
    assert link.body.startswith(b"__VIEWSTATE=a%2Bb%2Fc%3D+%26%C3%A9&q=x&")


def test_values_replace_what_the_page_says_where_it_stands() -> None:
    values = {"q": "ü", "c": ["1", "2"], "d": None, "r": "b", "s": "One", "m": ["3"], "t": "a\nb"}
    link = html.form(page(SEARCH), "#f", values, extra={"token": "1"}, kind="results", hints={"n": 1})
    assert sent(link) == [
        ("__VIEWSTATE", "a+b/c= &é"), ("q", "ü"), ("c", "1"), ("c", "2"), ("r", "b"), ("s", "One"), ("m", "3"),
        ("e", "3"), ("t", "a\r\nb"), ("legend", "1"), ("up", ""), ("go", "Go"), ("outside", "o"), ("token", "1"),
    ]  # fmt: skip
    assert (link.kind, link.hints) == ("results", {"n": 1})


def test_button_that_is_pressed_says_where_and_how() -> None:
    link = html.form(page(SEARCH), "#f", submit="[name=other]")
    assert (link.method, link.body, link.url.partition("?")[0]) == ("GET", None, "https://shop.example/other")
    assert ("other", "Other") in sent(link)
    assert ("go", "Go") not in sent(link)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"qq": "x"}, "no field 'qq'"),
        ({"off": "x"}, "no field 'off'"),
        ({"r": "z"}, "does not offer 'z'; it offers 'a', 'b'"),
        ({"s": "3"}, "does not offer '3'"),
        ({"e": "2"}, "does not offer '2'"),
    ],
)
def test_what_the_form_lacks_is_news(values: dict[str, Any], said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        html.form(page(SEARCH), "#f", values)


def test_form_between_the_rows_of_a_table_keeps_its_fields() -> None:
    torn = page(
        "<table><form id=a action=/a><tr><td><input type=hidden name=x value=1></form>"
        "<tr><form id=b action=/b><td><input name=y></form></table><input name=z>"
    )
    assert html.form(torn, "#a").url == "https://shop.example/a?x=1"
    assert html.form(torn, "#b", {"y": "2"}).url == "https://shop.example/b?y=2"


@pytest.mark.parametrize(
    ("markup", "url"),
    [
        ("<form><input name=q value=1></form>", "https://shop.example/dir/page?q=1"),
        ("<base href=/elsewhere/><form><input name=q value=1></form>", "https://shop.example/dir/page?q=1"),
        ("<base href=/elsewhere/><form action=x><input name=q value=1></form>", "https://shop.example/elsewhere/x?q=1"),
        ("<form action='?page=2'><input name=q value='a b*~'></form>", "https://shop.example/dir/page?q=a+b*%7E"),
        ("<form method=put action=/x><input type=image name=i></form>", "https://shop.example/x?i.x=0&i.y=0"),
        ("<form action=/x></form>", "https://shop.example/x?"),
    ],
)
def test_address_of_a_get_form(markup: str, url: str) -> None:
    given = page(markup, url="https://shop.example/old", final_url="https://shop.example/dir/page?id=9")
    assert html.form(given, "form").url == url


@pytest.mark.parametrize("markup", ["<form action='javascript:go()'></form>", "<form method=dialog></form>", "<div>"])
def test_what_sends_nothing_is_no_form(markup: str) -> None:
    with pytest.raises(Unreadable):
        html.form(page(markup), "form, div")


def test_fields_are_in_the_encoding_of_the_page_or_of_the_form() -> None:
    body = "<form><input name=q value='ü中'><input type=hidden name=_charset_></form>".encode("gbk")
    chinese = page(body, headers={"content-type": "text/html; charset=gbk"})
    assert html.form(chinese, "form", {"q": "中"}).url.endswith("?q=%D6%D0&_charset_=gbk")
    western = page("<form accept-charset='x iso-8859-1'><input name=q value='ü中'></form>")
    assert html.form(western, "form").url.endswith("?q=%FC%26%2320013%3B")


def test_multipart_has_a_boundary_of_its_content() -> None:
    given = page('<form method=post enctype=multipart/form-data action=/up><input name=\'a"b\' value="1\n2"></form>')
    link, again = html.form(given, "form"), html.form(given, "form")
    assert (link.body, link.headers) == (again.body, again.headers)
    boundary = str(link.headers["Content-Type"]).partition("boundary=")[2]
    assert (
        link.body
        == (f'--{boundary}\r\nContent-Disposition: form-data; name="a%22b"\r\n\r\n12\r\n--{boundary}--\r\n').encode()
    )


def test_plain_text_form() -> None:
    link = html.form(page("<form method=post enctype=text/plain><input name=a value='b c'></form>"), "form")
    assert (link.body, link.headers) == (b"a=b c\r\n", {"Content-Type": "text/plain"})


def test_a_secret_stays_one_until_the_form_is_sent() -> None:
    link = html.form(page(SEARCH), "#f", {"q": Secret("WORD")})
    assert isinstance(link.body, list)
    assert ("q", Secret("WORD")) in link.body
    assert html.form(page("<form id=f><input name=q>"), "#f", {"q": Secret("WORD")}).query == [("q", Secret("WORD"))]


def test_a_secret_goes_into_no_form_that_is_not_urlencoded() -> None:
    with pytest.raises(Unreadable, match="cannot carry a Secret"):
        html.form(
            page("<form id=f method=post enctype=multipart/form-data><input name=q>"), "#f", {"q": Secret("WORD")}
        )
