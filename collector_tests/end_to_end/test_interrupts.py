"""Signals while an event loop works; each in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import asyncio, os, signal, sys, threading, time
    import uvloop
    from collector_assets import interrupts

    class Stop(BaseException): ...

    def stop(number, frame): raise Stop

    async def sender():
        while True:
            await asyncio.sleep(0.0005)
            sum(range(500))

    async def work():
        tasks = [asyncio.create_task(sender()) for _ in range(8)]
        try:
            await asyncio.wait(tasks, timeout=5)
            print("finished")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            print("given back", flush=True)

    which = signal.Signals[sys.argv[1]]
    handlers = {"raises": stop, "default": signal.SIG_DFL, "ignored": signal.SIG_IGN, "notes": lambda *_: None}
    handler = handlers[sys.argv[2]]
    signal.signal(which, handler)
    threading.Timer(0.3, os.kill, (os.getpid(), which)).start()
    try:
        with interrupts.held_back() as interrupted:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(interrupted.stoppable(work()))
    except BaseException as error:
        print(type(error).__name__)
        assert signal.getsignal(which) is handler
"""


def run(which: str, handler: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), which, handler],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("which", ["SIGINT", "SIGTERM"])
def test_a_raising_handler_raises_once_the_work_has_been_ended(which: str) -> None:
    # Mutation: signal.signal(number, receive) dropped from held_back: uvloop logs the exception and goes on
    assert run(which, "raises") == (0, ["given back", "Stop"])


def test_the_default_of_sigterm_ends_the_process_after_everything_was_given_back() -> None:
    assert run("SIGTERM", "default") == (-signal.SIGTERM, ["given back"])


def test_a_handler_that_only_takes_note_still_ends_the_work() -> None:
    assert run("SIGINT", "notes") == (0, ["given back", "KeyboardInterrupt"])


def test_an_ignored_signal_stays_ignored() -> None:
    assert run("SIGINT", "ignored") == (0, ["finished", "given back"])
