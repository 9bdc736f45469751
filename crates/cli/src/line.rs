//! A parsed command line: a chain, or one command that stands alone. The program runs one, and the
//! shell one after another.

use crate::chain_run::{ChainRun, Part};
use crate::commands::{Action, EXPLAIN};
use crate::failure::Failure;
use crate::grammar::chain::{self, Invocation};
use crate::server::Server;
use crate::settings::Settings;

/// A command line.
#[derive(Debug)]
pub(crate) struct Line {
    /// The commands.
    pub(crate) chain: Vec<Invocation>,
    /// Prints the transaction instead of sending it.
    pub(crate) is_explained: bool,
    comment: String,
}

impl Line {
    /// Parses the words of the commands.
    ///
    /// # Errors
    /// A command is wrong, or cannot be one of several.
    pub(crate) fn parse(words: &[String]) -> Result<Line, Failure> {
        let (words, is_explained) = match words.split_first() {
            Some((first, rest)) if first == EXPLAIN => (rest, true),
            _ => (words, false),
        };
        let chain = chain::parse(words)?;
        let outside = chain
            .iter()
            .find(|it| !matches!(it.command.action, Action::InChain(_)));
        if let (Some(invocation), true) = (outside, chain.len() > 1 || is_explained) {
            let name = invocation.command.name;
            return Err(Failure::usage(format!(
                "'{name}' cannot be one of several commands"
            )));
        }
        Ok(Line {
            chain,
            is_explained,
            comment: words.join(" "),
        })
    }

    /// Whether the commands are a chain, which becomes one transaction.
    pub(crate) fn is_chain(&self) -> bool {
        self.chain
            .iter()
            .all(|it| matches!(it.command.action, Action::InChain(_)))
    }

    /// Runs a command that needs no server, and prints its output. `None`: the commands need one.
    pub(crate) fn run_offline(&self, settings: &Settings) -> Option<Result<(), Failure>> {
        match self.chain.as_slice() {
            [invocation] => match invocation.command.action {
                Action::Offline(run) => Some(run(invocation, settings)),
                Action::InChain(_) | Action::Alone(_) | Action::BeforeChain => None,
            },
            _ => None,
        }
    }

    /// Runs the commands, and prints their output.
    ///
    /// # Errors
    /// A command failed, the server refused, or the connection broke.
    pub(crate) fn run(&self, server: &mut Server, settings: &Settings) -> Result<(), Failure> {
        if let [invocation] = self.chain.as_slice()
            && let Action::Alone(run) = invocation.command.action
        {
            if settings.at.is_some() {
                let name = invocation.command.name;
                return Err(Failure::usage(format!("'{name}' does not accept --at")));
            }
            return run(server, invocation, settings);
        }
        server.choose(settings.database.as_deref())?;
        let run = ChainRun {
            chain: &self.chain,
            comment: format!("corvid: {}", self.comment),
            is_explained: self.is_explained,
            settings,
            part: Part::Whole,
        };
        run.run(server)
    }
}
