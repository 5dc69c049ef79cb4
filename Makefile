# `make run` and `make test` each do all their set-up: they need Python >= 3.11, pip, make and gcc, and no root.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
FAST   := tests/plant tests/tools tests/hilnode tests/drivers tests/bridge tests/docs
WEB_ARTEFACTS ?= web-artefacts

.PHONY: run test test-slow test-timing test-lab test-web web lint format bench bench-engine bench-collide \
        bench-excavator bench-drivers bench-bridge bench-web soak deps-system clean help

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: $(VENV)/.ready  ## run the default machine; make run ARGS="--for 5" passes options on
	$(BIN)/hilnode run $(ARGS)

# What bears company on several cores; whatever judges times has the machine to itself (tests/company.py). Status 5:
# nothing was selected.
test: $(VENV)/.ready-dev  ## the fast tests
	@date +%s > $(VENV)/.began
	$(BIN)/python tools/warm.py
	$(BIN)/pytest --part together -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(FAST) $(ARGS) || [ $$? = 5 ]
	$(BIN)/pytest --part alone $(FAST) $(ARGS) || [ $$? = 5 ]
	@echo "tested in $$(( $$(date +%s) - $$(cat $(VENV)/.began) )) s, with what had to be compiled"

test-slow: $(VENV)/.ready-dev  ## long tests
	$(BIN)/pytest -m slow $(ARGS)

test-timing: $(VENV)/.ready-dev  ## tests that assert times: on a quiet machine
	$(BIN)/pytest -m timing $(ARGS)

test-web: $(VENV)/.ready-dev  ## the page in a browser; needs chromium; WEB_ARTEFACTS=folder keeps screenshots
	HILNODE_WEB_ARTEFACTS=$(WEB_ARTEFACTS) $(BIN)/pytest -m web tests/web $(ARGS)

web:  ## build the page from its sources (bridge/web/page to bridge/web/static); needs node and npm, only for its authors
	cd bridge/web/page && npm ci && npm run build

test-lab: $(VENV)/.ready-dev  ## HID and CAN in a virtual lab PC; needs qemu-system-x86 and busybox-static, no root
	$(BIN)/python tools/lab_pc.py test $(ARGS)

lint: $(VENV)/.ready-dev  ## ruff, mypy (types of the packages, names in tests and tools), and the walls between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports

format: $(VENV)/.ready-dev  ## put the code into its one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-dev  ## the node's timing beside its peers; needs cyclictest (make deps-system) and a quiet machine
	@command -v cyclictest >/dev/null || { echo "cyclictest is missing: make deps-system installs rt-tests"; exit 1; }
	$(BIN)/python tools/bench_node.py $(ARGS)

bench-engine: $(VENV)/.ready-dev  ## the physics engine beside MuJoCo and PyBullet
	$(BIN)/python tools/bench_engine.py
	$(BIN)/python tools/bench_articulated.py
	$(BIN)/python tools/bench_natural.py

bench-collide: $(VENV)/.ready-dev  ## collision detection beside coal
	$(BIN)/python tools/bench_broadphase.py
	$(BIN)/python tools/bench_collide.py

bench-excavator: $(VENV)/.ready-dev  ## what a step of the excavator costs at work; ARGS="--seconds 20" is shorter
	$(BIN)/python tools/bench_excavator.py $(ARGS)

bench-drivers: $(VENV)/.ready-dev  ## eight drivers at 1 kHz: what they cost the tick, how even they are; on a quiet machine
	$(BIN)/python tools/bench_drivers.py $(ARGS)

bench-bridge: $(VENV)/.ready-dev  ## what leaves the PC: losses, latency, the tick beside it; ARGS="--seconds 5" is shorter
	$(BIN)/python tools/bench_bridge.py $(ARGS)

bench-web: $(VENV)/.ready-dev  ## the page in the browser: bytes, the server's share of a core, age, the tick beside it
	$(BIN)/python tools/bench_web.py $(ARGS)

soak: $(VENV)/.ready-dev  ## ten minutes at 1 kHz: every tick logged, memory flat
	$(BIN)/python tools/bench_node.py soak $(ARGS)

deps-system:  ## Debian packages that only `make bench` needs (asks for root)
	apt-get update && apt-get install -y rt-tests

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hilnode needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[units,plot,monitor,web]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.ready

clean:  ## remove what can be made again
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
