"""Whose a local connection is: the egress proxy serves our own browser and nobody else on the machine (rule 13)."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Final

import psutil

_TABLE: Final = Path("/proc/net/tcp")
_LOOPBACK: Final = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}"
_INODE: Final = 9
"""Where the number of the socket stands in a row of the table (proc_net_tcp.txt of the kernel)."""


class Callers:
    """Which local connections are a browser's own: those of a process in its tree."""

    def __init__(self) -> None:
        self.root: int | None = None
        """Its process; before it is known, no connection is its own."""
        self._usual: psutil.Process | None = None
        """The one that connects, as a rule: the network service."""

    def are_ours(self, port: int, to_port: int) -> bool:
        """Whether the connection between these local ports is. Looks at processes: to be asked on a thread."""
        inode = _inode(port, to_port) if _TABLE.exists() else ""
        if inode is None:
            return False
        if self._usual is not None and _connects(self._usual, port, to_port, inode):
            return True
        if self.root is None:
            return False
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self.root)
            for process in (root, *root.children(recursive=True)):
                if _connects(process, port, to_port, inode):
                    self._usual = process
                    return True
        return False


def _connects(process: psutil.Process, port: int, to_port: int, inode: str) -> bool:
    """Whether a process holds one end of the connection; `inode` is that end's, where the system tells it."""
    if inode:
        return process.is_running() and _holds(process.pid, inode)
    with contextlib.suppress(psutil.Error):
        for each in process.net_connections("tcp"):
            if each.laddr and each.raddr and each.laddr.port == port and each.raddr.port == to_port:
                return True
    return False


def _inode(port: int, to_port: int) -> str | None:
    """The socket that this connection starts from. psutil reads every row of the table for it: 20 ms a connection."""
    row = f" {_LOOPBACK}:{port:04X} {_LOOPBACK}:{to_port:04X} "
    table = _TABLE.read_text("ascii")
    at = table.find(row)
    return None if at < 0 else table[table.rfind("\n", 0, at) + 1 : table.find("\n", at)].split()[_INODE]


def _holds(pid: int, inode: str) -> bool:
    wanted = f"socket:[{inode}]"
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as found:
        for each in found:
            with contextlib.suppress(OSError):  # closed meanwhile
                if str(Path(each).readlink()) == wanted:
                    return True
    return False
