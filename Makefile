# Everything runs in .venv, made on first use. PYTHON picks the interpreter it is made from.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test check docs bench build clean

demo: $(STAMP)
	$(BIN)/holdfast demo

test: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

bench: $(STAMP)
	$(BIN)/python benchmarks/drive.py $(ARGS)

build: $(STAMP)
	$(BIN)/python -m build

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,docs]"
	touch $@

clean:
	rm -rf .venv dist site runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
