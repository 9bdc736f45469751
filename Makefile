# The four things to do with this repository. Everything else is cargo.

BINARIES = -p corvid-server -p corvid-client -p corvid-tool -p corvid-appctl

.PHONY: run test setup bench

# Builds and serves the built-in example database; Ctrl-C stops it.
run:
	cargo build --release $(BINARIES)
	OVS_RUNDIR=$${OVS_RUNDIR:-$(CURDIR)/target/run} cargo run --quiet --release -p corvid-server --bin corvid-demo

# What the tests need beside Rust: the reference implementation and other people's clients.
setup:
	tests/setup/all.sh

# Everything: form, lints, build, and all tests against the binaries just built.
test: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo build --release $(BINARIES)
	cargo test --workspace

# Transactions per second and memory, side by side with the reference server.
bench:
	cargo build --release $(BINARIES)
	cargo run --release -p corvid-bench -- compare $${CARGO_TARGET_DIR:-target}/release/ovsdb-server /usr/sbin/ovsdb-server --rounds 1
