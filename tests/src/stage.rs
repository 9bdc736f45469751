//! Plays the steps of one case on its own server: it sends, receives, compares, and collects the
//! lines with which the script would be right.
//!
//! Invariant: exactly one expectation accounts for every received message. At the end of a case,
//! nothing more arrives on any connection and the server still runs. Called by [`crate::play`],
//! which handles files and reports.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, Received};
use crate::layout;
use crate::placeholder::{Bindings, readable, unrepeated};
use crate::script::{Action, Case, ConnectionName, Step};
use crate::server::{Server, Subject};
use crate::shorthand;

/// The time limit for an expected message. It is generous, because failing cases are rare and busy
/// machines are not.
const RECEIVE_LIMIT: Duration = Duration::from_secs(60);

/// The maximum number of characters that are shown of a message that is not as expected.
const SHOWN_MAX: usize = 2000;

/// The request that proves silence: its reply is the next message if and only if no other message
/// was on its way.
const BARRIER: &[u8] = br#"{"id":"barrier","method":"echo","params":[]}"#;

/// A difference from the script, with the index of its line.
#[derive(Debug)]
pub struct Mismatch {
    /// The index of the step's first line.
    pub line: usize,
    /// The expected message and the received one.
    pub text: String,
}

/// A change with which the script would be right: lines that replace other lines.
#[derive(Debug)]
pub struct Edit {
    /// The lines that are replaced. If the range is empty, the text is inserted before its start.
    pub lines: Range<usize>,
    /// The lines that replace them.
    pub text: Vec<String>,
}

/// The result of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The differences. The first one ends the case unless expectations are being rewritten.
    pub mismatches: Vec<Mismatch>,
    /// The changes of the script. Empty unless they are asked for.
    pub edits: Vec<Edit>,
}

struct Connection {
    client: Client,
    /// The id of the newest request in short form.
    newest: u64,
    /// Either no further message can come, or silence does not have to be proved.
    over: bool,
}

struct Stage<'a> {
    server: Server,
    connections: BTreeMap<ConnectionName, Connection>,
    control_reply: Option<Value>,
    bindings: Bindings,
    outcome: Outcome,
    /// The text of the whole script. UUIDs that are written in it are literals.
    script: &'a str,
    rewriting: bool,
}

/// Plays a case: first the prologue and then the steps of the case, each on new connections.
///
/// # Errors
///
/// If the server cannot be started. Everything else is a mismatch in the outcome.
pub fn play(
    subject: Subject,
    prologue: &[Step],
    case: &Case,
    script: &str,
    rewriting: bool,
) -> io::Result<Outcome> {
    let server = subject.start(&case.setup)?;
    let bindings = Bindings::new(server.dir().to_string_lossy().into_owned());
    let outcome = Outcome::default();
    let connections = BTreeMap::new();
    let mut stage = Stage {
        server,
        connections,
        control_reply: None,
        bindings,
        outcome,
        script,
        rewriting,
    };
    if stage.play_steps(
        prologue,
        prologue.first().map_or(case.line, |step| step.lines.start),
    ) {
        stage.play_steps(&case.steps, case.line);
    }
    if stage.server.has_ended() {
        stage.mismatch(
            case.line,
            format!("the server has ended:\n{}", stage.server.log()),
        );
    }
    Ok(stage.outcome)
}

