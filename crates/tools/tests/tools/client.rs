//! `ovsdb-client`: against servers that play a script, and compared with the reference's program.

mod reference;
mod scripted;

/// The program under test.
const OURS: &str = env!("CARGO_BIN_EXE_ovsdb-client");
