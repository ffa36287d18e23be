PYTHON ?= python3
VENV ?= .venv
# A range would let pip fetch the newest torch; this is the version that the tests were run with.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: serve test test-service test-others lint format bench openapi lock clean

serve: $(VENV)/.serve ## Install, load the open knowledge base, build the index (first run only) and serve
	$(BIN)/medlink kb load open
	$(BIN)/medlink index build --if-stale
	$(BIN)/medlink serve

test: $(VENV)/.dev ## Run every test, on SQLite and on PostgreSQL
	$(MAKE) --no-print-directory --jobs=2 --keep-going test-service test-others

# These wait for processes, the others calculate: beside each other they take little more than half the time.
SERVICE_TESTS := tests/app tests/rebuild

test-service: $(VENV)/.dev
	$(BIN)/python -m pytest $(SERVICE_TESTS)

test-others: $(VENV)/.dev
	$(BIN)/python -m pytest $(SERVICE_TESTS:%=--ignore=%)

lint: $(VENV)/.dev ## Style, types and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

openapi: $(VENV)/.serve ## Write the OpenAPI description that a test pins
	$(BIN)/python -m app.openapi docs/api/openapi.json

lock: $(VENV)/.dev ## Resolve the pinned, hashed requirements anew; torch stays outside
	$(BIN)/uv pip compile --quiet --generate-hashes --no-annotate --no-header --python-version 3.11 \
		pyproject.toml --output-file requirements/serve.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --no-annotate --no-header --python-version 3.11 \
		--extra dev --extra train --extra plot --override requirements/without-torch.txt --constraint requirements/serve.txt \
		pyproject.toml --output-file requirements/dev.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --no-annotate --no-header --python-version 3.11 \
		--extra train --extra plot --override requirements/without-torch.txt --constraint requirements/dev.txt \
		pyproject.toml --output-file requirements/train.txt

$(VENV)/.serve: requirements/serve.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements/serve.txt
	$(PIP) --no-deps --editable .
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.serve
	$(PIP) --require-hashes --no-deps -r requirements/dev.txt
	$(PIP) $(TORCH)
	touch $@

clean:
	rm -rf $(VENV) var
