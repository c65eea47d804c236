"""Part of collecting: what one worker knows of its source's session.

Whoever comes first logs in (`login.py`), under a short claim in the session's row; the others wait for that, and use
what it brought. What pages set or delete of the cookies is known to this worker at once, and to the others within a
second, by the heartbeat. No request costs a round trip, and a source without a session costs nothing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from collector_assets import cookies, sessions
from collector_assets.asking import to_its_end
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.deposit import Answered
from collector_assets.errors import LoginFailed
from collector_assets.fetch import Fetcher, FetchRequest, Response
from collector_assets.let_in import Opened, carried, why_over
from collector_assets.login import Clerk, Denied, Later
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.politeness import PATIENCE_S, Politeness, Wait
from collector_assets.request import Lease
from collector_assets.window import Window

T = TypeVar("T")

LOOK_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The session that is used now; replaced, never changed: the heartbeat's thread reads and replaces it too."""

    generation: int = 0
    opened: Opened = field(default_factory=Opened)
    until: float = 0.0
    """`time.monotonic()` from which a new one is wanted; 0: there is none."""
    saved: tuple[cookies.Cookie, ...] = ()
    """The cookies as the row had them last."""
    is_proven: bool = False


class Membership:
    """The session of one worker. `is_ready` is a look into memory; `begin` talks to the database and to the site."""

    def __init__(
        self,
        *,
        source: Source,
        window: Window,
        database: Database,
        fetcher: Fetcher,
        politeness: Politeness,
        holder: str,
        is_stopped: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._source, self._window, self._database = source, window, database
        self._key = sessions.Key(source=source.name, window_start=window.start)
        self._holder, self._began = f"{holder}-login", time.monotonic()
        self._clerk = Clerk(
            source=source, window=window, database=database, fetcher=fetcher, politeness=politeness, holder=holder,
            is_stopped=is_stopped, patience_s=PATIENCE_S,
        )  # fmt: skip
        self._held = _Held()
        self._over = ""
        """Why the session that is held is over, as this worker found and has not written yet."""
        self._paused_until, self._pause = 0.0, ""
        self._one_at_a_time = asyncio.Lock()
        self._changing = threading.Lock()

    # --- Asking ------------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether requests may go out under the session."""
        return not self._over and time.monotonic() < self._held.until

    @property
    def generation(self) -> int:
        """Which session it is: an answer belongs to the one that its request was sent under."""
        return self._held.generation

    def pause(self) -> Wait | None:
        """For how long nobody logs in, and why."""
        for_s = self._paused_until - time.monotonic()
        if for_s <= 0:
            return None
        return Wait(for_s=for_s, outcome=Outcome.NO_SESSION, reason=self._pause, charge="late")

    def carried(self, lease: Lease, request: FetchRequest) -> FetchRequest:
        """The request with the session's cookies and token."""
        return carried(self._source, self._held.opened, lease, request)

    # --- Beginning ---------------------------------------------------------------------------------------------------

    async def begin(self, on_fetch: Callable[[], None] = lambda: None) -> None:
        """Have a session, or know why there is none now; `on_fetch` is told when it takes a slot.

        Raises `LoginFailed`.
        """
        async with self._one_at_a_time:
            while not self.is_ready and self.pause() is None:
                row = await self._on_thread(self._look)
                age_s = time.monotonic() - self._began
                match sessions.standing(row, holder=self._holder, holder_age_s=age_s):
                    case sessions.Live(row=live):
                        self._adopt(live)
                    case sessions.Denied(problem=problem):
                        raise LoginFailed(self._source.name, problem)
                    case sessions.Pause(for_s=for_s, problem=problem):
                        self._paused_until, self._pause = time.monotonic() + for_s, f"no login now: {problem}"
                    case sessions.Claimed(for_s=for_s):
                        await asyncio.sleep(min(for_s, LOOK_AGAIN_S))
                    case sessions.Due():
                        on_fetch()
                        await self._log_in(row)

    def _look(self, connection: Connection) -> sessions.Row:
        """The row, after what this worker has found of its session was written into it."""
        held, why = self._held, self._over
        if why:
            knew_us = sessions.end(connection, self._key, held.generation)
            if not (knew_us or held.is_proven):
                problem = f"logged in, and not let in: {why}; check what the login sends, and the proof of the session"
                self._deny(connection, problem)
            self._over, self._held = "", _Held()
        return sessions.read(connection, self._key)

    def _deny(self, connection: Connection, problem: str) -> None:
        seen = sessions.read(connection, self._key)
        if self._claim(connection, seen):
            sessions.deny(connection, self._key, holder=self._holder, problem=problem)

    def _claim(self, connection: Connection, seen: sessions.Row) -> bool:
        lasts = self._source.total_timeout + timedelta(seconds=PATIENCE_S + 15)
        return sessions.claim(connection, self._key, seen, holder=self._holder, lasts=lasts)

    async def _log_in(self, seen: sessions.Row) -> None:
        """Log in under a claim, and store how that ended; what was stored is read by whoever asks next."""
        if not await self._on_thread(lambda connection: self._claim(connection, seen)):
            return
        clerk = replace(self._clerk, may_go_on=lambda: self._on_thread(partial(self._claim, seen=seen)))
        match await clerk.attempt():
            case Opened() as opened:
                await self._on_thread(lambda connection: self._store(connection, opened))
            case Denied(problem=problem):
                await self._on_thread(
                    lambda connection: sessions.deny(connection, self._key, holder=self._holder, problem=problem)
                )
                raise LoginFailed(self._source.name, problem)
            case Later(is_asked=True, problem=problem, least=least):
                await self._on_thread(
                    lambda connection: sessions.delay(
                        connection, self._key, holder=self._holder, problem=problem, least=least
                    )
                )
            case Later(problem=problem, least=least):
                await self._on_thread(lambda connection: sessions.let_go(connection, self._key, holder=self._holder))
                self._paused_until, self._pause = time.monotonic() + max(least.total_seconds(), 1.0), problem

    def _store(self, connection: Connection, opened: Opened) -> None:
        sessions.begin(
            connection, self._key, holder=self._holder, cookies=opened.cookies, token=opened.token or None,
            lifetime=opened.lifetime, is_proven=opened.is_proven,
        )  # fmt: skip

    def _adopt(self, row: sessions.Row, *, instead_of: int | None = None) -> None:
        """Use what the row holds from now on, in place of any session or of that one."""
        good_for_s = row.good_for_s
        with self._changing:
            if instead_of is not None and self._held.generation != instead_of:
                return
            self._held = _Held(
                generation=row.generation,
                opened=Opened(cookies=row.jar, token=row.token or ""),
                until=float("inf") if good_for_s is None else time.monotonic() + good_for_s,
                saved=row.jar,
                is_proven=row.is_proven,
            )

    # --- Listening ---------------------------------------------------------------------------------------------------

    def heeded(self, answered: Answered, generation: int) -> Answered:
        """The answer, as what it says about the session that it was sent under; its cookies are kept."""
        answer, lease = answered.answer, answered.lease
        if not isinstance(answer, Response) or answered.declared is not None:
            return answered
        why = why_over(self._source, self._window, lease, answer, answered.blocked)
        is_current = generation == self._held.generation
        if why is None:
            if is_current:
                self._learn(lease, answer)
            return answered
        if is_current:
            self._over = why
        return replace(answered, no_session=why, blocked=None)

    def _learn(self, lease: Lease, answer: Response) -> None:
        lines = [value for name, value in answer.headers if name.lower() == b"set-cookie"]
        is_proof = not self._held.is_proven and policy(answer.outcome) is Policy.KEEP
        if not lines and not is_proof:
            return
        said = [line.decode("utf-8", "surrogateescape") for line in lines]
        with self._changing:
            held = self._held
            jar = cookies.updated(held.opened.cookies, said, lease.address, answer.fetched_at)
            opened = replace(held.opened, cookies=jar)
            self._held = replace(held, opened=opened, is_proven=held.is_proven or is_proof)

    def sync(self, connection: Connection) -> None:
        """Write what pages have changed, and hear what others have; on the heartbeat's thread and connection."""
        generation = self._held.generation
        if not generation or self._over:
            return
        row = sessions.read(connection, self._key)
        if row.generation == generation:
            with self._changing:
                if self._held.generation == generation:
                    self._held = self._synced(connection, self._held, row)
        elif isinstance(sessions.standing(row, holder=self._holder, holder_age_s=0.0), sessions.Live):
            self._adopt(row, instead_of=generation)

    def _synced(self, connection: Connection, held: _Held, row: sessions.Row) -> _Held:
        """What is held and what the row has, in one; written where it is news to the row."""
        if row.is_over:
            return replace(held, until=0.0)
        jar = cookies.merged(held.saved, held.opened.cookies, row.jar)
        is_news = jar != row.jar or held.is_proven > row.is_proven
        if is_news and not sessions.save(
            connection, self._key, generation=held.generation, changes=row.changes, cookies=jar,
            is_proven=held.is_proven,
        ):  # fmt: skip
            return held  # others were first: at the next beat
        is_proven = held.is_proven or row.is_proven
        return replace(held, opened=replace(held.opened, cookies=jar), saved=jar, is_proven=is_proven)

    async def _on_thread(self, unit: Callable[[Connection], T]) -> T:
        """One transaction; what it began it ends, whoever cancels."""

        def work() -> T:
            with self._database.transaction() as connection:
                return unit(connection)

        return await to_its_end(asyncio.to_thread(work))
