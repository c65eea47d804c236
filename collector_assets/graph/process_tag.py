"""The run tag that says which process a run works in, where that is not a code server's: `host:pid:started`.

With it a run that `collector collect` began is not taken for dead while it works, nor for alive after a kill -9.
"""

import os
import socket

import psutil

TAG = "collector/process"


def of_this_process() -> dict[str, str]:
    """The tag of a run that is executed here."""
    return {TAG: f"{socket.gethostname()}:{os.getpid()}:{_started(psutil.Process())}"}


def may_live(value: str) -> bool:
    """Whether the process may still be there; one on another host cannot be asked, and is not declared dead."""
    host, _, process = value.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname():
        return True
    try:
        found = psutil.Process(int(process))
        return found.status() != psutil.STATUS_ZOMBIE and _started(found) == value.rpartition(":")[2]
    except (psutil.Error, ValueError):
        return False


def _started(process: psutil.Process) -> str:
    """When the process began, in hundredths of a second: a number that is used again has another."""
    return f"{process.create_time():.2f}"
