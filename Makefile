# One entry point for everything: `make` prints the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq

PROJECTS := packages/taso-gym packages/substitutions packages/agents
RUN      := OMP_NUM_THREADS=1
PYTEST   := $(RUN) $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-gpu test-libraries lint type check format bench bench-gpu docs fuzz clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with the three packages (editable) and the development tools
	@:

# torch goes first and is pinned, so that nothing after it asks for another build.
$(STAMP): constraints.txt requirements-dev.txt $(PROJECTS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "taso-gym needs Python 3.11 or newer, found %s: try `make PYTHON=python3.11`." % sys.version.split()[0])'
	@echo "[1/4] virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "[2/4] torch"
	@$(PIP) install -c constraints.txt torch
	@echo "[3/4] development tools"
	@$(PIP) install -c constraints.txt -r requirements-dev.txt
	@echo "[4/4] taso-gym, taso-substitutions, taso-agents"
	@$(PIP) install -c constraints.txt --no-build-isolation -e 'packages/taso-gym[cpu]' -e packages/substitutions -e packages/agents
	@touch $@
