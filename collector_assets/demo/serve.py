"""Run the site: listen, say so, stop on SIGTERM and SIGINT or with the parent process."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .connection import Connection
from .log import ArrivalLog
from .site import Site
from .switches import Config, DemoError

_PARENT_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where and how to run."""

    host: str = "127.0.0.1"
    port: int = 8765  # 0: any free one
    log: Path | None = None
    keeps_log: bool = True
    warm: tuple[str, ...] = ()  # hosts whose pages are rendered before the first request
    ready_file: Path | None = None  # gets the address when the site is ready
    with_parent: bool = False


def run(listen: Listen, config: Config, *, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` is called once with `host:port`. DemoError when the port is taken."""
    parent = os.getppid()
    try:
        import uvloop  # noqa: PLC0415  (optional)
    except ImportError:
        asyncio.run(_serve(listen, config, ready, parent))
    else:
        uvloop.run(_serve(listen, config, ready, parent))


async def _serve(listen: Listen, config: Config, ready: Callable[[str], None], parent: int) -> None:
    log = ArrivalLog(listen.log) if listen.keeps_log else None
    site = Site(config, log)
    for host in listen.warm:
        site.warm(host)
    gc.collect()
    gc.freeze()  # thousands of kept pages need no visits of the collector
    server = await _listening(site, listen)
    address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    watch = asyncio.create_task(_watch(parent, stop)) if listen.with_parent else None
    if listen.ready_file:
        _write_whole(listen.ready_file, address)
    ready(address)
    await stop.wait()
    if watch:
        watch.cancel()
    await _stop(server, site)
    if log:
        log.close()


async def _listening(site: Site, listen: Listen) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(lambda: Connection(site), listen.host, listen.port, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise DemoError(
                f"port {listen.port} on {listen.host} is already in use; choose another with --port"
            ) from None
        raise DemoError(f"cannot listen on {listen.host}:{listen.port}: {error.strerror or error}") from None


async def _stop(server: asyncio.Server, site: Site) -> None:
    """Stop listening and end every connection; what was open is logged as ended now."""
    server.close()
    for connection in tuple(site.connections):
        connection.abort()
    while site.connections:  # noqa: ASYNC110  (each leaves in a callback of its own)
        await asyncio.sleep(0.001)


async def _watch(parent: int, stop: asyncio.Event) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110  (nothing tells us; polling is the way)
        await asyncio.sleep(_PARENT_POLL_SECONDS)
    stop.set()


def _write_whole(path: Path, text: str) -> None:
    """Readers see nothing or all of it."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text + "\n")
    part.replace(path)
