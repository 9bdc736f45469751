//! Cuts the body of a long record into runs of whole rows while it arrives in pieces.
//!
//! Invariant: this module checks everything around the rows; the decoder checks the rows. Together
//! they accept a body only if decoding it whole gives the same rows. Any doubt yields
//! [`Irregular`], never an error: reading the whole record then finds the error. [`crate::Feed`]
//! calls this module.

use std::collections::VecDeque;

use corvid_data::{Arc, Schema, TableId};
use corvid_json::{Kind, Number, Reader};

/// Approximate bytes of rows in a run: a few hundred rows.
pub(crate) const RUN_BYTES: usize = 128 * 1024;
/// A token or row that does not end within this many bytes makes the record irregular.
const WINDOW_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The body cannot be cut into rows: it holds more than insertions of distinct rows, grouped in
/// distinct tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Irregular;

/// Rows of one table, as the text of one JSON object.
#[derive(Debug)]
pub struct RowText {
    /// The table to which the rows belong.
    pub table: TableId,
    pub(crate) text: Vec<u8>,
}

/// Splits a body that arrives in pieces.
#[derive(Debug)]
pub(crate) struct RowSplitter {
    schema: Arc<Schema>,
    /// Bytes that have arrived but are not consumed yet.
    window: Vec<u8>,
    state: State,
    /// Tables seen so far.
    tables: Vec<TableId>,
    /// The run under construction, which begins with `{`.
    run: Vec<u8>,
    /// A run is returned once it has this many bytes.
    run_bytes: usize,
    /// The value of `_comment`, a JSON text.
    comment: Option<Vec<u8>>,
}

/// The part of the body that comes next in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Between the members of the body; `any` once a member has been seen.
    Body {
        any: bool,
    },
    /// Between the rows of a table; `any` once a row has been seen.
    Table {
        id: TableId,
        any: bool,
    },
    /// After the end of the body.
    End,
}

/// The outcome of one step over the window.
enum Step {
    /// Consumed this many bytes and entered this state.
    Passed(usize, State),
    /// The window ends too early to decide.
    Starved,
}

impl RowSplitter {
    pub(crate) fn new(schema: Arc<Schema>, run_bytes: usize) -> RowSplitter {
        RowSplitter {
            schema,
            window: Vec::new(),
            state: State::Start,
            tables: Vec::new(),
            run: Vec::new(),
            run_bytes,
            comment: None,
        }
    }

    /// Accepts the next piece and appends the runs that it completes to `runs`.
    pub(crate) fn feed(
        &mut self,
        piece: &[u8],
        runs: &mut VecDeque<RowText>,
    ) -> Result<(), Irregular> {
        self.window.extend_from_slice(piece);
        let mut at = 0;
        while let Step::Passed(passed, state) = self.step(at)? {
            if let State::Table { id, .. } = self.state {
                let is_row = matches!(state, State::Table { .. });
                if is_row {
                    self.add_row(at, passed);
                }
                if !is_row || self.run.len() >= self.run_bytes {
                    self.end_run(id, runs);
                }
            }
            self.state = state;
            at += passed;
        }
        self.window.drain(..at);
        if self.window.len() > WINDOW_BYTES_MAX {
            return Err(Irregular);
        }
        Ok(())
    }

