"""Kind URL of the field cases: which link leads where, which two links are the same work, which stay out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import html, keys, links, urls
from collector_assets.cases import page
from collector_assets.contract import Keys, Kind, Link, Page, Source, replace
from collector_assets.errors import ContractError
from collector_assets.sources.shop import SHOP

ON = Keys(drop=("utm_*", "fbclid"), session_ids=True, any_order=True)
CP1252 = {"content-type": "text/html; charset=iso-8859-1"}


def hrefs(found: Page) -> Iterator[Link]:
    """Every link of a page, as it is written there."""
    for a in found.tree.css("a[href]"):
        yield Link(a.attributes["href"] or "", kind="listing")


SITE = replace(
    SHOP, start_urls=("https://shop.example/",), scope=("shop.example", "cdn.example"), discover=hrefs,
)  # fmt: skip


def found(markup: str, url: str = "https://shop.example/l/?p=1", *, final_url: str | None = None) -> links.Found:
    return links.of_page(SITE, page(markup, url=url, final_url=final_url, kind="listing"), depth=0)


def sent(markup: str, url: str = "https://shop.example/l/?p=1", final_url: str | None = None) -> list[str]:
    return [request.url for request in found(markup, url, final_url=final_url).requests]


def works(*addresses: str, source: Source = SITE) -> int:
    """How many requests the links come to, by their unique keys."""
    requests = links.of_starts(source, [Link(address, kind="listing") for address in addresses]).requests
    assert len(requests) == len(addresses)
    return len({request.unique_key for request in requests})


def test_url_01_whitespace_around_and_inside_href() -> None:
    assert sent(
        '<a href="\n\t https://shop.example/item/7 \n">7</a><a href="ht\ntps://shop.example/item/8">8</a>'
        '<a href="\u00a0/item/9">9</a>'
    ) == ["https://shop.example/item/7", "https://shop.example/item/8", "https://shop.example/l/%C2%A0/item/9"]
    assert page('<base href=" \t/forum/\n">').base_url == "https://shop.example/forum/"
    assert html.refresh_target(page('<meta http-equiv=refresh content="0; url=\n /next ">')) == (
        "https://shop.example/next"
    )


def test_url_03_base_href_late_relative_repeated_unusable() -> None:
    late = f"<body><!--{6_000 * 'x'}--><base target=_top><base href='/forum/'><base href='/x/'><a href='t.html'>t</a>"
    asked, final = "https://shop.example/old", "https://shop.example/a/b/c/"
    assert sent(late, asked, final_url=final) == ["https://shop.example/forum/t.html"]
    for unusable in ("javascript:1", "https://[::1", "data:text/html,x", "mailto:a@b.example"):
        assert sent(f"<base href='{unusable}'><a href='t.html'>t</a>", asked, final_url=final) == [
            "https://shop.example/a/b/c/t.html"
        ]
    assert sent("<base href='sub/'><a href='t.html'>t</a>", asked, final_url=final) == [
        "https://shop.example/a/b/c/sub/t.html"
    ]
    assert sent("<!-- <base href='/x/'> --><template><base href='/y/'></template><a href=t>", final_url=final) == [
        "https://shop.example/a/b/c/t"
    ], "neither is an element of the page"
    quoted = page('{"html": "<base href=/x/>"}', headers={"content-type": "application/json"})
    assert quoted.base_url == "https://shop.example/l/", "markup in JSON is not the page's"


def test_url_04_percent_encoded_delimiters_survive() -> None:
    written = ["/cmp/Dia%25", "/a%2Fb", "/a/b", "/x%20%2376", "/a%3Bb", "/?a=1%2B1", "/?a=1+1"]
    markup = "".join(f'<a href="{href}">x</a>' for href in written)
    assert sent(markup) == [f"https://shop.example{href}" for href in written]
    assert len({request.unique_key for request in found(markup).requests}) == 7
    assert works("https://shop.example/%7euser", "https://shop.example/~user") == 1
    assert works("https://shop.example/a%2fb", "https://shop.example/a%2Fb") == 1
    # Composed and decomposed are different octets, and so are an escaped percent sign and none.
    assert works("https://shop.example/\u00e9", "https://shop.example/e\u0301") == 2
    assert works("https://shop.example/%252F", "https://shop.example/%2F") == 2


ANY_URL = st.text(alphabet="%0123456789abcdefABCDEFutm_/?#&;=.~+()@ éжjsion", max_size=40)


@given(ANY_URL, st.booleans(), st.booleans(), st.sampled_from([(), ("utm_*",), ("*",), ("a", "j*d")]))
def test_url_04_a_key_of_a_key_is_the_key(rest: str, session_ids: bool, any_order: bool, drop: tuple[str, ...]) -> None:  # noqa: FBT001
    address = urls.resolve(f"https://shop.example/{rest}", "")
    assert isinstance(address, urls.WebAddress)
    once = keys.key(address.url, drop=drop, session_ids=session_ids, any_order=any_order)
    assert keys.key(once, drop=drop, session_ids=session_ids, any_order=any_order) == once


@pytest.mark.parametrize(
    "rest",
    ["/a/.;jsessionid=1", "/a/..;jsessionid=1/b", "/(S(x))/(S(y))/p", "/p?&&PHPSESSID=1&", "/p?", "/%3Fa?b=1&a=2"],
)
def test_url_04_awkward_keys_are_stable_too(rest: str) -> None:
    once = ON.key(f"https://shop.example{rest}")
    assert ON.key(once) == once


def test_url_08_hash_routes() -> None:
    app = "https://app.example/"
    four = [f"{app}#/user/1", f"{app}#/user/2", f"{app}doc#top", f"{app}doc#end"]
    plain = replace(SITE, start_urls=(app,), scope=())
    assert works(*four, source=plain) == 2
    assert {urls.resolve(url, "").url for url in four if isinstance(urls.resolve(url, ""), urls.WebAddress)} == {  # type: ignore[union-attr]
        app, f"{app}doc",
    }  # fmt: skip
    routes = Keys(hash_routes=True)
    addresses = [urls.resolve(url, "") for url in four]
    assert len({routes.key(a.url, a.fragment) for a in addresses if isinstance(a, urls.WebAddress)}) == 3
    assert routes.key(f"{app}x", "!news") != routes.key(f"{app}x", "!shop")
    with pytest.raises(ContractError, match="hash_routes needs a kind with a browser"):
        replace(plain, keys=routes)


def test_url_09_case_and_tracking_parameters_count() -> None:
    assert works("HTTPS://SHOP.EXAMPLE/Products/A", "https://shop.example/products/a") == 2
    assert works("HTTPS://SHOP.EXAMPLE/Products/A", "https://shop.example/Products/A") == 1
    tracked = [
        "https://shop.example/x?utm_source=n&id=1",
        "https://shop.example/x?id=1",
        "https://shop.example/x?ref=1&id=1",
    ]
    assert works(*tracked) == 3
    ruled = replace(SITE, keys=Keys(drop=("utm_*",)))
    assert works(*tracked, source=ruled) == 2
    (first, *_) = links.of_starts(ruled, [Link(tracked[0], kind="listing")]).requests
    assert first.url == tracked[0], "only the key is coarser"


def test_url_09_rules_of_a_source_are_exact() -> None:
    key = Keys(drop=("utm_*", "ref"), any_order=True).key
    assert key("https://shop.example/x?b=2&a=1") == key("https://shop.example/x?a=1&b=2")
    assert key("https://shop.example/x?a=1&a=2") != key("https://shop.example/x?a=2&a=1"), "order of one name counts"
    assert key("https://shop.example/x?utm%5Fsource=n") == "https://shop.example/x"
    assert key("https://shop.example/x?href=1") == "https://shop.example/x?href=1", "whole names only"
    assert Keys(drop=("a.b",)).key("https://shop.example/?axb=1") == "https://shop.example/?axb=1"
    with pytest.raises(ContractError, match="keys"):
        replace(SITE, keys=Keys(drop=("",)))


def test_url_11_trailing_slash_bare_origin_www() -> None:
    assert (
        works("https://shop.example", "https://shop.example/", "https://shop.example/#m", "https://shop.example:443")
        == 1
    )
    assert works("https://shop.example/faq", "https://shop.example/faq/") == 2
    assert works("https://shop.example/", "https://www.shop.example/") == 2
    assert works("https://shop.example/", "https://shop.example./") == 1, "a dot behind the host names the same host"
    tied = page('<link rel="canonical" href="https://shop.example/doc#x">', url="https://www.shop.example/doc?a=1")
    assert html.canonical(tied) == "https://shop.example/doc"


def test_url_12_user_info_is_neither_sent_nor_kept() -> None:
    markup = '<a href="https://info@shop.example/">i</a><a href="https://u:p4ss@shop.example/x">x</a>'
    assert sent(markup) == ["https://shop.example/", "https://shop.example/x"]
    assert works("https://info@shop.example/", "https://shop.example/") == 1
    out = found(
        '<a href="https://u:p4ss@elsewhere.example/"></a><a href="//u:p4ss@a..b.example/"></a>'
        '<a href="http:u:p4ss@elsewhere.example/"></a><a href="https:\\\\u:p4ss@[::1"></a>'
        f'<a href="https://{300 * "u"}:p4ss{300 * "s"}@elsewhere.example/"></a>'
    ).rejected
    assert len(out) == 5
    assert not [link for link in out if "p4ss" in link.value or "p4ss" in (link.referrer or "")]
    assert page("<base href='https://u:p4ss@shop.example/x/'>").base_url == "https://shop.example/x/"


def test_url_12_credentials_come_from_the_configuration_alone() -> None:
    with pytest.raises(ContractError, match="give it in headers, as Secret") as refused:
        replace(SITE, start_urls=("https://u:p4ss@shop.example/",))
    assert "p4ss" not in str(refused.value)


def test_url_13_session_ids() -> None:
    base = "https://shop.example"
    ruled = Keys(session_ids=True)
    assert ruled.key(f"{base}/p;jsessionid=AB12.node1_2?v=1") == f"{base}/p?v=1"
    assert ruled.key(f"{base}/p?PHPSESSID=ab12&v=1") == f"{base}/p?v=1"
    assert ruled.key(f"{base}/p?v=1&sid=9") == f"{base}/p?v=1&sid=9"
    assert ruled.key(f"{base}/p;a=1;JSESSIONID=x;b=2/q") == f"{base}/p;a=1;b=2/q"
    assert ruled.key(f"{base}/(S(4hqa0555fwsecu455xqckv45))/p.aspx") == f"{base}/p.aspx"
    assert ruled.key(f"{base}/p?jsessionid=1") == f"{base}/p"
    (kept,) = links.of_starts(
        replace(SITE, keys=ruled), [Link(f"{base}/p;jsessionid=AB12.node1_2?v=1", kind="listing")]
    ).requests
    assert kept.url == f"{base}/p;jsessionid=AB12.node1_2?v=1"
    assert Keys().key(f"{base}/p;jsessionid=A") == f"{base}/p;jsessionid=A", "off by default"


def test_url_15_an_impossible_host_ends_neither_page_nor_run() -> None:
    bad = [
        "http://a..b.example/",
        f"http://{64 * 'a'}.example/",
        "http://[::1",
        "https://shop.example:99999/",
        "http:///",
    ]
    good = [f"/item/{number}" for number in range(5)]
    came = found("".join(f'<a href="{href}">x</a>' for href in bad + good))
    assert [request.url for request in came.requests] == [f"https://shop.example{href}" for href in good]
    assert [(link.reason, link.referrer) for link in came.rejected] == [
        ("impossible_host", "https://shop.example/l/?p=1"), ("impossible_host", "https://shop.example/l/?p=1"),
        ("unparsable", "https://shop.example/l/?p=1"), ("unparsable", "https://shop.example/l/?p=1"),
        ("unparsable", "https://shop.example/l/?p=1"),
    ]  # fmt: skip
    (out,) = found("<a href='https://shop.example:0/'>").rejected
    assert out.reason == "impossible_port"


def test_url_17_dot_segments_above_the_root() -> None:
    at = "https://shop.example/web/a"
    markup = "".join(f'<a href="{href}">x</a>' for href in ("../../../../f.jpg", "./", "././x", "/a/./b/../c"))
    assert sent(markup, at) == [f"https://shop.example{path}" for path in ("/f.jpg", "/web/", "/web/x", "/a/c")]
    assert sent('<a href="/a/%2e%2E/b/%2e/c">x</a>', at) == ["https://shop.example/b/c"], "escaped dots are dots"


def test_url_20_links_that_are_no_web_addresses() -> None:
    rubbish = ["javascript:void(0)", " JavaScript:x", "java\nscript:x", "mailto:a@b.example", "tel:+1",
               "data:text/html," + 2_000_000 * "x", "blob:x", "made-up:x"]  # fmt: skip
    came = found("".join(f'<a href="{href}">x</a>' for href in [*rubbish, "{{ url }}"]) + """<a href='/a">'>x</a>""")
    assert [link.detail for link in came.rejected] == [
        "javascript", "javascript", "javascript", "mailto", "tel", "data", "blob", "other",
    ]  # fmt: skip
    assert {link.reason for link in came.rejected} == {"not_a_web_address"}
    assert max(len(link.value) for link in came.rejected) <= 200
    assert [request.url for request in came.requests] == [
        "https://shop.example/l/%7B%7B%20url%20%7D%7D", "https://shop.example/a%22%3E",
    ]  # fmt: skip
    counted = {(first.reason, first.detail): number for number, first in links.by_reason(came.rejected)}
    assert counted["not_a_web_address", "javascript"] == 3


def test_url_22_slash_variants_that_change_the_host() -> None:
    at = "https://shop.example/a/"
    variants = ["//cdn.example/x", "///cdn.example/x", "https:///cdn.example/x", "https:y.html", "\\\\cdn.example\\x"]
    assert sent("".join(f'<a href="{href}">x</a>' for href in variants), at) == [
        *(3 * ["https://cdn.example/x"]), "https://shop.example/a/y.html", "https://cdn.example/x",
    ]  # fmt: skip
    (out,) = found('<a href="http:y.html">x</a>', at).rejected
    assert (out.reason, out.value) == ("out_of_scope", "http:y.html"), "the host y.html; scope is checked afterwards"


# --- The same kinds, other inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("href", "query"),
    [
        ("?q=ü", "?q=%FC"),
        ("?q=€", "?q=%80"),
        ("?q=ж", "?q=%26%231078%3B"),
        ("/ü?q=ü#ü", "/%C3%BC?q=%FC"),
        ("?q=%C3%BC&x=+", "?q=%C3%BC&x=+"),
    ],
)
def test_url_queries_are_sent_in_the_encoding_of_their_page(href: str, query: str) -> None:
    """WHATWG URL, "query state": the path is UTF-8, the query is what the server of such a page expects."""
    shown = page(f'<a href="{href}">x</a>'.encode("cp1252", "xmlcharrefreplace"), headers=CP1252, kind="listing")
    assert html.absolute(shown, href).endswith(query)
    (request,) = links.of_page(SITE, shown, depth=0).requests
    assert request.url.endswith(query)
    assert html.absolute(page(""), "?q=ü").endswith("?q=%C3%BC")


@pytest.mark.parametrize(
    ("encoding", "escaped"),
    [("shift_jis", "%83\\"), ("gbk", "%A5%BD"), ("euc-jp", "%A5%BD"), ("windows-1251", "%26%2312477%3B")],
)
def test_url_queries_in_other_encodings(encoding: str, escaped: str) -> None:
    shown = page(f"<meta charset={encoding}>".encode(), headers={"content-type": "text/html"})
    assert html.absolute(shown, "?q=ソ") == f"https://shop.example/l/?q={escaped}"


@pytest.mark.parametrize(
    "spelling",
    [
        "http://0x7f.1/",
        "http://2130706433/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://\uff11\uff12\uff17.0.0.1/",  # full-width digits
        "http://①②⑦.0.0.1/",
    ],
)
def test_url_spellings_of_an_address_are_one_host(spelling: str) -> None:
    address = urls.resolve(spelling, "")
    assert isinstance(address, urls.WebAddress)
    assert urls.host(address.url) == "127.0.0.1"


def test_url_international_hosts_are_one_host() -> None:
    site = replace(SITE, start_urls=("https://xn--bcher-kva.example/",), scope=())
    spellings = ["https://BÜCHER.example/", "https://bücher。example/", "https://xn--bcher-kva.example/"]
    assert works(*spellings, source=site) == 1


def test_url_parameters_and_matrices_count_as_written() -> None:
    base = "https://shop.example/p"
    assert (
        works(f"{base};a=1", f"{base};a=2", f"{base}?a=1&a=1", f"{base}?a=1", f"{base}?a=1;b=2", f"{base}?a=1&b=2") == 6
    )
    assert works(f"{base}?", base) == 1, "the question mark of an empty query cannot be sent"
    assert works(f"{base}??", base) == 2


def test_url_kinds_may_share_a_url() -> None:
    both = replace(
        SITE, discover=None, extract=None,
        kinds={"listing": Kind(discover=hrefs), "detail": Kind(extract=SHOP.kind_map["detail"].extract)},
    )  # fmt: skip
    starts = [Link("https://shop.example/x", kind="listing"), Link("https://shop.example/x", kind="detail")]
    assert len({request.unique_key for request in links.of_starts(both, starts).requests}) == 2
