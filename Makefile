# Neverdrop. `make` alone tells what there is. Needs Python 3.11 or newer and make, nothing else.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV := .venv
# test modules at once: each brings a stack of processes, and waits for it a third of the time: one more than two cores
JOBS ?= 3
# processes that prove at once; each has a stack, too, and waits for it half of the time
SHARES ?= 3
# the order of the tests and what Hypothesis draws, so that a run can be repeated; another number finds what depends on it
SEED ?= 2260909814
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# an emulator of AWS that is not ours, apart from everything else
SECOND := .venv-ministack
# those of pyproject.toml without the ones that keep tests on this machine
SMOKE := --strict-markers --strict-config -ra
CDK := $(BIN)/npx --yes aws-cdk@2.1148.1

# Without bytecode every process that loads the CDK takes seconds longer.
unexport PYTHONDONTWRITEBYTECODE
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo run test unit check prove prove-pairs prove-permissions prove-mutants prove-races lint synth doctor deploy destroy new-task smoke e2e-ministack clean

help:            ## What there is
	@awk -F ':.*## ' '/^[a-z0-9-]+: .*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Install everything into .venv (the other commands do it by themselves)

$(READY): requirements.txt constraints.txt client/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found on the PATH."; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version): about a minute, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $(READY)

demo: $(READY)   ## From an event to a delivered result, live, on this machine
	@$(BIN)/python -m local demo

run: $(READY)    ## The whole stack on this machine, until you stop it (ARGS="--port 9000 …")
	@$(BIN)/python -m local run --port 8080 --aws-port 8081 --model-port 8082 --socket-port 8083 --reload $(ARGS)

test: $(READY)   ## All tests, on moto, several modules at once (JOBS=3, SEED=any number)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --randomly-seed=$(SEED) $(ARGS)

unit: $(READY)   ## The pure rules alone: seconds
	@$(BIN)/python -m pytest tests/unit $(ARGS)

prove: $(READY)  ## Every crash point of every scenario: minutes (CASE='plain@worker:model/crash', SHARES=2)
	@$(BIN)/python -m tests.simulation.proof --shares $(SHARES) $(if $(CASE),--case $(CASE)) $(ARGS)
	@$(if $(CASE),,WORKFLOW_CRASHES=all $(BIN)/python -m pytest -q tests/simulation/test_workflow_crashes.py)

prove-pairs: $(READY) ## The same with two faults in each case: days (ARGS="--sample 0.001 --seed x")
	@$(BIN)/python -m tests.simulation.proof --pairs --shares $(SHARES) $(ARGS)

prove-permissions: $(READY) ## Which role uses which permission, by the last `make test` that passed (ARGS=folder)
	@$(BIN)/python -m tests.permissions $(ARGS)

prove-races: $(READY) ## The races as a model: three faults at once, every counter-example: minutes (ARGS="--most 2")
	@$(BIN)/python -m tests.simulation.races $(ARGS)

prove-mutants: $(READY) ## Each safety line taken away in turn, and its tests turn red (ARGS="--only lease", JOBS=2)
	@$(BIN)/python -m tests.mutants --jobs $(JOBS) $(ARGS)

lint: $(READY)   ## Format, lint, types, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint test ## What CI runs

synth: $(READY)  ## Synthesize the stack into cdk.out, assets included (ENV=dev)
	@$(BIN)/python app.py $(if $(ENV),-c env=$(ENV)) && echo "cdk.out is written"

doctor: $(READY) ## Is this machine and this account ready to deploy? (ENV=dev)
	@$(BIN)/python app.py $(if $(ENV),-c env=$(ENV)) > /dev/null || \
		echo "Nothing new could be synthesized (see above): what the stack needs may stay unchecked."
	@$(BIN)/python -m ops doctor

deploy: $(READY) ## Deploy to your AWS account (ENV=dev; first time: see docs/deploying.md)
	@$(CDK) deploy $(if $(ENV),-c env=$(ENV)) $(ARGS)

destroy: $(READY) ## Remove the stack (what it leaves: docs/deploying.md)
	@$(CDK) destroy $(if $(ENV),-c env=$(ENV)) $(ARGS)

new-task: $(READY) ## A new task to start from (NAME=extract-dates)
	@$(BIN)/python -m ops new-task "$(NAME)"

smoke: $(READY)  ## The portable end-to-end tests against a deployed stack (URL=https://…)
	@test -n "$(URL)" || { echo "Say which: make smoke URL=https://….execute-api.….amazonaws.com"; exit 1; }
	@NEVERDROP_URL="$(URL)" NEVERDROP_STACK="$(STACK)" $(BIN)/python -m pytest tests/e2e -m "not local_only" \
		-o addopts="$(SMOKE)" -p no:socket $(ARGS)

$(SECOND)/.ready: tests/ministack/requirements.txt | $(READY)
	@$(BIN)/python -m tests.ministack.environment $(SECOND)
	@touch $@

e2e-ministack: $(SECOND)/.ready ## The same tests, deployed by the CDK to an emulator of AWS that is not ours
	@$(BIN)/python -m tests.ministack --home $(SECOND) --cdk "$(CDK)" $(ARGS)

clean:           ## Remove what was built; keep .venv
	@rm -rf cdk.out .build .pytest_cache .mypy_cache .ruff_cache
