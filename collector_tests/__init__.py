"""Tests of the collector; the tree and the rules are in CONTRIBUTING.md."""
