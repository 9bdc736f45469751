//! The program `corvid`: reads and changes any OVSDB database from the command line, with the
//! grammar of the database commands of `ovs-vsctl`(8).
//!
//! A command line is a chain of commands and one transaction. [`grammar`] parses it, [`commands`]
//! run on [`contents`], which read rows as they are needed, [`transaction`] makes the operations of
//! what has changed, and [`chain_run`] sends them and prints. The first four are functions of their
//! inputs; only [`server`], [`chain_run`] and [`settings`] have effects. The binary calls [`main`];
//! the generator of manual pages calls [`manual::manual`].

mod chain_run;
mod commands;
mod contents;
mod failure;
mod grammar;
#[cfg(test)]
mod memory;
mod plain_json;
mod server;
mod settings;
mod transaction;

pub mod manual;

use corvid_shell::{args, program};

use commands::{Action, EXPLAIN};
use failure::Failure;
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
    let (words, is_explained) = match words.split_first() {
        Some((first, rest)) if first == EXPLAIN => (rest, true),
        _ => (words, false),
    };
    let chain = grammar::chain::parse(words)?;
    let outside = chain
        .iter()
        .find(|it| !matches!(it.command.action, Action::InChain(_)));
    if let (Some(invocation), true) = (outside, chain.len() > 1 || is_explained) {
        let name = invocation.command.name;
        return Err(Failure::usage(format!(
            "'{name}' cannot be one of several commands"
        )));
    }
    let mut server = Server::connect(settings)?;
    if let Some(invocation) = outside
        && let Action::Alone(run) = invocation.command.action
    {
        return run(&mut server, invocation, settings);
    }
    server.choose(settings.database.as_deref())?;
    let run = chain_run::ChainRun {
        chain: &chain,
        comment: format!("corvid: {}", words.join(" ")),
        is_explained,
        settings,
    };
    run.run(&mut server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_describes_every_option_and_command() {
        assert_eq!(manual::manual().complaints(), [""; 0]);
    }
}
