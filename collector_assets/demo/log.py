"""The site's own log of arrivals: one JSON line per request, written when its response has ended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from .switches import DemoError

FLUSH_SECONDS = 0.05
FIELDS = (
    "n", "host", "path", "method", "arrived", "ended", "status", "bytes", "peer_port", "user_agent", "misbehaviour",
)  # fmt: skip
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ArrivalLog:
    """Ended requests in memory and, when there is a path, in a file that lags at most FLUSH_SECONDS behind."""

    def __init__(self, path: Path | None = None) -> None:
        self.epoch = 0  # grows with each clear(): what arrived before it is not logged after it
        self._arrivals = 0
        self._waiting: list[tuple[object, ...]] = []
        self._lines: list[bytes] = []
        try:
            self._file = path.open("wb", buffering=0) if path else None
        except OSError as error:
            raise DemoError(f"cannot write the log {path}: {error.strerror}") from None

    def arrival(self) -> int:
        """The number of the next request, from 1, in order of arrival."""
        self._arrivals += 1
        return self._arrivals

    def add(self, *values: object) -> None:
        """Log one ended request; the values in the order of FIELDS."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._waiting.append(values)

    def flush(self) -> None:
        """Make what is waiting part of the lines and the file."""
        new = [_encode(dict(zip(FIELDS, each, strict=True))).encode() + b"\n" for each in self._waiting]
        self._waiting.clear()
        self._lines += new
        if self._file and new:
            self._file.write(b"".join(new))

    def lines(self) -> bytes:
        """Every line since the last clear."""
        self.flush()
        return b"".join(self._lines)

    def clear(self) -> None:
        """Forget everything, also in the file; numbers start at 1 again."""
        self.epoch += 1
        self._arrivals = 0
        self._waiting.clear()
        self._lines.clear()
        if self._file:
            self._file.seek(0)
            self._file.truncate()

    def close(self) -> None:
        """Flush and let go of the file."""
        self.flush()
        if self._file:
            self._file.close()
