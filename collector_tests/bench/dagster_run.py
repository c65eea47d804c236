"""Recorded Dagster runs of windows in which there is nothing to do: what a run costs before the first request."""

from __future__ import annotations

import argparse

from collector_assets.definitions import build
from collector_assets.graph import names, runs
from collector_assets.settings import load_settings
from collector_tests.bench.spent import Stopwatch, report


def main() -> None:
    """Materialize the newest windows of the empty source one after another, as `collector collect` does, and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--postgres", type=int, required=True, help="pid of the server")
    parser.add_argument("--runs", type=int, default=5)
    wish = parser.parse_args()
    watch = Stopwatch(wish.postgres)
    defs, _, registry = build(load_settings())
    source = registry.get("bench_empty")
    building, each = watch.stop(), []
    for key in names.partitions_of(source).get_partition_keys()[-wish.runs :]:
        lap = Stopwatch(wish.postgres)
        done = runs.collect_window(defs, source, key)
        each.append(lap.stop())
        assert done.is_complete, done
    report(
        watch.stop(),
        records=0,
        build_s=building.seconds,
        run_seconds=[lap.seconds for lap in each],
        run_cpu_s=[lap.cpu_s for lap in each],
        run_postgres_cpu_s=[lap.postgres_cpu_s for lap in each],
    )


if __name__ == "__main__":
    main()
