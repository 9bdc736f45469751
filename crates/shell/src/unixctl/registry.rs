//! The table of control commands: names, usages, argument counts, handlers and descriptions.

use std::collections::BTreeMap;

use super::Replier;
use crate::manual::{Chapter, Entry};

/// A handler that replies at once.
type Direct<C> = dyn FnMut(&mut C, &[String]) -> Outcome;
/// A handler that may reply later, from any thread.
type Deferred<C> = dyn FnMut(&mut C, &[String], Replier);

/// The text of a reply, or of an error.
pub type Outcome = Result<String, String>;

pub(super) enum Action<C> {
    Direct(Box<Direct<C>>),
    Deferred(Box<Deferred<C>>),
}

pub(super) struct Command<C> {
    pub(super) usage: String,
    min: usize,
    max: usize,
    is_hidden: bool,
    /// Its description, in one line; see [`Registry::describe`].
    meaning: &'static str,
    pub(super) action: Action<C>,
}

/// The commands of a program whose state is a `C`.
pub struct Registry<C> {
    commands: BTreeMap<String, Command<C>>,
}

impl<C> Default for Registry<C> {
    fn default() -> Registry<C> {
        Registry {
            commands: BTreeMap::new(),
        }
    }
}

impl<C> Registry<C> {
    /// Registers a command that replies at once. It has `min` to `max` arguments, which are checked before it is called.
    /// A command of the same name is replaced.
    pub fn register<F>(&mut self, name: &str, usage: &str, min: usize, max: usize, handler: F)
    where
        F: FnMut(&mut C, &[String]) -> Outcome + 'static,
    {
        self.insert(
            name,
            usage,
            (min, max),
            false,
            Action::Direct(Box::new(handler)),
        );
    }

    /// As [`Registry::register`], for a command that is not listed.
    pub fn register_hidden<F>(
        &mut self,
        name: &str,
        usage: &str,
        min: usize,
        max: usize,
        handler: F,
    ) where
        F: FnMut(&mut C, &[String]) -> Outcome + 'static,
    {
        self.insert(
            name,
            usage,
            (min, max),
            true,
            Action::Direct(Box::new(handler)),
        );
    }

    /// Registers a command that replies through its [`Replier`], now or later. Later requests on the same connection are handled after the
    /// reply.
    pub fn register_deferred<F>(
        &mut self,
        name: &str,
        usage: &str,
        min: usize,
        max: usize,
        handler: F,
    ) where
        F: FnMut(&mut C, &[String], Replier) + 'static,
    {
        self.insert(
            name,
            usage,
            (min, max),
            false,
            Action::Deferred(Box::new(handler)),
        );
    }

    fn insert(
        &mut self,
        name: &str,
        usage: &str,
        (min, max): (usize, usize),
        is_hidden: bool,
        action: Action<C>,
    ) {
        self.commands.insert(
            name.to_owned(),
            Command {
                usage: usage.to_owned(),
                min,
                max,
                is_hidden,
                meaning: "",
                action,
            },
        );
    }

    /// Sets descriptions by name, each in one line without a full stop. Names that are not registered are ignored: some commands exist only
    /// with some options.
    pub fn describe(&mut self, meanings: &[(&str, &'static str)]) {
        for (name, meaning) in meanings {
            if let Some(command) = self.commands.get_mut(*name) {
                command.meaning = meaning;
            }
        }
    }

    /// The listed commands, sorted by name, as a chapter of a manual.
    #[must_use]
    pub fn chapter(&self, title: &'static str) -> Chapter {
        let listed = self
            .commands
            .iter()
            .filter(|(_, command)| !command.is_hidden);
        let entry = |(name, command): (&String, &Command<C>)| Entry {
            term: format!("{name} {}", command.usage).trim_end().to_owned(),
            meaning: command.meaning,
            detail: "",
        };
        Chapter {
            title,
            text: "",
            entries: listed.map(entry).collect(),
        }
    }

    /// Whether a command of this name is registered.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.commands.contains_key(name)
    }

    /// The command, if it exists and accepts that many arguments.
    pub(super) fn find(&mut self, name: &str, count: usize) -> Result<&mut Command<C>, String> {
        let command = self.commands.get_mut(name).ok_or_else(|| {
            format!("\"{name}\" is not a valid command (use \"list-commands\" to see a list of valid commands)")
        })?;
        if count < command.min {
            return Err(format!(
                "\"{name}\" command requires at least {} arguments",
                command.min
            ));
        }
        if count > command.max {
            return Err(format!(
                "\"{name}\" command takes at most {} arguments",
                command.max
            ));
        }
        Ok(command)
    }

    /// Names and usages of the listed commands, sorted by name.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self
            .commands
            .iter()
            .filter(|(_, command)| !command.is_hidden);
        listed.map(|(name, command)| (name.as_str(), command.usage.as_str()))
    }
}
