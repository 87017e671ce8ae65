# make run    builds everything and starts the lab       make run HOMES=100 SECONDS=30 ARGS=--json
# make test   builds everything and runs every test
# make web    builds the web manager's pages, if they have changed
# make unit   the tests beside the code, as root          cargo test -p CRATE runs those of one crate
# make e2e    the end-to-end cases alone                 make e2e LANES=2; make e2e CASE=pppd-chap; make e2e-list
#             a whole table of the internet by FRR       make e2e CASE=frr-full ROUTES=2000000
# make soak   50 kills and stops, 10,000 homes that go,  make soak SEED=7 FAULTS=10; make soak PART=takeovers
#             takeovers, changes by RADIUS, 10,000 homes
#             of sluice load, a million sessions, all    make soak PART=million SESSIONS=100000
#             sessions resumed, a full table by FRR, the  make soak PART=web-manager
#             web manager with very many homes, Miri,
#             RADIUS servers in
#             trouble, storms of 10,000 homes, planes
#             killed at every instant of a storm,
#             100,000 seeds of the simulation,           make soak SEEDS=0-9999
#             the REST API by schemathesis               make schemathesis
# make scale  131,072 homes: rate, CPU, memory, a death   make scale PART=homes; make scale PART=freeradius; make scale PART=town
#             of a user plane, FreeRADIUS, a whole town   make scale PART=rules
#             whose power comes back, a million rules,    make scale PART=web
#             131,072 sessions through sluice-web
# make sim    1,000 seeds of the simulation              make sim SEEDS=0-9999; make sim SEEDS=7-7 TRACE=1
# make bench  what a packet costs, beside peers           make bench ROUNDS=3
# make qos-plots  the pictures of docs/qos.md, on a clock of their own
# make check  format, lints, licences, instructions      make clean
# make instructions ACCEPT=1  takes the packet path's instructions of now for right
# make mutants  faults that the tests ought to notice     make mutants CRATE=aaa SAMPLE=30 SEED=1; make mutants BASE=main~5
# make miri   what threads share, in every order that Miri tries
# make fuzz   each fuzz target for five minutes          make fuzz TARGET=ppp TIME=60
#
# As root or as a user who may use sudo.

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
CARGO ?= cargo
GO ?= go
CARGO_DENY_VERSION := 0.20.2
CARGO_FUZZ_VERSION := 0.13.2
GUNGRAUN_VERSION := 0.20.0
BIN := $(or $(CARGO_TARGET_DIR),target)/release
PROGRAMS := -p sluice -p sluice-up -p sluice-cp -p sluice-web
# Built in one command: libraries are compiled again for another set of packages, as that asks for other features.
TESTED := $(PROGRAMS) -p e2e -p sim

.PHONY: run web test unit sim e2e soak schemathesis scale bench qos-plots instructions e2e-list check fuzz clean packages packages-test packages-bench cargo-deny cargo-fuzz

run: packages web
	$(CARGO) build --release $(PROGRAMS)
	$(SUDO) $(BIN)/sluice lab $(if $(HOMES),--homes $(HOMES)) $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

# sluice-web has the pages inside. npm installs only what the lock file names, and only when it has changed.
web: web/dist/index.html

web/node_modules/.package-lock.json: web/package.json web/package-lock.json | packages
	@cd web && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

web/dist/index.html: web/node_modules/.package-lock.json web/index.html web/tsconfig.json web/vite.config.ts $(shell find web/src -type f)
	@cd web && npm run --silent build

test: unit sim
	@$(MAKE) --no-print-directory e2e

unit: packages-test web
	@cd web && npm run --silent unit
	CARGO=$(CARGO) scripts/unit --workspace

sim: packages web
	$(CARGO) build --release $(TESTED)
	@$(BIN)/sim --seeds $(or $(SEEDS),0-999) $(if $(TRACE),--trace)

e2e: packages-test web
	$(if $(if $(CASE),$(filter previous%,$(CASE)),all),-@CARGO=$(CARGO) scripts/previous > /dev/null)
	$(CARGO) build --release $(TESTED)
	@cd e2e/pfcp-peer && $(GO) build -o $(abspath $(BIN))/pfcp-peer .
	@$(SUDO) e2e/vm/build > /dev/null
	@$(SUDO) env ROUTES=$(ROUTES) LANES=$(LANES) $(BIN)/e2e $(CASE)

soak: packages-test web
	@scripts/schemathesis
	$(CARGO) build --release $(TESTED)
	@$(SUDO) e2e/vm/build > /dev/null
	@$(SUDO) env SEED=$(SEED) FAULTS=$(FAULTS) SESSIONS=$(SESSIONS) $(BIN)/e2e --soak $(PART)
