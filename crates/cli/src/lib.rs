//! The program `corvid`: reads and changes any OVSDB database from the command line, with the
//! grammar of the database commands of `ovs-vsctl`(8).
//!
//! A command line is a chain of commands and one transaction. [`grammar`] parses it, [`commands`]
//! run on [`contents`], which read rows as they are needed, [`transaction`] makes the operations of
//! what has changed, and [`chain_run`] sends them and prints. The first four are functions of their
//! inputs; only [`server`], [`chain_run`], [`settings`] and [`shell`], which runs one line after
//! another, have effects. The binary calls [`main`]; the generator of manual pages calls
//! [`manual::manual`].

mod chain_run;
mod commands;
mod contents;
mod doctor;
mod failure;
mod fleet;
mod grammar;
mod line;
#[cfg(test)]
mod memory;
mod page;
mod plain_json;
mod secrets;
mod server;
mod servers_file;
mod settings;
mod shell;
mod top;
mod transaction;

pub mod manual;

use corvid_shell::{args, program};

use failure::Failure;
use line::Line;
use server::Server;
use settings::Settings;

/// Runs the program on the command line of this process, and ends the process.
pub fn main() -> ! {
    program::init_waiting(&std::env::args_os().next().unwrap_or_default());
    match Settings::parse(&args::from_env()).and_then(|(settings, words)| run(&settings, &words)) {
        Ok(()) => program::exit(0),
        Err(failure) => failure.end(),
    }
}

fn run(settings: &Settings, words: &[String]) -> Result<(), Failure> {
    if words.first().is_some_and(|word| word == "help") {
        program::answer(manual::help());
    }
    if words.is_empty() {
        return shell::run(settings);
    }
    let line = Line::parse(words)?;
    if let Some(outcome) = line.run_offline(settings) {
        return outcome;
    }
    let mut server = Server::connect(settings)?;
    line.run(&mut server, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_describes_every_option_and_command() {
        assert_eq!(manual::manual().complaints(), [""; 0]);
    }
}
