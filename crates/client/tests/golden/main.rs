//! The program against servers that say exactly what the test wants: outputs, messages and exit statuses that no reference
//! is needed for.

#[path = "../support/mod.rs"]
mod support;

mod peer;
mod ping;
mod printing;
mod selection;
mod session;

/// The program under test.
const OURS: &str = env!("CARGO_BIN_EXE_ovsdb-client");