ifeq ($(PART),)
	@$(MAKE) --no-print-directory miri
	@$(BIN)/sim --outages
	@$(MAKE) --no-print-directory sim SEEDS=$(or $(SEEDS),0-99999)
endif

# The REST API held against its own description.
schemathesis:
	@$(MAKE) --no-print-directory soak PART=schemathesis

scale: packages-test web
	$(CARGO) build --release $(TESTED)
	@$(SUDO) $(BIN)/e2e --scale $(PART)

bench: packages-bench
	$(CARGO) build --release -p bench
	@$(SUDO) env MIMALLOC_MINIMAL_PURGE_SIZE=2048 $(BIN)/bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY)) $(if $(DOCS),--docs docs)

qos-plots:
	@$(CARGO) run --quiet --release -p scheduler --example plots -- docs/qos

e2e-list: packages
	@$(CARGO) build --quiet --release -p e2e
	@$(BIN)/e2e --list

check: packages cargo-deny web
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) deny --workspace check --hide-inclusion-graph bans licenses sources
	@$(MAKE) --no-print-directory instructions

# Counted by callgrind: they do not depend on how busy the machine is.
instructions: packages-check gungraun
	@$(CARGO) build --quiet --release -p bench --no-default-features --bin instructions --example instructions
	@$(BIN)/examples/instructions --bench --output-format=json > $(BIN)/instructions.json
	@$(BIN)/instructions $(BIN)/instructions.json $(if $(ACCEPT),accept)

fuzz: packages cargo-fuzz
	fuzz/run $(or $(TIME),300) $(TARGET)

# Faults that are put into the crates, and how many of them the crates' own tests notice (docs/quality.md).
.PHONY: mutants cargo-mutants miri
CARGO_MUTANTS_VERSION := 27.1.0

mutants: packages-test cargo-mutants
	@CARGO=$(CARGO) scripts/mutants $(if $(BASE),--base $(BASE),--sample $(or $(SAMPLE),30) --seed $(or $(SEED),1)) $(CRATE)

cargo-mutants:
	@$(CARGO) mutants --version 2> /dev/null | grep -q ' $(CARGO_MUTANTS_VERSION)$$' || \
		$(CARGO) install --locked --debug cargo-mutants --version $(CARGO_MUTANTS_VERSION)

# The worker's tables, what is between it and the control thread, and what workers share, in the interpreter: first each test once, then those
# with several threads in several orders. A chunk is used again after several changes: no thread may stop the other before that.
# Slices of the tables are long, which Stacked Borrows would walk at each access.
TOOLCHAIN ?= nightly
MIRI := $(CARGO) +$(TOOLCHAIN) miri test --quiet --lib

miri: export MIRIFLAGS = -Zmiri-disable-stacked-borrows
miri: packages
	@$(CARGO) +$(TOOLCHAIN) miri --version > /dev/null 2>&1 || \
		rustup toolchain install $(TOOLCHAIN) --profile minimal --component miri --component rust-src
	$(MIRI) -p dataplane -- tables::fib tables::adjacency tables::sessions counters::
	MIRIFLAGS="$$MIRIFLAGS -Zmiri-many-seeds=0..8" $(MIRI) -p dataplane -- fib::races counters::tests::nothing
	MIRIFLAGS="$$MIRIFLAGS -Zmiri-many-seeds=0..8 -Zmiri-preemption-rate=0.0005" $(MIRI) -p dataplane -- fib::races
	MIRIFLAGS="$$MIRIFLAGS -Zmiri-many-seeds=0..8" $(MIRI) -p scheduler -- shared::

clean:
	$(SUDO) rm -rf target/vm target/e2e web/dist web/node_modules
	$(CARGO) clean

# Debian's packages, as far as they are missing.
packages:
	@scripts/packages run

packages-test:
	@scripts/packages test

packages-bench:
	@scripts/packages bench

packages-check:
	@scripts/packages check

# An unoptimized build: it takes half the time and checks as well.
cargo-deny:
	@$(CARGO) deny --version > /dev/null 2>&1 || $(CARGO) install --locked --debug cargo-deny --version $(CARGO_DENY_VERSION)

# As old or new as the library that Cargo.lock names.
gungraun:
	@gungraun-runner --version 2> /dev/null | grep -q ' $(GUNGRAUN_VERSION)$$' || \
		$(CARGO) install --locked --debug gungraun-runner --version $(GUNGRAUN_VERSION)

cargo-fuzz:
	@$(CARGO) fuzz --version > /dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz --version $(CARGO_FUZZ_VERSION)
