"""A Chromium process of ours: found, started on a leash, measured with all its children, ended for good.

Nothing of it outlives us. It is ended with its process group; it ends by itself when our end of its pipe closes, and on
Linux the kernel kills it when we die; and what was left all the same (a machine that was reset, a parent that was
stopped) is swept by whoever starts the next: a profile whose lock nobody holds belongs to nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from collector_assets.errors import ChromiumMissing
from collector_assets.fetch import leash
from collector_assets.fetch.devtools import Devtools, DevtoolsError, Session

NAMES: Final = (
    "/usr/lib/chromium/chromium-headless-shell", "chrome-headless-shell",
    "chromium", "chromium-browser", "google-chrome-stable", "google-chrome",
)  # fmt: skip
"""Those made to have no window first: the same engine, at two thirds of the processor time and half of the memory.
Debian's by its path: its command is a shell that stays in between, and would be the one that our kernel leash kills."""
CLOSES_WITHIN_S: Final = 5.0
"""How long a browser may take to close by itself (BRW-06); then it is killed."""
STARTS_WITHIN_S: Final = 30.0

FEATURES: Final = (
    "Translate", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider", "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater", "InterestFeedContentSuggestions", "PrivacySandboxSettings4",
    "Prerender2", "NoStatePrefetch", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "PaintHolding",
)  # fmt: skip
"""Switched off: what asks for things by itself, or in case that they will be wanted."""
FLAGS: Final = (
    "--headless",
    "--remote-debugging-pipe",
    # Nothing of its own on the network.
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-domain-reliability",
    "--disable-client-side-phishing-detection", "--disable-default-apps", "--disable-extensions", "--no-pings",
    "--no-first-run", "--no-default-browser-check", "--metrics-recording-only", "--disable-breakpad",
    "--disable-crash-reporter", "--disable-search-engine-choice-screen", "--disable-field-trial-config",
    # What must not go round the proxy: UDP of WebRTC, QUIC, names looked up by the browser itself.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-quic", "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    f"--disable-features={','.join(FEATURES)}",
    # Pages that nobody looks at run at full speed all the same.
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--disable-ipc-flooding-protection",
    # Less of what a page without a screen does not need.
    "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars", "--disable-prompt-on-repost",
    "--password-store=basic", "--use-mock-keychain", "--noerrdialogs", "--disable-notifications",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start one."""

    program: Path
    proxy: str
    """`http://127.0.0.1:port`: the only way out."""
    user_agent: str
    renderer_memory: int
    """Bytes of JavaScript that one page may hold."""


def find(named: str = "") -> Path:
    """The Chromium to use: the one named, else the system's, else Playwright's; or `ChromiumMissing`."""
    for name in (named,) if named else NAMES:
        if found := shutil.which(name):
            return Path(found)
    for program in () if named else _playwrights():
        return program
    raise ChromiumMissing


def _playwrights() -> Iterator[Path]:
    """What `playwright install chromium` has put there: those without a window first, the newest of them first."""
    home = "Library/Caches" if sys.platform == "darwin" else ".cache"
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / home / "ms-playwright")
    for pattern in (
        "chromium_headless_shell-*/*/*headless*shell", "chromium-*/chrome-linux*/chrome",
        "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    ):  # fmt: skip
        found = sorted(folder.glob(pattern), key=lambda path: path.relative_to(folder).parts[0], reverse=True)
        yield from (path for path in found if path.is_file() and os.access(path, os.X_OK))


# --- Profiles: a folder and a lock ------------------------------------------------------------------------------------


def _profiles() -> Path:
    return Path(tempfile.gettempdir()) / f"collector-browsers-{os.getuid()}"


class Profile:
    """A browser's folder; as long as its lock is held, its browser has an owner."""

    def __init__(self) -> None:
        where = _profiles()
        where.mkdir(mode=0o700, exist_ok=True)
        while True:
            self._lock = where / f"{secrets.token_hex(6)}.lock"
            self._held = os.open(self._lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if _locked(self._held) and self._lock.exists():
                break
            os.close(self._held)  # a sweep took it in between
        self.folder = self._lock.with_suffix("")
        self.folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Delete it; its browser has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.unlink(missing_ok=True)
        os.close(self._held)


def sweep() -> int:
    """Kill browsers whose owner is gone, and delete what they left; how many there were."""
    swept = 0
    for lock in _profiles().glob("*.lock"):
        with contextlib.suppress(OSError):
            held = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _locked(held):
                    _kill_users_of(lock.with_suffix(""))
                    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink(missing_ok=True)
                    swept += 1
            finally:
                os.close(held)
    return swept


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _kill_users_of(folder: Path) -> None:
    """End the browser of a profile: every process of it names the folder in its command line."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in word for word in process.cmdline()):
                process.kill()


# --- The process ------------------------------------------------------------------------------------------------------


class Chromium:
    """One running browser."""

    def __init__(self, process: asyncio.subprocess.Process, line: Devtools, profile: Profile) -> None:
        self.pid = process.pid
        self.root = Session(line)
        self.gone = line.gone
        """Done when it has ended."""
        self.profile = profile.folder
        self._process, self._line, self._profile = process, line, profile
        self._pipes: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(cls, launch: Launch) -> Chromium:
        """Start one and wait until it answers; `DevtoolsError` when it does not."""
        await asyncio.to_thread(sweep)
        profile = Profile()
        ours_in, its_out = os.pipe()
        its_in, ours_out = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", leash.__file__, str(its_in), str(its_out), *_command(launch, profile),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(its_in, its_out), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(ours_in)
            os.close(ours_out)
            profile.remove()
            raise
        finally:
            os.close(its_in)
            os.close(its_out)
        browser = cls(process, Devtools(), profile)
        try:
            await browser._connect(ours_in, ours_out)
            async with asyncio.timeout(STARTS_WITHIN_S):
                await browser.root.call("Browser.getVersion")
        except BaseException as error:
            await browser.kill()
            if isinstance(error, TimeoutError | DevtoolsError):
                raise DevtoolsError(f"{launch.program} does not start: {error or 'no answer'}") from None
            raise
        return browser

    async def _connect(self, ours_in: int, ours_out: int) -> None:
        loop = asyncio.get_running_loop()
        reading, _ = await loop.connect_read_pipe(lambda: self._line, os.fdopen(ours_in, "rb", 0))
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ours_out, "wb", 0))
        self._line.write_to(writing)
        self._pipes = [reading, writing]

    def processes(self) -> list[psutil.Process]:
        """The browser and all its children."""
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        return []

    def memory(self) -> int:
        """Bytes that the whole tree holds: what each process has to itself, and the most that one shares, once.

        Not PSS, which would be exact: the kernel walks every page for it, at the price of a visit.
        """
        found = [info for process in self.processes() if (info := _info(process))]
        shared = [int(getattr(each, "shared", 0)) for each in found]
        return sum(each.rss for each in found) - sum(shared) + max(shared, default=0)

    async def close(self) -> None:
        """End it: by itself if it can, within a bound; nothing of it is left."""
        with contextlib.suppress(DevtoolsError, TimeoutError):
            async with asyncio.timeout(CLOSES_WITHIN_S):
                await self.root.call("Browser.close")
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End it now, with everything that it started."""
        found = await asyncio.to_thread(self.processes)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for pipe in self._pipes:
            pipe.close()
        await self._process.wait()
        await asyncio.to_thread(self._ended, found)

    def _ended(self, found: Sequence[psutil.Process]) -> None:
        psutil.wait_procs(found, timeout=CLOSES_WITHIN_S)
        _kill_users_of(self._profile.folder)  # a crash handler leaves tree and group
        self._profile.remove()


def _command(launch: Launch, profile: Profile) -> list[str]:
    heap = max(64, launch.renderer_memory // 2**20)
    return [
        str(launch.program),
        *FLAGS,
        *(["--no-sandbox"] if os.getuid() == 0 else []),  # the sandbox refuses to start as root
        f"--proxy-server={launch.proxy}",
        "--proxy-bypass-list=<-loopback>",  # else it goes to this machine without asking
        f"--user-agent={launch.user_agent}",
        f"--js-flags=--max-old-space-size={heap}",
        f"--user-data-dir={profile.folder}",
        "about:blank",
    ]


def _info(process: psutil.Process) -> Any:
    """Its memory; nothing when it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.memory_info()
    return None
