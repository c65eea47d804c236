"""Where alerts go: webhooks, Slack-compatible webhooks, e-mail, the log. Read from one strict TOML file.

    default = ["log"]                       # for owners without channels of their own

    [owners]
    "team:prices" = ["prices-chat", "oncall"]

    [channels.prices-chat]
    kind = "slack"
    url_env = "PRICES_SLACK_URL"            # the *name* of the variable; the file holds no secret

Secrets (webhook addresses, tokens, the password of the mail server) are read from the environment when a message is
sent, and appear in no message, log or error.
"""

from __future__ import annotations

import json
import logging
import os
import re
import smtplib
import ssl
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from collector_assets.errors import ConfigurationError

LOG: Final = logging.getLogger("collector.alerts")
SETTING: Final = "COLLECTOR_ALERTS"
TIMEOUT_S: Final = 10.0
ENV_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*\Z")
ADDRESS: Final = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+\Z")
LOG_CHANNEL: Final = "log"


class Undelivered(Exception):
    """A channel did not take a message; `str()` says why and holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert as it is sent; its texts are bounded and hold no control characters."""

    source: str
    cause: str
    title: str
    body: str
    first_at: datetime
    last_at: datetime
    count: int

    @property
    def text(self) -> str:
        """Title, body and how often, for people."""
        often = f"\n\n{self.count} times since {self.first_at:%Y-%m-%d %H:%M} UTC" if self.count > 1 else ""
        return f"{self.title}\n{self.body}{often}"


class Channel(Protocol):
    """Something that takes a message, or raises `Undelivered`."""

    @property
    def name(self) -> str: ...

    def send(self, message: Message) -> None: ...


