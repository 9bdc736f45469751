//! Changes as people read them, in the manner of `git log -p`.
//!
//! ```text
//! commit 5f36b2ea2906
//! Date:    2026-11-28T10:00:00.123Z
//! Client:  ssl:192.0.2.7:50122 (client "hv1", role "ovn-controller")
//!
//!     ovs-vsctl: set port p1 tag=6
//!
//! modify Port "p1" 5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11
//! - tag: 5
//! + tag: 6
//! ```

use std::io::{self, Write};

use bstr::BStr;
use corvid_data::{ColumnType, Datum, text};
use corvid_history::{ColumnChange, Event, RowChange};
use corvid_json::shown::Shown;
use corvid_shell::output;

use super::date_text;

/// Prints events and changes.
#[derive(Debug)]
pub(crate) struct Printer<W> {
    out: W,
    is_first: bool,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W) -> Printer<W> {
        Printer {
            out,
            is_first: true,
        }
    }

    /// Prints an event, after an empty line if it is not the first one.
    ///
    /// # Errors
    /// Writing failed.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.write_all(b"\n")?;
        }
        match event {
            Event::Begin {
                file,
                date_ms,
                changes,
            } => {
                writeln!(self.out, "history begins with the contents of {file}")?;
                self.date(*date_ms)?;
                self.changes(changes)
            }
            Event::Gap {
                file,
                date_ms,
                changes,
            } => {
                writeln!(
                    self.out,
                    "commits are missing before {file}; their changes together:"
                )?;
                self.date(*date_ms)?;
                self.changes(changes)
            }
            Event::Schema {
                date_ms, old, new, ..
            } => {
                writeln!(
                    self.out,
                    "conversion from schema version {} to {}",
                    version(&old.version),
                    version(&new.version)
                )?;
                self.date(*date_ms)
            }
            Event::Commit {
                id,
                date_ms,
                client,
                comment,
                is_confirmed,
                changes,
                ..
            } => {
                let note = if *is_confirmed {
                    ""
                } else {
                    " (not known to be committed)"
                };
                writeln!(self.out, "commit {id}{note}")?;
                self.date(*date_ms)?;
                if let Some(client) = client {
                    writeln!(self.out, "Client:  {}", output::part(&client.to_string()))?;
                }
                if let Some(comment) = comment {
                    self.out.write_all(b"\n")?;
                    for line in comment.split('\n') {
                        writeln!(self.out, "    {}", output::part(line))?;
                    }
                }
                self.changes(changes)
            }
        }
    }

    /// Prints changes, each after an empty line.
    ///
    /// # Errors
    /// Writing failed.
    pub(crate) fn changes(&mut self, changes: &[RowChange]) -> io::Result<()> {
        for change in changes {
            self.out.write_all(b"\n")?;
            self.change(change)?;
        }
        Ok(())
    }

    /// Prints the change of a row.
    ///
    /// # Errors
    /// Writing failed.
    pub(crate) fn change(&mut self, change: &RowChange) -> io::Result<()> {
        let op = match (&change.old, &change.new) {
            (None, _) => "insert",
            (Some(_), Some(_)) => "modify",
            (Some(_), None) => "delete",
        };
        let table = change.table();
        let uuid: String = change.uuid.to_text().map(char::from).iter().collect();
        write!(self.out, "{op} {} ", table.name)?;
        if let Some(name) = change.name() {
            write!(self.out, "\"{}\" ", Shown(BStr::new(name)))?;
        }
        writeln!(self.out, "{uuid}")?;
        for (at, column) in change.columns() {
            let described = &table.columns()[at];
            let (name, column_type) = (&*described.name, &described.column_type);
            match &column {
                ColumnChange::Value { old, new } => {
                    if change.old.is_some() {
                        self.value('-', name, old, column_type)?;
                    }
                    if change.new.is_some() {
                        self.value('+', name, new, column_type)?;
                    }
                }
                ColumnChange::Elements { removed, added } => {
                    for (sign, elements) in [('-', removed), ('+', added)] {
                        if !elements.is_empty() {
                            self.value(sign, name, elements, column_type)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn date(&mut self, date_ms: Option<i64>) -> io::Result<()> {
        match date_ms {
            Some(date_ms) => writeln!(self.out, "Date:    {}", date_text(date_ms)),
            None => Ok(()),
        }
    }

    fn value(
        &mut self,
        sign: char,
        name: &str,
        datum: &Datum,
        column_type: &ColumnType,
    ) -> io::Result<()> {
        let mut value = String::new();
        text::write_datum(&mut value, datum, column_type);
        writeln!(self.out, "{sign} {name}: {}", output::part(&value))
    }
}

impl Printer<Vec<u8>> {
    /// Takes what was printed since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// A schema's version, which may be missing.
fn version(version: &str) -> &str {
    match version {
        "" => "(none)",
        version => version,
    }
}
