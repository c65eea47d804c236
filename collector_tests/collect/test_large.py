"""A file of hundreds of megabytes is collected and read in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import files
from collector_assets.contract import Daily, Expect, Kind, Link, Page, Source, minutes, replace, seconds
from collector_tests.collect.conftest import FAST, Hands


class Row(pa.DataFrameModel):
    """Every ten-thousandth of them."""

    sku: str
    price: str


def extract(page: Page) -> Iterator[Any]:
    for number, row in enumerate(files.csv_rows(page)):
        if number % 10_000 == 0:
            yield {"sku": row["sku"], "price": row["price"]} if isinstance(row, dict) else row


LARGE = Source(
    name="large", kinds={"file": Kind(extract=extract)}, schema=Row, entity="sku", extractor_version="1",
    start_urls=(Link("http://shop.localhost:8765/misbehave/large_csv", kind="file"),), window=Daily(start="2026-01-01"),
    budget=FAST, max_bytes=2**30, max_decoded_bytes=2**30, total_timeout=minutes(10), patience=seconds(0),
    expect=Expect(min_records=1),
)  # fmt: skip


def resident(field: str) -> int:
    """Bytes of this process in memory: VmRSS now, VmHWM at most since `forget`."""
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) * 1_024


def forget() -> None:
    Path("/proc/self/clear_refs").write_text("5", "ascii")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux")
@pytest.mark.parametrize(
    ("rows", "most"),
    [(300_000, 40), pytest.param(5_000_000, 150, marks=[pytest.mark.chaos, pytest.mark.timeout(900)])],
    ids=["30 MB", "500 MB"],
)
def test_a_large_file_is_collected_and_read_in_little_memory(hands: Hands, rows: int, most: int) -> None:
    small = replace(LARGE, start_urls=(Link("http://shop.localhost:8765/misbehave/large_csv/10", kind="file"),))
    hands.open(small)
    hands.collect(small)
    hands.read(small)  # what is imported at the first use is in memory from here on
    hands.do("DELETE FROM requests")
    source = replace(LARGE, start_urls=(Link(f"http://shop.localhost:8765/misbehave/large_csv/{rows}", kind="file"),))
    with hands.database.transaction() as connection:
        connection.execute("DELETE FROM windows")
    hands.open(source)
    forget()
    before = resident("VmRSS")
    hands.collect(source)
    report = hands.read(source)
    assert (report.records, report.rejects) == ({"record": rows // 10_000}, 0)
    assert hands.rows("SELECT outcome, body_bytes > %s FROM pages ORDER BY page_id DESC LIMIT 1", rows * 90) == [
        ("ok", True)
    ]
    assert (resident("VmHWM") - before) / 2**20 < most
