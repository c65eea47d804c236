"""Which answer a request gets: control, shop, lab, or a misbehaviour."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from urllib.parse import unquote

from . import api, app, downloads, gazette, lab, markup, register, sitemaps
from .connection import Connection
from .log import ArrivalLog
from .members import Members
from .misbehave import TABLE
from .reply import Reply, is_unchanged, json_reply, not_modified, reply
from .request import Request
from .shop import Shop
from .switches import Config, DemoError, Switches

CONTROL_HOST = "control.localhost"
_MISBEHAVE = "/misbehave/"
_KEPT_SHOPS = 8
_FINE = reply("<!DOCTYPE html><html><head><title>Fine</title></head><body><h1>Everything is fine</h1></body></html>\n")
_NOT_FOUND = reply(markup.not_found(), status=404)
_OF_SHOP: dict[str, Callable[[str, Shop], Reply | None]] = {"app": app.answer, "downloads": downloads.answer}
"""What else a shop has, by the first folder of the path."""


class Site:
    """All virtual hosts; one per process, on one event loop."""

    def __init__(self, config: Config, log: ArrivalLog | None) -> None:
        self.log = log
        self.connections: set[Connection] = set()
        self._first_config = config
        self._shops: dict[Switches, Shop] = {}
        self._visits: Counter[tuple[str, str, str]] = Counter()
        self._members = Members()
        self._set(config)

    @property
    def accept_delay(self) -> float:
        """Seconds a new connection is left unread."""
        return self._config.switches.accept_delay

    def warm(self, host: str) -> None:
        """Render every page of a host's shop now."""
        self._shop(host).warm()

    def misbehaviour(self, request: Request) -> tuple[str, str] | None:
        """Name and argument of the misbehaviour for a request, or None."""
        if request.path.startswith(_MISBEHAVE):
            name, _, argument = request.path[len(_MISBEHAVE) :].partition("/")
            return (name, unquote(argument)) if name in TABLE else None
        for rule in self._config.misbehave:
            if rule.applies(request.headers.host, request.path):
                return rule.do, rule.arg
        return None

    def ordinary(self, request: Request) -> Reply:
        """What a request gets when nothing misbehaves."""
        headers, path = request.headers, request.path
        found = self._shop(headers.host).page(path, accepts_gzip=headers.accepts_gzip)
        if found is None:
            return self._other(request)
        if (headers.if_none_match or headers.if_modified_since) and is_unchanged(
            found, headers.if_none_match, headers.if_modified_since
        ):
            return not_modified(found)
        return found

    def earlier(self, what: str, request: Request) -> int:
        """How often this was asked before for the request's host and target; counts it."""
        key = (what, request.headers.host, request.target)
        self._visits[key] += 1
        return self._visits[key] - 1

    def control(self, request: Request) -> Reply | None:
        """The answer to a request for the control host; None when it is for another host."""
        if request.headers.host != CONTROL_HOST:
            return None
        match request.method, request.path:
            case "GET", "/arrivals":
                lines = self.log.lines() if self.log else b""
                return reply(lines, content_type="application/x-ndjson")
            case "GET", "/state":
                return json_reply(self._state())
            case "POST", "/reset":
                self._reset()
                return json_reply({"reset": True})
            case "POST", "/switch":
                return self._switched(request.body)
            case _:
                return json_reply({"error": "GET /arrivals, GET /state, POST /reset, POST /switch"}, status=404)

    def _shop(self, host: str) -> Shop:
        shop = self._shop_of.get(host)
        if shop is None:
            switches = self._config.of(host)
            shop = self._shops.get(switches)
            if shop is None:
                if len(self._shops) >= _KEPT_SHOPS:
                    del self._shops[next(iter(self._shops))]
                shop = self._shops[switches] = Shop(switches)
            self._shop_of[host] = shop
        return shop

    def _other(self, request: Request) -> Reply:
        path = request.path
        if path.startswith(_MISBEHAVE) and path[len(_MISBEHAVE) :].partition("/")[0] in TABLE:
            return _FINE
        if path == "/robots.txt":
            text = self._config.of(request.headers.host).robots
            return reply(text, content_type="text/plain") if text else _NOT_FOUND
        if path.startswith("/sitemap"):
            return sitemaps.answer(request, self._shop(request.headers.host)) or _NOT_FOUND
        if path.startswith("/gazette/"):
            return gazette.answer(path) or _NOT_FOUND
        if path.startswith("/register/"):
            return register.answer(request) or _NOT_FOUND
        if path.startswith("/api/"):
            return api.answer(request, expiries=self._expiries(request.headers.host)) or _NOT_FOUND
        if answer := _OF_SHOP.get(path.split("/", 2)[1]):
            return answer(path, self._shop(request.headers.host)) or _NOT_FOUND
        if path.startswith("/items/") or path == "/candidates.json":
            return lab.answer(path, earlier=self.earlier("lab", request)) or _NOT_FOUND
        if path == "/echo":
            return _echo(request)
        return self._members.answer(request, self._config.of(request.headers.host)) or _NOT_FOUND

    def _expiries(self, host: str) -> int:
        """How often the cursors of a host's API were made to expire since the reset."""
        return sum(n for (what, at, _), n in self._visits.items() if (what, at) == ("expire_cursors", host))

    def _set(self, config: Config) -> None:
        self._config = config
        self._shop_of: dict[str, Shop] = {}  # by host; forgotten when a switch changes

    def _reset(self) -> None:
        self._set(self._first_config.fresh())
        self._visits.clear()
        self._members = Members()
        if self.log:
            self.log.clear()

    def _switched(self, body: bytes) -> Reply:
        try:
            self._set(self._config.changed(json.loads(body), TABLE))
        except (DemoError, ValueError) as error:
            return json_reply({"error": str(error)}, status=400)
        return json_reply(self._state())

    def _state(self) -> dict[str, object]:
        return {
            "switches": asdict(self._config.switches),
            "hosts": {host: dict(values) for host, values in self._config.hosts.items()},
            "misbehave": [rule.wish() for rule in self._config.misbehave],
            "connections": len(self.connections),
        }


def _echo(request: Request) -> Reply:
    """`/echo`: the request as it arrived, for tests of what a client sends."""
    return json_reply(
        {
            "method": request.method,
            "target": request.target,
            "headers": request.headers.lines,
            "body": request.body.decode("utf-8", "replace"),
        }
    )