impl Stage<'_> {
    /// Plays steps in order and proves silence at the end. Returns false if a mismatch has ended
    /// the case.
    fn play_steps(&mut self, steps: &[Step], first_line: usize) -> bool {
        let mut index = 0;
        while index < steps.len() {
            let count = run_length(&steps[index..]);
            let found = self.outcome.mismatches.len();
            let result = if count == 0 {
                self.play_step(&steps[index])
            } else {
                self.expect_any_order(&steps[index..index + count])
            };
            if let Err(text) = result {
                self.mismatch(steps[index].lines.start, text);
                return false;
            }
            if self.outcome.mismatches.len() > found && !self.rewriting {
                return false;
            }
            index += count.max(1);
        }
        let (line, after) = steps.last().map_or((first_line, first_line + 1), |s| {
            (s.lines.start, s.lines.end)
        });
        let quiet = self.expect_silence_of_all(line, after);
        self.connections.clear();
        quiet
    }

    fn play_step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Send(name, text) => self.send(*name, text),
            Action::SendBytes(name, text) => {
                let bytes = self.bindings.expand(text)?;
                self.connection(*name)?
                    .client
                    .send(&bytes)
                    .map_err(|error| format!("sending: {error}"))
            }
            Action::Expect(name, text) => self.expect(*name, text, step.lines.clone()),
            Action::ExpectAnyOrder(..) => self.expect_any_order(std::slice::from_ref(step)),
            Action::Quiet(name) => self.expect_silence(*name, step.lines.start, step.lines.start),
            Action::Closed(name) => self.expect_closed(*name, step),
            Action::Shut(name) => self
                .connection(*name)?
                .client
                .shut()
                .map_err(|error| error.to_string()),
            Action::Drop(name) => {
                self.connections.remove(name);
                Ok(())
            }
            Action::Open(name, socket) => {
                let client = Client::connect_within(&self.server.dir().join(socket), RECEIVE_LIMIT)
                    .map_err(|error| format!("{socket}: {error}"))?;
                self.connections.insert(
                    *name,
                    Connection {
                        client,
                        newest: 0,
                        over: false,
                    },
                );
                Ok(())
            }
            Action::Control(text) => self.control(text),
            Action::ExpectControl(text) => self.expect_control(text, step.lines.clone()),
            Action::Restart => {
                self.connections.clear();
                self.server.restart().map_err(|error| error.to_string())
            }
        }
    }

    fn connection(&mut self, name: ConnectionName) -> Result<&mut Connection, String> {
        if !self.connections.contains_key(&name) {
            let client = self
                .server
                .connect()
                .map_err(|error| format!("connecting: {error}"))?;
            self.connections.insert(
                name,
                Connection {
                    client,
                    newest: 0,
                    over: false,
                },
            );
        }
        self.connections
            .get_mut(&name)
            .ok_or_else(|| "no connection".to_owned())
    }

    fn send(&mut self, name: ConnectionName, text: &str) -> Result<(), String> {
        let text = &unrepeated(text);
        let message = if text.starts_with('{') {
            text.clone()
        } else {
            let (method, params) = shorthand::request(text)?;
            let connection = self.connection(name)?;
            connection.newest += 1;
            format!(
                r#"{{"id":{},"method":"{method}","params":{params}}}"#,
                connection.newest
            )
        };
        let bytes = self.bindings.expand(&message)?;
        self.connection(name)?
            .client
            .send(&bytes)
            .map_err(|error| format!("sending: {error}"))
    }

    /// Returns the next message, if it is one that can be compared.
    fn receive(&mut self, name: ConnectionName) -> Result<Arrival, String> {
        let received = self
            .connection(name)?
            .client
            .receive(RECEIVE_LIMIT)
            .map_err(|error| error.to_string())?;
        match received {
            Received::Text(bytes) => {
                let text = readable(&bytes);
                let value = layout::parse(&text).map_err(|error| format!("{error} in {text}"))?;
                if !is_compact(&bytes) {
                    return Err(format!("white space outside strings in {text}"));
                }
                Ok(Arrival::Message(value))
            }
            Received::Closed => {
                self.connection(name)?.over = true;
                Ok(Arrival::Closed)
            }
            Received::Nothing => Ok(Arrival::Nothing),
        }
    }

    fn expect(
        &mut self,
        name: ConnectionName,
        text: &str,
        lines: Range<usize>,
    ) -> Result<(), String> {
        let newest = self.connection(name)?.newest;
        let expected = layout::read(&unrepeated(text), newest);
        let arrival = self.receive(name)?;
        if let (Ok(expected), Arrival::Message(actual)) = (&expected, &arrival)
            && self.bindings.matches(expected, actual)
        {
            return Ok(());
        }
        let expected = expected.map_or_else(|fault| fault, |value| shortened(&value.to_string()));
        self.not_as_expected(name, &expected, &arrival, lines)
    }

    fn expect_any_order(&mut self, steps: &[Step]) -> Result<(), String> {
        let mut open: Vec<&Step> = steps.iter().collect();
        for _ in steps {
            let Some(Action::ExpectAnyOrder(name, _)) = open.first().map(|step| &step.action)
            else {
                break;
            };
            let name = *name;
            let newest = self.connection(name)?.newest;
            let arrival = self.receive(name)?;
            let found = open.iter().position(|step| match (&step.action, &arrival) {
                (Action::ExpectAnyOrder(_, text), Arrival::Message(actual)) => {
                    layout::read(&unrepeated(text), newest)
                        .is_ok_and(|expected| self.bindings.matches(&expected, actual))
                }
                _ => false,
            });
            match found {
                Some(index) => {
                    open.remove(index);
                }
                None => {
                    let step = open.pop().unwrap_or(&steps[0]);
                    self.not_as_expected(name, "one of these", &arrival, step.lines.clone())?;
                }
            }
        }
        Ok(())
    }

    /// Records a message that is not the expected one, and how it would be written.
    fn not_as_expected(
        &mut self,
        name: ConnectionName,
        expected: &str,
        arrival: &Arrival,
        lines: Range<usize>,
    ) -> Result<(), String> {
        self.mismatch(
            lines.start,
            format!("expected {expected}\n     got {arrival}"),
        );
        let text = match arrival {
            Arrival::Message(actual) => self.written(name, actual)?,
            Arrival::Closed => vec![format!("{name}| closed")],
            Arrival::Nothing => return Err("nothing to write".to_owned()),
        };
        self.edit(lines, text);
        Ok(())
    }

    fn written(&mut self, name: ConnectionName, actual: &Value) -> Result<Vec<String>, String> {
        let newest = self.connection(name)?.newest;
        let script = self.script;
        let value = self
            .bindings
            .abstracted(actual, &|uuid| script.contains(uuid));
        Ok(layout::lines(
            &format!("{name}<"),
            &layout::written(&value, newest),
        ))
    }

    /// Expects the reply to a barrier as the next message. Other messages are mismatches, which
    /// would have to be written before line `at`.
    fn expect_silence(
        &mut self,
        name: ConnectionName,
        line: usize,
        at: usize,
    ) -> Result<(), String> {
        let connection = self.connection(name)?;
        if connection.over {
            return Ok(());
        }
        // If sending fails, the connection is closed, which the call below reports.
        let _ = connection.client.send(BARRIER);
        loop {
            let arrival = self.receive(name)?;
            let text = match &arrival {
                Arrival::Message(value) if value.get("id") == Some(&json!("barrier")) => {
                    return Ok(());
                }
                Arrival::Message(value) => self.written(name, value)?,
                Arrival::Closed => vec![format!("{name}| closed")],
                Arrival::Nothing => return Err("no answer to an echo".to_owned()),
            };
            self.mismatch(
                line,
                format!("{name}: expected silence\n     got {arrival}"),
            );
            self.edit(at..at, text);
            if matches!(arrival, Arrival::Closed) || !self.rewriting {
                return Ok(());
            }
        }
    }

    fn expect_silence_of_all(&mut self, line: usize, at: usize) -> bool {
        let found = self.outcome.mismatches.len();
        for name in self.connections.keys().copied().collect::<Vec<_>>() {
            if let Err(text) = self.expect_silence(name, line, at) {
                self.mismatch(line, format!("{name}: {text}"));
            }
        }
        self.rewriting || self.outcome.mismatches.len() == found
    }

    fn expect_closed(&mut self, name: ConnectionName, step: &Step) -> Result<(), String> {
        let arrival = self.receive(name)?;
        match &arrival {
            Arrival::Closed => Ok(()),
            Arrival::Message(value) => {
                let text = self.written(name, value)?;
                self.edit(step.lines.clone(), text);
                self.mismatch(
                    step.lines.start,
                    format!("expected the end\n     got {arrival}"),
                );
                Ok(())
            }
            Arrival::Nothing => Err("expected the end, got nothing".to_owned()),
        }
    }

    fn control(&mut self, text: &str) -> Result<(), String> {
        let text = readable(&self.bindings.expand(text)?);
        let mut words = text.split_whitespace().map(str::to_owned);
        let command = words.next().unwrap_or_default();
        let arguments: Vec<String> = words.collect();
        let reply = self
            .server
            .control(&command, &arguments)
            .map_err(|error| format!("{command}: {error}"))?;
        self.control_reply = Some(reply);
        Ok(())
    }

    fn expect_control(&mut self, text: &str, lines: Range<usize>) -> Result<(), String> {
        let reply = self
            .control_reply
            .take()
            .ok_or("no control command before")?;
        let (word, value) = match reply.get("error") {
            None | Some(Value::Null) => ("result", reply.get("result").unwrap_or(&Value::Null)),
            Some(error) => ("error", error),
        };
        let (expected_word, expected) = text.split_once(' ').unwrap_or((text, ""));
        let expected = serde_json::from_str::<Value>(expected).unwrap_or_default();
        if word != expected_word || !self.bindings.matches(&expected, value) {
            self.mismatch(
                lines.start,
                format!("expected {text}\n     got {word} {value}"),
            );
            let value = self.bindings.abstracted(value, &|_| false);
            self.edit(lines, vec![format!("!< {word} {value}")]);
        }
        Ok(())
    }

    fn mismatch(&mut self, line: usize, text: String) {
        self.outcome.mismatches.push(Mismatch { line, text });
    }

    fn edit(&mut self, lines: Range<usize>, text: Vec<String>) {
        if self.rewriting {
            self.outcome.edits.push(Edit { lines, text });
        }
    }
}

/// The next event on a connection, with its text parsed as JSON.
#[derive(Debug)]
enum Arrival {
    Message(Value),
    Closed,
    Nothing,
}

impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arrival::Message(value) => shortened(&value.to_string()).fmt(f),
            Arrival::Closed => f.write_str("the end of the connection"),
            Arrival::Nothing => f.write_str("nothing"),
        }
    }
}

/// Shortens a text for a report.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns how many of the first steps expect messages of one connection in any order.
fn run_length(steps: &[Step]) -> usize {
    let name = |step: &Step| match step.action {
        Action::ExpectAnyOrder(name, _) => Some(name),
        _ => None,
    };
    match steps.first().and_then(name) {
        Some(first) => steps
            .iter()
            .take_while(|step| name(step) == Some(first))
            .count(),
        None => 0,
    }
}

/// Whether a text has no white space outside its strings. The output of a server must not have any
/// (`docs/spec/protocol.md` 1.1).
fn is_compact(text: &[u8]) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    text.iter().all(|&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => return false,
            _ => {}
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_only_outside_strings() {
        assert!(is_compact(br#"{"a b":"c \" d"}"#));
        assert!(!is_compact(br#"{"a": 1}"#));
        assert!(!is_compact(b"{}\n"));
    }
}
