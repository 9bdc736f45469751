//! `ovsdb-tool`: commands on database files without a server.
//!
//! Each command combines the log codec, the engine and the files of the shell. The binary calls [`main`]; the generator of manual pages
//! calls [`manual::manual`]. Exit status: 0 success, 1 error, 2 "no" of commands that answer a question (docs/spec/storage.md 13).

mod address;
mod answer;
mod cluster_file;
pub(crate) mod commands;
mod database;
mod failure;
pub mod manual;
mod new_file;
mod options;
mod replacement;

use std::process::ExitCode;

use corvid_shell::{args, program};

/// Runs the program on the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let options = options::Options::parse(&args::from_env());
    match commands::run(&options) {
        Ok(answer) => answer.into(),
        Err(failure) => program::fatal(failure),
    }
}
