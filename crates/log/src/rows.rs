//! Cutting the body of a long record into runs of whole rows, while it arrives in pieces.
//!
//! Invariant: of what is passed over here, the frame around the rows, everything is checked; rows are checked by whoever decodes them.
//! Together they accept a body only if decoding it at once gives the same rows. Anything doubtful is [`Irregular`], never an error: what
//! is wrong is found out by reading the record at once. Called by [`crate::Feed`].

use std::collections::VecDeque;

use corvid_data::{Arc, Schema, TableId};
use corvid_json::{Kind, Number, Reader};

/// Bytes of rows in a run, about: a few hundred rows.
pub(crate) const RUN_BYTES: usize = 128 * 1024;
/// What cannot be passed over within this many bytes is not waited for: a longer row is left to who reads records at once.
const WINDOW_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A body that is not cut into rows: anything but insertions of distinct rows by distinct tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Irregular;

/// Rows of one table, as the text of one object.
#[derive(Debug)]
pub struct RowText {
    /// The table.
    pub table: TableId,
    pub(crate) text: Vec<u8>,
}

/// Takes a body in pieces.
#[derive(Debug)]
pub(crate) struct RowSplitter {
    schema: Arc<Schema>,
    /// What has arrived and is not passed yet.
    window: Vec<u8>,
    state: State,
    /// Tables that have come.
    tables: Vec<TableId>,
    /// The run under construction, a `{` first.
    run: Vec<u8>,
    /// A run of this many bytes is handed out.
    run_bytes: usize,
}

/// Where in the body the window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Between the members of the body; whether one has come.
    Body {
        any: bool,
    },
    /// Between the rows of a table; whether one has come.
    Table {
        id: TableId,
        any: bool,
    },
    /// Behind the body's end.
    End,
}

/// What became of one step over the window.
enum Step {
    /// So many bytes were passed, and this is where they led.
    Passed(usize, State),
    /// More bytes are needed to tell.
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
        }
    }

    /// Takes the next piece and hands out the runs that it completes.
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

    /// Whether the body has ended as it should.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::End && self.window.is_empty()
    }

    /// Appends the row that was passed to the run; a comma before it is part of it.
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

    /// Passes one thing: a bracket, or a member, or a row.
    fn step(&mut self, at: usize) -> Result<Step, Irregular> {
        let window = &self.window[at..];
        let blank = blanks(window);
        let Some(&first) = window.get(blank) else {
            // Blanks, behind the end also the last ones.
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

    /// Passes a member whose name comes next, up to where its value begins when that is a table.
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
            // It is checked when it is decoded; an object that does not end is one of which more is to come.
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
            return special(&window[value..], name == b"\"_date\"").map(|length| match length {
                Some(length) => Step::Passed(value + length, State::Body { any: true }),
                None => Step::Starved,
            });
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

/// How many bytes of white space `text` begins with.
fn blanks(text: &[u8]) -> usize {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    text.iter()
        .position(|byte| !is_blank(byte))
        .unwrap_or(text.len())
}

/// A name without escapes, in its quotes, and where the value behind it begins; `None` when more bytes are needed.
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

/// Length of the value of a special member; `None` when more bytes are needed. A date must be an integer.
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
    // A value at the very end of the window might go on.
    let length = reader.offset();
    Ok((outcome.is_ok() && length < window.len()).then_some(length))
}
