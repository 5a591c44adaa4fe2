# `make quickstart` and `make test` work on a fresh machine with Python >= 3.10. They use the active
# environment (venv or conda); when there is none they make one in .venv, once.

ifneq ($(or $(VIRTUAL_ENV),$(CONDA_PREFIX)),)
PYTHON := "$(or $(VIRTUAL_ENV),$(CONDA_PREFIX))/bin/python"
else
PYTHON := .venv/bin/python
endif
INSTALLED := .xmodal-installed
CONFIG := configs/acerpe/pretrain_shapes.py
RUN := work_dirs/pretrain_shapes

# The hook's version, so that both say the same.
RUFF := $(shell sed -n '/ruff-pre-commit/{n;s/.*rev: v//p;}' .pre-commit-config.yaml)

.PHONY: help quickstart test lint

help:
	@echo 'make quickstart   set up, pre-train on the embedded world, evaluate, write a report'
	@echo 'make test         set up, run all tests'
	@echo 'make lint         check style and format, as the pre-commit hooks do'

.venv/bin/python:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "xmodal needs Python 3.10 or newer, and python3 is $$(python3 --version)"; exit 1; }
	python3 -m venv .venv || { rm -rf .venv; exit 1; }

# Again where the environment has no xmodal, or that of another checkout.
ORIGIN := $(shell $(PYTHON) -c 'import os, sys; sys.path.pop(0); import xmodal; \
	print(os.path.realpath(xmodal.__path__[0]))' 2>/dev/null)
ifneq ($(ORIGIN),$(CURDIR)/xmodal)
.PHONY: $(INSTALLED)
endif

$(INSTALLED): setup.cfg pyproject.toml | $(filter .venv/%,$(PYTHON))
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

# Trains a config, or goes on where it was stopped: $(call train,CONFIG,WORK_DIR)
define train
@if [ -e $(2)/finished ]; then \
		echo '$(2) is trained already; move it away to train anew'; \
	else \
		$(PYTHON) tools/train.py $(1) --work-dir $(2) --resume && \
		{ grep -q '/epoch_' $(2)/last_checkpoint || \
			{ echo 'stopped before its end; the same command goes on'; exit 1; }; } && \
		touch $(2)/finished; \
	fi
endef

quickstart: $(INSTALLED)
	$(PYTHON) tools/make_shapes.py --out data/shapes
	$(call train,configs/acerpe/encoder_shapes.py,work_dirs/encoder_shapes)
	$(call train,$(CONFIG),$(RUN))
	@[ -e $(RUN)/rankings.json ] || \
		$(PYTHON) tools/test.py $(CONFIG) "$$(cat $(RUN)/last_checkpoint)" \
			--work-dir $(RUN)/test --cfg-options test_cfg.save_rankings=$(RUN)/rankings.json
	$(PYTHON) tools/analysis/report.py $(RUN)

test: $(INSTALLED)
	$(PYTHON) -m pytest -q -n 2 --dist worksteal

lint: | $(filter .venv/%,$(PYTHON))
	$(PYTHON) -m pip install --quiet --disable-pip-version-check ruff==$(RUFF)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
