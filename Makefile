# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint format generate bench browser clean

demo: $(STAMP)
	$(BIN)/caged demo

test: lint browser
	$(BIN)/python -m pytest -n 2

# The pages are tested in a real browser; without one these tests are skipped. Only continuous integration installs it.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	|| { test -n "$$CI" && test "$$(id -u)" = 0 && timeout 180 apt-get install -y -qq chromium > /dev/null 2>&1; } \
	|| echo "no Chromium here: the tests of the pages in a browser will be skipped"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What is written from the code and the recorded results: types of the public names, options of the methods, tables.
generate: $(STAMP)
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.methods_doc docs/methods.md
	$(BIN)/python -m tools.caged_doc docs/caged.md
	$(BIN)/python -m tools.reproduction_doc docs/reproduction.md
	$(BIN)/python -m tools.metrics_doc docs/metrics.md
	$(BIN)/python -m tools.remedies_doc docs/remedies.md
	$(BIN)/python -m tools.tune_doc docs/tune.md
	$(BIN)/python -m benchmarks.table
	$(BIN)/python -m tools.golden

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# torch first and pinned: an unpinned torch may bring several gigabytes of CUDA packages along.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache
