# Everything happens in .venv: nothing is installed elsewhere, nothing needs root.
.DEFAULT_GOAL := help
SHELL := /bin/sh
# Empty: the first good one that is found.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
# One more than cores: many tests wait.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
# Tests, and hundreds of programs that they start, are compiled once and not at each start, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run demo test model bench lowest lanes check fix lock clean runtime dev

help: ## show this
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

run: runtime ## set up and run the daemon on the sample jobs.yaml (state in ./var)
	SCHEDULER_STATE_DIR=var $(BIN)/schedulerd

demo: runtime ## lose a third of the webhooks for a minute, and count what scans bring back (ARGS=--help)
	$(BIN)/python -m scheduler.testing.demo $(ARGS)

test: dev ## set up and run the whole suite
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS)

model: runtime ## check the model of locks, leases and fences (needs spin and gcc; docs/model.md)
	$(BIN)/python -m model

bench: dev ## measure the product beside its peers (ONLY=name for one; ARGS=--ours, --tiny, --profile)
	$(BIN)/python -m bench $(ARGS) $(ONLY)

lowest: ## run the suite on the oldest versions that pyproject.toml allows
	rm -rf .venv-lowest
	python=$$(tools/python "$(PYTHON)") && $$python -m venv .venv-lowest
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check -r .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-lowest/bin/python -m pytest -q -n $(WORKERS) -m "not crash and not load and not monitoring" $(ARGS)

lanes: dev ## run the core of the suite on the other Pythons that are here, and on the oldest versions
	tools/lanes

check: dev ## lint, types, import contracts, generated files in sync
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scheduler.config.schema | diff -u scheduler/config/jobs.schema.json -

fix: dev ## format, and fix what can be fixed by itself
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
	rm -rf .venv .venv-* var bench/.peers bench/.results

runtime:
	@tools/install $(VENV) requirements.lock .runtime "$(PYTHON)"

dev:
	@tools/install $(VENV) requirements-dev.lock .dev "$(PYTHON)"
