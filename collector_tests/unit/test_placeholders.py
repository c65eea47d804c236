"""Secrets by placeholders: how they are written, filled in, and masked again."""

from __future__ import annotations

import pytest

from collector_assets import placeholders
from collector_assets.contract import ContractError, Secret
from collector_assets.placeholders import Veil, coded, filled, with_query

KEY = Secret("API_KEY")


def test_a_form_is_coded_as_browsers_do_and_names_its_secrets() -> None:
    text, names = coded({"q": "a b&c=ü~*", "key": KEY, "auth": Secret("TOKEN", "Bearer ")})
    assert text == "q=a+b%26c%3D%C3%BC%7E*&key={secret+API_KEY}&auth=Bearer+{secret+TOKEN}"
    assert names == ("API_KEY", "TOKEN")


def test_a_name_may_come_twice_in_a_sequence() -> None:
    assert coded([("id", "1"), ("id", "2"), ("k", KEY)]) == ("id=1&id=2&k={secret+API_KEY}", ("API_KEY",))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/p", "https://a.example/p?key={secret+API_KEY}"),
        ("https://a.example/p?", "https://a.example/p?key={secret+API_KEY}"),
        ("https://a.example/p?page=2&key=plain", "https://a.example/p?page=2&key={secret+API_KEY}"),
        ("https://a.example/p?k%65y=plain&x", "https://a.example/p?x&key={secret+API_KEY}"),
    ],
)
def test_parameters_replace_those_of_the_same_name(url: str, expected: str) -> None:
    assert with_query(url, {"key": KEY}) == (expected, ("API_KEY",))


def test_values_are_put_in_escaped_and_only_those_that_are_named() -> None:
    text = "key={secret+API_KEY}&other={secret+PATH}&typed=%7Bsecret%2BAPI_KEY%7D"
    assert filled(text, {"API_KEY": "a&b=ü "}) == "key=a%26b%3D%C3%BC+&other={secret+PATH}&typed=%7Bsecret%2BAPI_KEY%7D"


def test_what_a_form_holds_by_itself_is_never_a_placeholder() -> None:
    """A text that looks like one is escaped like any text, so that nobody's text is filled in."""
    text, names = coded({"q": placeholders.placeholder("API_KEY")})
    assert names == ()
    assert filled(text, {"API_KEY": "value"}) == text


@pytest.mark.parametrize(
    "received",
    [b"sec/ret+1 9", b"sec%2Fret%2B1+9", b"sec%2fret%2b1%209", b"sec/ret+1%209", b'"sec\\/ret+1 9"', b"SEC/RET+1 9"],
)
def test_a_value_is_masked_in_every_spelling(received: bytes) -> None:
    veil = Veil([("sec/ret+1 9", "{secret+API_KEY}")])
    assert b"{secret+API_KEY}" in veil.raw(b"<a href='/next?k=%b'>" % received)


def test_a_short_value_does_not_mangle_pages_and_nothing_is_nothing() -> None:
    page = b"<p>bob likes bobsleds</p>"
    assert Veil([("bob", "{secret+USER}")]).raw(page) is page
    assert Veil([]).raw(page) is page
    assert Veil([("bob", "{secret+USER}")]).text("no user bob") == "no user {secret}"


@pytest.mark.parametrize("given", ["hunter2!", "", "a b", "9LIVES", "sk-live-0815"])
def test_a_value_given_for_a_name_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(ContractError, match="name of an environment variable") as refused:
        Secret(given)
    assert not given or given not in str(refused.value)
