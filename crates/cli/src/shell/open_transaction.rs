//! The transaction that `begin` opens: the commands that `commit` executes as one chain.
//!
//! Invariant: it contains commands that succeeded, and only those that change rows or name them.
//! Nothing is sent before `commit`; until then, the commands run again in front of each new line,
//! which therefore sees their changes.

use crate::commands::Action;
use crate::grammar::chain::Invocation;

/// Commands that neither change rows nor have an effect on later commands.
const READING: [&str; 8] = [
    "list",
    "find",
    "count",
    "show",
    "describe",
    "tables",
    "wait-until",
    "get",
];
/// Commands that change rows or the log.
#[cfg(test)]
const CHANGING: [&str; 7] = [
    "set", "add", "remove", "clear", "create", "destroy", "comment",
];

/// The commands of an open transaction.
#[derive(Debug, Default)]
pub(crate) struct OpenTransaction {
    commands: Vec<Invocation>,
    /// The lines of these commands, for the comment.
    lines: Vec<String>,
}

impl OpenTransaction {
    /// The commands so far, followed by those of a new line.
    #[must_use]
    pub(crate) fn followed_by(&self, line: &[Invocation]) -> Vec<Invocation> {
        self.commands.iter().chain(line).cloned().collect()
    }

    /// The number of commands so far.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Adds the commands of a line that succeeded.
    pub(crate) fn add(&mut self, line: Vec<Invocation>, words: &[String]) {
        let kept: Vec<Invocation> = line.into_iter().filter(is_kept).collect();
        if !kept.is_empty() {
            self.commands.extend(kept);
            self.lines.push(words.join(" "));
        }
    }

    /// The commands, and their text for the transaction's comment.
    #[must_use]
    pub(crate) fn finish(&self) -> (&[Invocation], String) {
        (&self.commands, self.lines.join(" -- "))
    }
}

/// Whether later lines and the commit need the command.
fn is_kept(invocation: &Invocation) -> bool {
    let is_reading = READING.contains(&invocation.command.name) && !invocation.has("--id");
    !is_reading && matches!(invocation.command.action, Action::InChain(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;
    use crate::grammar::chain;

    fn line(text: &str) -> (Vec<Invocation>, Vec<String>) {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        (chain::parse(&words).unwrap(), words)
    }

    #[test]
    fn only_commands_with_an_effect_are_kept() {
        let mut open = OpenTransaction::default();
        for text in [
            "list Site",
            "set Site berlin a=1 -- get Site berlin name",
            "--id=@x get Site berlin",
        ] {
            let (chain, words) = line(text);
            open.add(chain, &words);
        }
        let (commands, comment) = open.finish();
        let names: Vec<&str> = commands.iter().map(|it| it.command.name).collect();
        assert_eq!(names, ["set", "get"]);
        assert_eq!(
            comment,
            "set Site berlin a=1 -- get Site berlin name -- --id=@x get Site berlin"
        );
        let (more, _) = line("count Site");
        assert_eq!(open.followed_by(&more).len(), 3);
        assert_eq!(open.len(), 2);
    }

    #[test]
    fn every_command_of_chains_either_reads_or_changes() {
        for command in COMMANDS {
            let is_listed = READING.contains(&command.name) ^ CHANGING.contains(&command.name);
            let is_in_chain = matches!(command.action, Action::InChain(_));
            assert_eq!(is_listed, is_in_chain, "{}", command.name);
        }
    }
}
