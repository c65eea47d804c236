"""`python -m collector_assets.demo`: run the demo site in the foreground."""

# ruff: noqa: T201  (a command line prints)

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .misbehave import TABLE, described
from .serve import Listen, run
from .switches import Config, DemoError


def main(arguments: list[str] | None = None) -> int:
    """0 after a stop on request, 1 with one line on stderr when the site cannot run."""
    wish = _parser().parse_args(arguments)
    if wish.help_misbehaviours:
        print(described())
        return 0
    try:
        run(_listen(wish), _config(wish), ready=lambda address: print(f"demo site on http://{address}", flush=True))
    except DemoError as error:
        print(f"demo site: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m collector_assets.demo", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="0 takes a free one (%(default)s)")
    parser.add_argument("--log", type=Path, help="write the arrivals to this file, as JSON lines")
    parser.add_argument("--no-log", action="store_true", help="keep no arrivals at all, for benchmarks")
    parser.add_argument("--config", type=Path, help="JSON file with switches, hosts and misbehave")
    parser.add_argument(
        "--switch", action="append", default=[], metavar="[HOST/]NAME=VALUE", help="such as books=600; may be repeated"
    )
    parser.add_argument("--warm", action="append", default=[], metavar="HOST", help="render all pages of a host first")
    parser.add_argument("--ready-file", type=Path, help="write host:port here when the site is ready")
    parser.add_argument("--with-parent", action="store_true", help="stop when the parent process has gone")
    parser.add_argument("--help-misbehaviours", action="store_true", help="list them and leave")
    return parser


def _listen(wish: argparse.Namespace) -> Listen:
    return Listen(
        host=wish.host,
        port=wish.port,
        log=wish.log,
        keeps_log=not wish.no_log,
        warm=tuple(wish.warm),
        ready_file=wish.ready_file,
        with_parent=wish.with_parent,
    )


def _config(wish: argparse.Namespace) -> Config:
    config = Config()
    if wish.config:
        config = config.changed(_file(wish.config), TABLE)
    for each in wish.switch:
        where, equals, value = each.partition("=")
        host, _, name = where.rpartition("/")
        if not equals or not name:
            raise DemoError(f"--switch {each!r} is not NAME=VALUE")
        config = config.changed({"hosts": {host: {name: value}}} if host else {"switches": {name: value}}, TABLE)
    return config


def _file(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise DemoError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DemoError(f"{path} is no JSON: {error}") from None
    return content


if __name__ == "__main__":
    sys.exit(main())
