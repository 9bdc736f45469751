# What to do with this repository. Everything else is cargo.

# Every command that builds programs names all of them. Cargo decides on the features of a library
# by what is built together, so a command that named fewer would build most libraries once more, in
# another way. `tests/tests/repository/makefile.rs` holds the commands to it.
PROGRAMS = -p corvid-server -p corvid-tools -p corvid-idlc -p corvid-cli -p corvid-console

BUILD = cargo build --release $(PROGRAMS)

# What has been built is run from here, never by `cargo run`, which would build it in its own way.
RELEASE = $${CARGO_TARGET_DIR:-target}/release

.PHONY: run cluster console screenshots test check lines reference check-deep check-deny check-advisories check-rust-version check-portable check-interleavings check-miri check-threads check-c-threads check-seeds setup python wheels c man docs book deb release container guard guard-accept bench bench-ovn bench-clients console-figures history-figures check-python check-wheels check-services check-reference-testsuite bench-python bench-c bench-allocators

# In continuous integration every build is the first one. The files for incremental builds would
# take an eighth more CPU time and four times the disk.
ifdef CI
export CARGO_INCREMENTAL = 0
endif

# Builds and serves the built-in example database; Ctrl-C stops it.
run:
	$(BUILD)
	OVS_RUNDIR=$${OVS_RUNDIR:-$(CURDIR)/target/run} $(RELEASE)/corvid-demo

# Builds, starts a cluster of three members on this machine, kills the leader and shows that nothing
# is lost; Ctrl-C ends all members.
cluster:
	$(BUILD)
	OVS_RUNDIR=$${OVS_RUNDIR:-$(CURDIR)/target/run} $(RELEASE)/corvid-demo --cluster

# Builds, and shows the databases of this machine in a browser: those of Open vSwitch and OVN that are
# served at their usual sockets, or those that DATABASES names.
console:
	$(BUILD)
	@databases="$(DATABASES)"; \
	for database in ovs=/var/run/openvswitch/db.sock nb=/var/run/ovn/ovnnb_db.sock sb=/var/run/ovn/ovnsb_db.sock; do \
		if [ -z "$(DATABASES)" ] && [ -S "$${database#*=}" ]; then databases="$$databases $${database%%=*}=unix:$${database#*=}"; fi; \
	done; \
	[ -n "$$databases" ] || { echo 'no database is served at the usual sockets: make console DATABASES="NAME=REMOTE ..."' >&2; exit 1; }; \
	exec $(RELEASE)/corvid-console $$databases

# Pictures of the console for the documents: needs Chromium.
screenshots:
	$(BUILD)
	tests/screenshots docs/images

# What the tests need beside Rust: the reference implementation and other people's clients.
setup:
	tests/setup/all.sh

# Everything: form, lints, build, and all tests against the programs just built. What the tests need
# is installed while Rust compiles; the tests run, several programs at a time, while Rust compiles
# the other tests. The guard runs beside them: it counts instructions, not time.
test:
	tests/setup/begin.sh
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BUILD) -p corvid-guard -p corvid-xtask
	cargo build -p corvid-python -p corvid-capi -p corvid-examples
	tests/setup/finish.sh
	$(RELEASE)/corvid-xtask test --beside "$(RELEASE)/corvid-guard check"

# What to run after an edit: form, lints, unit tests, whole servers in virtual time, the checks of
# the repository, and the scripted cases against our programs in the profile of the tests. Needs no
# root and no packages; the scripted cases skip the reference where it is not installed.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --lib --test world --test repository --quiet
	cargo build --workspace --bins
	CORVID_BIN_DIR=$(CURDIR)/$${CARGO_TARGET_DIR:-target}/debug cargo test --workspace --test system -- --test-threads=8 scripted::

# Lines of product code by crate, without comments, blank lines and tests.
lines:
	$(BUILD) -p corvid-xtask
	$(RELEASE)/corvid-xtask lines .

# Writes options, commands, settings and metrics of docs/reference from the tables in the code; a
# test fails while they are stale.
reference:
	$(BUILD) -p corvid-xtask
	$(RELEASE)/corvid-xtask reference .

# More proofs, which take long or need tools beside stable Rust. Each is a command of its own.
check-deep: check-deny check-rust-version check-portable check-interleavings check-miri check-threads check-seeds check-advisories

