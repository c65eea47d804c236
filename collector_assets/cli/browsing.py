"""Commands about pages that need a browser: whether there is one, and the demo in it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson
from collector_assets.cli.ground import running
from collector_assets.errors import ChromiumMissing
from collector_assets.settings import load_settings

commands = typer.Typer()


@commands.command()
def doctor(as_json: AsJson = False) -> None:
    """Which Chromium pages in a browser are opened with, whether it starts, and what to do if not."""
    from collector_assets.fetch import chromium
    from collector_assets.fetch.devtools import DevtoolsError

    settings, found = load_settings(), {"chromium": "", "version": "", "sandbox": os.getuid() != 0, "problem": ""}
    try:
        program = chromium.find(settings.chromium)
        found |= {"chromium": str(program)}
        found |= {"version": asyncio.run(_version(program, settings.user_agent))}
    except (ChromiumMissing, DevtoolsError) as error:
        found |= {"problem": str(error)}
    if as_json:
        show.in_json(found)
    else:
        show.table("Pages in a browser", [found], ("chromium", "version", "sandbox"))
        if found["problem"]:
            show.err.print(found["problem"], style="red", markup=False, soft_wrap=True)
        elif not found["sandbox"]:
            show.out.print("as root it runs without its sandbox: run workers as another user where you can")
    if found["problem"]:
        raise typer.Exit(exits.MUST_CHANGE)


async def _version(program: Path, user_agent: str) -> str:
    """What it says of itself, once it runs."""
    from collector_assets.fetch.chromium import Chromium, Launch

    nowhere = "http://127.0.0.1:9"  # the discard port: nothing it might send arrives
    launch = Launch(program=program, proxy=nowhere, user_agent=user_agent, renderer_memory=256 * 2**20)
    browser = await Chromium.start(launch)
    try:
        return str((await browser.root.call("Browser.getVersion"))["product"])
    finally:
        await browser.close()


@commands.command(name="demo-browser")
def demo_browser(
    fresh: Annotated[bool, typer.Option(help="Forget what was collected before.")] = True,
) -> None:
    """Collect the demo's shop that a script builds, in a browser, as a real Dagster run, and print what happened."""
    from collector_assets import forget, tour
    from collector_assets.demo import DemoSite

    settings = load_settings()
    with running(settings) as ground:
        folder = ground.state / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        with DemoSite(port=0, log=folder / "arrivals-browser.jsonl") as site:
            os.environ.update(ground.environment(), COLLECTOR_DEMO_SITE=site.address)
            from collector_assets.definitions import build
            from collector_assets.graph import runs

            defs, installation, registry = build(load_settings(), only=("shop_js",))
            shop = registry.get("shop_js")
            window = runs.newest_window(shop)
            installation.require_usable(shop, window)
            if fresh:
                forget.run(shop, installation.database)
                runs.forget_assets(shop)
            show.out.print(f"[bold]>[/] collecting shop_js, window {window}: three listing pages, sixty books")
            done = runs.collect_window(defs, shop, window)
            summary = tour.shop_summary(installation.database, shop, window)
            summary["http_requests"] = len(site.arrivals(host="shop-js.localhost"))
    facts = [{"fact": name, "value": value} for name, value in summary.items()]
    facts += [{"fact": f"loads: {name}", "value": number} for name, number in sorted(done.loads.items())]
    show.table("What the databases and the site's own log say", facts, ("fact", "value"))
    show.run(done, as_json=False)
    if not done.is_complete or summary["records"] != summary["frontier"]:
        raise typer.Exit(exits.DISAPPOINTED)
