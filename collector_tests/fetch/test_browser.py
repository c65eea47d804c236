"""What the browser does with pages: waits, acts, reads, and ends what does not end by itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic

import psutil
import pytest

from collector_assets.contract import Browser, Click, Fill, Press, Scroll, Secret, View, replace, seconds
from collector_assets.fetch import Response, chromium
from collector_assets.fetch.browser import BrowserFetcher
from collector_assets.outcome import Outcome
from collector_tests.fixtures.browser import NEEDS_CHROMIUM
from collector_tests.fixtures.script_site import ORIGIN, ScriptSite, always, asked, dom

pytestmark = NEEDS_CHROMIUM

LATE = "<div id=a></div><script>setTimeout(() => { a.innerHTML = '<p class=late>here</p>' }, 200)</script>"


def running(fetcher: BrowserFetcher) -> chromium.Chromium:
    """The browser of a fetcher."""
    assert fetcher._contexts._running
    return fetcher._contexts._running.chromium


def left(processes: list[psutil.Process], profile: Path) -> list[psutil.Process]:
    """Those that are still there, and whoever else names the profile."""
    found = [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(profile) in word for word in each.cmdline()):
                found.append(each)
    return found


class TestWaiting:
    def test_for_a_selector_takes_as_long_as_it_takes(self, scripts: ScriptSite):
        (seen,) = scripts.visit(scripts.page("/late", LATE), view=View(wait="p.late"))

        assert seen.outcome is Outcome.OK
        assert '<p class="late">here</p>' in dom(seen)
        assert b"setTimeout" in seen.body, "the document is kept as it came"

    def test_a_selector_that_never_comes_is_never_settled_and_spares_the_next_page(self, scripts: ScriptSite):
        never, fine = scripts.page("/none", "<p>not it"), scripts.page("/late", LATE)
        view = View(wait="p.late", wait_at_most=seconds(0.8))
        ended, after = scripts.visit(never, fine, view=view)

        assert (ended.outcome, after.outcome) == (Outcome.NEVER_SETTLED, Outcome.OK)
        assert "'p.late'" in ended.reason

    def test_for_the_network_ends_by_itself(self, scripts: ScriptSite):
        url = scripts.page("/quiet", "<p>quiet")
        (seen,) = scripts.visit(url, view=View(wait="networkidle"))

        assert (seen.outcome, seen.flags) == (Outcome.OK, ())

    def test_a_script_without_end_is_never_settled(self, scripts: ScriptSite):
        busy, fine = scripts.page("/busy", "<script>for (;;) {}</script>"), scripts.page("/fine", "<p>fine")
        ended, after = scripts.visit(busy, fine, view=View(wait_at_most=seconds(1)))

        assert (ended.outcome, after.outcome) == (Outcome.NEVER_SETTLED, Outcome.OK)


class TestActing:
    def test_clicks_fills_and_presses_like_a_person(self, scripts: ScriptSite, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SEARCHED", "maps")
        url = scripts.page(
            "/form",
            """<button id=open>open</button><div id=a></div><script>
            open.onclick = null;
            document.getElementById('open').onclick = event => {
              document.getElementById('a').innerHTML = '<input id=q value=old><p id=said></p>';
              q.onkeydown = event => { if (event.key == 'Enter') said.textContent = q.value.length + q.value };
            };</script>""",
        )
        actions = (Click("#open", wait_for="#q"), Fill("#q", Secret("SEARCHED")), Press("Enter"))
        (seen,) = scripts.visit(url, view=View(actions=actions))

        assert seen.outcome is Outcome.OK
        assert '<p id="said">4{secret SEARCHED}</p>' in dom(seen), "what was typed is masked in what is kept"

    def test_scrolls_until_nothing_new_comes(self, scripts: ScriptSite):
        url = scripts.page(
            "/endless",
            """<div id=a></div><script>
            let n = 0;
            const more = () => { for (let i = 0; i < 10 && n < 35; i++) a.insertAdjacentHTML('beforeend',
              `<p class=item style="height: 200px">${n++}</p>`) };
            more();
            addEventListener('scroll', () => setTimeout(more, 50));</script>""",
        )
        (seen,) = scripts.visit(url, view=View(actions=(Scroll(".item", settle=seconds(0.5)),)))

        assert dom(seen).count('class="item"') == 35

    def test_what_cannot_be_done_is_never_settled(self, scripts: ScriptSite):
        view = View(actions=(Click("#none"),), wait_at_most=seconds(0.5))
        (seen,) = scripts.visit(scripts.page("/plain", "<p>plain"), view=view)

        assert (seen.outcome, "'#none'" in seen.reason) == (Outcome.NEVER_SETTLED, True)


class TestEndings:
    """What a page may do, each with its name."""

    @pytest.mark.parametrize(
        "leaves",
        [
            "<script>location = '/there'</script>",
            "<script>location.replace('/there')</script>",
            "<script>setTimeout(() => { location.href = '/there' }, 0)</script>",
            "<form action=/there></form><script>document.forms[0].submit()</script>",
            "<a href=/there>x</a><script>document.links[0].click()</script>",
        ],
        ids=["assigned", "replaced", "soon", "form", "link"],
    )
    def test_a_page_that_goes_elsewhere_is_a_redirect_and_asks_nothing(self, scripts: ScriptSite, leaves: str):
        (seen,) = scripts.visit(scripts.page("/stub", f"<p>stub{leaves}"))

        assert (seen.outcome, seen.refresh.rstrip("?")) == (Outcome.REDIRECT, f"{ORIGIN}/there")
        assert scripts.paths() == ["/stub"]

    def test_a_form_that_sends_itself_is_not_followed(self, scripts: ScriptSite):
        form = "<form method=post action=/there></form><script>document.forms[0].submit()</script>"
        (seen,) = scripts.visit(scripts.page("/stub", form))

        assert seen.outcome is Outcome.NAVIGATED_AWAY
        assert scripts.paths() == ["/stub"]

    def test_dialogs_popups_and_downloads_are_refused_and_noted(self, scripts: ScriptSite):
        url = scripts.page(
            "/noisy",
            """<p id=a></p><script>alert(1); a.textContent = confirm('?') + '' + prompt('?');
            const l = document.createElement('a'); l.href = URL.createObjectURL(new Blob(['x'])); l.download = 'x.csv';
            l.click();</script>
            <button id=b onclick="window.open('/popup'); window.open('/another', '_blank', 'noopener')">b</button>""",
        )
        (seen,) = scripts.visit(url, view=View(actions=(Click("#b"), Click("#b"))))

        assert seen.outcome is Outcome.OK
        assert '<p id="a">falsenull</p>' in dom(seen)
        assert set(seen.flags) >= {"dialog_dismissed", "popup_closed"}
        assert scripts.paths() == ["/noisy"]

    def test_dialogs_without_end_are_never_settled(self, scripts: ScriptSite):
        (seen,) = scripts.visit(scripts.page("/alerts", "<script>for (;;) alert(1)</script>"))

        assert seen.outcome is Outcome.NEVER_SETTLED

    def test_what_is_no_html_is_not_shown_to_a_browser(self, scripts: ScriptSite):
        table = scripts.page("/table", "a,b\n1,2\n", kind="text/csv")
        (seen,) = scripts.visit(table)

        assert (seen.outcome, seen.body, seen.parts) == (Outcome.OK, b"a,b\n1,2\n", ())

    def test_a_crash_is_named_and_the_next_page_gets_a_new_browser(self, scripts: ScriptSite):
        slow, fine = scripts.page("/slow", LATE), scripts.page("/fine", "<p>fine")

        async def killed(fetcher: BrowserFetcher) -> list[object]:
            first = asyncio.create_task(fetcher.fetch(asked(slow, kind="slow"), always))
            while (now := fetcher._contexts._running) is None or not now.active:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            os.kill(now.chromium.pid, signal.SIGKILL)
            return [await first, await fetcher.fetch(asked(fine), always)]

        ended, after = scripts.use(killed, views={"slow": View(wait="#never")})

        assert getattr(ended, "outcome", ended) is Outcome.PAGE_CRASHED
        assert getattr(after, "outcome", after) is Outcome.OK


class TestLoads:
    PAGE = "<script src=/one.js></script><script src=/two.js></script><img src=/a.png><script src=http://cdn.localhost:8765/x.js></script>"

    def test_of_the_own_domain_wait_for_their_turn_like_pages(self, scripts: ScriptSite):
        """Rule 7."""
        # Mutation: `await asyncio.sleep(max(...))` in `Gate.passes` left out.
        (seen,) = scripts.visit(scripts.page("/page", self.PAGE), gap_s=1.0, view=View(wait="networkidle"))

        arrived = scripts.arrivals()
        assert [each.path for each in arrived] == ["/page", "/one.js", "/two.js"]
        assert all(later.arrived - earlier.ended >= 1.0 for earlier, later in pairwise(arrived))
        assert (seen.loads["own"], seen.loads["foreign"], seen.loads["unwanted"] > 0) == (2, 1, True)

    def test_beyond_the_cap_stay_here(self, scripts: ScriptSite):
        capped = Browser(subrequests="cap 1", allow_domains=("cdn.localhost",))
        (seen,) = scripts.visit(scripts.page("/page", self.PAGE), browser=capped, view=View(wait="networkidle"))

        assert len(scripts.paths()) == 2
        assert scripts.paths("cdn.localhost") == ["/x.js"]
        assert [seen.loads[each] for each in ("own", "over_cap", "allowed")] == [1, 1, 1]

    def test_need_the_permission_of_the_moment(self, scripts: ScriptSite):
        """Rule 8: a slot that is lost in the middle of a page ends what it may load."""
        url, allowed = scripts.page("/page", self.PAGE), [True]

        async def once(fetcher: BrowserFetcher) -> object:
            return await fetcher.fetch(asked(url), lambda: bool(allowed) and allowed.pop())

        seen = scripts.use(once)

        assert scripts.paths() == ["/page"]
        assert isinstance(seen, Response)
        assert seen.loads["late"] == 2

    def test_that_robots_txt_forbids_stay_here(self, scripts: ScriptSite):
        url = scripts.page("/page", self.PAGE)
        (seen,) = scripts.visit(url, may_load=lambda asked_for: not asked_for.endswith("two.js"))

        assert scripts.paths() == ["/page", "/one.js"]
        assert seen.loads["forbidden"] == 1

    def test_are_kept_where_the_kind_captures_them(self, scripts: ScriptSite):
        scripts.page("/api/a", json.dumps({"a": "é"}), kind="application/json")
        scripts.page("/api/b", json.dumps({"b": 1}), kind="application/json")
        url = scripts.page(
            "/page",
            "<p id=p></p><script>fetch('/api/a').then(() => fetch('/api/b')).then(r => r.text())"
            ".then(() => p.className = 'done')</script>",
        )
        (seen,) = scripts.visit(url, view=View(wait="p.done", capture=("*/api/*",)))

        kept = [part for part in seen.parts if part.role == "captured"]
        assert [(part.url, json.loads(part.body)) for part in kept] == [
            (f"{ORIGIN}/api/a", {"a": "é"}), (f"{ORIGIN}/api/b", {"b": 1}),
        ]  # fmt: skip

    def test_a_picture_is_kept_where_the_kind_says_so(self, scripts: ScriptSite):
        (seen,) = scripts.visit(scripts.page("/page", "<p>hello"), view=View(screenshot=True))

        assert [part.body[:4] for part in seen.parts if part.role == "view"] == [b"\x89PNG"]


class TestContexts:
    def test_cookies_live_in_the_context_of_an_origin_and_die_with_it(self, scripts: ScriptSite):
        sets = scripts.page("/sets", "<script>document.cookie = 'js=1'</script>", headers="Set-Cookie: http=1\r\n")
        scripts.site.misbehave("echo", prefix="/shown")
        other = "http://lab.localhost:8765/shown"
        one = Browser(pages=1, retire_after_pages=2)
        _, same, retired, _, elsewhere = scripts.visit(
            sets, f"{ORIGIN}/shown", f"{ORIGIN}/shown", sets, other, browser=one
        )

        assert b"js=1" in same.body
        assert b"http=1" in same.body
        assert b"js=1" not in elsewhere.body
        assert b"js=1" not in retired.body
        assert not any("js=1" in value for name, value in same.request_headers if name == "Cookie"), "masked"

    def test_a_storage_state_is_read_from_the_file_that_the_settings_name(
        self, scripts: ScriptSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        state = {
            "cookies": [{"name": "sid", "value": "s3cret", "domain": "shop.localhost", "path": "/", "expires": -1}]
        }
        (tmp_path / "state.json").write_text(json.dumps(state))
        monkeypatch.setenv("SHOP_STATE", str(tmp_path / "state.json"))
        scripts.site.misbehave("echo", prefix="/shown")
        logged_in = Browser(storage_state=Secret("SHOP_STATE"))
        (seen,) = scripts.visit(f"{ORIGIN}/shown", browser=logged_in)

        assert b"sid=s3cret" in seen.body
        assert "s3cret" not in str(seen.request_headers)

        monkeypatch.delenv("SHOP_STATE")
        (missing,) = scripts.visit(f"{ORIGIN}/shown", browser=logged_in)
        assert (missing.outcome, missing.sent) == (Outcome.SECRET_MISSING, False)


@pytest.fixture
def own_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of profiles that nobody else sweeps."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return chromium._profiles()


class TestLeftovers:
    @pytest.mark.parametrize("is_stopped", [False, True], ids=["clean", "stopped"])
    def test_nothing_is_left_and_the_end_is_bounded(
        self,
        scripts: ScriptSite,
        monkeypatch: pytest.MonkeyPatch,
        is_stopped: bool,  # noqa: FBT001
    ):
        """BRW-06."""
        monkeypatch.setattr(chromium, "CLOSES_WITHIN_S", 1.0 if is_stopped else 5.0)
        url = scripts.page("/page", "<p>hello")

        async def used(fetcher: BrowserFetcher) -> tuple[list[psutil.Process], Path, float]:
            await fetcher.fetch(asked(url), always)
            browser = running(fetcher)
            processes = browser.processes()
            for each in processes if is_stopped else ():
                with suppress(psutil.Error):
                    each.suspend()
            return processes, browser.profile, monotonic()

        processes, profile, began = scripts.use(used)

        assert len(processes) > 3
        assert monotonic() - began < 8
        assert left(processes, profile) == []
        assert not profile.exists()

    def test_what_others_left_is_swept_by_the_next(self, own_profiles: Path):
        """A browser whose owner was stopped and is gone: its profile's lock is nobody's."""
        folder = own_profiles / "0123456789ab"
        folder.mkdir(parents=True)
        folder.with_suffix(".lock").touch()
        (folder / "Cookies").touch()

        assert chromium.sweep() == 1
        assert not folder.exists()

    def test_a_profile_in_use_is_nobodys_leftover(self, own_profiles: Path):
        # Mutation: `if _locked(held):` in `sweep` becomes `if True:`.
        profile = chromium.Profile()

        assert chromium.sweep() == 0
        assert profile.folder.parent == own_profiles
        assert profile.folder.exists()
        profile.remove()


def test_memory_beyond_the_limit_ends_the_browser_and_not_us(scripts: ScriptSite):
    greedy = scripts.page(
        "/greedy",
        "<script>const kept = []; setInterval(() => kept.push(new Uint8Array(60e6).fill(1)), 30)</script>",
    )
    fine = scripts.page("/fine", "<p>fine")
    small = replace(Browser(), max_memory=900 * 2**20)

    async def eaten(fetcher: BrowserFetcher) -> list[object]:
        return [await fetcher.fetch(asked(greedy, kind="greedy"), always), await fetcher.fetch(asked(fine), always)]

    ended, after = scripts.use(eaten, browser=small, views={"greedy": View(wait="#never", wait_at_most=seconds(30))})

    assert getattr(ended, "outcome", ended) is Outcome.PAGE_CRASHED
    assert getattr(after, "outcome", after) is Outcome.OK
