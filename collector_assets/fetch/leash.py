"""Run a program with two pipes as its file descriptors 3 and 4, so that it ends when whoever started it does.

A program of its own, run by path: nothing of ours is imported, and nothing happens between fork and exec of a process
with threads. Arguments: the descriptor to be read (3), the one to be written (4), the program and its arguments.
"""

import ctypes
import fcntl
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""`prctl(2)`: the kernel sends a signal when the parent dies, also by SIGKILL. It survives exec."""


def main() -> None:
    """Become the program."""
    reads, writes, *command = sys.argv[1:]
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it went before we asked
            os.kill(os.getpid(), signal.SIGKILL)
    # Out of the way first: one of them may be 3 or 4 itself.
    spare = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in (reads, writes)]
    for descriptor, wanted in zip(spare, (3, 4), strict=True):
        os.dup2(descriptor, wanted, inheritable=True)
    os.execv(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main()
