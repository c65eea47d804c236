"""`python -m collector_assets.cli` is `collector`."""

from collector_assets.cli import main

main()
