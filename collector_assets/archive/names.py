"""What files of the archive are called: `<source>/<window>/<time>-<process>-<random>.warc.gz`."""

from __future__ import annotations

import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from collector_assets.errors import BrokenRecord

_OURS: Final = re.compile(r"(\d{8}T\d{6}\.\d{6})Z-\d+-[0-9a-f]{8}\.warc\.gz\Z")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|\A\.")


def safe_name(text: str) -> str:
    """Text as the name of one folder: never empty, hidden, or a way out of the archive. Not reversible."""
    if not text:
        raise ValueError("an empty name cannot be a folder")
    return _UNSAFE.sub("_", text)


def folder_of(source: str, window_key: str) -> PurePosixPath:
    """Where the files of a window are, relative to the archive."""
    return PurePosixPath(safe_name(source), safe_name(window_key))


def new_file(now: datetime) -> str:
    """A name that no other process takes."""
    return f"{now:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}-{secrets.token_hex(4)}.warc.gz"


def created_at(file: str) -> datetime | None:
    """When a file of that name was begun; None for one that is not called as ours are."""
    match = _OURS.match(PurePosixPath(file).name)
    return datetime.strptime(match[1], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC) if match else None


def require_inside(file: str) -> None:
    """`BrokenRecord` for the name of a file that leads out of the archive."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BrokenRecord(f"{file!r} is not inside the archive")
