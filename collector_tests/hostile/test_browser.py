"""From inside a page: whatever its markup and scripts try, a browser connects to nothing that the guard refuses.

The document comes from a stranger's site, and the source allows its pages to load from everywhere they name: the domain
rule of `gate.py` lets them pass, so that only the guard behind the proxy stands between them and the canary.
"""

from __future__ import annotations

import asyncio

from collector_assets.addresses import AddressPolicy
from collector_assets.contract import Browser, View, seconds
from collector_assets.fetch import FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.egress import Guard
from collector_assets.fetch.names import Memory, Names
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import always
from collector_tests.fixtures.browser import NEEDS_CHROMIUM, browser_fetcher
from collector_tests.fixtures.stranger import ALLOWED, HOME, Resolver, Stranger
from collector_tests.hostile.conftest import Canary

pytestmark = NEEDS_CHROMIUM

WAYS = """
<link rel=preconnect href="{url}"><link rel=dns-prefetch href="{url}"><link rel=prefetch href="{url}prefetch">
<link rel=preload as=fetch href="{url}preload"><link rel=modulepreload href="{url}module.mjs">
<link rel=stylesheet href="{url}style.css"><link rel=icon href="{url}icon.png"><link rel=manifest href="{url}manifest">
<style>@import "{url}import.css"; @font-face {{ font-family: f; src: url({url}f) }} p {{ font-family: f }}
body {{ background: url({url}paper) }}</style>
<img src="{url}img"><img srcset="{url}srcset 2x"><picture><source srcset="{url}source"><img></picture>
<video src="{url}video" poster="{url}poster"></video><audio src="{url}audio" preload=auto></audio>
<object data="{url}object"></object><embed src="{url}embed"><iframe src="{url}iframe"></iframe>
<iframe srcdoc='<img src="{url}srcdoc"><script>fetch("{url}inner")</script>'></iframe>
<svg><image href="{url}svg"/><use href="{url}use#a"/></svg><script src="{url}script"></script>
<form action="{url}form" method=post target=frame id=form></form><iframe name=frame></iframe><p>hello
<script>
const url = "{url}", socket = url.replace("http", "ws"), quietly = work => {{ try {{ work() }} catch (error) {{}} }};
fetch(url + "fetch", {{mode: "no-cors"}}).catch(() => 0);
fetch(url + "keepalive", {{mode: "no-cors", keepalive: true}}).catch(() => 0);
quietly(() => {{ const x = new XMLHttpRequest(); x.open("GET", url + "xhr"); x.send() }});
quietly(() => {{ new Image().src = url + "image" }});
quietly(() => navigator.sendBeacon(url + "beacon", "x"));
quietly(() => new WebSocket(socket));
quietly(() => new EventSource(url + "events"));
quietly(() => new WebTransport(url.replace("http:", "https:")));
quietly(() => new Worker(URL.createObjectURL(new Blob([`fetch("${{url}}worker").catch(() => 0);
  new WebSocket("${{socket}}")`]))));
quietly(() => new SharedWorker(URL.createObjectURL(new Blob([`fetch("${{url}}shared").catch(() => 0)`]))));
quietly(() => navigator.serviceWorker.register("/worker.js").catch(() => 0));
quietly(() => {{ const c = new RTCPeerConnection({{iceServers: [{{urls: "stun:{host}"}},
  {{urls: "turn:{host}?transport=tcp", username: "a", credential: "b"}}]}});
  c.createDataChannel("x"); c.createOffer().then(offer => c.setLocalDescription(offer)) }});
quietly(() => import(url + "import.mjs").catch(() => 0));
quietly(() => open(url + "popup"));
quietly(() => {{ const a = document.createElement("a"); a.href = url + "ping"; a.ping = url + "pinged";
  a.target = "_blank"; a.click() }});
quietly(() => document.getElementById("form").submit());
quietly(() => {{ const s = document.createElement("script"); s.type = "speculationrules";
  s.textContent = JSON.stringify({{prefetch: [{{urls: [url + "speculated"]}}], prerender: [{{urls: [url + "pre"]}}]}});
  document.head.append(s) }});
</script>
"""
LEAVING = (
    "<script>location = '{url}'</script>",
    "<script>location.replace('{url}')</script>",
    "<meta http-equiv=refresh content='0; url={url}'>",
    "<form action='{url}' method=post></form><script>document.forms[0].submit()</script>",
    "<script>location = 'file:///etc/passwd'</script>",
    "<script>location = 'data:text/html,<img src={url}>'</script>",
    "<script>top.location = 'view-source:{url}'</script>",
)


