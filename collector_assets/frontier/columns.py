"""How values go into the columns of `requests`, and its ids come back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from collector_assets.request import RequestId
from collector_assets.storable import clean_json, clean_text


def as_json(value: Mapping[str, Any]) -> str:
    """JSON text that `jsonb` takes."""
    return json.dumps(clean_json(value), ensure_ascii=False) if value else "{}"


def clean(text: str | None) -> str | None:
    """Text that `text` takes; NULL stays NULL."""
    return None if text is None else clean_text(text)


def ids_of(rows: Iterable[Any]) -> set[RequestId]:
    """The first column of these rows."""
    return {RequestId(row[0]) for row in rows}
