"""The cases that need a real site, database and archive get them as the tests of collecting do."""

from collector_tests.collect.conftest import hands

__all__ = ["hands"]
