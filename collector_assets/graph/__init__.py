"""The only package that imports Dagster (with `definitions.py`): sources as assets, checks, jobs and schedules."""
