# Everything a developer types. `make` alone explains itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Byte code is cached: worker processes start many times, and importing Dagster uncached costs seconds each.
unexport PYTHONDONTWRITEBYTECODE
# Another environment that happens to be active must not leak in.
unexport VIRTUAL_ENV
unexport PYTHONHOME
export UV_PYTHON_DOWNLOADS := never
# Behind a proxy with a certificate of its own, uv must trust what the system trusts; and may have to be patient.
export UV_SYSTEM_CERTS := true
export UV_HTTP_TIMEOUT := 180
export DAGSTER_DISABLE_TELEMETRY := 1
# numpy's linear algebra is not used; its threads spin for a tenth of a second in every process that imports it.
export OPENBLAS_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo demo-browser dev test hostile ui lint fmt chaos mutants bench bench-browser bench-sources screenshots migrate browser headless-shell clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## Collect the lab and the shop, twice, on embedded Postgres; prints what happened
	$(BIN)/collector demo

demo-browser: $(INSTALLED) browser ## The same shop built by a script, in a browser: 60/60/60, with what was not loaded
	$(BIN)/collector demo-browser

dev: $(INSTALLED) ## The Dagster UI on the same data (http://127.0.0.1:3000)
	$(BIN)/collector dev

test: lint browser ## Everything that must hold before a merge: lint, then every test, the UI in a real browser among them
	$(BIN)/python -m pytest -m "not chaos" -n 3

hostile: $(INSTALLED) ## Every way of leading us inside a network, against a canary: no connection (part of `make test`)
	$(BIN)/python -m pytest -v collector_tests/hostile

lint: $(INSTALLED) ## Style, types, direction of imports, source files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/collector sources --check

fmt: $(INSTALLED) ## Format, and mend what can be mended by machine
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

ui: $(INSTALLED) browser ## The Dagster UI in a real browser: clicking through what people do every day (part of `make test`)
	$(BIN)/python -m pytest -m "ui and not chaos" -n 2

chaos: $(INSTALLED) ## The long fault tests: kill -9, restarts, many seeds
	$(BIN)/python -m pytest -m chaos --timeout 1800

mutants: $(INSTALLED) ## Remove the guards of the rules, one by one; each time the test named must fail
	$(BIN)/python -m collector_tests.mutations --jobs 2

bench: $(INSTALLED) ## The whole path against Scrapy; writes docs/benchmarks.md
	$(BIN)/python -m collector_tests.bench

bench-browser: headless-shell ## Pages in a browser, Playwright's usual way against ours; its part of docs/benchmarks.md
	$(BIN)/python -m collector_tests.bench.browser

bench-sources: $(INSTALLED) browser ## 200 sources: definitions, a click, pages, schedules; writes docs/many-sources.md
	$(BIN)/python -m collector_tests.bench.many_sources

screenshots: $(INSTALLED) browser ## The pictures of docs/using-the-ui.md, taken anew
	$(BIN)/python -m collector_tests.ui.screenshots

migrate: $(INSTALLED) ## Bring the database up to this release
	$(BIN)/collector migrate

browser: $(INSTALLED) ## A Chromium where there is none: Debian's as root, else Playwright's
	@if command -v chromium >/dev/null; then chromium --version; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && export DEBIAN_FRONTEND=noninteractive && apt-get install -y -qq chromium && \
	  { apt-get install -y -qq chromium-headless-shell || echo 'no headless shell here: the whole Chromium is used'; }; \
	else $(BIN)/playwright install chromium; fi

headless-shell: browser ## The Chromium without a window, which opens pages at two thirds of the cost
	@if $(BIN)/python -c 'import sys; from collector_assets.fetch import chromium; sys.exit("headless" not in chromium.find().name)'; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium-headless-shell; \
	else $(BIN)/playwright install chromium; fi

clean: ## Stop the embedded Postgres; delete its data, the archive and the caches (not the installation)
	@if [ -x $(BIN)/python ]; then $(BIN)/python -c \
	  'import pathlib; from collector_assets import embedded; embedded.stop(pathlib.Path(".collector"))'; fi
	rm -rf .collector .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# Not a word to type: made when pyproject.toml or uv.lock is newer than the installation.
# A python that a version manager only pretends to have fails the check and the next one is asked.
$(INSTALLED): pyproject.toml uv.lock
	@set -e; usable() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }; \
	if ! usable $(BIN)/python; then \
	  for python in python3.13 python3.12 python3.11 python3 python3.14; do \
	    if usable $$python; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$${found:-}" ]; then \
	    echo 'Python 3.11 or newer (with venv) is needed and none was found on PATH' >&2; exit 1; \
	  fi; \
	  echo "Making .venv with $$($$found --version)"; $$found -m venv --clear $(VENV); \
	fi
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(BIN)/python -m pip install --quiet 'uv>=0.13,<1'
	$(BIN)/python -m uv sync --frozen --all-groups --compile-bytecode --quiet
	@touch $@
