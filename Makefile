# `make help` lists the targets. Everything runs in a virtual environment of its own, made once and made anew when
# pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= train,render,export,dev
# Where pip looks for torch, if not in the usual place: TORCH_FLAGS="--index-url https://download.pytorch.org/whl/cpu"
TORCH_FLAGS ?=

# One process more than a small machine has cores: tests of servos mostly wait.
PYTEST_FLAGS ?= -n 3 --dist worksteal

ALL_EXTRAS := render,spatial,train,search,cluster,hardware,camera,export,docs,clients,dev
BIN := $(VENV)/bin
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help install demo check test test-all lint bench docs site lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12
	@echo
	@echo "settings: PYTHON=$(PYTHON) VENV=$(VENV) EXTRAS=$(EXTRAS) TORCH_FLAGS=$(TORCH_FLAGS)"

install: $(STAMP) ## make the virtual environment

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "snake_gym needs Python 3.11 or newer, but $(PYTHON) is %d.%d: set PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@# torch first and alone: an index that has a CPU build of this version is then asked for nothing else
	$(BIN)/python -m pip install -q -c constraints.txt $(TORCH_FLAGS) torch
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP) ## train a fault-tolerant policy and compare it with the classical controllers (minutes)
	$(BIN)/python train.py --config configs/train/ppo.yaml --run-dir runs/demo --set if_exists=continue
	$(BIN)/python evaluate.py --config configs/benchmark/demo.yaml
	@echo "Where to look: $(BIN)/tensorboard --logdir runs for the training; plots, tables and animation as named above"

check: lint ## a minute: style, types, import rules, and the tests that compile no kernel
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m check

test: $(STAMP) ## minutes: one oracle per law, contracts, resume
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

test-all: $(STAMP) ## everything, an hour (learners of others: EXTRAS=train,render,export,dev,clients)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m ""

lint: $(STAMP) ## check style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP) ## measure the speed, side by side with MuJoCo
	$(BIN)/python benchmarks/throughput.py

docs: ## build the documentation's site into site/
	@$(MAKE) --no-print-directory site EXTRAS="$(if $(findstring docs,$(EXTRAS)),$(EXTRAS),$(EXTRAS)$(comma)docs)"

site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lock: ## resolve all extras in a fresh environment and write constraints.txt
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && $(PYTHON) -m venv "$$fresh" \
	&& version=$$(sed -n 's/^torch==//p' constraints.txt) \
	&& "$$fresh/bin/python" -m pip install -q $(TORCH_FLAGS) "torch==$$version" \
	&& "$$fresh/bin/python" -m pip install -q '.[$(ALL_EXTRAS)]' \
	&& "$$fresh/bin/python" -m pip freeze --all --exclude pip --exclude snake-robot-gym > "$$fresh/frozen" \
	&& { grep '^#' constraints.txt; sed 's/+cpu$$//' "$$fresh/frozen" | grep -v -i -E '^(nvidia|cuda|triton)'; } > "$$fresh/lock" \
	&& cp "$$fresh/lock" constraints.txt && echo "constraints.txt: $$(grep -c == constraints.txt) packages"

clean: ## remove the environment and everything that can be made again (not runs/)
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
