"""The repository's `dagster.yaml` is what the rules count on."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import yaml

from collector_assets.graph.coordinator import StampingRunCoordinator
from collector_assets.graph.launcher import HealthCheckedRunLauncher

FILE = Path(__file__).resolve().parents[2] / "dagster.yaml"
ON_DISK = {"storage", "local_artifact_storage", "compute_logs"}


def test_the_instance_has_our_classes_and_limits() -> None:
    settings = {name: value for name, value in yaml.safe_load(FILE.read_text()).items() if name not in ON_DISK}
    with dg.instance_for_test(overrides=settings) as instance:
        assert isinstance(instance.run_coordinator, StampingRunCoordinator)
        assert isinstance(instance.run_launcher, HealthCheckedRunLauncher)
        assert instance.run_monitoring_enabled
        limits = instance.get_concurrency_config()
        queue = limits.run_queue_config
        assert queue is not None
        per_value = {"applyLimitPerUniqueValue": True}
        assert list(queue.tag_concurrency_limits) == [
            {"key": "collector/source", "value": per_value, "limit": 1},
            {"key": "collector/domain", "value": per_value, "limit": 4},
        ]
        assert str(limits.pool_config.pool_granularity) == "PoolGranularity.RUN"
        assert limits.pool_config.default_pool_limit == 4
        assert not instance.telemetry_enabled


def test_nothing_is_written_into_the_work_tree() -> None:
    """DAGSTER_HOME is the repository: each of the three places goes by the environment."""
    settings = yaml.safe_load(FILE.read_text())
    assert settings["storage"] == {"postgres": {"postgres_url": {"env": "COLLECTOR_DAGSTER_URL"}}}
    for name in ("local_artifact_storage", "compute_logs"):
        assert settings[name]["config"] == {"base_dir": {"env": "COLLECTOR_STATE"}}
