//! The requests to the shell: its own commands, and chains.

use crate::commands::COMMANDS;
use crate::failure::Failure;

/// A command of the shell itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCommand {
    /// The name.
    pub name: &'static str,
    /// Name and arguments.
    pub synopsis: &'static str,
    /// A description in one line.
    pub meaning: &'static str,
}

/// The commands of the shell itself.
pub(crate) const OWN: [OwnCommand; 7] = [
    OwnCommand {
        name: "begin",
        synopsis: "begin",
        meaning: "collect the changes of the next lines in one transaction",
    },
    OwnCommand {
        name: "commit",
        synopsis: "commit",
        meaning: "execute the open transaction",
    },
    OwnCommand {
        name: "abort",
        synopsis: "abort",
        meaning: "drop the open transaction",
    },
    OwnCommand {
        name: "use",
        synopsis: "use DATABASE",
        meaning: "change to another database of the server",
    },
    OwnCommand {
        name: "connect",
        synopsis: "connect SERVER",
        meaning: "change to another server",
    },
    OwnCommand {
        name: "help",
        synopsis: "help [COMMAND]",
        meaning: "list the commands, or describe one",
    },
    OwnCommand {
        name: "quit",
        synopsis: "quit",
        meaning: "leave the shell (also Ctrl-D)",
    },
];

/// The request of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing: the line is empty or a comment.
    Nothing,
    /// `begin`
    Begin,
    /// `commit`
    Commit,
    /// `abort`
    Abort,
    /// `use DATABASE`
    Use(String),
    /// `connect SERVER`
    Connect(String),
    /// `help [COMMAND]`
    Help(Option<String>),
    /// `quit`
    Quit,
    /// A chain, with its options.
    Chain,
}

impl Request {
    /// Parses the words of a line.
    ///
    /// # Errors
    /// A command of the shell has too few or too many arguments.
    pub(crate) fn of(words: &[String]) -> Result<Request, Failure> {
        let Some((name, args)) = words.split_first() else {
            return Ok(Request::Nothing);
        };
        let name = if name == "exit" { "quit" } else { name };
        let Some(own) = OWN.iter().find(|own| own.name == name) else {
            return Ok(Request::Chain);
        };
        let wrong = || Err(Failure::usage(format!("usage: {}", own.synopsis)));
        Ok(match (own.name, args) {
            ("begin", []) => Request::Begin,
            ("commit", []) => Request::Commit,
            ("abort", []) => Request::Abort,
            ("quit", []) => Request::Quit,
            ("use", [database]) => Request::Use(database.clone()),
            ("connect", [server]) => Request::Connect(server.clone()),
            ("help", []) => Request::Help(None),
            ("help", [topic]) => Request::Help(Some(topic.clone())),
            _ => return wrong(),
        })
    }
}

/// The names of all commands that a line may begin with.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let own = OWN.iter().map(|own| own.name);
    COMMANDS.iter().map(|command| command.name).chain(own)
}

/// The text of `help`.
///
/// # Errors
/// There is no such command.
pub(crate) fn help(topic: Option<&str>) -> Result<String, Failure> {
    let Some(topic) = topic else {
        let commands = COMMANDS.iter().map(|it| (it.name, it.meaning));
        let own = OWN.iter().map(|it| (it.name, it.meaning));
        let mut text = String::new();
        for (name, meaning) in commands.chain(own) {
            text.push_str(&format!("{name:<12}{meaning}\n"));
        }
        text.push_str("\n\"help COMMAND\" describes one. Tab completes names.\n");
        return Ok(text);
    };
    if let Some(own) = OWN.iter().find(|own| own.name == topic) {
        return Ok(format!("{}\n    {}\n", own.synopsis, own.meaning));
    }
    match COMMANDS.iter().find(|command| command.name == topic) {
        Some(command) => Ok(format!(
            "{}\n    {}\n\n{}\n",
            command.synopsis, command.meaning, command.detail
        )),
        None => {
            let failure = Failure::usage(format!("there is no command \"{topic}\""));
            Err(failure.suggesting(topic, names()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Request::of(&words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn own_commands_are_told_from_chains() {
        for (line, expected) in [
            ("", Request::Nothing),
            ("begin", Request::Begin),
            ("exit", Request::Quit),
            ("use Lab", Request::Use("Lab".to_owned())),
            ("help", Request::Help(None)),
            ("help set", Request::Help(Some("set".to_owned()))),
            ("list begin", Request::Chain),
            ("--columns=a list T", Request::Chain),
        ] {
            assert_eq!(request(line), Ok(expected), "{line}");
        }
        assert_eq!(request("use").unwrap_err(), "usage: use DATABASE");
        assert_eq!(request("commit now").unwrap_err(), "usage: commit");
    }

    #[test]
    fn help_describes_every_command() {
        for name in names() {
            assert!(help(None).unwrap().contains(name));
            assert!(help(Some(name)).unwrap().contains(name));
        }
        assert!(help(Some("comit")).is_err());
    }

    #[test]
    fn no_command_of_the_shell_hides_another() {
        for own in OWN {
            assert!(COMMANDS.iter().all(|command| command.name != own.name));
        }
    }
}
