//! The text format of `tests/scripted/*.txt`, which contain requests and expected replies. They are
//! read into a [`Script`].
//!
//! A file begins with the databases and options of its server, may have a `setup`, and contains
//! cases. A line that begins with white space continues the previous line. A line that begins with
//! `#` is a comment.
//!
//! ```text
//! schema zoo.json              a database, from tests/scripted/schemas or as JSON in place; repeatable
//! spare extra.json             a database file that is made but not opened
//! option --remote=db:A,B,c     a further option of the server; <dir> is its directory
//! setup                        steps played before every case, on connections that are dropped afterwards
//! S> transact Zoo {"op":"insert","table":"Pet","row":{}}
//! S< result [{"uuid":["uuid","<k1>"]}]
//!
//! case name-of-the-case        every case gets a fresh server and fresh connections
//! schema {"name":"D","tables":{}}   in a case: replaces those of the file (same for spare, option)
//! differs: WHY (section)       the right answer is not that of release 3.1: not run against the reference
//! A> METHOD WORD OR JSON …     request on connection A with the next id (1, 2, …); bare words become strings
//! A> do DB OPERATION ; …       a transact, its operations by position, see [`crate::shorthand`]
//! A> {"id":7,…}                a whole message instead
//! A>> anything                 bytes as they are; <x0a> is a byte, <998*[> is a repetition
//! A< result JSON               the next message on A answers the newest request; `2: result JSON` answers request 2
//! A< error JSON                likewise, an error
//! A< notify METHOD JSON        a notification with these params
//! A< {"id":null,…}             a whole message
//! A<~ …                        neighbouring lines of this kind may arrive in any order
//! A-                           nothing arrives before the answer to an echo
//! A| closed                    the server has closed A
//! A| shut · A| drop            we close the sending side · both sides
//! A| open NAME                 opens A on another socket in the server's directory, once it is there
//! !> COMMAND ARGUMENT …        a control command;  !< result JSON or !< error JSON is its answer
//! ! restart                    the server is killed and started again on its files
//! ```
//!
//! At the end of a case, nothing more may arrive on any connection. Placeholders are those of
//! [`crate::placeholder`]. This module only reads the format; [`crate::stage`] executes it.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::server::Setup;

/// The letter of a connection.
pub type ConnectionName = char;

/// A file of cases.
#[derive(Debug)]
pub struct Script {
    /// The file from which it was read.
    pub path: PathBuf,
    /// The lines of the file, for rewriting.
    pub lines: Vec<String>,
    /// The steps that are played before every case.
    pub prologue: Vec<Step>,
    /// The cases, in file order.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Debug)]
pub struct Case {
    /// The name, which is unique in the file.
    pub name: String,
    /// The index of the `case` line.
    pub line: usize,
    /// The setup of the server.
    pub setup: Setup,
    /// Why the reference answers differently, if it does.
    pub differs: Option<String>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step and the lines where it is written.
#[derive(Debug)]
pub struct Step {
    /// The indexes of the lines.
    pub lines: Range<usize>,
    /// The action.
    pub action: Action,
}

/// The action of a step. The texts are as they are written, with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send a request or message.
    Send(ConnectionName, String),
    /// Send bytes.
    SendBytes(ConnectionName, String),
    /// The next message must be this one.
    Expect(ConnectionName, String),
    /// Like `Expect`, but the messages of successive steps of this kind may arrive in any order.
    ExpectAnyOrder(ConnectionName, String),
    /// Nothing arrives before the reply to an echo request.
    Quiet(ConnectionName),
    /// The server closes the connection.
    Closed(ConnectionName),
    /// We close the sending side.
    Shut(ConnectionName),
    /// We close the connection.
    Drop(ConnectionName),
    /// We connect to the named socket.
    Open(ConnectionName, String),
    /// Run a control command.
    Control(String),
    /// The reply to the control command.
    ExpectControl(String),
    /// Kill the server and start it again.
    Restart,
}

impl Script {
    /// Reads and parses a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or `InvalidData` with the line and its fault.
    pub fn read(path: &Path) -> io::Result<Script> {
        let text = fs::read_to_string(path)?;
        parse(path, &text)
            .map_err(|(line, fault)| invalid(format!("{}:{}: {fault}", path.display(), line + 1)))
    }
}

/// A fault, with the index of its line.
type Fault = (usize, String);

fn parse(path: &Path, text: &str) -> Result<Script, Fault> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut script = Script {
        path: path.to_owned(),
        lines,
        prologue: Vec::new(),
        cases: Vec::new(),
    };
    let mut common = Setup::default();
    let mut own = [false; 3];
    for (range, text) in join_continuations(&script.lines) {
        let line = range.start;
        let fault = |text: &str| (line, text.to_owned());
        let (word, rest) = text
            .split_once(' ')
            .map_or((text.as_str(), ""), |(word, rest)| (word, rest.trim()));
        match word {
            "case" => {
                if rest.is_empty() || script.cases.iter().any(|case| case.name == rest) {
                    return Err(fault("a case needs a name of its own"));
                }
                own = [false; 3];
                let (name, setup) = (rest.to_owned(), common.clone());
                script.cases.push(Case {
                    name,
                    line,
                    setup,
                    differs: None,
                    steps: Vec::new(),
                });
            }
            "schema" | "spare" | "option" => {
                let kind = ["schema", "spare", "option"]
                    .iter()
                    .position(|kind| *kind == word)
                    .unwrap_or(0);
                let setup = script
                    .cases
                    .last_mut()
                    .map_or(&mut common, |case| &mut case.setup);
                let replace = !std::mem::replace(&mut own[kind], true);
                if word == "option" {
                    add(&mut setup.options, replace, rest.to_owned());
                } else {
                    let list = if word == "schema" {
                        &mut setup.databases
                    } else {
                        &mut setup.spares
                    };
                    add(
                        list,
                        replace,
                        read_schema(path, rest).map_err(|error| (line, error.to_string()))?,
                    );
                }
            }
            "setup" if script.cases.is_empty() => {}
            "differs:" => match script.cases.last_mut() {
                Some(case) if !rest.is_empty() => case.differs = Some(rest.to_owned()),
                _ => return Err(fault("`differs:` needs a case and a reason")),
            },
            _ => {
                let action =
                    parse_action(word, rest).ok_or_else(|| fault("unknown kind of line"))?;
                let steps = script
                    .cases
                    .last_mut()
                    .map_or(&mut script.prologue, |case| &mut case.steps);
                steps.push(Step {
                    lines: range,
                    action,
                });
            }
        }
    }
    Ok(script)
}

