//! The table of a program's commands. A command line finds an entry by name; the manual lists all
//! entries.
//!
//! Each program has its own type `A` of actions. `ovs-appctl` has no table: its commands belong to
//! the daemon.

use corvid_shell::manual::{Chapter, Entry};

use crate::failure::Failure;
use crate::sibling;

/// A command of the command line.
pub(crate) struct Command<A> {
    /// The command's name.
    pub(crate) name: &'static str,
    /// The minimum number of arguments.
    pub(crate) args_min: usize,
    /// The maximum number of arguments.
    pub(crate) args_max: usize,
    /// The action that runs the command.
    pub(crate) action: A,
    /// The heading in the manual.
    topic: &'static str,
    /// Name and arguments, as the manual shows them.
    synopsis: &'static str,
    /// A description in one line.
    meaning: &'static str,
}

impl<A> Command<A> {
    /// A command without a description.
    pub(crate) const fn new(
        name: &'static str,
        args_min: usize,
        args_max: usize,
        action: A,
    ) -> Command<A> {
        Command {
            name,
            args_min,
            args_max,
            action,
            topic: "",
            synopsis: "",
            meaning: "",
        }
    }

    /// Adds the description for the manual.
    pub(crate) const fn means(
        mut self,
        topic: &'static str,
        synopsis: &'static str,
        meaning: &'static str,
    ) -> Command<A> {
        self.topic = topic;
        self.synopsis = synopsis;
        self.meaning = meaning;
        self
    }
}

impl<A> Command<A> {
    /// Whether it stands under this heading.
    pub(crate) fn is_about(&self, topic: &str) -> bool {
        self.topic == topic
    }

    /// Whether the synopsis names an option. Options of the history that it does not name are
    /// refused: a command that ignored one would show, or change, something else than what was
    /// asked for.
    pub(crate) fn accepts(&self, option: &str) -> bool {
        let mut words = self.synopsis.split([' ', '[', ']', '=']);
        words.any(|word| word == option || (option == "-n" && word == "-nN"))
    }

    /// # Errors
    /// One of these options, which were given, is not for this command. `all` are the commands of
    /// the program.
    pub(crate) fn check_options(
        &self,
        given: impl IntoIterator<Item = &'static str>,
        all: &[Command<A>],
    ) -> Result<(), Failure> {
        let Some(option) = given.into_iter().find(|option| !self.accepts(option)) else {
            return Ok(());
        };
        let others = all.iter().filter(|command| command.accepts(option));
        let others: Vec<&str> = others.map(|command| command.name).collect();
        Err(Failure::new(format!(
            "'{}' does not accept {option}, only these commands do: {}",
            self.name,
            others.join(", ")
        )))
    }
}

/// The command that the first word names, and the words after it.
///
/// # Errors
/// There is no word, or the first word does not name a command.
pub(crate) fn find<'a, 'b, A>(
    commands: &'a [Command<A>],
    words: &'b [String],
) -> Result<(&'a Command<A>, &'b [String]), Failure> {
    let Some((name, args)) = words.split_first() else {
        return Err(Failure::new("missing command name; use --help for help"));
    };
    let command = commands.iter().find(|command| command.name == name);
    command.map(|command| (command, args)).ok_or_else(|| {
        let failure = Failure::new(format!("unknown command '{name}'; use --help for help"));
        match sibling::hint(name) {
            Some(hint) => failure.hinting(&hint),
            None => failure.suggesting(name, commands.iter().map(|command| command.name)),
        }
    })
}

/// The commands as chapters of a manual, one per topic. `explain` returns the paragraphs about a
/// command.
pub(crate) fn chapters<A>(
    topics: &[&'static str],
    commands: &[Command<A>],
    explain: fn(&str) -> &'static str,
) -> Vec<Chapter> {
    let of_topic = |topic| Chapter {
        title: topic,
        text: "",
        entries: commands
            .iter()
            .filter(|command| command.topic == topic)
            .map(|command| Entry {
                term: command.synopsis.to_owned(),
                meaning: command.meaning,
                detail: explain(command.name),
            })
            .collect(),
    };
    topics.iter().copied().map(of_topic).collect()
}
