# Every target does its own set-up in .venv; see the README.
PYTHON ?= python3
VENV ?= .venv
TORCH ?= $(shell grep '^torch==' constraints.txt)
PIP_ARGS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(PIP_ARGS)

.PHONY: demo test test-slow benchmarks lint types contracts docs core check clean

demo: $(VENV)/.train  ## learn to pronounce English words in a minute, and show what it can do
	rm -rf runs/demo
	$(BIN)/sonorant train g2p --preset quick --output runs/demo

test: $(VENV)/.dev  ## the test suite without the slow tests
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/.dev  ## the slow tests
	$(BIN)/python -m pytest -m slow

benchmarks: $(VENV)/.dev  ## time and memory of every operation against the originals' forms, into the docs
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks --output docs/benchmarks.md

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev  ## which layer may import which
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## the documentation, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

core: $(VENV)-core/.core  ## the library without any extra imports and works
	$(VENV)-core/bin/python tests/bare_core.py

check: lint types contracts test docs core

clean:
	rm -rf $(VENV) $(VENV)-core site

$(VENV)/.torch: constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "sonorant needs Python 3.11 or newer, and there is no $(PYTHON)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sonorant needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "sonorant needs Python's venv module; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) "$(TORCH)"
	grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -c 'import torch; print("torch==" + torch.__version__.partition("+")[0])' >> $(VENV)/constraints.txt
	@touch $@

$(VENV)/.train: $(VENV)/.torch pyproject.toml
	$(PIP) -c $(VENV)/constraints.txt -e '.[train]'
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) -c $(VENV)/constraints.txt -e '.[train,export,dev]'
	@touch $@ $(VENV)/.train

$(VENV)/.docs: $(VENV)/.torch pyproject.toml
	$(PIP) -c $(VENV)/constraints.txt -e '.[docs]'
	@touch $@

$(VENV)-core/.core: constraints.txt pyproject.toml
	$(MAKE) --no-print-directory VENV=$(VENV)-core $(VENV)-core/.torch
	$(VENV)-core/bin/python -m pip --disable-pip-version-check install --quiet $(PIP_ARGS) -c $(VENV)-core/constraints.txt -e .
	@touch $@
