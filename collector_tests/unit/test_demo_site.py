"""The running site over real sockets: hosts, switches, HTTP conduct, and its own log."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collector_assets.demo import DemoError, DemoSite
from collector_assets.demo.arrivals import parsed
from collector_tests.fixtures.site import connected, parts, raw


def _get(
    site: DemoSite, path: str, *, host: str = "shop.localhost", headers: str = ""
) -> tuple[int, dict[str, str], bytes]:
    response, ending = raw(site, path, host=host, headers=headers)
    assert ending == "closed"
    return parts(response)


def _cards(site: DemoSite, host: str, path: str = "/catalogue/page-1.html") -> int:
    return _get(site, path, host=host)[2].count(b'<article class="product_pod"')


def test_a_page_is_html_in_utf8_with_validators(site: DemoSite) -> None:
    status, headers, body = _get(site, "/catalogue/page-1.html")
    assert (status, headers["content-type"]) == (200, "text/html")
    assert int(headers["content-length"]) == len(body)
    assert "£".encode() in body
    assert headers["etag"].startswith('"')
    assert headers["last-modified"].endswith("GMT")
    assert "date" in headers


def test_hosts_are_separate_shops_whatever_the_port(site: DemoSite) -> None:
    assert _get(site, "/catalogue/page-4.html", host="shop.localhost")[0] == 404
    assert _get(site, "/catalogue/page-50.html", host="books.localhost")[0] == 200
    site.switch(host="tiny.shop.localhost", books=3)
    assert [_cards(site, host) for host in ("tiny.shop.localhost", "invented.localhost")] == [3, 20]


def test_a_switch_acts_at_run_time_and_a_reset_takes_it_back(site: DemoSite) -> None:
    site.switch(books=600)
    assert _get(site, "/catalogue/page-30.html")[0] == 200
    site.reset()
    assert _get(site, "/catalogue/page-30.html")[0] == 404


@pytest.mark.parametrize(
    ("wish", "message"),
    [({"boks": 1}, "no switch is named 'boks'"), ({"books": "many"}, "is not a int"), ({"per_page": 0}, "less than 1")],
)
def test_a_wrong_switch_is_refused_by_name(site: DemoSite, wish: dict[str, Any], message: str) -> None:
    with pytest.raises(DemoError, match=message):
        site.switch(**wish)
    with pytest.raises(DemoError, match=message):
        site.switch(host="x.localhost", **wish)
    with pytest.raises(DemoError, match="no misbehaviour is named 'sulk'"):
        site.misbehave("sulk")


def test_a_conditional_request_gets_304_until_the_page_changes(site: DemoSite) -> None:
    site.switch(books=60)
    _, headers, _ = _get(site, "/")
    by_tag, by_date = f"If-None-Match: {headers['etag']}\r\n", f"If-Modified-Since: {headers['last-modified']}\r\n"
    for condition in (by_tag, by_tag.replace('"', 'W/"', 1), by_date):
        response, _ = raw(site, "/", headers=condition)
        status, again, body = parts(response)
        assert (status, body, again["etag"]) == (304, b"", headers["etag"])
    site.switch(edition=2)
    assert _get(site, "/", headers=by_tag)[0] == 200
    assert _get(site, "/", headers=by_date)[0] == 200


def test_an_etag_that_differs_wins_over_a_date_that_matches(site: DemoSite) -> None:
    """RFC 9110 13.2.2."""
    assert (
        _get(site, "/", headers='If-None-Match: "other"\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n')[0]
        == 200
    )


def test_pages_are_compressed_only_when_both_sides_want_it(site: DemoSite) -> None:
    accepts = "Accept-Encoding: gzip, deflate\r\n"
    plain = _get(site, "/", headers=accepts)
    assert "content-encoding" not in plain[1]
    site.switch(gzip=1)
    assert "content-encoding" not in _get(site, "/")[1]
    _, headers, body = _get(site, "/", headers=accepts)
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == plain[2]


def test_head_has_the_length_and_no_body(site: DemoSite) -> None:
    full = _get(site, "/")[1]["content-length"]
    response, ending = raw(site, "/", method="HEAD")
    status, headers, body = parts(response)
    assert (status, headers["content-length"], body, ending) == (200, full, b"", "closed")


def test_one_connection_serves_many_requests_also_pipelined_and_in_pieces(site: DemoSite) -> None:
    first = b"GET /items/good.json HTTP/1.1\r\nHost: lab.localhost\r\n\r\n"
    slow = b"GET /misbehave/delay/0.2 HTTP/1.1\r\nHost: lab.localhost\r\n\r\n"
    last = b"GET /items/bad.json HTTP/1.1\r\nHost: lab.localhost\r\nConnection: close\r\n\r\n"
    received = b""
    with connected(site) as client:
        client.sendall(first + slow + last[:20])
        time.sleep(0.05)
        client.sendall(last[20:50])
        time.sleep(0.01)
        client.sendall(last[50:])
        while some := client.recv(65_536):
            received += some
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.index(b'"good"') < received.index(b"Everything is fine") < received.index(b'"bad"')
    arrivals = site.arrivals()
    assert [each.path for each in arrivals] == ["/items/good.json", "/misbehave/delay/0.2", "/items/bad.json"]
    assert len({each.peer_port for each in arrivals}) == 1


def test_a_body_is_read_and_echoed(site: DemoSite) -> None:
    with connected(site) as client:
        client.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x.localhost\r\nContent-Length: 7\r\nX-Two: 2\r\nConnection: close\r\n\r\na=1"
        )
        time.sleep(0.02)
        client.sendall(b"&b=2")
        received = b""
        while some := client.recv(65_536):
            received += some
    echo = json.loads(parts(received)[2])
    assert (echo["method"], echo["target"], echo["body"]) == ("POST", "/echo", "a=1&b=2")
    assert ["X-Two", "2"] in echo["headers"]


@pytest.mark.parametrize(
    ("bytes_sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/3\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_no_request_is_refused_and_closed(site: DemoSite, bytes_sent: bytes, status: int) -> None:
    with connected(site) as client:
        client.sendall(bytes_sent)
        assert parts(client.recv(65_536))[0] == status


def test_the_lab_gives_each_candidate_its_fate(site: DemoSite) -> None:
    def item(name: str) -> tuple[int, dict[str, object]]:
        status, _, body = _get(site, f"/items/{name}.json", host="lab.localhost")
        assert len(body) < 200
        return status, json.loads(body)

    now = datetime.now(UTC)
    status, good = item("good")
    assert status == 200
    assert isinstance(good["value"], int)
    assert 0 <= good["value"] <= 1_000_000
    assert timedelta(0) <= datetime.fromisoformat(str(good["observed_at"])) - now < timedelta(seconds=10)
    assert [item("retry")[0] for _ in range(3)] == [503, 200, 200]
    assert item("bad")[1]["value"] == 1_000_001
    assert item("bad-type")[1]["value"] == "many"
    assert now - datetime.fromisoformat(str(item("stale")[1]["observed_at"])) > timedelta(minutes=59)
    assert [item("exhaust")[0] for _ in range(4)] == [503] * 4
    assert _get(site, "/items/unknown.json", host="lab.localhost")[0] == 404
    names = [each["name"] for each in json.loads(_get(site, "/candidates.json", host="lab.localhost")[2])]
    assert (len(names), len(set(names))) == (6, 5)


def test_the_lab_counts_per_target_and_forgets_at_a_reset(site: DemoSite) -> None:
    def statuses(path: str) -> list[int]:
        return [_get(site, path, host="lab.localhost")[0] for _ in range(2)]

    assert statuses("/items/retry.json") == [503, 200]
    assert statuses("/items/retry.json?run=2") == [503, 200]
    site.reset()
    assert statuses("/items/retry.json") == [503, 200]


def test_an_arrival_says_when_and_what_on_the_clock_of_the_client(site: DemoSite) -> None:
    before = time.monotonic()
    response, _ = raw(site, "/misbehave/delay/0.2?x=1", headers="User-Agent: tester/1\r\n")
    after = time.monotonic()
    [arrival] = site.arrivals(robots=True)
    assert (arrival.n, arrival.host, arrival.path) == (1, "shop.localhost", "/misbehave/delay/0.2?x=1")
    assert (arrival.method, arrival.status, arrival.user_agent) == ("GET", 200, "tester/1")
    assert (arrival.misbehaviour, arrival.bytes) == ("delay", len(response))
    assert before <= arrival.arrived <= arrival.ended - 0.2
    assert arrival.ended <= after


def test_a_response_never_ends_after_the_client_has_it(site: DemoSite) -> None:
    """Else a client that counts its gap from there would be accused of coming too soon.

    # Mutation: in Connection.write, read the clock after transport.write.
    """
    got = []
    with connected(site) as client:
        for _ in range(300):
            client.sendall(b"GET /items/good.json HTTP/1.1\r\nHost: lab.localhost\r\n\r\n")
            assert client.recv(65_536).endswith(b"}")
            got.append(time.monotonic())
    assert all(each.ended <= at for each, at in zip(site.arrivals(), got, strict=True))


def test_the_control_host_is_not_logged(site: DemoSite) -> None:
    site.state()
    assert _get(site, "/nothing", host="control.localhost")[0] == 404
    assert site.arrivals() == []


def test_what_began_before_a_reset_is_not_logged_after_it(site: DemoSite) -> None:
    with connected(site) as client:
        client.sendall(b"GET /misbehave/delay/0.2 HTTP/1.1\r\nHost: x.localhost\r\n\r\n")
        time.sleep(0.05)
        site.reset()
        raw(site, "/robots.txt")
        assert client.recv(65_536)
    assert [(each.n, each.path) for each in site.arrivals(robots=True)] == [(1, "/robots.txt")]


def test_robots_txt_is_a_switch(site: DemoSite) -> None:
    assert _get(site, "/robots.txt")[2] == b"User-agent: *\nAllow: /\n"
    site.switch(host="closed.localhost", robots="User-agent: *\nDisallow: /\n")
    assert b"Disallow: /" in _get(site, "/robots.txt", host="closed.localhost")[2]
    site.switch(host="closed.localhost", robots="")
    assert _get(site, "/robots.txt", host="closed.localhost")[0] == 404


def test_the_log_file_is_complete_after_a_stop_with_what_was_still_open(tmp_path: Path) -> None:
    log = tmp_path / "arrivals.jsonl"
    with DemoSite(log=log) as own, connected(own) as client:
        for _ in range(50):
            raw(own, "/")
        client.sendall(b"GET /misbehave/hang HTTP/1.1\r\nHost: x.localhost\r\n\r\n")
        time.sleep(0.05)
        own.stop()
        arrivals = parsed(log.read_bytes())
    assert len(arrivals) == 51
    assert [(each.misbehaviour, each.status, each.bytes) for each in arrivals][-1] == ("hang", None, 0)


def test_without_a_log_nothing_is_kept() -> None:
    with DemoSite(keeps_log=False, switches={"books": 5, "x.localhost/books": 2}, warm=["shop.localhost"]) as own:
        assert [_cards(own, host) for host in ("shop.localhost", "x.localhost")] == [5, 2]
        assert own.arrivals() == []


def test_a_taken_port_is_one_clear_line(site: DemoSite) -> None:
    port = int(site.address.rpartition(":")[2])
    with pytest.raises(DemoError, match=f"^port {port} on 127.0.0.1 is already in use; choose another with --port$"):
        DemoSite(port=port).start()


def _command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "collector_assets.demo", "--port", "0", *arguments], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_where_it_listens_and_stops_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"switches": {"books": 7}, "misbehave": [{"prefix": "/", "do": "status", "arg": 418}]})
    )
    process = _command("--config", str(config), "--ready-file", str(tmp_path / "ready"))
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline()
        address = (tmp_path / "ready").read_text().strip()
        assert line == f"demo site on http://{address}\n"
        process.send_signal(number)
        assert process.wait(5) == 0


def test_bad_arguments_are_one_line_and_no_site(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.json").write_text("{")
    for arguments in (
        ("--switch", "boks=3"), ("--switch", "books"), ("--config", str(tmp_path / "absent.json")),
        ("--config", str(tmp_path / "broken.json")), ("--log", str(tmp_path / "no" / "folder.jsonl")),
    ):  # fmt: skip
        process = _command(*arguments)
        assert process.stdout is not None
        with process.stdout as output:
            assert (process.wait(5), output.read()) == (1, "")
        assert capfd.readouterr().err.count("\n") == 1


def test_the_site_goes_when_its_parent_is_killed() -> None:
    code = (
        "import time; from collector_assets.demo import DemoSite\n"
        "site = DemoSite(); site.start(); print(site.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as output:
        pid = int(output.readline())
        parent.kill()
        parent.wait(5)
    deadline = time.monotonic() + 5
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_slow_accept_leaves_new_connections_unread(site: DemoSite) -> None:
    site.switch(accept_delay=0.3)
    started = time.monotonic()
    assert _get(site, "/robots.txt")[0] == 200
    assert time.monotonic() - started >= 0.29  # uvloop counts in milliseconds
    [arrival] = site.arrivals(robots=True)
    assert arrival.ended - arrival.arrived < 0.2


def test_the_gazette_shows_each_day_alike_and_none_to_come(site: DemoSite) -> None:
    first = parts(raw(site, "/gazette/2020/02/29.json")[0])
    assert json.loads(first[2])["notices"][0]["number"] == "20200229-1"
    assert parts(raw(site, "/gazette/2020/02/29.json")[0])[2] == first[2]
    for path in ("/gazette/2999/01/01.json", "/gazette/2021/02/29.json", "/gazette/today.json"):
        assert parts(raw(site, path)[0])[0] == 404


def test_the_register_shows_a_company_on_three_pages(site: DemoSite) -> None:
    status, headers, body = _get(site, "/register/index.html", host="register.localhost")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert body.count(b'<li class="company"') == 24
    for page, holds in (("index", b'<table id="filings">'), ("contact", b"High Street"), ("figures", b"Turnover")):
        assert holds in _get(site, f"/register/C0007/{page}.html")[2]
    for path in ("/register/C0025/index.html", "/register/C0007/other.html", "/register/"):
        assert _get(site, path)[0] == 404


def _posted(site: DemoSite, body: str) -> tuple[int, bytes]:
    text = (
        f"POST /register/search.html HTTP/1.1\r\nHost: r.localhost\r\nConnection: close\r\nContent-Length: {len(body)}"
    )
    with connected(site) as connection:
        connection.sendall(f"{text}\r\n\r\n{body}".encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    status, _, page = parts(answer)
    return status, page


def test_a_search_without_what_its_form_hides_is_refused(site: DemoSite) -> None:
    form = _get(site, "/register/search.html")[2].decode()
    hidden = re.findall(r'name="(\w+)" value="([^"]*)"', form)
    assert [name for name, _ in hidden] == ["view", "page", "token", "go"]
    status, page = _posted(site, "&".join(f"{name}={value}" for name, value in hidden) + "&town=Ayr")
    assert (status, page.count(b'<li class="company"'), b'<form id="more"' in page) == (200, 5, True)
    for body in ("town=Ayr", "town=Ayr&view=list&page=2&token=" + hidden[2][1], "town=Ayr&view=list&page=x"):
        assert _posted(site, body)[0] == 400


def test_the_api_leads_from_cursor_to_cursor_until_they_expire(site: DemoSite) -> None:
    def asked(query: str) -> tuple[int, dict[str, Any]]:
        status, _, body = _get(site, f"/api/filings{query}", host="api.localhost")
        return status, json.loads(body)

    first, seen = asked("?limit=50")[1], asked("?limit=50")[1]["filings"]
    second = asked(f"?limit=50&cursor={first['next']}")[1]
    numbers = [filing["number"] for filing in [*seen, *second["filings"]]]
    assert (len(numbers), len(set(numbers)), second["next"]) == (72, 72, None)
    site.misbehave("expire_cursors", prefix="/api/", times=1)
    assert asked(f"?limit=50&cursor={first['next']}") == (410, {"error": "cursor_expired"})
    assert asked(f"?limit=50&cursor={first['next']}")[0] == 410, "for good"
    assert asked(f"?limit=50&cursor={asked('?limit=50')[1]['next']}")[0] == 200
    for query, status in (("?cursor=rubbish", 410), ("?limit=0", 400), ("?limit=many", 400)):
        assert asked(query)[0] == status
    site.behave()
    site.misbehave("expire_cursors", prefix="/api/", arg="200", every=2, times=1)
    assert asked(f"?cursor={asked('')[1]['next']}") == (200, {"error": "cursor_expired"})
    assert asked(f"?cursor={asked('')[1]['next']}")[1]["filings"]


def test_prices_are_a_csv_with_commas_in_windows_1252(site: DemoSite) -> None:
    assert b'href="prices.csv"' in _get(site, "/downloads/index.html")[2]
    _, headers, body = _get(site, "/downloads/prices.csv")
    assert headers["content-type"] == "text/csv; charset=windows-1252"
    lines = body.decode("cp1252").split("\r\n")
    assert lines[0] == "UPC;Title;Category;Price;In stock"
    assert len(lines) == 1 + 60 + 1
    assert any("é" in line or "ñ" in line or "–" in line for line in lines)
