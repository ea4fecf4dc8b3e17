# make demo   watch a simulated crowd place 150 verbs on a scale
# make test   everything that must hold: style, types, tests (sets up whatever is missing)
.PHONY: demo test lint types tests tools bench picture clean
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

picture: $(VENV)/.dev
	$(BIN)/python -m scripts.picture

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
