//! `ovsdb-client`: runs one command against a server (docs/spec/cli.md 3).
//!
//! The program reads its options, chooses a server and a database, and runs one command over a
//! [`session::Session`]. It prints the server's answers and keeps no copy of a database. The binary
//! calls [`main`]; the generator of manual pages calls [`manual::manual`].

pub(crate) mod commands;
mod explanations;
mod past;
mod revert;
mod selection;
mod settings;
mod watch;

pub mod manual;

use corvid_shell::{args, program};

use crate::command;
use crate::failure::Failure;

use settings::Settings;

/// Runs the program on the command line of this process, and ends the process.
pub fn main() -> ! {
    program::init_waiting(&std::env::args_os().next().unwrap_or_default());
    let (settings, words) = Settings::parse(&args::from_env());
    match run(&settings, &words) {
        Ok(()) => program::exit(0),
        Err(failure) => failure.end(),
    }
}

fn run(settings: &Settings, words: &[String]) -> Result<(), Failure> {
    if words.first().is_some_and(|word| word == "help") {
        program::answer(manual::help());
    }
    let (command, words) = command::find(commands::COMMANDS, words)?;
    selection::run(command, settings, words)
}
