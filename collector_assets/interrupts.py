"""SIGINT and SIGTERM while an event loop works: the work is cancelled, and the signal is raised once it has ended.

A Python handler that raises (Dagster's does, to terminate a run) raises wherever the interpreter happens to be: in one
task, or in a callback, where the loop logs it and goes on. The interrupt would be lost, or would leave leases behind.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
INSIST_AFTER_S: Final = 10.0
"""The same signal may arrive twice (from the terminal and from a parent); only a later one is impatience."""


class Interrupts:
    """What was received, and whom it stops."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._at = 0.0
        self._working: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    async def stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """The work; cancelled when a signal arrives, or has arrived already."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine runs in a task
        self._working = asyncio.get_running_loop(), task
        try:
            if self.received is not None:
                work.close()
                raise asyncio.CancelledError
            return await work
        finally:
            self._working = None

    def receive(self, number: int) -> bool:
        """Note the signal and stop the work; whether it is one that should not be waited with."""
        now = time.monotonic()
        if self.received is not None:
            return now - self._at > INSIST_AFTER_S
        self.received, self._at = signal.Signals(number), now
        if self._working is not None:
            loop, task = self._working
            loop.call_soon_threadsafe(task.cancel)  # a handler runs between two bytecodes, like another thread
        return False


@contextmanager
def held_back() -> Iterator[Interrupts]:
    """Signals wait until the block has ended, cleaning up included; then the first is raised under its own handler.

    Does nothing outside the main thread, where Python delivers no signals, and to signals that are ignored.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in {None, signal.SIG_IGN}}

    def receive(number: int, _: FrameType | None) -> None:
        if interrupts.receive(number):
            restore()
            signal.raise_signal(number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, receive)
    try:
        yield interrupts
    finally:
        restore()
        if interrupts.received is not None:
            signal.raise_signal(interrupts.received)
            raise KeyboardInterrupt  # the handler only took note: the work is undone all the same