# Licences, sources and duplicates of libraries: needs cargo-deny. deny.toml explains each
# exception.
check-deny:
	cargo deny check licenses bans sources

# Known weaknesses of libraries: needs cargo-deny and a network.
check-advisories:
	cargo deny check advisories

# The workspace builds with the oldest Rust that Cargo.toml declares: needs that toolchain.
check-rust-version:
	cargo +$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) check --workspace --all-targets --target-dir target/oldest

# Everything about JSON with the scanner for processors without its vector instructions, of which
# `make test` compares the two scanners alone.
check-portable:
	cargo test -p corvid-json --features portable-scan --target-dir target/portable

# Undefined behaviour in the crates with unsafe code that is pure: needs a nightly toolchain with
# miri.
check-miri:
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p corvid-json -p corvid-data -p corvid-engine --lib --target-dir target/miri

# Data races of a server with many shards, by ThreadSanitizer: needs a nightly toolchain with
# rust-src.
check-threads:
	RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target $$(rustc -vV | sed -n 's/^host: //p') --target-dir target/threads \
		-p corvid-server --no-default-features --lib -- shards holder

# Data races of the library for C, by ThreadSanitizer on both sides: needs a nightly toolchain with
# rust-src.
check-c-threads:
	RUSTFLAGS=-Zsanitizer=thread cargo +nightly build -Zbuild-std --target $$(rustc -vV | sed -n 's/^host: //p') --target-dir target/threads -p corvid-capi
	CORVID_C_THREADS=$(CURDIR)/target/threads/$$(rustc -vV | sed -n 's/^host: //p')/debug/libcorvid_c.a \
		cargo test -p corvid-tests --test system c::threads_share_a_client

# Every interleaving of threads at a mailbox, at a shard's queue and in the pipeline that opens
# files (`crates/reactor/src/interleavings.rs`).
check-interleavings:
	RUSTFLAGS="--cfg interleavings" cargo test --release --target-dir target/interleavings -p corvid-reactor --lib interleavings

# Ten times the seeds of the simulator that `make test` runs.
check-seeds:
	CORVID_CASES=20000 cargo test -p corvid-sim --test sim crashes
	CORVID_CASES=1000 cargo test -p corvid-sim --test sim clients

