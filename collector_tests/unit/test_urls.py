"""Parsing, joining and keys; the numbers are those of cases.md."""

from __future__ import annotations

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import urls

SHOP = "https://shop.example/"
ANY_BASE = "https://shop.example/l/?p=1"


def followed(href: str, base: str = ANY_BASE) -> str:
    found = urls.resolve(href, base)
    assert isinstance(found, urls.WebAddress), found
    return found.url


def rejected(href: str, base: str = ANY_BASE) -> urls.Rejected:
    found = urls.resolve(href, base)
    assert isinstance(found, urls.Rejected), found
    return found


class TestJoining:
    @pytest.mark.parametrize(
        ("href", "url"),
        [
            ("\n\t https://shop.example/item/7 \n", "https://shop.example/item/7"),
            ("ht\ntps://shop.example/item/8", "https://shop.example/item/8"),
            ("\u00a0/item/9", "https://shop.example/l/%C2%A0/item/9"),
            ("\x00\x1f /item/10", "https://shop.example/item/10"),
            ("/it\r\nem/\t11", "https://shop.example/item/11"),
        ],
    )
    def test_whitespace_is_that_of_browsers(self, href: str, url: str):
        """URL-01."""
        assert followed(href) == url

    @pytest.mark.parametrize(
        ("href", "url"),
        [
            ("../../../../f.jpg", "https://shop.example/f.jpg"),
            ("./", "https://shop.example/web/"),
            ("././x", "https://shop.example/web/x"),
            ("/a/./b/../c", "https://shop.example/a/c"),
            ("%2e%2E/x", "https://shop.example/x"),
        ],
    )
    def test_dot_segments_end_at_the_root(self, href: str, url: str):
        """URL-17."""
        assert followed(href, "https://shop.example/web/a") == url

    def test_a_site_that_links_dot_slash_from_every_page_yields_one_url(self):
        """URL-17."""
        pages = {followed("./", "https://shop.example/web/a")}
        for _ in range(10):
            pages |= {followed("./", page) for page in pages}

        assert pages == {"https://shop.example/web/"}

    @pytest.mark.parametrize(
        ("href", "url"),
        [
            ("//cdn.example/x", "https://cdn.example/x"),
            ("///cdn.example/x", "https://cdn.example/x"),
            ("https:///cdn.example/x", "https://cdn.example/x"),
            ("https:y.html", "https://shop.example/a/y.html"),
            ("http:y.html", "http://y.html/"),
            ("\\\\cdn.example\\x", "https://cdn.example/x"),
        ],
    )
    def test_slash_variants_lead_where_browsers_go(self, href: str, url: str):
        """URL-22."""
        assert followed(href, "https://shop.example/a/") == url

    @pytest.mark.parametrize(
        ("href", "url"),
        [
            ("https://info@shop.example/", "https://shop.example/"),
            ("https://u:p@shop.example/x", "https://shop.example/x"),
        ],
    )
    def test_user_info_is_not_sent(self, href: str, url: str):
        """URL-12."""
        assert followed(href) == url
        assert urls.key(href) == url

    @pytest.mark.parametrize(
        "href", ["/cmp/Dia%25", "/a%2Fb", "/x%20%2376", "/a%3Bb", "/?a=1%2B1", "/?a=1+1", "/%7euser"]
    )
    def test_escapes_are_sent_as_written(self, href: str):
        """URL-04."""
        assert followed(href, SHOP) == f"https://shop.example{href}"

    def test_international_hosts_and_paths_become_ascii(self):
        assert followed("https://BÜCHER.example/ü?ü") == "https://xn--bcher-kva.example/%C3%BC?%C3%BC"

    def test_an_empty_link_is_the_page_itself(self):
        assert followed("") == ANY_BASE

    def test_a_start_url_needs_no_base(self):
        assert followed("https://shop.example", "") == SHOP


