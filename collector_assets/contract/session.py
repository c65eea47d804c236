"""What a source shows to be let in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.contract.start_urls import url_of
from collector_assets.request import Link, Secret


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ClientCredentials(Refusing):
    """A token for an id and a secret (OAuth 2 client credentials, RFC 6749 §4.4); fetched anew before it expires."""

    url: str = Field(description="the token endpoint")
    client_id: str | Secret = Field(description="who we are there")
    client_secret: Secret = Field(description="what proves it")
    scope: str = Field(default="", description="what is asked for, names with blanks in between")
    more: Mapping[str, str | Secret] = Field(
        default_factory=dict, description='what else the endpoint wants in its form, such as {"audience": "…"}'
    )
    auth: Literal["header", "body"] = Field(
        default="header", description="where id and secret go: HTTP Basic, which every server must take, or the form"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="the hosts that are sent the token; default: those of start_urls, else of scope"
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Session(Refusing):
    """What a source shows to be let in: one login a window, whoever comes first, for all workers. One of three ways."""

    login: Link | None = Field(
        default=None,
        description='the request that logs in: Link("…/login", body={"user": Secret("U"), "password": Secret("P")})',
    )
    page: str | Link | None = Field(
        default=None, description="or the page with the login form, sent with its hidden fields as a browser would"
    )
    form: str = Field(default="form", description="with page: the CSS selector of the form")
    fields: Mapping[str, str | Secret] = Field(
        default_factory=dict, description="with page: what is filled in, by the names of the form's fields"
    )
    token: ClientCredentials | None = Field(
        default=None, description="or a token that goes along as `Authorization: Bearer …`"
    )
    proof: str | None = Field(
        default=None,
        description="a CSS selector that every HTML page shows while we are logged in, and none that shows us out, "
        'like "a.logout"; without it only a redirect to a login, or a 401, says that a session is over',
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it is begun."""
        found = (self.login, self.page, self.token and self.token.url)
        return tuple(url_of(item) for item in found if item is not None)
