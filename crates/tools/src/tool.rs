//! `ovsdb-tool`: offline work on database files. Thin: it parses the command line, and each command puts together the log
//! codec, the engine and the shell. The binary is [`main`]; the generator of manual pages reads [`manual::manual`]. Exit status: 0 done, 1
//! error, 2 "the answer is no" (docs/spec/storage.md 13).

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
mod uuids;

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
