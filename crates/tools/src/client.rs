//! `ovsdb-client`: runs one command against a server (docs/spec/cli.md 3).
//!
//! The program reads its options, chooses a server and a database, and runs one command over a
//! [`session::Session`]. It prints the server's answers and keeps no copy of a database. The binary
//! calls [`main`]; the generator of manual pages calls [`manual::manual`].

pub(crate) mod commands;
mod explanations;
mod revert;
mod selection;
mod settings;
mod watch;

pub mod manual;

use std::sync::Arc;

use corvid_net::tls::Credentials;
use corvid_shell::{args, program};

use crate::command;
use crate::failure::Failure;

use crate::history::HistoryOption;
use settings::Settings;

/// Runs the program on the command line of this process, and ends the process.
pub fn main() -> ! {
    program::init_waiting(&std::env::args_os().next().unwrap_or_default());
    let (settings, words) = Settings::parse(&args::from_env());
    match run(&settings, &words) {
        Ok(()) => program::exit(0),
        Err(failure) => failure.indented_if(settings.style.pretty).end(),
    }
}

fn run(settings: &Settings, words: &[String]) -> Result<(), Failure> {
    if words.first().is_some_and(|word| word == "help") {
        program::answer(manual::help());
    }
    let (command, words) = command::find(commands::COMMANDS, words)?;
    selection::run(command, settings, words)
}

/// A command about the history of a database: `log`, `diff` or `revert`.
#[derive(Debug)]
pub struct HistoryCommand<'a> {
    /// The server, or several of a cluster.
    pub server: &'a str,
    /// The database.
    pub database: &'a str,
    /// Keys and certificates for `ssl:`.
    pub credentials: Arc<Credentials>,
    /// With several servers, use only one that leads its cluster.
    pub leader_only: bool,
    /// The name of the command.
    pub name: &'a str,
    /// Its options with their values, dashes included.
    pub options: &'a [(String, Option<String>)],
    /// Its arguments.
    pub args: &'a [String],
}

/// Runs a command about history for another program, as this program runs it.
///
/// # Errors
/// The command failed, or its words are wrong.
pub fn run_history(wanted: &HistoryCommand<'_>) -> Result<(), Failure> {
    let mut settings = Settings::new();
    settings.credentials = wanted.credentials.clone();
    settings.leader_only = wanted.leader_only;
    for (name, value) in wanted.options {
        let option = match name.as_str() {
            "--since" => HistoryOption::Since,
            "--until" => HistoryOption::Until,
            "--table" => HistoryOption::Table,
            "--row" => HistoryOption::Row,
            "--column" => HistoryOption::Column,
            "--client" => HistoryOption::Client,
            "--json" => HistoryOption::Json,
            "-n" => HistoryOption::Count,
            "--dry-run" => {
                settings.dry_run = true;
                continue;
            }
            other => {
                let name = wanted.name;
                return Err(Failure::new(format!("'{name}' does not accept {other}")));
            }
        };
        settings.history.apply(option, value.clone());
    }
    let mut words = [wanted.name, wanted.server, wanted.database]
        .map(str::to_owned)
        .to_vec();
    words.extend_from_slice(wanted.args);
    let (command, words) = command::find(commands::COMMANDS, &words)?;
    selection::run(command, &settings, words)
}
