# Every target installs what it needs first and says so; a second run has nothing to install.

.PHONY: help test faults kills fuzz demo bench chaos torches pictures lint dist deb clean
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 8

test: ## Check style and types, run every test; ARGS="-k roster" goes to pytest
	@scripts/bootstrap
	@scripts/test $(ARGS)

faults: ## Run the long list of faults on virtual hosts and machines, most of an hour; ARGS="-k deaf" goes to pytest
	@scripts/bootstrap
	@scripts/as-root .venv/bin/python -m pytest -p no:cacheprovider -m faults $(ARGS)

kills: ## Kill setup and undo at every system call that changes something, and fill the disk at each; some minutes
	@scripts/bootstrap
	@scripts/as-root .venv/bin/python -m pytest -p no:cacheprovider -rP -m 'faults or not faults' tests/lab/test_kills.py $(ARGS)

fuzz: ## Feed every parser with anything, and glibc with nsswitch.conf files, for minutes; SEED=2 for others
	@scripts/bootstrap
	@FUZZ_EXAMPLES=2000 .venv/bin/python -m pytest -n 2 --timeout 600 --hypothesis-seed=$(or $(SEED),1) tests/unit/test_fuzz.py
	@scripts/as-root env FUZZ_NSSWITCH=1500 FUZZ_SEED=$(or $(SEED),1) .venv/bin/python -m pytest -p no:cacheprovider \
	    tests/lab/test_nsswitch_corpus.py
	@scripts/as-root env VARIANTS=10 VARIANTS_SEED=$(or $(SEED),1) .venv/bin/python -m pytest -p no:cacheprovider \
	    --timeout 1200 tests/lab/test_avahi_variants.py

demo: ## Show the main job on three virtual hosts on this machine
	@scripts/bootstrap demo
	@scripts/as-root .venv/bin/python -m bench.demo

bench: ## Measure start, recovery, cost, doctor and discovery; ARGS="--only start" goes to the bench
	@scripts/bootstrap
	@scripts/as-root .venv/bin/python -m bench $(ARGS)

torches: ## Run the tests that need torch with other versions of it, gigabytes each; VERSIONS="2.6.0 2.15.0"
	@scripts/bootstrap
	@scripts/torches $(VERSIONS)

chaos: ## Break ten jobs on the lab in a hundred ways, for twenty minutes; ARGS="--seed 2" for other ones
	@scripts/bootstrap
	@scripts/as-root .venv/bin/python -m chaos $(ARGS)

pictures: ## Make the pictures of README and docs anew, on virtual hosts; ARGS="architecture" makes one alone
	@scripts/bootstrap
	@scripts/as-root .venv/bin/python -m pictures $(ARGS)

lint: ## Check style and types only
	@scripts/bootstrap python
	@scripts/lint

dist: ## Build the wheel and the source archive into dist/, the same bytes for the same commit
	@scripts/bootstrap python
	@.venv/bin/python -m release.dist

deb: ## Build the Debian package into dist/, with the libraries that it brings along; ARCHITECTURE=arm64
	@scripts/bootstrap python
	@.venv/bin/python -m release.deb

clean: ## Remove .venv and everything that was built
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
