//! The table of control commands: one row per command, with everything about it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Replier;
use crate::manual::{Chapter, Entry};

/// The text of a reply, or of an error.
pub type Outcome = Result<String, String>;

pub(super) enum Action<C> {
    /// Replies at once.
    Direct(fn(&mut C, &[String]) -> Outcome),
    /// May reply later, from any thread.
    Deferred(fn(&mut C, &[String], Replier)),
}

impl<C> Clone for Action<C> {
    fn clone(&self) -> Action<C> {
        *self
    }
}

impl<C> Copy for Action<C> {}

/// A command of a program whose state is a `C`.
pub struct Command<C> {
    name: &'static str,
    usage: &'static str,
    /// The arguments as the manual shows them, if `usage` does not name them.
    shown: Option<&'static str>,
    arguments: RangeInclusive<usize>,
    meaning: &'static str,
    is_hidden: bool,
    action: Action<C>,
}

impl<C> Command<C> {
    /// A command that replies at once. `usage` are its arguments as `list-commands` shows them;
    /// `arguments` is their number, which is checked before the call; `meaning` is its description
    /// for the manual, in one line without a full stop.
    #[must_use]
    pub const fn new(
        name: &'static str,
        usage: &'static str,
        arguments: RangeInclusive<usize>,
        meaning: &'static str,
        handler: fn(&mut C, &[String]) -> Outcome,
    ) -> Command<C> {
        Command {
            name,
            usage,
            shown: None,
            arguments,
            meaning,
            is_hidden: false,
            action: Action::Direct(handler),
        }
    }

    /// As [`Command::new`], for a command that replies through its [`Replier`], now or later. Later
    /// requests on the same connection are handled only after the reply.
    #[must_use]
    pub const fn deferred(
        name: &'static str,
        usage: &'static str,
        arguments: RangeInclusive<usize>,
        meaning: &'static str,
        handler: fn(&mut C, &[String], Replier),
    ) -> Command<C> {
        Command {
            name,
            usage,
            shown: None,
            arguments,
            meaning,
            is_hidden: false,
            action: Action::Deferred(handler),
        }
    }

    /// The same command, whose arguments the manual shows as `arguments`. `list-commands` keeps the
    /// usage, which scripts may compare with the reference's.
    #[must_use]
    pub const fn shown(mut self, arguments: &'static str) -> Command<C> {
        self.shown = Some(arguments);
        self
    }

    /// The same command, omitted from the listing and the manual.
    #[must_use]
    pub const fn hidden(mut self) -> Command<C> {
        self.is_hidden = true;
        self
    }
}

/// The commands of a program.
pub struct Registry<C> {
    commands: BTreeMap<&'static str, Command<C>>,
}

impl<C> Default for Registry<C> {
    fn default() -> Registry<C> {
        Registry {
            commands: BTreeMap::new(),
        }
    }
}

impl<C> Registry<C> {
    /// Adds commands. A command replaces an earlier one of the same name.
    pub fn add<const COUNT: usize>(&mut self, commands: [Command<C>; COUNT]) {
        let named = commands.into_iter().map(|command| (command.name, command));
        self.commands.extend(named);
    }

    /// The listed commands, sorted by name, as a chapter of a manual.
    #[must_use]
    pub fn chapter(&self, title: &'static str) -> Chapter {
        let entry = |command: &Command<C>| Entry {
            term: format!(
                "{} {}",
                command.name,
                command.shown.unwrap_or(command.usage)
            )
            .trim_end()
            .to_owned(),
            meaning: command.meaning,
            detail: "",
        };
        Chapter {
            title,
            text: "",
            entries: self.listed().map(entry).collect(),
        }
    }

    /// The action of the command, if it exists and accepts this number of arguments.
    pub(super) fn find(&self, name: &str, count: usize) -> Result<Action<C>, String> {
        let command = self.commands.get(name).ok_or_else(|| {
            format!("\"{name}\" is not a valid command (use \"list-commands\" to see a list of valid commands)")
        })?;
        let (min, max) = (command.arguments.start(), command.arguments.end());
        if count < *min {
            return Err(format!(
                "\"{name}\" command requires at least {min} arguments"
            ));
        }
        if count > *max {
            return Err(format!("\"{name}\" command takes at most {max} arguments"));
        }
        Ok(command.action)
    }

    /// Names and usages of the listed commands, sorted by name.
    pub(super) fn usages(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listed().map(|command| (command.name, command.usage))
    }

    fn listed(&self) -> impl Iterator<Item = &Command<C>> {
        self.commands.values().filter(|command| !command.is_hidden)
    }
}
