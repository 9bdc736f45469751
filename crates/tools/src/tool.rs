//! `ovsdb-tool`: commands on database files without a server.
//!
//! Each command combines the log codec, the engine and the files of the shell. The binary calls
//! [`main`]; the generator of manual pages calls [`manual::manual`]. Exit status: 0 for success, 1
//! for an error, 2 for the answer "no" of commands that answer a question
//! (docs/spec/storage.md 13).

mod address;
mod answer;
mod cluster_file;
pub(crate) mod commands;
mod database;
mod explanations;
mod failure;
mod history;
pub mod manual;
mod new_file;
mod options;
mod replacement;
mod salvage;

use corvid_shell::{args, program};

/// Runs the program on the command line of this process.
pub fn main() -> ! {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let options = options::Options::parse(&args::from_env());
    match commands::run(&options) {
        Ok(answer) => program::exit(answer.status()),
        Err(failure) => failure.end(),
    }
}