# --- The four kinds --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToLog:
    """A line of the log at level ERROR."""

    name: str

    def send(self, message: Message) -> None:
        """Never fails."""
        LOG.error("%s", message.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A POST of one JSON object: source, cause, title, body, first_at, last_at, count."""

    name: str
    url_env: str
    token_env: str = ""
    """The variable with a token, sent as `Authorization: Bearer …`."""

    def send(self, message: Message) -> None:
        """Taken when the answer is 2xx."""
        secrets = {"Authorization": f"Bearer {_secret(self.name, self.token_env)}"} if self.token_env else {}
        value = {
            "source": message.source, "cause": message.cause, "title": message.title, "body": message.body,
            "first_at": message.first_at.isoformat(), "last_at": message.last_at.isoformat(), "count": message.count,
        }  # fmt: skip
        _post(self.name, _secret(self.name, self.url_env), value, secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A POST of `{"text": …}`, as Slack, Mattermost, Rocket.Chat and others take it."""

    name: str
    url_env: str

    def send(self, message: Message) -> None:
        """Taken when the answer is 2xx. Nothing in the text can become a link, a mention or markup."""
        escaped = message.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        _post(self.name, _secret(self.name, self.url_env), {"text": escaped, "mrkdwn": False}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """An e-mail in plain text."""

    name: str
    host: str
    sender: str
    to: tuple[str, ...]
    port: int = 587
    security: str = "starttls"
    """`starttls`, `tls` or, inside a machine, `none`; certificates are verified."""
    user: str = ""
    password_env: str = ""

    def send(self, message: Message) -> None:
        """Taken when the server accepted it for every recipient."""
        try:
            with self._connected() as server:
                if self.user:
                    server.login(self.user, _secret(self.name, self.password_env))
                refused = server.send_message(self._made(message))
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise Undelivered(f"{self.name}: {type(error).__name__}") from None  # its text may quote what we sent
        if refused:
            raise Undelivered(f"{self.name}: {len(refused)} recipients were refused")

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        if self.security == "starttls":
            try:
                server.starttls(context=context)
            except BaseException:
                server.close()
                raise
        return server

    def _made(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = message.title, self.sender, ", ".join(self.to)
        mail["Date"], mail["Message-ID"] = format_datetime(message.last_at), make_msgid(domain="collector.invalid")
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers
        mail.set_content(message.text)
        return mail


def _secret(channel: str, variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise Undelivered(f"{channel}: the variable {variable} is not set")
    return value


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A webhook that answers with a redirect did not take the message; following would drop the body."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:  # noqa: ARG002
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


def _post(channel: str, url: str, value: object, headers: Mapping[str, str]) -> None:
    if not url.lower().startswith(("http://", "https://")):
        raise Undelivered(f"{channel}: its address is no http or https URL")
    body = json.dumps(value).encode()
    said = {"Content-Type": "application/json", "User-Agent": "collector-alerts", **headers}
    try:
        request = urllib.request.Request(url, body, said)  # noqa: S310  the scheme is checked above
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        with error:
            raise Undelivered(f"{channel}: answered {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Undelivered(f"{channel}: {type(reason).__name__}") from None  # its text may hold the address


# --- The file --------------------------------------------------------------------------------------------------------

KINDS: Final[Mapping[str, type[Any]]] = {"log": ToLog, "webhook": Webhook, "slack": Slack, "email": Mail}
Table: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Which owner's alerts go where."""

    channels: Mapping[str, Channel] = field(default_factory=lambda: {LOG_CHANNEL: ToLog(name=LOG_CHANNEL)})
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default: tuple[str, ...] = (LOG_CHANNEL,)

    def of(self, owners: Sequence[str]) -> tuple[Channel, ...]:
        """The channels of these owners together; the default ones when none of them has any."""
        names = [name for owner in owners for name in self.owners.get(owner, ())] or self.default
        return tuple(self.channels[name] for name in dict.fromkeys(names))


def load(file: Path | None) -> Routes:
    """The routes of the file that COLLECTOR_ALERTS names; without one everything goes to the log.

    Raises `ConfigurationError`, which names the entry, for whatever is unknown, missing or of the wrong kind.
    """
    if file is None:
        return Routes()
    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise _wrong(f"{file} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(f"{file}: {error}") from None
    return parse(given)


def parse(given: Table) -> Routes:
    """The routes that a file's content says."""
    _only(given, {"default", "owners", "channels"}, "the file")
    channels: dict[str, Channel] = {LOG_CHANNEL: ToLog(name=LOG_CHANNEL)}
    for name, table in _table(given, "channels").items():
        channels[name] = _channel(name, table)
    owners = {owner: _names(names, f"owners.{owner!r}") for owner, names in _table(given, "owners").items()}
    default = _names(given.get("default", [LOG_CHANNEL]), "default")
    if not default:
        raise _wrong("default names no channel, so alerts of others than the owners would be lost")
    for name in {name for names in (*owners.values(), default) for name in names} - set(channels):
        raise _wrong(f"no channel is called {name!r}; there are {', '.join(sorted(channels))}")
    return Routes(channels=channels, owners=owners, default=default)


def _channel(name: str, table: object) -> Channel:
    where = f"channels.{name}"
    if not isinstance(table, dict):
        raise _wrong(f"{where} is no table")
    made = KINDS.get(str(table.get("kind")))
    if made is None:
        raise _wrong(f"{where}.kind is {table.get('kind')!r}; there are {', '.join(KINDS)}")
    known = {each.name: each for each in fields(made) if each.name != "name"}
    _only(table, {"kind", *known}, where)
    given = {key: value for key, value in table.items() if key != "kind"}
    values: dict[str, Any] = {key: _value(f"{where}.{key}", known[key].type, value) for key, value in given.items()}
    try:
        channel = made(name=name, **values)
    except TypeError as error:
        missing = re.findall(r"'(\w+)'", str(error))
        raise _wrong(f"{where} lacks {', '.join(missing)}") from None
    _check(where, values)
    return channel


def _value(where: str, kind: object, value: object) -> object:
    """The value, if it is of the field's kind."""
    if kind == "tuple[str, ...]":
        return _names(value, where)
    if isinstance(value, bool) or not isinstance(value, int if kind == "int" else str):
        raise _wrong(f"{where} is no {'number' if kind == 'int' else 'text'}")
    return value


def _check(where: str, values: Table) -> None:
    for key, value in values.items():
        if key.endswith("_env") and not ENV_NAME.match(value):
            raise _wrong(f"{where}.{key} names a variable, in capitals; the secret itself stays out of the file")
    for address in (*values.get("to", ()), *([values["sender"]] if "sender" in values else [])):
        if not ADDRESS.match(address):
            raise _wrong(f"{where}: {address!r} is no e-mail address")
    if values.get("security", "starttls") not in {"starttls", "tls", "none"}:
        raise _wrong(f"{where}.security is {values['security']!r}; there are starttls, tls, none")
    if ("user" in values) != ("password_env" in values):
        raise _wrong(f"{where}: user and password_env go together")
    if values.get("to") == ():
        raise _wrong(f"{where}.to is empty")


def _table(given: Table, key: str) -> Table:
    value = given.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(f"{key} is no table")
    return value


def _names(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(f"{where} is no list of texts")
    return tuple(value)


def _only(table: Table, known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise _wrong(f"{where}: {key!r} is unknown; there are {', '.join(sorted(known))}")


def _wrong(problem: str) -> ConfigurationError:
    return ConfigurationError(SETTING, problem, "Correct the file (docs/freshness-and-alerts.md)")