fn add<T>(list: &mut Vec<T>, replace: bool, item: T) {
    if replace {
        list.clear();
    }
    list.push(item);
}

fn parse_action(word: &str, rest: &str) -> Option<Action> {
    let mut letters = word.chars();
    let name = letters.next()?;
    let text = rest.to_owned();
    match (name, letters.as_str()) {
        ('!', ">") => Some(Action::Control(text)),
        ('!', "<") => Some(Action::ExpectControl(text)),
        ('!', "") if rest == "restart" => Some(Action::Restart),
        ('A'..='Z', ">") => Some(Action::Send(name, text)),
        ('A'..='Z', ">>") => Some(Action::SendBytes(name, text)),
        ('A'..='Z', "<") => Some(Action::Expect(name, text)),
        ('A'..='Z', "<~") => Some(Action::ExpectAnyOrder(name, text)),
        ('A'..='Z', "-") if rest.is_empty() => Some(Action::Quiet(name)),
        ('A'..='Z', "|") => match rest.split_once(' ').unwrap_or((rest, "")) {
            ("closed", "") => Some(Action::Closed(name)),
            ("shut", "") => Some(Action::Shut(name)),
            ("drop", "") => Some(Action::Drop(name)),
            ("open", socket) => Some(Action::Open(name, socket.to_owned())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the logical lines: comments and blank lines are left out, and continuations are joined
/// by one space.
fn join_continuations(lines: &[String]) -> Vec<(Range<usize>, String)> {
    let mut joined: Vec<(Range<usize>, String)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match joined.last_mut() {
            Some((range, text)) if line.starts_with([' ', '\t']) => {
                range.end = index + 1;
                text.push(' ');
                text.push_str(line.trim());
            }
            _ => joined.push((index..index + 1, line.trim_end().to_owned())),
        }
    }
    joined
}

/// Reads a schema, which is either written in place or named as a file in the folder `schemas` next
/// to the script.
fn read_schema(script: &Path, text: &str) -> io::Result<Value> {
    if text.starts_with('{') {
        return Ok(serde_json::from_str(text)?);
    }
    let path = script.with_file_name("schemas").join(text);
    let text = fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(serde_json::from_str(&text)?)
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_inherit_or_replace_what_the_file_declares() {
        let text = "schema {\"name\":\"A\",\n  \"tables\":{}}\noption --x\n\nsetup\nS> list_dbs\n\ncase one\nA-\n\
                    case two\nschema {\"name\":\"B\"}\ndiffers: because\nA<~ notify update\n  [1]\n";
        let script = parse(Path::new("x.txt"), text).unwrap();
        assert_eq!(script.prologue.len(), 1);
        let [one, two] = &script.cases[..] else {
            panic!("two cases")
        };
        assert_eq!(one.setup.databases[0]["name"], "A");
        assert_eq!(one.steps[0].action, Action::Quiet('A'));
        assert_eq!(two.setup.databases.len(), 1);
        assert_eq!(two.setup.databases[0]["name"], "B");
        assert_eq!(two.setup.options, ["--x"]);
        assert_eq!(two.differs.as_deref(), Some("because"));
        assert_eq!(
            two.steps[0].action,
            Action::ExpectAnyOrder('A', "notify update [1]".to_owned())
        );
        assert_eq!(two.steps[0].lines, 12..14);
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(
            parse(Path::new("x.txt"), "case a\nA> x\ncase a\n")
                .unwrap_err()
                .0,
            2
        );
        assert_eq!(
            parse(Path::new("x.txt"), "case a\nAA> x\n").unwrap_err().0,
            1
        );
    }
}