class TestRejection:
    @pytest.mark.parametrize(
        ("href", "reason"),
        [
            ("http://a..b.example/", "impossible_host"),
            ("http://" + 64 * "a" + ".example/", "impossible_host"),
            ("http://a.example../", "impossible_host"),
            ("http://" + 64 * "abc." + "example/", "impossible_host"),
            ("http://[::1", "unparsable"),
            ("https://shop.example:99999/", "unparsable"),
            ("http:///", "unparsable"),
            ("/\ud800", "unparsable"),
        ],
    )
    def test_an_impossible_host_is_a_value_and_no_exception(self, href: str, reason: str):
        """URL-15."""
        assert rejected(href).reason == reason

    @pytest.mark.parametrize("host", ["a.example.", 63 * "a" + ".example", "a_b.example", "[::1]", "127.0.0.1"])
    def test_a_possible_host_passes(self, host: str):
        assert followed(f"http://{host}/") == f"http://{host}/"

    @pytest.mark.parametrize(
        ("href", "scheme"),
        [
            ("javascript:void(0)", "javascript"),
            (" JavaScript:x", "javascript"),
            ("java\nscript:x", "javascript"),
            ("mailto:a@b.example", "mailto"),
            ("tel:+1", "tel"),
            ("data:text/html," + 2_000_000 * "x", "data"),
            ("blob:x", "blob"),
            ("ftp://shop.example/", "ftp"),
            ("x" * 500 + ":y", "x" * 20),
        ],
    )
    def test_what_is_no_web_address_is_told_by_its_scheme_and_cut(self, href: str, scheme: str):
        """URL-20."""
        found = rejected(href)

        assert (found.reason, found.scheme) == ("not_a_web_address", scheme)
        assert len(found.value) <= 200

    @pytest.mark.parametrize(
        ("href", "end"), [("{{ url }}", "/l/%7B%7B%20url%20%7D%7D"), ('https://shop.example/a">', "/a%22%3E")]
    )
    def test_template_rubbish_is_an_ordinary_path(self, href: str, end: str):
        """URL-20."""
        assert followed(href) == f"https://shop.example{end}"

    def test_a_url_beyond_the_limit_is_too_long(self):
        assert rejected("/" + urls.MAX_URL * "x").reason == "too_long"

    @pytest.mark.parametrize("href", ["https://u:p4ss@a..b.example/", "http://u:p4ss@[::1", "\\\\u:p4ss@a..b.example"])
    def test_a_rejected_link_is_recorded_without_its_password(self, href: str):
        """URL-12."""
        assert "p4ss" not in rejected(href).value

    @given(st.text() | st.binary().map(lambda some: some.decode("utf-8", "surrogateescape")))
    def test_no_text_raises(self, href: str):
        assert isinstance(urls.resolve(href, ANY_BASE), urls.WebAddress | urls.Rejected)


