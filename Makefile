# make run    builds everything and starts the lab         make run HOMES=100 SECONDS=30 ARGS=--json
# make test   builds everything and runs every test
# make e2e    the end-to-end cases alone                   make e2e CASE=pppd-chap; make e2e-list
# make sim    1,000 seeds of the simulation               make sim SEEDS=0-9999
# make check  format, lints, licences                      make clean
#
# As root or as a user who may use sudo.

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
CARGO ?= cargo
GO ?= go
CARGO_DENY_VERSION := 0.20.2
BIN := $(or $(CARGO_TARGET_DIR),target)/release
PROGRAMS := -p sluice -p sluice-up -p sluice-cp

.PHONY: run test unit sim e2e e2e-list check clean packages packages-test cargo-deny

run: packages
	$(CARGO) build --release $(PROGRAMS)
	$(SUDO) $(BIN)/sluice lab $(if $(HOMES),--homes $(HOMES)) $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

test: unit sim
	@$(MAKE) --no-print-directory e2e

unit: packages-test
	$(CARGO) test --workspace

sim: packages
	$(CARGO) run --release -p sim -- --seeds $(or $(SEEDS),0-999)

e2e: packages-test
	$(CARGO) build --release $(PROGRAMS) -p e2e
	@cd e2e/pfcp-peer && $(GO) build -o $(abspath $(BIN))/pfcp-peer .
	@$(SUDO) e2e/vm/build > /dev/null
	@$(SUDO) $(BIN)/e2e $(CASE)

e2e-list: packages
	@$(CARGO) build --quiet --release -p e2e
	@$(BIN)/e2e --list

check: packages cargo-deny
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) deny --workspace check --hide-inclusion-graph bans licenses sources

clean:
	$(SUDO) rm -rf target/vm target/e2e
	$(CARGO) clean

# Debian's packages, as far as they are missing.
packages:
	@scripts/packages run

packages-test:
	@scripts/packages test

# An unoptimized build: it takes half the time and checks as well.
cargo-deny:
	@$(CARGO) deny --version > /dev/null 2>&1 || $(CARGO) install --locked --debug cargo-deny --version $(CARGO_DENY_VERSION)