    /// Whether the body is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::End && self.window.is_empty()
    }

    /// The record's comment, if there is one and it is a text.
    pub(crate) fn take_comment(&mut self) -> Option<String> {
        let json = self.comment.take()?;
        let text = Reader::new(&json).string().ok()?.into_owned();
        String::from_utf8(text).ok()
    }

    /// Appends the row just consumed to the run, with a comma before it unless it is the first.
    fn add_row(&mut self, at: usize, passed: usize) {
        let text = &self.window[at..at + passed];
        let text = &text[blanks(text)..];
        if self.run.is_empty() {
            self.run.reserve(self.run_bytes + self.run_bytes / 8);
            self.run.push(b'{');
            self.run
                .extend_from_slice(text.strip_prefix(b",").unwrap_or(text));
        } else {
            self.run.extend_from_slice(text);
        }
    }

    fn end_run(&mut self, table: TableId, runs: &mut VecDeque<RowText>) {
        if !self.run.is_empty() {
            self.run.push(b'}');
            let text = std::mem::take(&mut self.run);
            runs.push_back(RowText { table, text });
        }
    }

    /// Consumes one token: a bracket, a member, or a row.
    fn step(&mut self, at: usize) -> Result<Step, Irregular> {
        let window = &self.window[at..];
        let blank = blanks(window);
        let Some(&first) = window.get(blank) else {
            // Only white space is left, perhaps after the end of the body.
            return Ok(match self.state {
                State::End if blank > 0 => Step::Passed(blank, State::End),
                _ => Step::Starved,
            });
        };
        let next = blank + 1;
        match (self.state, first) {
            (State::Start, b'{') => Ok(Step::Passed(next, State::Body { any: false })),
            (State::Body { .. }, b'}') => Ok(Step::Passed(next, State::End)),
            (State::Table { .. }, b'}') => Ok(Step::Passed(next, State::Body { any: true })),
            (State::Body { any } | State::Table { any, .. }, b',') if any => self.member(at, next),
            (State::Body { any } | State::Table { any, .. }, _) if !any => self.member(at, blank),
            _ => Err(Irregular),
        }
    }

    /// Consumes a member whose name comes next, up to its value if that is a table.
    fn member(&mut self, at: usize, start: usize) -> Result<Step, Irregular> {
        let window = &self.window[at..];
        let Some((name, value)) = name_and_value(&window[start..])? else {
            return Ok(Step::Starved);
        };
        let value = start + value;
        let mut reader = Reader::trusted(&window[value..]);
        let kind = reader.peek().map_err(|_| Irregular)?;
        if let State::Table { id, .. } = self.state {
            if kind != Kind::Object {
                return Err(Irregular);
            }
            // The decoder checks the row itself. A failure to skip it means that its end has not
            // arrived.
            return Ok(match reader.skip() {
                Ok(row) => Step::Passed(value + row.len(), State::Table { id, any: true }),
                Err(_) => Step::Starved,
            });
        }
        let is_special = matches!(
            (name, kind),
            (b"\"_date\"", Kind::Number) | (b"\"_is_diff\"", Kind::Bool) | (b"\"_comment\"", _)
        );
        if is_special {
            let is_comment = name == b"\"_comment\"";
            let Some(length) = special(&window[value..], name == b"\"_date\"")? else {
                return Ok(Step::Starved);
            };
            if is_comment {
                self.comment = Some(window[value..value + length].to_vec());
            }
            return Ok(Step::Passed(value + length, State::Body { any: true }));
        }
        let id = std::str::from_utf8(&name[1..name.len() - 1])
            .ok()
            .and_then(|name| self.schema.table_id(name))
            .filter(|id| kind == Kind::Object && !self.tables.contains(id))
            .ok_or(Irregular)?;
        let bracket = value + reader.offset() + 1;
        self.tables.push(id);
        Ok(Step::Passed(bracket, State::Table { id, any: false }))
    }
}

/// The number of white-space bytes at the beginning of `text`.
fn blanks(text: &[u8]) -> usize {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    text.iter()
        .position(|byte| !is_blank(byte))
        .unwrap_or(text.len())
}

/// A quoted name without escapes, and the offset of its value; `None` if more bytes are needed.
fn name_and_value(window: &[u8]) -> Result<Option<(&[u8], usize)>, Irregular> {
    let start = blanks(window);
    let text = &window[start..];
    if !text.is_empty() && text[0] != b'"' {
        return Err(Irregular);
    }
    let Some(close) = text
        .get(1..)
        .and_then(|text| memchr::memchr2(b'"', b'\\', text))
    else {
        return Ok(None);
    };
    let (name, rest) = text.split_at(close + 2);
    if name[close + 1] == b'\\' {
        return Err(Irregular);
    }
    let blank = blanks(rest);
    match rest.get(blank) {
        None => return Ok(None),
        Some(b':') => {}
        Some(_) => return Err(Irregular),
    }
    let value = blank + 1;
    let blank = blanks(&rest[value..]);
    if value + blank == rest.len() {
        return Ok(None);
    }
    Ok(Some((name, start + name.len() + value + blank)))
}

/// Length of the value of a special member; `None` if more bytes are needed. A date must be an
/// integer.
fn special(window: &[u8], is_date: bool) -> Result<Option<usize>, Irregular> {
    let mut reader = Reader::new(window);
    let outcome = if is_date {
        match reader.number() {
            Ok(Number::Real(_)) if reader.offset() < window.len() => return Err(Irregular),
            outcome => outcome.map(|_| ()),
        }
    } else {
        reader.skip().map(|_| ())
    };
    // A value that ends with the window may continue in the next piece.
    let length = reader.offset();
    Ok((outcome.is_ok() && length < window.len()).then_some(length))
}
