# make demo   a simulated crowd places 150 verbs on a scale, live: watch the dashboard, and join in
# make test   everything that must hold: style, types, tests (sets up whatever is missing)
# make crowds, make stopping, make calibrated, make pictures: slow checks and the pictures of the docs
.PHONY: demo test lint types tests tools bench crowds stopping calibrated pictures clean
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

demo: $(VENV)/.installed
	@$(BIN)/steelyard demo

test: tools lint types tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist loadfile

# Debian's packages that the tests drive for real; without root, the tests that need them skip and say so.
tools:
	@scripts/install-tools

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Two hundred annotators at once on every design, in threads and in processes, on both databases.
crowds: $(VENV)/.dev
	$(BIN)/python -m benchmarks.crowds

# How often a study stops too soon, over simulated studies.
stopping: $(VENV)/.dev
	$(BIN)/python -m benchmarks.coverage_stopping

# How often the calibrated scale's intervals hold the truth, and its experiments in full.
calibrated: $(VENV)/.dev
	$(BIN)/python -m benchmarks.coverage_calibrated
	$(BIN)/steelyard reproduce calibrated --data ../shared/data

pictures: $(VENV)/.dev
	$(BIN)/python -m scripts.picture
	$(BIN)/python -m scripts.figures
	$(BIN)/python -m scripts.screenshots

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Steelyard needs Python 3.11 or newer; run: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
