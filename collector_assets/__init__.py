"""Partitioned, polite, replayable web collection as Dagster assets."""

__version__ = "0.1.0"