def visited(canary: Canary, *urls: str, hosts: tuple[str, ...]) -> list[Response | NoResponse | NotSent]:
    """How visits of these pages ended, under the guard alone."""

    async def whole() -> list[Response | NoResponse | NotSent]:
        guard = Guard(AddressPolicy(ALLOWED), Names(Resolver().look_up, memory=Memory(addresses_s=0)))
        free = Browser(subrequests="cap 999", allow_domains=hosts, block=(), block_trackers=False)
        view = View(wait="networkidle", wait_at_most=seconds(10))
        fetcher = browser_fetcher(guard, free, {"page": view})
        try:
            return [
                await fetcher.fetch(
                    FetchRequest(url=url, kind="page", connect_s=5, read_s=5, total_s=30, max_bytes=10**6), always
                )
                for url in urls
            ]
        finally:
            await fetcher.close()

    ends = asyncio.run(whole())
    canary.targets += len(ends) * WAYS.count("{url}")
    return ends


def test_nothing_in_a_page_leads_inside(canary: Canary, stranger: Stranger):
    """Rule 13."""
    # Mutation: `EgressProxy._connected` connects to the host itself, without check and addresses.
    hosts = ("127.0.0.1", "[::1]", "localhost", "2130706433", "[::ffff:127.0.0.1]")
    urls = [
        stranger.page(f"/page-{number}", WAYS.format(url=f"http://{host}:{canary.port}/", host=f"{host}:{canary.port}"))
        for number, host in enumerate(hosts)
    ]
    ends = visited(canary, *urls, hosts=("127.0.0.1", "[::1]", "localhost", "[::ffff:7f00:1]"))

    assert [getattr(end, "outcome", end) for end in ends] == [Outcome.OK] * len(hosts)
    assert {each for each in stranger.requests if not each.startswith("/page-")} == set()


def test_a_name_that_turns_inside_is_refused_too(canary: Canary, stranger: Stranger):
    """The resolver says the stranger's address for the page, and the machine's own from then on."""
    resolver = Resolver([HOME], ["127.0.0.1"])
    url = stranger.page("/rebound", WAYS.format(url=f"http://evil.example:{canary.port}/", host="evil.example:1"))

    async def whole() -> Response | NoResponse | NotSent:
        guard = Guard(AddressPolicy(ALLOWED), Names(resolver.look_up, memory=Memory(addresses_s=0)))
        free = Browser(subrequests="cap 999", allow_domains=("evil.example",), block=(), block_trackers=False)
        fetcher = browser_fetcher(guard, free, {"page": View(wait="networkidle", wait_at_most=seconds(10))})
        try:
            return await fetcher.fetch(
                FetchRequest(url=url, kind="page", connect_s=5, read_s=5, total_s=30, max_bytes=10**6), always
            )
        finally:
            await fetcher.close()

    end = asyncio.run(whole())

    assert getattr(end, "outcome", end) is Outcome.OK
    assert "evil.example" in resolver.asked


def test_a_page_that_leaves_goes_nowhere_by_itself(canary: Canary, stranger: Stranger):
    """Rule 13. Its target is asked for by nobody but the frontier, whose scope and guard judge it."""
    urls = [
        stranger.page(f"/page-{number}", "<p>stub" + way.format(url=f"http://127.0.0.1:{canary.port}/"))
        for number, way in enumerate(LEAVING)
    ]
    ends = visited(canary, *urls, hosts=("127.0.0.1",))

    followed = [getattr(end, "outcome", None) for end in ends]
    assert followed[:4] == [Outcome.REDIRECT, Outcome.REDIRECT, Outcome.REDIRECT, Outcome.NAVIGATED_AWAY]
    assert set(followed[4:]) <= {Outcome.OK, Outcome.NAVIGATED_AWAY}
