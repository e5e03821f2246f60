# Needs make and a Python >= 3.11, no more: each target installs what it needs, at the versions of
# constraints.txt, into a virtual environment of the project's own. Another interpreter or place:
#   make test PYTHON=python3.13 VENV=.venv313

PYTHON ?= python3
VENV ?= .venv
UV := uv==0.13.9
comma := ,

.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test check static prometheus pgbouncer bench soak screenshots lock clean

help: ## This list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

demo: $(VENV)/.embedded ## A campaign against a simulated provider; the console when there is a terminal
	@$(VENV)/bin/tidegate demo

test: $(VENV)/.test ## All tests but the soak
	$(VENV)/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

check: static prometheus pgbouncer test ## Lint, format, types, layers, then the tests

# Debian's packages, unpacked into the environment; where they cannot be had, the tests that need it say so and are skipped.
prometheus: $(VENV)/bin/python
	@.ci/prometheus $(VENV)/prometheus

pgbouncer: $(VENV)/bin/python
	@.ci/pgbouncer $(VENV)/pgbouncer

static: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --strict
	$(VENV)/bin/lint-imports

bench: $(VENV)/.bench ## The measurements that the README quotes
	$(VENV)/bin/python -m tests.bench

soak: $(VENV)/.test ## 50 kills, then random faults for SOAK_MINUTES=15 with SOAK_SEED=1
	$(VENV)/bin/python -m pytest -m soak -s

screenshots: $(VENV)/.test ## Draw screenshots/ anew
	$(VENV)/bin/python -m tests.console.screenshots

# Keeps the versions that still fit pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest of all.
lock: ## Write constraints.txt: every version, for Python 3.11 and newer
	$(call make_venv,.venv-lock)
	.venv-lock/bin/python -m pip install -qq $(UV)
	printf '%s\n' hatchling editables | UV_CUSTOM_COMPILE_COMMAND='make lock' .venv-lock/bin/uv pip compile \
	  --quiet --universal --python-version 3.11 --all-extras --no-annotate $(UPGRADE) \
	  pyproject.toml - --output-file constraints.txt >/dev/null

clean: ## Remove the environments and what was built or cached
	rm -rf .venv .venv-lock .venv3?? build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	  .grimp_cache snapshot_report.html

# A half-made environment would pass for a whole one the next time.
define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "Tidegate needs Python 3.11 or newer, and '$(PYTHON)' is not: name one with 'make PYTHON=python3.13 ...'." >&2; \
  exit 1; }
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) || { rm -rf $(1); exit 1; }
endef

$(VENV)/bin/python:
	$(call make_venv,$(VENV))

# The build backend goes in first: without build isolation its version, too, is the locked one.
define install
@echo "installing tidegate[$(1)] into $(VENV) (about a minute the first time)"
@$(VENV)/bin/python -m pip install -qq -c constraints.txt hatchling editables
@$(VENV)/bin/python -m pip install -qq -c constraints.txt \
  --no-build-isolation --editable '.[$(1)]'
endef

INPUTS := pyproject.toml constraints.txt | $(VENV)/bin/python

$(VENV)/.embedded: $(INPUTS)
	$(call install,embedded)
	@touch $@

$(VENV)/.test: $(INPUTS)
	$(call install,test)
	@touch $(VENV)/.embedded $@

$(VENV)/.bench: $(INPUTS)
	$(call install,test$(comma)bench)
	@touch $(VENV)/.embedded $(VENV)/.test $@
