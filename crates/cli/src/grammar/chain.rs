//! A chain of commands, separated by `--`, which is one transaction: words become invocations.

use crate::commands::{COMMANDS, Command};
use crate::failure::Failure;

/// A command with its options and arguments.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// The command.
    pub command: &'static Command,
    /// Options with their values, dashes included.
    options: Vec<(String, Option<String>)>,
    /// The words after the command's name.
    pub args: Vec<String>,
}

impl Invocation {
    /// Whether the option was given.
    #[must_use]
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| name == option)
    }

    /// All options.
    #[must_use]
    pub(crate) fn options(&self) -> &[(String, Option<String>)] {
        &self.options
    }

    /// The value of an option.
    #[must_use]
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let (_, value) = self.options.iter().find(|(name, _)| name == option)?;
        value.as_deref()
    }
}

/// Parses a chain. Empty commands, as in `-- list T --`, are skipped.
///
/// # Errors
/// There is no command, or one is wrong.
pub(crate) fn parse(words: &[String]) -> Result<Vec<Invocation>, Failure> {
    let commands: Vec<Invocation> = words
        .split(|word| word == "--")
        .filter(|words| !words.is_empty())
        .map(parse_one)
        .collect::<Result<_, _>>()?;
    if commands.is_empty() {
        return Err(missing_name());
    }
    Ok(commands)
}

fn missing_name() -> Failure {
    Failure::usage("missing command name (use --help for help)")
}

fn parse_one(words: &[String]) -> Result<Invocation, Failure> {
    let at = words.iter().position(|word| !word.starts_with('-'));
    let mut options: Vec<(String, Option<String>)> = Vec::new();
    for word in &words[..at.unwrap_or(words.len())] {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if options.iter().any(|(known, _)| known == name) {
            return Err(Failure::usage(format!(
                "'{word}' option specified multiple times"
            )));
        }
        options.push((name.to_owned(), value));
    }
    let Some(at) = at else {
        return Err(missing_name());
    };
    let (name, args) = (&words[at], &words[at + 1..]);
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let failure = Failure::usage(format!("unknown command '{name}'; use --help for help"));
        return Err(failure.suggesting(name, COMMANDS.iter().map(|command| command.name)));
    };
    let args = trailing_options(command, args, &mut options)?;
    check_options(command, &options)?;
    check_count(command, &args)?;
    Ok(Invocation {
        command,
        options,
        args,
    })
}

/// Takes the options out of the words after a command's name: only those that no command of the
/// reference has there as an argument.
fn trailing_options(
    command: &Command,
    words: &[String],
    options: &mut Vec<(String, Option<String>)>,
) -> Result<Vec<String>, Failure> {
    let mut args = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let takes_value = command.options.contains(&format!("{name}=").as_str());
        let is_known = match command.name {
            "log" | "diff" | "revert" | "servers" | "doctor" | "top" | "bundle" => {
                takes_value || name.starts_with('-')
            }
            _ => {
                let has_where = command.options.contains(&"--where=");
                takes_value && has_where && matches!(name, "--where" | "--columns")
            }
        };
        // A moment may be an age.
        let is_age = name
            .strip_prefix('-')
            .is_some_and(|age| age.starts_with(|letter: char| letter.is_ascii_digit()));
        if !is_known || is_age {
            args.push(word.clone());
            continue;
        }
        if options.iter().any(|(known, _)| known == name) {
            return Err(Failure::usage(format!(
                "'{name}' option specified multiple times"
            )));
        }
        let value = match takes_value {
            true => value.or_else(|| words.next().cloned()),
            false => value,
        };
        options.push((name.to_owned(), value));
    }
    Ok(args)
}

fn check_options(command: &Command, options: &[(String, Option<String>)]) -> Result<(), Failure> {
    let name = command.name;
    for (option, value) in options {
        let known = command
            .options
            .iter()
            .map(|known| known.trim_end_matches('='));
        let Some(found) = command
            .options
            .iter()
            .find(|known| known.trim_end_matches('=') == option)
        else {
            let failure = Failure::usage(format!("'{name}' command has no '{option}' option"));
            return Err(failure.suggesting(option, known));
        };
        match (found.ends_with('='), value) {
            (true, None) => {
                return Err(Failure::usage(format!(
                    "missing argument to '{option}' option on '{name}' command"
                )));
            }
            (false, Some(_)) => {
                return Err(Failure::usage(format!(
                    "'{option}' option on '{name}' does not accept an argument"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_count(command: &Command, args: &[String]) -> Result<(), Failure> {
    let Command {
        name,
        args_min,
        args_max,
        ..
    } = command;
    if args.len() < *args_min {
        return Err(Failure::usage(format!(
            "'{name}' command requires at least {args_min} arguments"
        )));
    }
    if args.len() > *args_max {
        let hint = match args.iter().any(|arg| arg.starts_with('-')) {
            true => " (note that options must precede command names and follow a \"--\" argument)",
            false => "",
        };
        return Err(Failure::usage(format!(
            "'{name}' command takes at most {args_max} arguments{hint}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Vec<Invocation>, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_chain_is_split_at_dashes() {
        let chain = parsed("-- --if-exists list T a -- --id=@x create U c=1 --").unwrap();
        let names: Vec<&str> = chain.iter().map(|it| it.command.name).collect();
        assert_eq!(names, ["list", "create"]);
        assert!(chain[0].has("--if-exists"));
        assert_eq!(chain[0].args, ["T", "a"]);
        assert_eq!(chain[1].value("--id"), Some("@x"));
    }

    #[test]
    fn where_and_columns_may_follow_the_name() {
        let chain =
            parsed("list T a --where n>1 b -- count T --where=n -- set T r c=--where").unwrap();
        assert_eq!(chain[0].value("--where"), Some("n>1"));
        assert_eq!(chain[0].args, ["T", "a", "b"]);
        assert_eq!(chain[1].value("--where"), Some("n"));
        assert_eq!(chain[2].args, ["T", "r", "c=--where"]);
        assert!(
            parsed("get T --where").unwrap()[0]
                .args
                .contains(&"--where".to_owned())
        );
        assert!(parsed("list T --where").is_err());
        assert!(parsed("--where=a list T --where=b").is_err());
    }

    #[test]
    fn a_moment_may_be_an_age() {
        let chain = parsed("diff -1w HEAD --table=T").unwrap();
        assert_eq!(chain[0].args, ["-1w", "HEAD"]);
        assert_eq!(chain[0].value("--table"), Some("T"));
        assert_eq!(parsed("revert -15min").unwrap()[0].args, ["-15min"]);
    }

    #[test]
    fn faults_have_the_words_of_the_reference() {
        for (line, message) in [
            ("--", "missing command name (use --help for help)"),
            ("--if-exists", "missing command name (use --help for help)"),
            ("frob", "unknown command 'frob'; use --help for help"),
            ("get T", "'get' command requires at least 2 arguments"),
            (
                "--if-exists create T a=b",
                "'create' command has no '--if-exists' option",
            ),
            (
                "--columns list T",
                "missing argument to '--columns' option on 'list' command",
            ),
            (
                "--if-exists=2 list T",
                "'--if-exists' option on 'list' does not accept an argument",
            ),
            (
                "--id=@a --id=@b get T r",
                "'--id=@b' option specified multiple times",
            ),
        ] {
            assert_eq!(parsed(line).unwrap_err(), message, "{line}");
        }
    }
}
