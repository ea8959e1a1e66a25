# Every target makes or reuses the virtual environment by itself: a fresh clone needs nothing before it.
PYTHON ?= python3
VENV ?= .venv
# One more than cores: tests that wait leave theirs to others, and each worker imports all for ten seconds
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Folders, files or tests; nothing: all
T ?=
# Where the package is published: its README then has links that work anywhere
REPOSITORY ?=
BIN := $(VENV)/bin
INSPECT := $(VENV)-inspect
TRACKERS := $(VENV)-trackers
SLOW := $(VENV)-slow
AUDIT := $(VENV)-audit
DIST := $(VENV)-dist
QUIET_PIP := -m pip --disable-pip-version-check --quiet --quiet
PIP := $(BIN)/python $(QUIET_PIP)

.PHONY: help demo test test-rest test-all check docs bench soak slow inspect trackers audit dist repository

help:
	@echo "make demo     replay recorded answers of published models and rank them (no key needed)"
	@echo "make test     run the tests of rules and contracts (some minutes); one room: make test T=tests/store"
	@echo "make test-all run these and the rest: browsers, pictures, kills, whole runs"
	@echo "make check    lint, format, types, directions of imports, undeclared and unused names"
	@echo "make docs     build the docs site into site/"
	@echo "make bench    measure the cost of a call beside bare loops"
	@echo "make soak     run the long tests"
	@echo "make slow     run the tests with real servers of S3 and with Ray (downloads them once)"
	@echo "make audit    look for known holes in what is installed, and list it in dist/sbom.json (needs the network)"
	@echo "make dist     build the package for an index: make dist REPOSITORY=https://github.com/OWNER/NAME"
	@echo "make trackers send figures to an MLflow server, W&B and a collector (downloads them once)"
	@echo "make inspect  have inspect-ai read the logs of export inspect (downloads it once)"

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "asyncbench needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@echo "preparing $(VENV) (once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --editable .
	@touch $@

demo: $(VENV)/ready
	@rm -rf results/demo results/demo-pairs
	@$(BIN)/asyncbench demo
	@command -v asyncbench > /dev/null || echo "These commands need the environment: . $(BIN)/activate"

# Hundreds of processes are started: none compiles all again, whatever the environment says.
# Warnings of damage that tests make on purpose are not listed: the last lines tell what failed.
# Fifty failures are one broken environment: the session ends there.
PYTEST := $(BIN)/python -m pytest -q -rsfE --disable-warnings --durations=10 --maxfail=50 \
	--numprocesses=$(WORKERS) --dist=worksteal $(T)

test test-rest: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/ready
	$(PYTEST)

test-rest: $(VENV)/ready
	$(PYTEST) -m "long and not soak and not slow"

test-all: test test-rest

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/vulture
	@$(BIN)/python -c 'from docs.house import large; print(*large(), sep="\n")'

docs: $(VENV)/ready
	$(BIN)/python -m docs

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks.overhead

soak: $(VENV)/ready
	$(BIN)/python -m pytest -q -rs -s -m "soak and not slow" --timeout=7200

# The lock with what these tests need beside it, in an environment of its own.
$(SLOW)/ready: requirements.lock tests/slow-requirements.txt pyproject.toml
	$(PYTHON) -m venv $(SLOW)
	$(SLOW)/bin/python $(QUIET_PIP) install --require-hashes --requirement requirements.lock
	$(SLOW)/bin/python $(QUIET_PIP) install --require-hashes --no-deps --requirement tests/slow-requirements.txt
	$(SLOW)/bin/python $(QUIET_PIP) install --no-deps --editable .
	@touch $@

slow: $(SLOW)/ready
	$(SLOW)/bin/python -m pytest -q -rs -s -m slow --timeout=3600

# A package that others read our exports with has an environment of its own: asyncbench does not need it.
$(INSPECT)/ready: tests/upkeep/exchange/inspect-requirements.txt
	$(PYTHON) -m venv $(INSPECT)
	$(INSPECT)/bin/python $(QUIET_PIP) install --requirement $<
	@touch $@

inspect: $(VENV)/ready $(INSPECT)/ready
	INSPECT_PYTHON="$$(cd $(INSPECT)/bin && pwd)/python" $(BIN)/python -m pytest -q -rs -s -m long tests/upkeep/exchange/test_inspect_reader.py

# What `track` sends with, in one environment, and an MLflow server, which takes an older pyarrow, in another.
$(TRACKERS)/ready: requirements.lock tests/trackers/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(TRACKERS)
	$(TRACKERS)/bin/python $(QUIET_PIP) install --require-hashes --requirement requirements.lock
	$(TRACKERS)/bin/python $(QUIET_PIP) install --no-deps --editable .
	$(TRACKERS)/bin/python $(QUIET_PIP) install --requirement tests/trackers/requirements.txt
	@touch $@

$(TRACKERS)-server/ready: tests/trackers/server-requirements.txt
	$(PYTHON) -m venv $(TRACKERS)-server
	$(TRACKERS)-server/bin/python $(QUIET_PIP) install --requirement $<
	@touch $@

trackers: $(TRACKERS)/ready $(TRACKERS)-server/ready
	MLFLOW_PYTHON="$$(cd $(TRACKERS)-server/bin && pwd)/python" $(TRACKERS)/bin/python -m pytest -q -rs -s -n0 -m long tests/trackers

$(AUDIT)/ready: tests/audit-requirements.txt
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python $(QUIET_PIP) install --require-hashes --requirement $<
	@touch $@

# Our own code is looked through by ruff's rules S (bandit's), in `make check`.
audit: $(VENV)/ready $(AUDIT)/ready
	@mkdir -p dist
	$(AUDIT)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible -o dist/sbom.json
	$(AUDIT)/bin/pip-audit --requirement requirements.lock --disable-pip --require-hashes

$(DIST)/ready: tests/dist-requirements.txt
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python $(QUIET_PIP) install --require-hashes --requirement $<
	@touch $@

repository:
	@case "$(REPOSITORY)" in https://?*/?*) ;; *) \
	  echo "make dist: the README's links need an address to work on an index, not '$(REPOSITORY)'." \
	    "Name the repository: make dist REPOSITORY=https://github.com/OWNER/NAME" >&2; exit 2;; esac

# `repository` is first: nothing is prepared for a build that will be refused.
dist: repository $(VENV)/ready $(DIST)/ready
	@rm -f dist/*.whl dist/*.tar.gz
	ASYNCBENCH_REPOSITORY=$(REPOSITORY) $(BIN)/python -m hatchling build --directory dist
	$(DIST)/bin/twine check --strict dist/*.whl dist/*.tar.gz
