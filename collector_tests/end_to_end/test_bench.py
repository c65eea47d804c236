from __future__ import annotations

from pathlib import Path

from collector_tests.bench.__main__ import Bench, site_of

PAGES = 120


def test_contenders_come_to_the_same_records(tmp_path: Path) -> None:
    """What `make bench` compares is the same work, and runs."""
    with site_of(PAGES) as site:
        bench = Bench(site, PAGES, tmp_path)
        ours, scrapy, bare = bench.ours(), bench.scrapy(0), bench.bare()
    assert ours.facts["records"] == PAGES
    assert {ours.facts["digest"]} == {scrapy.facts["digest"]} == {bare.facts["digest"]}
    assert ours.facts["postgres_cpu_s"] > 0
    assert min(ours.peak_mb, ours.postgres_peak_mb, scrapy.peak_mb) > 0
