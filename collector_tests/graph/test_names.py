"""Tags of runs: pure."""

from __future__ import annotations

import pytest

from collector_assets.graph import names

SHOP = {"collector/source": "shop", "collector/domain": "shop.example"}
NEWS = {"collector/source": "news", "collector/domain": "shop.example"}
LAB = {"collector/source": "lab", "collector/domain": "lab.example"}


def test_run_of_one_source_is_stamped_with_it() -> None:
    assert names.stamps({}, [SHOP, SHOP]) == SHOP


def test_run_over_sources_of_one_domain_is_multi_in_source_only() -> None:
    assert names.stamps({}, [SHOP, NEWS]) == {"collector/source": "multi", "collector/domain": "shop.example"}


def test_run_over_domains_is_multi() -> None:
    assert names.stamps({}, [SHOP, LAB]) == {"collector/source": "multi", "collector/domain": "multi"}


def test_run_that_does_not_fetch_is_not_stamped() -> None:
    assert names.stamps({}, []) == {}


def test_what_the_run_says_rightly_is_left_alone_and_what_it_says_wrongly_is_not() -> None:
    assert names.stamps(SHOP, [SHOP]) == {}
    assert names.stamps({**SHOP, "collector/source": "lab"}, [SHOP]) == {"collector/source": "shop"}


@pytest.mark.parametrize(
    ("tags", "priority"),
    [
        ({"dagster/schedule_name": "shop_windows"}, "10"),
        ({"dagster/backfill": "abc"}, "-10"),
        ({}, None),
        ({"dagster/backfill": "abc", "dagster/priority": "3"}, None),
    ],
)
def test_scheduled_runs_go_first_and_backfills_last(tags: dict[str, str], priority: str | None) -> None:
    assert names.stamps(tags, []).get("dagster/priority") == priority
