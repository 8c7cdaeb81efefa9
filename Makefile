# make demo         install into .venv and run the main job in this process
# make check        ruff, mypy and the quick tests: under two minutes on two cores
# make test         install what tests need and run all checks: ruff, mypy, all tests
# make simulate     random joins on machines that fail, beside the oracle; SEEDS=300 says how many, LEDGER=file goes on
# make chaos        a join on a real cluster whose processes, nodes and links fail; MINUTES=5 says how long
# make soak         a join at load with a fault a minute, and `make overload` one whose reader is too slow; MINUTES=5
# make docs         build the documentation site into site/; a broken link is an error
# make bench        our join beside the alternatives; BENCH="spo-q1 --quick" chooses what
# make system-deps  install the programs that tests need beyond Python: Java, Chromium, iproute2, util-linux, redis-server
# make venv         only create .venv and install
# make clean        remove what the others made, except .venv

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
BENCH ?= spo-q1
SEEDS ?= 300
MINUTES ?= 5
PYTEST ?=
# Tests run in this many processes; those that need Ray share two of them (tests/tiers.py), which often wait.
WORKERS ?= 4
RUN_TESTS := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder
# mypy works beside the tests, and says below theirs what it found.
define CHECKED
	$(BIN)/ruff check .
	@types=$$(mktemp); $(BIN)/mypy >$$types 2>&1 & mypy=$$!; trap 'kill $$mypy 2>/dev/null || true; rm -f $$types' EXIT; \
	status=0; (set -x; $(RUN_TESTS) $(1)) || status=$$?; \
	echo $(BIN)/mypy; wait $$mypy || status=$$?; cat $$types; exit $$status
endef
# The first Python on the path that is new enough; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
# Twice quiet: hides warnings about package indexes that lack a package; errors are still shown.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable
DESCRIBED_BY := setup.cfg pyproject.toml constraints.txt

.PHONY: help demo check test simulate chaos soak overload docs bench system-deps venv java-note clean

help:
	@sed -n 's/^# make/make/p' Makefile

demo: $(VENV)/.installed
	@$(BIN)/python -m examples.datacentre

check: $(VENV)/.installed-test
	$(call CHECKED,--quick $(PYTEST))

test: $(VENV)/.installed-test java-note
	$(call CHECKED,$(PYTEST))

chaos: $(VENV)/.installed-test
	@$(BIN)/python -m tests.cluster.chaos --minutes $(MINUTES)

soak overload: $(VENV)/.installed-test
	@$(BIN)/python -m tests.endurance $@ --minutes $(MINUTES)

simulate: $(VENV)/.installed-test
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(if $(LEDGER),--ledger $(LEDGER))

bench: $(VENV)/.installed-test
	@$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/.installed-docs
	@$(BIN)/mkdocs build --strict

system-deps:
	@.ci/system-deps

venv: $(VENV)/.installed

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Python 3.11 or newer is needed, and none was found ($$(python3 --version 2>&1 || true))." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; fi
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot create virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/.installed: $(DESCRIBED_BY) | $(BIN)/python
	@echo "installing interlace into $(VENV) (the first time takes a few minutes)"
	@$(INSTALL) .
	@touch $@

$(VENV)/.installed-test: $(DESCRIBED_BY) | $(BIN)/python
	@echo "installing interlace and what its tests need into $(VENV) (the first time takes a few minutes)"
	@$(INSTALL) '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(DESCRIBED_BY) | $(BIN)/python
	@echo "installing interlace and what its documentation needs into $(VENV)"
	@$(INSTALL) '.[docs]'
	@touch $@ $(VENV)/.installed

java-note:
	@if [ -z "$${JAVA_HOME:-}" ] && ! command -v java >/dev/null; then \
		echo "No Java found: tests that need Spark are skipped. 'make system-deps' installs it."; fi

clean:
	@rm -rf build dist site ./*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse $(VENV)/.installed*
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