# Builds the Python packages corvid-ovsdb, ovs and corvid-ovs, installs them into a virtual
# environment in target/python, and leaves wheels in target/wheels.
PYTHON ?= python3
python:
	$(PYTHON) -m venv target/python
	. tests/setup/retry.sh; retry target/python/bin/pip install --quiet --upgrade "maturin>=1.9,<2"
	target/python/bin/maturin build --manifest-path crates/python/Cargo.toml --interpreter target/python/bin/python --out target/wheels
	# The build writes into its folder.
	rm -rf target/python/drop-in && mkdir target/python/drop-in
	cp -rL crates/python/ovs crates/python/corvid-ovs target/python/drop-in
	. tests/setup/retry.sh; retry target/python/bin/pip wheel --quiet --no-deps --wheel-dir target/wheels target/python/drop-in/*
	target/python/bin/pip install --quiet --force-reinstall --no-deps --no-index --find-links target/wheels corvid-ovsdb ovs corvid-ovs
	@echo 'Try: target/python/bin/python -c "import corvid; help(corvid)"'

# Wheels of corvid-ovsdb for other machines, the wheels of ovs and corvid-ovs and the source
# distribution, below target/wheels. zig, from PyPI, links them, so that they run with glibc 2.17 or
# musl 1.2 and later. Older versions of maturin order the tags in the names of wheels differently.
WHEELS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl
wheels:
	$(PYTHON) -m venv target/python
	# Wheels of another name or version must not get into a release.
	rm -rf target/wheels
	. tests/setup/retry.sh; retry target/python/bin/pip install --quiet --upgrade "maturin>=1.16,<2" ziglang
	. tests/setup/retry.sh; retry rustup target add $(WHEELS)
	for target in $(WHEELS); do \
		case $$target in *-musl) machines=musllinux_1_2;; *) machines=manylinux2014;; esac; \
		PATH=$(CURDIR)/target/python/bin:$$PATH target/python/bin/maturin build --manifest-path crates/python/Cargo.toml --zig \
			--target $$target --compatibility $$machines --interpreter target/python/bin/python --out target/wheels || exit 1; \
	done
	packaging/release/python-sources target/python-sources
	target/python/bin/maturin sdist --manifest-path target/python-sources/crates/python/Cargo.toml --out target/wheels
	rm -rf target/python/drop-in && mkdir target/python/drop-in
	cp -rL crates/python/ovs crates/python/corvid-ovs target/python/drop-in
	. tests/setup/retry.sh; retry target/python/bin/pip wheel --quiet --no-deps --wheel-dir target/wheels target/python/drop-in/*

# Names, contents and sizes of what `make wheels` leaves; the tests of the package on the wheel for
# this machine and on one that is built from the source distribution. Needs readelf and a network.
check-wheels: wheels
	$(BUILD)
	OVSDB_SERVER_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-server OVSDB_TOOL_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-tool \
		OVSDB_IDLC_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-idlc tests/wheels/wheels target/wheels target/check-wheels

# Manual pages, and with completions too, from the tables of options and commands, below
# target/docs.
man:
	$(BUILD) -p corvid-xtask
	$(RELEASE)/corvid-xtask man target/docs/man
docs: man
	$(RELEASE)/corvid-xtask completions target/docs

# The documents as a site with search, in target/book: by mdBook, which is built once, into
# target/tools. It shows pages below one folder only, so the documents at the root are copied next
# to docs. SUMMARY.md lies above docs there, where its links need the folder's name.
MDBOOK = 0.5.4
book:
	cargo install --locked --root target/tools --no-default-features --features search --version $(MDBOOK) mdbook
	rm -rf target/book-src target/book
	mkdir -p target/book-src/src
	cp -R docs *.md LICENSE target/book-src/src
	cd target/book-src && mv src/docs/book.toml src/docs/book.css . && rm -f src/docs/plan.md && \
		sed -e 's,](,](docs/,' -e 's,](docs/\.\./,](,' src/docs/SUMMARY.md >src/SUMMARY.md && rm src/docs/SUMMARY.md
	target/tools/bin/mdbook build target/book-src

# The library for C, as it is installed below a prefix, in target/c: needs a C compiler, which links
# it.
BINDINGS = $${CARGO_TARGET_DIR:-target}/bindings
c:
	$(BUILD) -p corvid-xtask
	cargo build --profile bindings -p corvid-capi
	$(RELEASE)/corvid-xtask c --library $(BINDINGS)/libcorvid_c.a target/c

# Packages for this Debian or Ubuntu, in target/deb: the programs, and the library for C.
deb:
	$(BUILD) -p corvid-xtask
	cargo build --profile bindings -p corvid-capi
	$(RELEASE)/corvid-xtask deb --bin-dir $(RELEASE) --library $(BINDINGS)/libcorvid_c.a target/deb

# Every file of a release, with checksums, in target/release-files; STEPS="source sbom" makes those
# only. RELEASING.md has the rest.
release:
	packaging/release/make-files $(STEPS)

# An image, by podman or docker. Podman keeps the health check only in the format of docker.
CONTAINER ?= podman
IMAGE ?= corvid
container:
	$(CONTAINER) build $(if $(findstring podman,$(CONTAINER)),--format docker) -t $(IMAGE) -f packaging/container/Containerfile .

# Instructions of the hot paths beside the checked-in figures; and taking the present ones over, to
# be committed.
guard:
	$(BUILD) -p corvid-guard
	$(RELEASE)/corvid-guard check
guard-accept:
	$(BUILD) -p corvid-guard
	$(RELEASE)/corvid-guard accept

# Every workload on our server and on the reference, in turn: the table and the plots of
# docs/performance/results.md; then the clients. SCALE=full takes hours.
SCALE ?= small
ROUNDS ?= 1
bench:
	$(BUILD)
	cargo build --release -p corvid-bench
	$(RELEASE)/corvid-bench compare $(RELEASE)/ovsdb-server /usr/sbin/ovsdb-server \
		--scale $(SCALE) --rounds $(ROUNDS) --json $(RELEASE)/bench.json --plots docs/performance/plots
	$(RELEASE)/corvid-bench clients $(RELEASE)/ovsdb-server --scale $(SCALE) --rounds $(ROUNDS)

# OVN's compiler between two databases of one server, with hypervisors that watch, on our server and
# on the reference.
bench-ovn:
	$(BUILD)
	cargo build --release -p corvid-bench
	$(RELEASE)/corvid-bench ovn --scale $(SCALE) --rounds $(ROUNDS)

# The console, next to `ovsdb-client monitor` and a plain client of our library: the figures of
# docs/internals/console.md. SCALE=full sorts a million rows.
console-figures:
	$(BUILD)
	cargo build --release -p corvid-bench
	$(RELEASE)/corvid-bench console $(RELEASE)/ovsdb-server --scale $(SCALE)

# The history of a database, kept and read: the figures of docs/operate/keeping-history.md.
# SCALE=full makes a million commits and a thousand segments.
history-figures:
	$(BUILD)
	cargo build --release -p corvid-bench
	$(RELEASE)/corvid-bench history $(RELEASE)/ovsdb-server --scale $(SCALE)

# Our client library beside the reference's for C and for Python, over our server: the table of
# docs/performance/results.md, "Client".
bench-clients:
	$(BUILD)
	cargo build --release -p corvid-bench
	$(RELEASE)/corvid-bench clients $(RELEASE)/ovsdb-server --scale $(SCALE) --rounds $(ROUNDS)

# The packages that `make python` has just built, unpacked for PYTHONPATH. Wheels for other machines
# may be next to them.
UNPACK = rm -rf target/python/site && for wheel in corvid_ovsdb ovs; do \
	target/python/bin/python -m zipfile -e $$(ls -t target/wheels/$$wheel-[0-9]*.whl | head -n 1) target/python/site || exit 1; done

# The tests of the Python package with other interpreters: make check-python PYTHONS="python3.9
# python3.13".
PYTHONS ?= python3
check-python: python
	$(BUILD)
	$(UNPACK)
	for python in $(PYTHONS); do \
		echo "$$python:" && ( cd crates/python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(CURDIR)/target/python/site \
			OVSDB_SERVER_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-server OVSDB_TOOL_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-tool \
			OVSDB_IDLC_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-idlc $$python -m unittest discover -t . -s tests ) || exit 1; \
	done

# Other people's tests on our `ovs` in place of the original, some minutes each and longer the first
# time: those of Neutron and of ten releases of ovsdbapp, from PyPI; the reference's tests of its
# Python library, from the Debian package openvswitch-source.
check-services: python
	$(BUILD)
	$(UNPACK)
	OVSDB_SERVER_UNDER_TEST=$(CURDIR)/$(RELEASE)/ovsdb-server tests/services/services target/services target/python/site
check-reference-testsuite: python
	$(UNPACK)
	tests/services/reference-testsuite target/services target/python/site

# The Python package beside the reference's, in each interpreter of OVS_PYTHONS that has it: the
# table of docs/performance/results.md, "Python".
OVS_PYTHONS ?= debian=/usr/bin/python3
bench-python: python
	$(BUILD)
	target/python/bin/python crates/python/bench/compare.py $(RELEASE)/ovsdb-server $(RELEASE)/ovsdb-tool \
		/usr/share/ovn/ovn-nb.ovsschema corvid=target/python/bin/python corvid-ovs=target/python/bin/python $(OVS_PYTHONS)

# The library for C beside the client for Rust, built alike: the table of
# docs/performance/results.md, "C".
bench-c:
	$(BUILD)
	cargo build --profile bindings -p corvid-capi -p corvid-examples
	crates/capi/bench/compare.sh $(RELEASE) $(BINDINGS)

# Duration and memory of both servers under four allocators: built in where ours has a feature for
# it, loaded before the server elsewhere.
bench-allocators:
	tests/setup/allocators.sh
	cargo build --release -p corvid-bench
	for allocator in jemalloc mimalloc system; do \
		cargo build --release -p corvid-server --bin ovsdb-server --no-default-features \
			$$(test $$allocator = system || echo --features $$allocator) && \
		cp $(RELEASE)/ovsdb-server $(RELEASE)/ovsdb-server-$$allocator || exit 1; \
	done
	$(BUILD)
	$(RELEASE)/corvid-bench allocators --reference /usr/sbin/ovsdb-server --scale $(SCALE) --rounds $(ROUNDS) \
		--ours jemalloc=$(RELEASE)/ovsdb-server-jemalloc \
		--ours mimalloc=$(RELEASE)/ovsdb-server-mimalloc \
		--ours system=$(RELEASE)/ovsdb-server-system
