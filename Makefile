# Everything sets itself up: Python 3.11 or newer, pip and make are enough.
PYTHON ?= python3
BIN := .venv/bin
TORCH ?= 2.13.0+cpu
FAST := not slow and not statistical and not paper and not spark and not torch

.PHONY: help env demo docs test test-slow fuzz faults audit lint format clean

help:
	@echo "make demo       run the embedded example, end to end"
	@echo "make test       quick tests (make test-slow: statistical, paper, Spark, torch)"
	@echo "make fuzz       random commands (make fuzz N=50000 SEED=7)"
	@echo "make faults     disks that fill up, networks that fail, … under a release; prints a table"
	@echo "make audit      attacks on everything that spends; a table and a picture (hours)"
	@echo "make docs       the documentation, into site/"
	@echo "make lint       ruff, strict mypy"
	@echo "make env        .venv with all development extras"

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/demo-ready: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

.venv/docs-ready: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

.venv/dev-ready: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ .venv/demo-ready .venv/docs-ready

env: .venv/dev-ready

demo: .venv/demo-ready
	$(BIN)/sidelight demo

docs: .venv/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html, or: $(BIN)/python -m http.server --directory site"

# Two workers share the machine: with threads of their own each would wait for the other's.
test test-slow: export OMP_NUM_THREADS = 1

test: env
	$(BIN)/python -m pytest -m "$(FAST)" -n 2 --dist loadfile

# The CPU build alone: plain torch fetches gigabytes for graphics cards. Where pip finds none, its tests skip.
.venv/torch-ready: .venv/dev-ready
	$(BIN)/python -m pip install --quiet --only-binary :all: 'torch==$(TORCH)' || echo "no CPU build of torch found"
	@touch $@

test-slow: env .venv/torch-ready
	$(BIN)/python -m pytest -m "not ($(FAST))" -n 2 --dist loadfile

N ?= 5000
SEED ?= 1
fuzz: env
	$(BIN)/python tests/fuzz/fuzz.py --cases $(N) --seed $(SEED)

faults: env
	$(BIN)/python tests/resume/fault_table.py --json benchmarks/results/faults.json

audit: env
	$(BIN)/python benchmarks/audit.py

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis sidelight-demo site
