# One entry point for everything: `make` prints the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq

PROJECTS := packages/taso-gym packages/substitutions packages/agents
# onnxruntime for a CPU or for a GPU: they overwrite each other, so that an environment has one of them.
EXTRA    := cpu
INPUTS   := constraints.txt requirements-dev.txt $(PROJECTS:%=%/pyproject.toml)

# One thread each: two test processes share the machine, and the graphs are small.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
export PYRIGHT_PYTHON_IGNORE_WARNINGS = 1

# $(call each,FOLDER OF PYTHON,SCRIPTS) runs all, also after one that fails.
each = @failed=; for script in $(2); do echo "== $$script"; $(1)/python $$script || failed="$$failed $$script,"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-gpu test-libraries lint type check format bench bench-full bench-gpu docs fuzz clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with the three packages (editable) and the development tools
	@:

# torch goes first and is pinned, so that nothing after it asks for another build.
$(STAMP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "taso-gym needs Python 3.11 or newer, found %s: try `make PYTHON=python3.11`." % sys.version.split()[0])'
	@echo "[1/4] virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "[2/4] torch"
	@$(PIP) install -c constraints.txt torch
	@echo "[3/4] development tools"
	@$(PIP) install -c constraints.txt -r requirements-dev.txt
	@echo "[4/4] taso-gym, taso-substitutions, taso-agents"
	@$(PIP) install -c constraints.txt --no-build-isolation -e 'packages/taso-gym[$(EXTRA)]' -e packages/substitutions -e packages/agents
	@touch $@

demo: install ## Train an agent on BERT for five minutes and show what it gains
	@$(BIN)/python examples/maskable_ppo.py

test: install ## Run the tests that need neither a GPU nor patience
	@$(PYTEST) -n 2 -m "not slow and not gpu"

test-slow: install ## Run the slow tests
	@$(PYTEST) -m "slow and not gpu"

test-gpu: ## Run the tests that need a CUDA device
	@$(MAKE) VENV=.venv-gpu EXTRA=gpu install
	@OMP_NUM_THREADS=1 .venv-gpu/bin/python -m pytest -m gpu

# ray pins an older gymnasium, so these live in an environment of their own.
test-libraries: ## Run the tests of the optional libraries (RLlib, TorchRL, Tianshou, ...)
	@$(MAKE) VENV=.venv-libraries .venv-libraries/.libraries
	@OMP_NUM_THREADS=1 .venv-libraries/bin/python -m pytest -m "rllib or torchrl or tianshou or pettingzoo or zoo or ray"

.venv-libraries/.libraries: $(STAMP)
	@echo "[5/5] the optional libraries"
	@$(PIP) install --no-build-isolation -e packages/taso-gym 'torch==$(shell sed -n "s/^torch==//p" constraints.txt)' \
		-e 'packages/substitutions[ray]' -e 'packages/agents[pettingzoo,rllib,tianshou,torchrl,zoo]'
	@touch $@

lint: install ## Check style, format and import layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports

type: install ## Check types
	@$(BIN)/pyright

check: lint type test ## Everything that must be green before a commit

format: install ## Rewrite the sources in the project's format
	@$(BIN)/ruff check --fix-only -q
	@$(BIN)/ruff format

bench: install ## Run the benchmarks of speed, about a quarter of an hour
	$(call each,$(BIN),$(addprefix benchmarks/,step.py scaling.py matching.py) 'benchmarks/kernels.py --seconds 300')

OF_FILES := $(addprefix benchmarks/,dream_speed.py empty_cache.py estimators.py in_place.py in_situ.py loading.py record.py together.py)
bench-full: install ## Run all benchmarks but those of a file or folder, which takes hours (most go on where they were ended); it writes tables in docs/results.md anew
	$(call each,$(BIN),$(filter-out benchmarks/gpu_% $(OF_FILES),$(wildcard benchmarks/*.py)))

bench-gpu: ## Run the benchmarks that need a CUDA device
	@$(MAKE) VENV=.venv-gpu EXTRA=gpu install
	$(call each,.venv-gpu/bin,$(wildcard benchmarks/gpu_*.py))

docs: install ## Write the generated pages of docs/ anew
	$(call each,$(BIN),$(wildcard docs/*.py))

# FUZZ_SECONDS of the second part; what it finds is left in out/fuzz as crash-…, timeout-… or oom-….
FUZZ_SECONDS ?= 3600
fuzz: install ## Run the property tests with many more examples, then mutate ONNX files for an hour
	@$(PYTEST) -n 2 -m "hypothesis and not gpu" --hypothesis-profile=fuzz
	@mkdir -p out/fuzz
	@cd out/fuzz && OMP_NUM_THREADS=1 $(CURDIR)/$(BIN)/python $(CURDIR)/tests/fuzz_onnx.py corpus -max_total_time=$(FUZZ_SECONDS)

clean: ## Remove caches and build outputs; the environments stay
	@rm -rf .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist packages/*/dist
	@find packages tests -name __pycache__ -type d -prune -exec rm -rf {} +
