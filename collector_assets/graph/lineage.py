"""Where a source's starts come from, as Dagster shows it: an edge from each input into `<source>/frontier`."""

import re
from collections.abc import Iterator

import dagster as dg

from collector_assets.contract import FromFile, FromQuery, FromSource, Source
from collector_assets.graph import names


def inputs_of(source: Source) -> list[dg.AssetDep]:
    """One edge per asset that the inputs are of."""
    found = dict(_edges(source))
    return [dg.AssetDep(key, partition_mapping=mapping) for key, mapping in found.items()]


def _edges(source: Source) -> Iterator[tuple[dg.AssetKey, dg.PartitionMapping | None]]:
    for name, given in source.inputs.items():
        match given:
            case FromSource() if given.source == source.name:
                pass  # what the source knows itself: an edge would be a circle
            case FromSource():
                # Every window starts from what is known then, whatever windows the other source has.
                yield names.asset_key(given.source, "latest"), dg.LastPartitionMapping()
            case FromQuery():
                yield _key(given.asset or f"{source.name}/{name}"), None
            case FromFile():
                yield _key(given.asset or given.url), None


def _key(path: str) -> dg.AssetKey:
    """`dbt/watchlist`, `s3://bucket/zips.csv`: a part per folder, in letters that Dagster's pages can link."""
    parts = [re.sub(r"[^A-Za-z0-9_.-]+", "_", part) for part in re.split(r":?/+", path)]
    return dg.AssetKey([part for part in parts if part.strip("._")] or ["input"])
