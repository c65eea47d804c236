"""Cases BRW: pages in a browser, as other projects found them to go wrong."""

from __future__ import annotations

import asyncio
import json

import pytest

from collector_assets.contract import Browser, View, seconds
from collector_assets.fetch.browser import BrowserFetcher
from collector_assets.outcome import Outcome
from collector_tests.fixtures.browser import NEEDS_CHROMIUM
from collector_tests.fixtures.script_site import ORIGIN, ScriptSite, always, asked, dom

pytestmark = NEEDS_CHROMIUM
ELSEWHERE = "http://lab.localhost:8765"


def test_brw_01_redirects_are_not_seen_by_route(scripts: ScriptSite):
    """B gets no request: neither for the document, which is a redirect of the frontier's, nor for a picture."""
    scripts.site.misbehave("location", prefix="/redir", arg=f"{ELSEWHERE}/x")
    scripts.site.misbehave("location", prefix="/imgredir", arg=f"{ELSEWHERE}/x.png")
    page = scripts.page("/page", "<img src=/imgredir><script src=/imgredir/s></script><p>page")
    everything = Browser(block=(), subrequests="cap 9")
    moved, shown = scripts.visit(f"{ORIGIN}/redir", page, browser=everything, view=View(wait="networkidle"))

    assert (moved.outcome, moved.parts) == (Outcome.REDIRECT, ())
    assert shown.outcome is Outcome.OK
    assert {"/imgredir", "/imgredir/s"} <= set(scripts.paths()), "the pictures' first hops are the page's own"
    assert scripts.paths("lab.localhost") == []
    assert shown.loads["foreign"] >= 2, "their second hops were counted, and stayed here"


def test_brw_02_service_workers_go_around_interception(scripts: ScriptSite):
    scripts.page("/sw.js", "fetch('/fromsw'); onfetch = event => event.respondWith(new Response('from the worker'))",
                 kind="text/javascript")  # fmt: skip
    scripts.page("/data", "from the network", kind="text/plain")
    page = scripts.page(
        "/page",
        """<p id=p></p><script>
        const show = () => fetch('/data').then(answer => answer.text()).then(text => {
          p.textContent = text; p.className = 'done' });
        navigator.serviceWorker.register('/sw.js').catch(() => 0); setTimeout(show, 500);</script>""",
    )
    (seen,) = scripts.visit(page, view=View(wait="p.done"))

    assert "from the network" in dom(seen)
    assert not {"/sw.js", "/fromsw"} & set(scripts.paths())


def test_brw_04_pdf_viewer_instead_of_the_pdf(scripts: ScriptSite):
    pdf = b"%PDF-1.4 1"
    (seen,) = scripts.visit(scripts.page("/doc", pdf, kind="application/pdf"))

    assert (seen.outcome, seen.status, seen.body, seen.parts) == (Outcome.OK, 200, pdf, ())


@pytest.mark.parametrize("visits", [8, pytest.param(300, marks=pytest.mark.chaos)])
def test_brw_05_memory_grows_with_one_long_lived_context(scripts: ScriptSite, visits: int):
    """A page that leaks 20 MB a visit: the tree stays under the limit, and nothing is lost, done twice, or left."""
    leaking = """<p id=p></p><script>
    const kept = new Uint8Array(20e6).fill(1); window.kept = kept; sessionStorage.setItem('a', 'x'.repeat(1e6));
    new BroadcastChannel('c').onmessage = () => kept; setInterval(() => kept, 50); p.className = 'done'</script>"""
    urls = [f"{scripts.page('/leak', leaking)}/{n}" for n in range(visits)]
    limit, peak, contexts = 1_200 * 2**20, [0], [0]
    browser = Browser(pages=4, retire_after_pages=5, max_memory=limit)

    async def run(fetcher: BrowserFetcher) -> list[object]:
        async def watch() -> None:
            while True:
                await asyncio.sleep(0.5)
                if running := fetcher._contexts._running:
                    peak[0] = max(peak[0], await asyncio.to_thread(running.chromium.memory))
                    contexts[0] = max(contexts[0], len(running.by_id))

        watching = asyncio.create_task(watch())
        ends = await asyncio.gather(*(fetcher.fetch(asked(url, total_s=900.0), always) for url in urls))
        watching.cancel()
        return [getattr(end, "outcome", end) for end in ends]

    ends = scripts.use(run, browser=browser, views={"page": View(wait="p.done")})

    assert ends == [Outcome.OK] * visits
    assert sorted(scripts.paths()) == sorted(url.removeprefix(ORIGIN) for url in urls)
    assert peak[0] < limit
    assert contexts[0] <= 4


def test_brw_08_networkidle_never_comes(scripts: ScriptSite):
    """An idle timeout is no failure; a missing selector is."""
    page = scripts.page("/poll", "<p class=content>here</p><script>setInterval(() => fetch('/tick'), 100)</script>")
    bound = seconds(1.5)
    (idle,) = scripts.visit(page, view=View(wait="networkidle", wait_at_most=bound))
    (there,) = scripts.visit(page, view=View(wait=".content", wait_at_most=bound))
    (missing,) = scripts.visit(page, view=View(wait=".other", wait_at_most=bound))

    assert (idle.outcome, "never_idle" in idle.flags) == (Outcome.OK, True)
    assert (there.outcome, missing.outcome) == (Outcome.OK, Outcome.NEVER_SETTLED)


def test_brw_10_reading_content_during_a_script_redirect(scripts: ScriptSite):
    """The stub is no page: where it leads is the frontier's next request (collect/test_browser.py follows it)."""
    page = scripts.page("/stub", "<p>stub</p><script>location.replace('/final')</script>")
    (seen,) = scripts.visit(page)

    assert (seen.outcome, seen.refresh, seen.parts) == (Outcome.REDIRECT, f"{ORIGIN}/final", ())


def test_brw_11_frames_are_not_in_the_snapshot(scripts: ScriptSite):
    scripts.page("/final", "<p>in the frame</p><iframe srcdoc='<p>inmost</p>'></iframe>")
    page = scripts.page("/page", "<iframe src=/final></iframe><iframe srcdoc='<p>in the text</p>'></iframe>")
    (seen,) = scripts.visit(page, view=View(wait="networkidle"))

    frames = {part.url: part.body.decode() for part in seen.parts if part.role == "frame"}
    assert "<p>in the frame</p>" in frames[f"{ORIGIN}/final"]
    assert any("in the text" in text or "inmost" in text for text in frames.values())
    assert len([part for part in seen.parts if part.role == "frame"]) == 3


def test_brw_13_body_not_available_any_more(scripts: ScriptSite):
    """A response that is to be kept and cannot be: a flag, the page unaffected."""
    scripts.page("/api/fine", json.dumps({"a": 1}), kind="application/json")
    scripts.site.misbehave("location", prefix="/api/moved", arg="/api/fine")
    scripts.site.misbehave("drop", prefix="/api/dropped")
    page = scripts.page(
        "/page",
        """<p id=p></p><script>Promise.allSettled(['/api/moved', '/api/dropped', '/api/fine'].map(path => fetch(path)
        .then(answer => answer.text()))).then(() => { p.className = 'done' })</script>""",
    )
    (seen,) = scripts.visit(page, view=View(wait="p.done", capture=("*/api/*",)))

    assert seen.outcome is Outcome.OK
    assert [part.url for part in seen.parts if part.role == "captured"] == [f"{ORIGIN}/api/fine"] * 2
