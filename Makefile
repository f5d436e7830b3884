# Everything happens in .venv: nothing is installed elsewhere, nothing needs root.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help run test lowest check fix lock clean

help: ## show this
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

run: .venv/.runtime ## set up and run the daemon on the sample jobs.yaml (state in ./var)
	SCHEDULER_STATE_DIR=var $(BIN)/schedulerd

test: .venv/.dev ## set up and run the whole suite
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS)

lowest: ## run the suite on the oldest versions that pyproject.toml allows
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check -r .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-lowest/bin/python -m pytest -q -n $(WORKERS) -m "not crash and not load" $(ARGS)

check: .venv/.dev ## lint, types, import contracts, generated files in sync
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scheduler.config.schema | diff -u scheduler/config/jobs.schema.json -

fix: .venv/.dev ## format, and fix what can be fixed by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m scheduler.config.schema > scheduler/config/jobs.schema.json.new
	mv scheduler/config/jobs.schema.json.new scheduler/config/jobs.schema.json

lock: ## make the lock files anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
		--group dev pyproject.toml -o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
		-c requirements-dev.lock --group build pyproject.toml -o requirements.lock

clean: ## remove the environment and all state
	rm -rf .venv .venv-lowest var

.venv/.runtime: requirements.lock pyproject.toml
	@$(MAKE) --no-print-directory .venv/bin/python
	@tools/install requirements.lock
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml
	@$(MAKE) --no-print-directory .venv/bin/python
	@tools/install requirements-dev.lock
	@touch $@ .venv/.runtime

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "schedulerd needs Python 3.11 or newer: none found (or: make PYTHON=/path/to/python3)"; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --python "$(PYTHON)" .venv; \
	else $(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "this Python cannot make environments; on Debian and Ubuntu type:  sudo apt install python3-venv"; exit 1; }; fi
