# make survey: set up (core only) and run the main job.   make test: set up and run the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Bytecode is much of an installation's time, and pip makes it on one processor. What is rarely imported, two fifths of
# it all, is left to its first import; processes that the tests start find what others have compiled.
BYTECODE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests|transformers/models|ray)/' $(VENV)/lib || true
unexport PYTHONDONTWRITEBYTECODE

.PHONY: survey test lowest check docs wheel clean

survey: $(VENV)/.core
	$(BIN)/theodolite survey --preset quick --out survey

test: $(VENV)/.test
	$(BIN)/python -m pytest --dist loadfile -n 2

# The lowest declared versions, in an environment of their own, on tests that need nothing else.
lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e . 'pytest>=8' hypothesis beartype
	$(VENV)-lowest/bin/python -m pytest -q tests/statistics tests/test_vocabulary.py tests/graphs tests/field tests/instruments/rank tests/training/test_loop.py tests/structure/test_regressor.py tests/structure/test_discover.py tests/cli/test_rank.py tests/cli/test_start.py tests/advice/test_advice.py tests/claims/sparsity/test_locality.py

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright  # a seventh less of its time is collecting garbage

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict --quiet --site-dir site

wheel: $(VENV)/.core
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	$(BYTECODE)
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[test,docs]'
	$(BYTECODE)
	touch $(VENV)/.core $(VENV)/.docs $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) dist site survey .pytest_cache .ruff_cache .hypothesis
