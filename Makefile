# Every target makes .venv by itself: it takes Python >= 3.11 with venv and pip, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports wheel laws fuzz bench format clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## watch a guarded agent stream, no key and no network needed
	$(BIN)/streampipe demo

test: $(READY) ## run every test and every example in the documentation
	$(BIN)/pytest -n auto --dist worksteal

check: lint types imports wheel ## ruff, mypy, pyright, import floors, the wheel

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy and pyright
	$(BIN)/mypy
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python

imports: $(READY) ## who may import whom
	$(BIN)/lint-imports --no-logo

wheel: $(READY) ## build the wheel, look into it, run it outside the repository
	$(BIN)/python scripts/check_wheel.py

laws: $(READY) ## the laws of the engine, on many more generated cases
	STREAMPIPE_PROFILE=laws $(BIN)/pytest tests/laws -n auto --timeout 1800

fuzz: $(READY) ## 200,000 mutated events for each decoder
	STREAMPIPE_FUZZ=200000 $(BIN)/pytest tests/models/test_fuzz.py -n auto

bench: $(READY) ## measure; figures depend on the machine, so nothing here fails
	$(BIN)/python -m benchmarks

# Faker chooses from sets, too: with the same hash seed the texts are the same.
.PHONY: bench-guards
bench-guards: $(READY) ## look for personal data in texts that Faker made; takes a minute
	PYTHONHASHSEED=0 $(BIN)/python -m benchmarks.guards

.PHONY: bench-peers
bench-peers: ## measure others at the same work, in .venv-peers; writes benchmarks/RESULTS.md
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement benchmarks/peers/requirements.txt --editable .
	.venv-peers/bin/python -m benchmarks.peers.with_mastra
	.venv-peers/bin/python -m benchmarks.peers

format: $(READY) ## rewrite the code as ruff likes it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv and everything that was made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
