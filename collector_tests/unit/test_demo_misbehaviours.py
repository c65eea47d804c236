"""Each misbehaviour does what its name says, seen byte by byte on a socket."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
import zlib
from pathlib import Path

import pytest

from collector_assets.demo import DemoSite
from collector_assets.demo.misbehave import TABLE, described
from collector_tests.fixtures.site import connected, parts, raw

FINE = b"<!DOCTYPE html><html><head><title>Fine</title></head><body><h1>Everything is fine</h1></body></html>\n"


def test_every_misbehaviour_is_described_in_one_line_and_seen_here() -> None:
    assert [re.split(r"[\[:]", line)[0] for line in described().splitlines()] == list(TABLE)
    source = Path(__file__).read_text()
    assert [name for name in TABLE if f"/misbehave/{name}" not in source] == []


def test_delay(site: DemoSite) -> None:
    started = time.monotonic()
    response, _ = raw(site, "/misbehave/delay/0.2")
    assert time.monotonic() - started >= 0.2
    assert parts(response)[::2] == (200, FINE)


@pytest.mark.parametrize(("path", "ending"), [("/misbehave/drop", "closed"), ("/misbehave/reset", "reset")])
def test_drop_and_reset_end_before_any_byte(site: DemoSite, path: str, ending: str) -> None:
    assert raw(site, path) == (b"", ending)
    [arrival] = site.arrivals()
    assert (arrival.status, arrival.bytes) == (None, 0)


def test_hang_sends_nothing_and_is_logged_when_the_client_leaves(site: DemoSite) -> None:
    assert raw(site, "/misbehave/hang", seconds=0.2) == (b"", "silent")
    time.sleep(0.05)
    [arrival] = site.arrivals()
    assert (arrival.status, arrival.bytes) == (None, 0)
    assert 0.15 <= arrival.ended - arrival.arrived < 0.5
    assert raw(site, "/misbehave/hang/0.1") == (b"", "closed")


@pytest.mark.parametrize("sent", [0, 5, 1000])
def test_hang_after_headers_stops_in_the_body(site: DemoSite, sent: int) -> None:
    response, ending = raw(site, f"/misbehave/hang_after_headers/{sent}", seconds=0.2)
    status, headers, body = parts(response)
    assert (status, body, ending) == (200, FINE[:sent], "silent")
    assert int(headers["content-length"]) > len(body)


def test_drip_sends_one_byte_at_a_time(site: DemoSite) -> None:
    pieces = []
    with connected(site) as client:
        client.sendall(b"GET /misbehave/drip/0.01 HTTP/1.1\r\nHost: x.localhost\r\nConnection: close\r\n\r\n")
        started = time.monotonic()
        while some := client.recv(65_536):
            pieces.append(some)
    assert time.monotonic() - started >= 0.009 * len(FINE)  # uvloop counts in milliseconds
    assert b"".join(pieces).endswith(b"\r\n\r\n" + FINE)
    assert len(pieces) > len(FINE) / 2


def test_large_csv_has_rows_of_one_size(site: DemoSite) -> None:
    response, _ = raw(site, "/misbehave/large_csv/1001")
    assert b"Content-Type: text/csv" in response
    assert response.count(b".50,") == 1_001
    assert response.endswith(b"\n\r\n0\r\n\r\n")


def test_oversized_declares_its_size_and_sends_it(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/oversized/3000000")
    _, headers, body = parts(response)
    assert (headers["content-length"], len(body), ending) == ("3000000", 3_000_000, "closed")
    response, _ = raw(site, "/misbehave/oversized", most_bytes=300_000)
    assert parts(response)[1]["content-length"] == "104857600"


def test_endless_is_chunked_without_end_until_the_client_leaves(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/endless", most_bytes=3_000_000)
    _, headers, body = parts(response)
    assert (headers["transfer-encoding"], ending) == ("chunked", "enough")
    assert b"\r\n0\r\n" not in body
    time.sleep(0.1)
    [arrival] = site.arrivals()
    assert arrival.bytes >= 3_000_000


def test_short_body_closes_before_the_length_it_declared(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/short_body/7", headers="Connection: keep-alive\r\n")
    _, headers, body = parts(response)
    assert (body, int(headers["content-length"]) - len(body), ending) == (FINE, 7, "closed")


def test_cut_chunked_closes_inside_a_chunk(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/cut_chunked", headers="Connection: keep-alive\r\n")
    size = b"%x\r\n" % len(FINE)
    assert parts(response)[2] == size + FINE + b"\r\n" + b"%x\r\n" % (len(FINE) + 10) + FINE
    assert ending == "closed"


def test_chunked_is_correct(site: DemoSite) -> None:
    half = len(FINE) // 2 + 1
    body = parts(raw(site, "/misbehave/chunked")[0])[2]
    assert body == b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (half, FINE[:half], len(FINE) - half, FINE[half:])


@pytest.mark.parametrize("code", [404, 410, 500, 418, 599])
def test_status(site: DemoSite, code: int) -> None:
    assert parts(raw(site, f"/misbehave/status/{code}")[0])[0] == code
    assert site.arrivals()[0].status == code


def test_flaky_fails_so_often_for_each_host_and_target(site: DemoSite) -> None:
    def seen(host: str, path: str) -> list[int]:
        return [parts(raw(site, path, host=host)[0])[0] for _ in range(4)]

    assert seen("a.localhost", "/misbehave/flaky/2") == [503, 503, 200, 200]
    assert seen("b.localhost", "/misbehave/flaky/2") == [503, 503, 200, 200]
    assert seen("a.localhost", "/misbehave/flaky/2?again") == [503, 503, 200, 200]


@pytest.mark.parametrize(
    ("argument", "code", "location"),
    [
        ("", 302, "/"),
        ("/301/catalogue/page-1.html", 301, "/catalogue/page-1.html"),
        ("/http://books.localhost:8765/", 302, "http://books.localhost:8765/"),
        ("/308/%2Fecho%3Fa=1", 308, "/echo?a=1"),
    ],
)
def test_redirect(site: DemoSite, argument: str, code: int, location: str) -> None:
    status, headers, _ = parts(raw(site, f"/misbehave/redirect{argument}")[0])
    assert (status, headers["location"]) == (code, location)


def test_redirect_loop_and_chain(site: DemoSite) -> None:
    assert parts(raw(site, "/misbehave/redirect_loop?x")[0])[1]["location"] == "/misbehave/redirect_loop?x"
    assert parts(raw(site, "/misbehave/redirect_chain/2")[0])[1]["location"] == "/misbehave/redirect_chain/1"
    assert parts(raw(site, "/misbehave/redirect_chain/0")[0])[::2] == (200, FINE)


def test_empty_200(site: DemoSite) -> None:
    status, headers, body = parts(raw(site, "/misbehave/empty_200")[0])
    assert (status, headers["content-length"], body) == (200, "0", b"")


def test_unmodified_declares_a_body_that_never_comes(site: DemoSite) -> None:
    status, headers, body = parts(raw(site, "/misbehave/unmodified")[0])
    assert (status, headers["content-length"], body) == (304, "500", b"")


def test_no_validators(site: DemoSite) -> None:
    status, headers, body = parts(raw(site, "/misbehave/no_validators")[0])
    assert (status, body) == (200, FINE)
    assert not {"etag", "last-modified"} & set(headers)


def test_the_gzip_misbehaviours_lie_as_named(site: DemoSite) -> None:
    def got(name: str) -> tuple[str | None, bytes]:
        _, headers, body = parts(raw(site, name)[0])
        assert int(headers["content-length"]) == len(body)
        return headers.get("content-encoding"), body

    encoding, body = got("/misbehave/gzip_body")
    assert (encoding, gzip.decompress(body)) == ("gzip", FINE)
    assert got("/misbehave/mislabelled_gzip") == ("gzip", FINE)
    encoding, body = got("/misbehave/unlabelled_gzip")
    assert (encoding, gzip.decompress(body)) == (None, FINE)
    encoding, body = got("/misbehave/cut_gzip")
    assert encoding == "gzip"
    with pytest.raises(EOFError):
        gzip.decompress(body)
    assert zlib.decompressobj(31).decompress(body)
    encoding, body = got("/misbehave/gzip_bomb/5000000")
    assert (encoding, len(gzip.decompress(body))) == ("gzip", 5_000_000)
    assert len(body) < 10_000


@pytest.mark.parametrize("code", [200, 403, 503])
def test_challenge(site: DemoSite, code: int) -> None:
    status, _, body = parts(raw(site, f"/misbehave/challenge/{code}")[0])
    assert (status, b"<title>Just a moment...</title>" in body) == (code, True)


def test_login(site: DemoSite) -> None:
    status, _, body = parts(raw(site, "/misbehave/login")[0])
    assert (status, b'type="password"' in body) == (200, True)


@pytest.mark.parametrize(
    ("argument", "code", "value"),
    [
        ("", 429, "1"),
        ("/7", 429, "7"),
        ("/503/2", 503, "2"),
        ("/Wed,%2021%20Oct%202026%2007:28:00%20GMT", 429, "Wed, 21 Oct 2026 07:28:00 GMT"),
    ],
)
def test_retry_after(site: DemoSite, argument: str, code: int, value: str) -> None:
    status, headers, _ = parts(raw(site, f"/misbehave/retry_after{argument}")[0])
    assert (status, headers["retry-after"]) == (code, value)


def test_early_hints_come_before_the_response(site: DemoSite) -> None:
    response, _ = raw(site, "/misbehave/early_hints")
    assert response.startswith(b"HTTP/1.1 103 Early Hints\r\nLink: ")
    assert parts(response.partition(b"\r\n\r\n")[2])[::2] == (200, FINE)
    assert site.arrivals()[0].status == 200


def location_of(site: DemoSite, path: str, cookie: str = "") -> tuple[int, str | None]:
    status, headers, _ = parts(raw(site, path, headers=f"Cookie: {cookie}\r\n" if cookie else "")[0])
    return status, headers.get("location")


@pytest.mark.parametrize(
    ("argument", "code", "location"),
    [("/javascript:x", 302, "javascript:x"), ("/307/%20/a%20b", 307, "/a b"), ("/301/", 301, "")],
)
def test_location_is_what_was_asked_for(site: DemoSite, argument: str, code: int, location: str) -> None:
    assert location_of(site, f"/misbehave/location{argument}") == (code, location)


def test_cookie_wall_lets_in_who_brings_its_cookie(site: DemoSite) -> None:
    assert location_of(site, "/misbehave/cookie_wall") == (302, "/misbehave/cookie_wall")
    assert location_of(site, "/misbehave/cookie_wall", "seen=1") == (200, None)
    assert location_of(site, "/misbehave/cookie_wall/new", "seen=1") == (302, "/misbehave/cookie_wall/new")


def test_cookie_trip_leads_by_way_of_its_desk(site: DemoSite) -> None:
    assert location_of(site, "/misbehave/cookie_trip") == (302, "/misbehave/cookie_trip/desk")
    assert location_of(site, "/misbehave/cookie_trip/desk") == (302, "/misbehave/cookie_trip")
    assert location_of(site, "/misbehave/cookie_trip", "a=1; ticket=7") == (200, None)


def test_echo_says_what_was_received(site: DemoSite) -> None:
    said = json.loads(parts(raw(site, "/misbehave/echo", headers="X-Key: k\r\n")[0])[2])
    assert (said["method"], said["target"], said["headers"]["x-key"], said["body"]) == (
        "GET",
        "/misbehave/echo",
        "k",
        "",
    )


def test_set_cookie_sets_two(site: DemoSite) -> None:
    response, _ = raw(site, "/misbehave/set_cookie/abc")
    assert re.findall(rb"Set-Cookie: (\w+=\w+)", response) == [b"session=abc", b"seen=yes"]


def test_header_flood_and_bad_header(site: DemoSite) -> None:
    assert raw(site, "/misbehave/header_flood/500")[0].count(b"\r\nX-Flood-") == 500
    assert b"\r\nthis line is no header\r\n" in raw(site, "/misbehave/bad_header")[0]


def test_garbage_is_not_http(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/garbage", headers="Connection: keep-alive\r\n")
    assert (response[:5], ending) == (b"\x00\x01SSH", "closed")


def test_http10_ends_by_closing(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/http10", headers="Connection: keep-alive\r\n")
    assert response == b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + FINE
    assert ending == "closed"


def test_close_after_closes_without_saying_so(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/close_after", headers="Connection: keep-alive\r\n")
    _, headers, body = parts(response)
    assert (body, ending) == (FINE, "closed")
    assert "connection" not in headers


def test_extra_bytes_follow_a_whole_response(site: DemoSite) -> None:
    response, ending = raw(site, "/misbehave/extra_bytes", headers="Connection: keep-alive\r\n", seconds=0.2)
    _, headers, body = parts(response)
    assert ending == "silent"
    assert body[: int(headers["content-length"])] == FINE
    assert len(body) > len(FINE)


def test_a_bad_argument_is_said_with_400(site: DemoSite) -> None:
    status, _, body = parts(raw(site, "/misbehave/delay/soon")[0])
    assert (status, body) == (400, b"'soon' is no argument for delay\n")


def test_a_rule_makes_a_prefix_of_a_host_misbehave_until_it_behaves(site: DemoSite) -> None:
    def statuses(path: str, host: str = "shop.localhost", times: int = 1) -> list[int]:
        return [parts(raw(site, path, host=host)[0])[0] for _ in range(times)]

    site.misbehave("status", prefix="/catalogue/", arg="500", host="shop.localhost")
    assert statuses("/catalogue/page-1.html") == [500]
    assert statuses("/") == [200]
    assert statuses("/catalogue/page-1.html", host="other.localhost") == [200]
    site.behave()
    assert statuses("/catalogue/page-1.html") == [200]
    site.misbehave("status", arg=503, times=2)
    assert statuses("/", times=4) == [503, 503, 200, 200]
    site.behave()
    site.misbehave("status", arg=503, every=3)
    assert statuses("/", times=6) == [200, 200, 503, 200, 200, 503]
    assert [each.misbehaviour for each in site.arrivals()][-3:] == [None, None, "status"]


def test_a_rule_keeps_the_usual_answer_where_it_only_delays(site: DemoSite) -> None:
    usual = parts(raw(site, "/catalogue/page-1.html")[0])[2]
    site.misbehave("delay", prefix="/catalogue/", arg="0.05")
    assert parts(raw(site, "/catalogue/page-1.html")[0])[2] == usual


def test_requests_behind_a_hanging_one_do_not_disturb_others(site: DemoSite) -> None:
    with connected(site) as hanging:
        hanging.sendall(b"GET /misbehave/hang HTTP/1.1\r\nHost: x.localhost\r\n\r\n" * 3)
        assert parts(raw(site, "/")[0])[0] == 200


def test_say_says_what_its_argument_says(site: DemoSite) -> None:
    """/misbehave/say/JSON, or by a rule for any path."""
    wanted = {"status": 418, "type": "text/x", "headers": "X-A: 1\r\n", "body": base64.b64encode(b"hello").decode()}
    site.misbehave("say", prefix="/teapot", arg=json.dumps(wanted))
    status, headers, body = parts(raw(site, "/teapot")[0])
    assert (status, headers["content-type"], headers["x-a"], body) == (418, "text/x", "1", b"hello")


def test_sitemap_chain_leads_on_and_sitemap_of_lists(site: DemoSite) -> None:
    assert b"<loc>/misbehave/sitemap_chain/8</loc>" in raw(site, "/misbehave/sitemap_chain/7")[0]
    assert raw(site, "/misbehave/sitemap_of/3")[0].count(b"<loc>/nowhere/") == 3


def body(site: DemoSite, path: str) -> str:
    return parts(raw(site, path)[0])[2].decode()


def test_calendar_has_a_month_before_and_after_each(site: DemoSite) -> None:
    assert "?m=2026-12" in body(site, "/misbehave/calendar?m=2027-01")
    assert "?m=2027-02" in body(site, "/misbehave/calendar?m=2027-01")


def test_echoed_query_escapes_once_more(site: DemoSite) -> None:
    assert '"?&amp;amp;p=2"' in body(site, "/misbehave/echoed_query")
    assert '"?%26amp%3Bp=2&amp;amp;p=2"' in body(site, "/misbehave/echoed_query?&amp;p=2")
    assert '"?&amp;amp;amp;p=2&amp;amp;p=2"' in body(site, "/misbehave/echoed_query/html?&amp;p=2")


def test_stuck_listing_repeats_its_last_items(site: DemoSite) -> None:
    assert "/item/2-0" in body(site, "/misbehave/stuck_listing/2?page=9")
    assert "?page=10" in body(site, "/misbehave/stuck_listing/2?page=9")


def test_expire_cursors_leaves_what_has_no_cursor_as_usual(site: DemoSite) -> None:
    """On the API it ends what was given out (`test_demo_site.py`); elsewhere nothing happens."""
    assert parts(raw(site, "/misbehave/expire_cursors")[0])[0] == 200
