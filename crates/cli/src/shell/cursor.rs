//! The kind of names that complete the word at the cursor: a function of the text before it.
//!
//! The synopsis of a command, as the manual shows it, tells what each argument is.

use super::request::OWN;
use super::words::{self, Ending, Word};
use crate::commands::{COMMANDS, Command, EXPLAIN};

/// The kind of names that fit at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A command; `is_first`: the first of the line, where those of the shell fit too.
    Command { is_first: bool },
    /// An option of a command that follows.
    Option,
    /// A command to describe.
    Topic,
    /// A database of the server.
    Database,
    /// A server.
    Server,
    /// A table.
    Table,
    /// A record of a table.
    Record { table: String },
    /// A column, and what may follow its name.
    Column {
        table: String,
        record: Option<String>,
        follows: Follows,
    },
    /// An element of a column that an earlier word names.
    Element {
        table: String,
        record: String,
        column: String,
        /// The element is in the column already.
        is_present: bool,
    },
    /// Nothing that is known.
    Nothing,
}

/// The text that may follow the name of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing.
    Nothing,
    /// `[:KEY]`
    Key,
    /// `[:KEY]=VALUE`
    Value,
}

/// The word at the cursor.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// The offset of the word; that of the cursor if a new word begins.
    pub start: usize,
    /// The part of the word before the cursor, without quotes.
    pub word: String,
    /// The names that fit.
    pub wanted: Wanted,
    /// The command whose arguments the word is among, and the number of arguments before it.
    pub command: Option<(&'static Command, usize)>,
}

/// Finds out what is to be completed at the end of `before`, the text before the cursor.
#[must_use]
pub(crate) fn at_end(before: &str) -> Cursor {
    let split = words::split(before);
    let is_in_word = split
        .words
        .last()
        .is_some_and(|last| last.end == before.len());
    let mut words = split.words;
    let (start, word) = match words.pop_if(|_| is_in_word) {
        Some(Word { text, start, .. }) => (start, text),
        None => (before.len(), String::new()),
    };
    let nothing = Cursor {
        start,
        word: word.clone(),
        wanted: Wanted::Nothing,
        command: None,
    };
    if split.ending == Ending::InComment {
        return nothing;
    }
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let chain = words
        .rsplit(|word| *word == "--")
        .next()
        .unwrap_or_default();
    let is_first = chain.len() == words.len();
    let mut rest = chain;
    if is_first && rest.first() == Some(&EXPLAIN) {
        rest = &rest[1..];
    }
    let options = rest.iter().take_while(|word| word.starts_with('-')).count();
    let (wanted, command) = match rest[options..].split_first() {
        None if word.starts_with('-') => (Wanted::Option, None),
        None => {
            let is_first = is_first && chain.is_empty();
            (Wanted::Command { is_first }, None)
        }
        Some((name, args)) => {
            let command = COMMANDS.iter().find(|command| command.name == *name);
            match command {
                Some(command) => (argument(command, args), Some((command, args.len()))),
                None if is_first && options == 0 => (own_argument(name, args), None),
                None => (Wanted::Nothing, None),
            }
        }
    };
    Cursor {
        wanted,
        command,
        ..nothing
    }
}

/// The argument of a command of the shell.
fn own_argument(name: &str, args: &[&str]) -> Wanted {
    let own = OWN.iter().find(|own| own.name == name);
    match (own.map(|own| own.name), args) {
        (Some("help"), []) => Wanted::Topic,
        (Some("use"), []) => Wanted::Database,
        (Some("connect"), []) => Wanted::Server,
        _ => Wanted::Nothing,
    }
}

/// The arguments in the synopsis of a command.
#[must_use]
pub(crate) fn arguments(command: &Command) -> Vec<&'static str> {
    let words = command.synopsis.split_whitespace();
    words
        .skip_while(|word| *word != command.name)
        .skip(1)
        .take_while(|word| *word != "|")
        .collect()
}

