"""Dagster's pages as a person uses them: by the words on them, in a headless Chromium.

The production build of the UI has no test ids; roles and visible text are what a person goes by, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from collector_assets.fetch import chromium
from collector_assets.fetch.chromium import ChromiumMissing

JOB = "/locations/collector/jobs/collect_{}"
GROUP = "/locations/collector/asset-groups/{}"
SCHEDULE = "/locations/collector/schedules/{}"
ASSET = "/assets/{}/{}?view={}"

PATIENCE_MS = 60_000
"""For one thing to appear: two cores may be shared with a whole test suite."""
SETTLED_MS = 700
"""The banner of the launch dialog ("Showing the last 90 days") comes a beat after the partitions."""
VIEWPORT = {"width": 1500, "height": 950}
# Nothing of the browser's own goes out: no updates, no safe browsing, no sync.
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
LOCAL = {"127.0.0.1", "localhost", ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """What must not happen while somebody looks at a page."""

    foreign: set[str] = field(default_factory=set)
    """Requests to other machines."""
    dialogs: list[str] = field(default_factory=list)
    """Texts of alert(), confirm(), prompt()."""
    errors: list[str] = field(default_factory=list)
    """What a script on the page did not catch."""

    def any(self) -> bool:
        return bool(self.foreign or self.dialogs or self.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """One person at one browser tab."""

    page: Page
    url: str
    incidents: Incidents

    def open(self, path: str) -> Page:
        """Go to a page of the UI."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def launch(self, button: str, partitions: str, count: int) -> str:
        """Press the button, choose the partitions in the dialog, launch; the words of the launching button."""
        dialog = self.launch_dialog(button, partitions, count)
        launch = dialog.get_by_role("button", name=re.compile(r"^Launch (backfill|\d+ run)"))
        label = launch.inner_text()
        expect(launch).to_be_enabled()
        launch.click()
        # It closes when the launch succeeded, and stays with an error otherwise.
        expect(dialog).to_have_count(0)
        return label

    def launch_dialog(self, button: str, partitions: str, count: int) -> Locator:
        """The open dialog, with the partitions chosen."""
        self.page.get_by_role("button", name=button).first.click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_text("Partition selection").wait_for()
        dialog.get_by_text(re.compile(r"^\d{4}-\d\d-\d\d")).first.wait_for()
        self.page.wait_for_timeout(SETTLED_MS)
        everything = dialog.get_by_role("button", name="Show all partitions")
        if everything.count():
            everything.click()
            expect(everything).to_have_count(0)
        self.choose_partitions(partitions, dialog)
        said = f"{count} partition{'' if count == 1 else 's'}"
        expect(dialog.get_by_text(said, exact=True)).to_be_visible()
        return dialog

    def choose_partitions(self, partitions: str, within: Locator | None = None) -> None:
        """Write into the box of a page or a dialog which partitions are meant: `a, [b...c]`."""
        if within:
            box = within.locator('input[type="text"]').first
        else:
            box = self.page.get_by_placeholder(re.compile("^ex: ")).last
            # It names all partitions once they are loaded; a dialog's stays empty.
            expect(box).to_have_value(re.compile(r"\d"))
        box.fill(partitions)
        box.press("Enter")

    def words(self) -> str:
        """Everything that can be read on the page."""
        return self.page.locator("body").inner_text()


def as_read(markdown: str) -> str:
    """A description as the page shows it: code without its backticks."""
    return markdown.replace("`", "")


def has_browser() -> bool:
    """Whether there is a Chromium to walk with."""
    try:
        return bool(chromium.find())
    except ChromiumMissing:
        return False


@contextmanager
def browser() -> Iterator[Browser]:
    """The Chromium that pages are collected with: the one without a window, where there is one."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium.find(), args=ARGUMENTS)
        yield started
        started.close()


@contextmanager
def walk(browser: Browser, url: str, shots: Path | None = None) -> Iterator[Walk]:
    """A new tab without cookies; `shots` gets a picture of the page where an error ended the walk."""
    context = browser.new_context(viewport={"width": 1500, "height": 950}, base_url=url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    incidents = Incidents()
    page.on("request", lambda request: _note(incidents, request.url))
    page.on("pageerror", lambda error: incidents.errors.append(str(error)))

    def dismissed(dialog: object) -> None:
        incidents.dialogs.append(dialog.message)  # pyright: ignore[reportAttributeAccessIssue]
        dialog.dismiss()  # pyright: ignore[reportAttributeAccessIssue]

    page.on("dialog", dismissed)
    try:
        yield Walk(page=page, url=url, incidents=incidents)
    except BaseException:
        if shots:
            page.screenshot(path=shots / "where-it-ended.png")
        raise
    finally:
        context.close()


def _note(incidents: Incidents, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname not in LOCAL:
        incidents.foreign.add(url)
