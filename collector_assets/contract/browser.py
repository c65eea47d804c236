"""What a browser does with pages, and the browser itself."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cached_property
from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.lengths import minutes, seconds
from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.request import Secret

Loads = Literal["image", "media", "font", "stylesheet", "script"]
CAP = re.compile(r"cap ([0-9]{1,5})\Z")


@dataclass(frozen=True, config=STRICT)
class Click(Refusing):
    """Click on the first element that a selector finds, once it is there and visible."""

    selector: str
    """CSS."""
    wait_for: str = ""
    """A selector that must find something afterwards."""


@dataclass(frozen=True, config=STRICT)
class Fill(Refusing):
    """Put text into a field, as a person who types it would."""

    selector: str
    """CSS; of an input, a text area, or what can be edited."""
    text: str | Secret
    """A secret is masked in what is kept of the page."""


@dataclass(frozen=True, config=STRICT)
class Press(Refusing):
    """Press a key: `Enter`, `Tab`, `Escape`, an arrow (`ArrowDown` …), `PageDown`, or a character."""

    key: str
    """Its name."""
    selector: str = ""
    """The element that has the focus then; by default whichever has it."""


@dataclass(frozen=True, config=STRICT)
class Scroll(Refusing):
    """Scroll down until no further items come."""

    items: str
    """A selector that finds the items."""
    most: int = 50
    """Scrolls at most."""
    settle: timedelta = timedelta(seconds=1)
    """How long new items are waited for."""


Action = Click | Fill | Press | Scroll


@dataclass(frozen=True, kw_only=True, config=STRICT)
class View(Refusing):
    """What a browser does with pages of a kind (`fetcher="browser"`)."""

    wait: str = Field(
        default="domcontentloaded",
        description='what the page is waited for: "domcontentloaded", "networkidle" (or `wait_at_most`, whichever is '
        "first), or a CSS selector that must find something; else the attempt ends `never_settled`",
    )
    wait_at_most: timedelta = Field(default=seconds(10), gt=timedelta(0), description="how long, for each wait")
    actions: tuple[Action, ...] = Field(default=(), description="what is done then, in this order")
    capture: tuple[str, ...] = Field(
        default=(),
        description='responses to the page\'s own requests that are archived, by URL (`*` is anything): "*/api/*"',
    )
    screenshot: bool = Field(default=False, description="keep a picture of the page")
    text: Literal["rendered", "response"] = Field(
        default="rendered",
        description="what `page.text`, `page.tree` and `page.selector` show: the DOM in the end, or what the site sent",
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Browser(Refusing):
    """The browser of a source that has kinds with `fetcher="browser"`; one in each worker."""

    pages: int = Field(default=2, ge=1, le=32, description="pages open at once in one worker")
    subrequests: str = Field(
        default="charge",
        pattern=r"^(charge|cap [0-9]{1,5})$",
        description='what a page loads from its own domain: "charge": each waits its turn and the gap like a page; '
        '"cap 20": so many of a page at once, further ones not at all',
    )
    allow_domains: tuple[str, ...] = Field(
        default=(), description="other registrable domains that pages may load from; counted, not spaced"
    )
    block: tuple[Loads, ...] = Field(
        default=("image", "media", "font"),
        description="what is not loaded: image, media, font, stylesheet, script",
    )
    block_urls: tuple[str, ...] = Field(default=(), description="nor what is at these URLs (`*` is anything)")
    block_trackers: bool = Field(default=True, description="nor the common hosts that watch visitors")
    retire_after_pages: int = Field(
        default=50, ge=1, description="pages after which a context (cookies, storage, cache) is closed"
    )
    retire_after: timedelta = Field(default=minutes(10), gt=timedelta(0), description="or this time")
    max_memory: int = Field(
        default=1_536 * 2**20,
        ge=256 * 2**20,
        description="memory of the browser with all its processes: at three quarters it is replaced after the pages "
        "that are open, at the limit at once",
    )
    storage_state: Secret | None = Field(
        default=None,
        description="the variable that names a file of cookies (storage state of Playwright) for a site that you may "
        "log in to; read when a context is made, never archived or logged",
    )

    @cached_property
    def cap(self) -> int | None:
        """Sub-requests to its own domain that a page may make; nothing where each is charged."""
        found = CAP.match(self.subrequests)
        return int(found[1]) if found else None