class TestKey:
    def test_delimiters_that_are_escaped_stay_apart_from_plain_ones(self):
        """URL-04."""
        written = ["/cmp/Dia%25", "/a%2Fb", "/a/b", "/x%20%2376", "/a%3Bb", "/?a=1%2B1", "/?a=1+1"]

        assert len({urls.key(followed(href, SHOP)) for href in written}) == 7

    @pytest.mark.parametrize(
        ("one", "other"),
        [("/%7euser", "/~user"), ("/a%2fb", "/a%2Fb"), ("/%41", "/A"), ("/#top", "/"), ("/?q=%7E", "/?q=~")],
    )
    def test_spellings_that_cannot_differ_are_the_same_work(self, one: str, other: str):
        """URL-04, URL-08."""
        assert urls.key(followed(one, SHOP)) == urls.key(followed(other, SHOP))

    def test_only_scheme_and_host_lose_their_case(self):
        """URL-09."""
        assert urls.key("HTTPS://SHOP.EXAMPLE/Products/A") == "https://shop.example/Products/A"
        assert urls.key("https://shop.example/products/a") != urls.key("https://shop.example/Products/A")

    def test_every_parameter_counts(self):
        """URL-09."""
        queries = ["utm_source=n&id=1", "id=1", "ref=1&id=1", "id=1&ref=1"]

        assert len({urls.key(f"https://shop.example/x?{query}") for query in queries}) == 4

    def test_the_forms_of_a_bare_origin_are_the_same_work(self):
        """URL-11."""
        forms = ["https://shop.example", "https://shop.example/", "https://shop.example/#m", "https://shop.example:443"]

        assert {urls.key(form) for form in forms} == {SHOP}

    def test_a_trailing_slash_and_www_count(self):
        """URL-11."""
        pages = ["https://shop.example/doc", "https://shop.example/doc/", "https://www.shop.example/doc"]

        assert len({urls.key(page) for page in pages}) == 3

    def test_stray_percent_signs_never_become_escapes(self):
        assert urls.key("https://shop.example/%%37E") == "https://shop.example/%%37E"
        assert urls.key("https://shop.example/%4%42") == "https://shop.example/%4%42"

    @given(st.text(alphabet="%0123456789abcdefABCDEF/?#&=.~+;@ é", max_size=30))
    def test_a_key_of_a_key_is_the_key(self, rest: str):
        """URL-04."""
        key = urls.key(followed(f"https://shop.example/{rest}"))

        assert urls.key(key) == key


class TestParts:
    @pytest.mark.parametrize(
        ("url", "origin"),
        [
            ("https://shop.example:443/a", "https://shop.example"),
            ("http://shop.example:8080/a", "http://shop.example:8080"),
            ("http://[::1]:80/", "http://[::1]"),
        ],
    )
    def test_origin_is_scheme_host_and_an_unusual_port(self, url: str, origin: str):
        assert urls.origin(url) == origin

    def test_host_is_ascii_without_port(self):
        assert urls.host("https://BÜCHER.example:8443/") == "xn--bcher-kva.example"

    @pytest.mark.parametrize(
        ("host", "domain"),
        [
            ("www.shop.example", "shop.example"),
            ("a.b.shop.co.uk", "shop.co.uk"),
            ("me.github.io", "me.github.io"),
            ("www.shop.example.", "shop.example"),
            ("co.uk", "co.uk"),
            ("localhost", "localhost"),
            ("a.shop.localhost", "shop.localhost"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ],
    )
    def test_domain_is_what_somebody_registered(self, host: str, domain: str):
        assert urls.domain(host) == domain

    @pytest.mark.parametrize("host", ["shop.localhost", "a.shop.localhost", "localhost", "shop.localhost."])
    def test_names_under_localhost_are_the_demo_site(self, host: str):
        assert urls.is_demo(host)

    @pytest.mark.parametrize("host", ["notlocalhost", "localhost.example", ".", "127.0.0.1", "[::1]", ""])
    def test_other_names_are_not(self, host: str):
        assert not urls.is_demo(host)


@pytest.mark.parametrize(
    "href",
    [
        "a/b?c#d", "//other.example:8443/x", "https://user:pw@h.example/", "HTTP://UPPER.example:80/", "http://h.example:443/",
        "https://h.example:443/", "https://[2001:db8::1]:8080/x", "http://127.1/", "https://bücher.example/ü", "https://h.example./",
        "?q=1", "#only",
    ],
)  # fmt: skip
def test_what_is_kept_of_a_link_is_what_a_parse_would_say(href: str) -> None:
    """A resolved link is not parsed a second time for its origin, its host and its key."""
    url = followed(href)
    kept, parsed = urls._KNOWN[url], ada_url.URL(url)
    assert (kept.bare, kept.origin, kept.host) == (parsed.href, parsed.origin, parsed.hostname)


def test_what_is_kept_of_links_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "_MOST_KNOWN", 10)
    for number in range(100):
        urls.origin(f"https://h.example/{number}")
        assert len(urls._KNOWN) <= 10
