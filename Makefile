# Co-Memory Ops: `make up` and `make test` are all a newcomer needs; `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.9
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(STAMP): requirements/dev.lock
	@echo "==> creating $(VENV) and installing the pinned packages (about a minute the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Name another with: make PYTHON=python3.12 ...")'
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(VENV)/bin/uv pip sync --quiet --python $(RUN) --require-hashes requirements/dev.lock
	@touch $@

.PHONY: venv
venv: $(STAMP)  ## create the virtual environment with the locked packages

.PHONY: lint
lint: $(STAMP)  ## ruff, mypy (strict) and the arrows between packages
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

.PHONY: test
test: $(STAMP)  ## run the tests
	$(RUN) -m pytest

.PHONY: lock
lock:  ## make requirements/*.lock anew from pyproject.toml
	$(RUN) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --universal --generate-hashes --no-emit-index-url \
	  --python-version 3.11 --custom-compile-command "make lock" --quiet -o requirements/dev.lock
