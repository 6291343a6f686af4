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
	@$(VENV)/bin/uv pip install --quiet --python $(RUN) --no-deps --editable .
	@touch $@

.PHONY: venv
venv: $(STAMP)  ## create the virtual environment with the locked packages

.PHONY: up
up: $(STAMP)  ## set everything up: Pulumi CLI, laptop endpoint (or QDRANT_URL), `pulumi up`, sample memory
	@$(RUN) -m tools up

.PHONY: preview
preview: $(STAMP)  ## show what `make up` would change
	@$(RUN) -m tools preview

.PHONY: sample
sample: $(STAMP)  ## load the sample memory (on a server of QDRANT_URL only this does it)
	@$(RUN) -m tools sample

# The words reach the program by its environment, so that no quote in a question is read by a shell.
.PHONY: ask
ask: override export Q := $(value Q)
ask: override export AS := $(value AS)
ask: $(STAMP)  ## ask the sample memory: make ask Q="when does a point expire?" AS=agt_helion
	@$(RUN) -m tools ask

.PHONY: questions
questions: $(STAMP)  ## three questions, each asked by two that may not read the same
	@$(RUN) -m tools questions

.PHONY: down
down: export CONFIRM := $(value CONFIRM)
down: $(STAMP)  ## destroy the stack and stop the endpoint; asks before points go (CONFIRM=yes answers)
	@$(RUN) -m tools down

.PHONY: daemon
daemon: $(STAMP)  ## run the ops daemon in the foreground against the same Qdrant; Ctrl-C ends it
	@$(RUN) -m tools daemon

.PHONY: endpoint
endpoint: $(STAMP)  ## start the laptop endpoint only (COMEMORY_PORT, default 6333)
	@$(RUN) -m tools endpoint

.PHONY: stop
stop: $(STAMP)  ## stop the laptop endpoint; its data stay
	@$(RUN) -m tools stop

.PHONY: pulumi
pulumi: $(STAMP)  ## find, download or build the Pulumi CLI, and print where it is
	@$(RUN) -m tools.pulumi_cli

.PHONY: prometheus
prometheus: $(STAMP)  ## find Prometheus and promtool, or take them from Debian's package, and print where they are
	@$(RUN) -m tools.prometheus

# Without it the rest of the tests can still be run.
WITH_PROMETHEUS = $(RUN) -m tools.prometheus >/dev/null || echo "==> the tests that need Prometheus are skipped, and each says so" >&2

.PHONY: lint
lint: $(STAMP)  ## ruff, mypy (strict), the arrows between packages, and that no dashboard is stale
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache
	$(RUN) -m dashboards build --check

.PHONY: test
test: pulumi  ## run the tests against an embedded endpoint (ARGS="-k alias" chooses)
	@$(WITH_PROMETHEUS)
	env -u QDRANT_URL -u QDRANT_API_KEY $(RUN) -m pytest $(ARGS)

.PHONY: test-server
test-server: $(STAMP)  ## run the same tests against the server of QDRANT_URL (they make and remove collections there)
	@test -n "$$QDRANT_URL" || { echo "QDRANT_URL is not set; for example: QDRANT_URL=http://127.0.0.1:6333 make test-server" >&2; exit 2; }
	@$(MAKE) --no-print-directory pulumi
	@$(WITH_PROMETHEUS)
	$(RUN) -m pytest $(ARGS)

.PHONY: control-plane
control-plane: $(STAMP)  ## find or build what tests/kubernetes runs on (half an hour on two cores, once)
	@$(RUN) -m tools.control_plane

.PHONY: test-kubernetes
test-kubernetes: pulumi control-plane  ## run the tests on a real control plane with simulated nodes
	env -u QDRANT_URL -u QDRANT_API_KEY $(RUN) -m pytest tests/kubernetes $(ARGS)

.PHONY: bench
bench: pulumi  ## measure what has a limit, print a row for each, fail when one is short
	@$(RUN) -m benchmarks

.PHONY: dashboards
dashboards: $(STAMP)  ## write dashboards and rules anew into dashboards/generated
	@$(RUN) -m dashboards build

.PHONY: pictures
pictures: $(STAMP)  ## draw docs/pictures anew from a real Prometheus (about two minutes)
	@$(RUN) -m tools.pictures

.PHONY: docs
docs: $(STAMP)  ## write the generated pages of docs/ anew
	@$(RUN) -m tools.configuration_reference
	@$(RUN) -m tools.settings_reference
	@$(RUN) -m tools.metrics_reference

.PHONY: clean
clean:  ## stop the endpoint and remove what was made here: .local (with its data), caches, the virtual environment
	@if [ -x $(RUN) ] && [ -d .local ]; then $(RUN) -m tools stop; fi
	rm -rf .local Pulumi.local.yaml .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache $(VENV)

.PHONY: lock
lock:  ## make requirements/*.lock anew from pyproject.toml
	$(RUN) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --universal --generate-hashes --no-emit-index-url \
	  --python-version 3.11 --custom-compile-command "make lock" --quiet -o requirements/dev.lock
	$(VENV)/bin/uv pip compile pyproject.toml --extra ops --universal --generate-hashes --no-emit-index-url \
	  --python-version 3.11 --constraint requirements/dev.lock --no-annotate \
	  --custom-compile-command "make lock" --quiet -o requirements/daemon.lock