/// The argument of a command after others.
fn argument(command: &Command, args: &[&str]) -> Wanted {
    let forms = arguments(command);
    // Options may stand in between.
    if forms
        .last()
        .is_some_and(|last| last.starts_with("[SERVER]"))
    {
        return Wanted::Server;
    }
    let repeated = forms.last().filter(|last| last.contains("..."));
    let Some(form) = forms.get(args.len()).or(repeated) else {
        return Wanted::Nothing;
    };
    let table = || args.first().copied().unwrap_or_default().to_owned();
    let has_record = forms.get(1).is_some_and(|form| form.contains("RECORD"));
    let record = || {
        args.get(1)
            .filter(|_| has_record)
            .map(|it| (*it).to_owned())
    };
    if form.starts_with("[KEY=]") || form.starts_with("(VALUE") {
        return Wanted::Element {
            table: table(),
            record: record().unwrap_or_default(),
            column: args.get(2).copied().unwrap_or_default().to_owned(),
            is_present: form.starts_with('('),
        };
    }
    let column = |follows| Wanted::Column {
        table: table(),
        record: record(),
        follows,
    };
    match form.trim_start_matches('[') {
        form if form.starts_with("TABLE") => Wanted::Table,
        form if form.starts_with("RECORD") => Wanted::Record { table: table() },
        form if form.starts_with("COLUMN[:KEY]=") => column(Follows::Value),
        form if form.starts_with("COLUMN[:KEY]") => column(Follows::Key),
        form if form.starts_with("COLUMN") => column(Follows::Nothing),
        form if form.starts_with("COMMAND") => Wanted::Command { is_first: false },
        _ => Wanted::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(before: &str) -> Wanted {
        at_end(before).wanted
    }

    fn column(record: Option<&str>, follows: Follows) -> Wanted {
        Wanted::Column {
            table: "T".to_owned(),
            record: record.map(str::to_owned),
            follows,
        }
    }

    #[test]
    fn each_argument_is_what_the_synopsis_says() {
        let record = || Wanted::Record {
            table: "T".to_owned(),
        };
        for (before, expected) in [
            ("", Wanted::Command { is_first: true }),
            ("li", Wanted::Command { is_first: true }),
            ("--", Wanted::Option),
            ("--if-exists ", Wanted::Command { is_first: false }),
            ("list ", Wanted::Table),
            ("list T ", record()),
            ("list T a ", record()),
            ("explain ", Wanted::Command { is_first: false }),
            ("explain set T ", record()),
            ("find T ", column(None, Follows::Value)),
            ("get T r na", column(Some("r"), Follows::Key)),
            ("set T r a=b c", column(Some("r"), Follows::Value)),
            ("clear T r a b", column(Some("r"), Follows::Nothing)),
            ("add T r ", column(Some("r"), Follows::Nothing)),
            ("create T a", column(None, Follows::Value)),
            ("show ", Wanted::Table),
            ("show T ", record()),
            ("destroy T ", record()),
            ("describe T ", Wanted::Nothing),
            ("list T -- se", Wanted::Command { is_first: false }),
            ("list T -- set T ", record()),
            ("use ", Wanted::Database),
            ("connect ", Wanted::Server),
            ("servers a ", Wanted::Server),
            ("top --interval=2 ", Wanted::Server),
            ("help se", Wanted::Topic),
            ("help set ", Wanted::Nothing),
            ("nosuch ", Wanted::Nothing),
            ("list T # x", Wanted::Nothing),
        ] {
            assert_eq!(wanted(before), expected, "{before:?}");
        }
        let element = |is_present| Wanted::Element {
            table: "T".to_owned(),
            record: "r".to_owned(),
            column: "c".to_owned(),
            is_present,
        };
        assert_eq!(wanted("add T r c x"), element(false));
        assert_eq!(wanted("remove T r c x y"), element(true));
    }

    #[test]
    fn the_word_at_the_cursor_includes_its_quotes() {
        for (before, start, word) in [
            ("list Br", 5, "Br"),
            ("list ", 5, ""),
            ("list 'a b", 5, "a b"),
            ("get T 'it'\\''s", 6, "it's"),
        ] {
            let cursor = at_end(before);
            assert_eq!(
                (cursor.start, cursor.word.as_str()),
                (start, word),
                "{before}"
            );
        }
    }

    #[test]
    fn every_command_tells_its_arguments() {
        for command in COMMANDS {
            let forms = arguments(command);
            assert!(forms.len() >= command.args_min.min(2), "{}", command.name);
        }
    }
}
