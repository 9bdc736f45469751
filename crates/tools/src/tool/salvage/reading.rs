//! Goes through a damaged file of either kind, and applies the pieces found to [`Contents`].

use std::ops::Range;
use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_json::{Reader, Value};
use corvid_log::Magic;
use corvid_log::cluster::{Header, Kind, Record};
use corvid_log::salvage::fragments;
use corvid_log::salvage::pieces::{Piece, Pieces, Restored};
use memchr::memmem;

use super::Contents;
use crate::failure::{Failure, shown};
use crate::uuids::RandomUuids;

/// The outcome of reading a damaged file.
#[derive(Debug)]
pub(crate) struct Salvaged {
    /// The rows, not repaired yet.
    pub(crate) contents: Contents,
    /// The number of records that were read, including damaged ones that were restored.
    pub(crate) records: u64,
    /// One line for each restored record.
    pub(crate) restored: Vec<String>,
    /// The number of places that no longer hold a record.
    pub(crate) lost: u64,
}

/// Reads `file`, whose name is `name`. `schema`, if given, replaces the file's own.
///
/// # Errors
/// There is no schema.
pub(crate) fn read(
    name: &Path,
    file: &[u8],
    magic: Magic,
    schema: Option<Schema>,
    uuids: &mut RandomUuids,
) -> Result<Salvaged, Failure> {
    let mut salvage = Reading {
        file,
        magic,
        contents: schema.map(|schema| Contents::new(Arc::new(schema))),
        entries: Vec::new(),
        restored: Vec::new(),
        losses: Vec::new(),
        records: 0,
        lost: 0,
    };
    for (number, (range, piece)) in Pieces::new(file, magic).enumerate() {
        salvage.piece(number, range, piece, uuids)?;
    }
    salvage.finish(&shown(name), uuids)
}

/// A change of the database.
#[derive(Debug)]
struct Change {
    /// The name of the change's record in messages.
    source: String,
    /// A new schema.
    schema: Option<Schema>,
    /// The text of a transaction, or of all rows if there is a schema; `None`: the rows stay, under
    /// the new schema.
    rows: Option<Vec<u8>>,
}

struct Reading<'f> {
    file: &'f [u8],
    magic: Magic,
    /// `None` until the schema is found.
    contents: Option<Contents>,
    /// For a member's file: the log, which later entries may truncate. Ordered by index, if that is
    /// known.
    entries: Vec<(u64, Change)>,
    restored: Vec<String>,
    /// The losses listed before there are contents to hold them.
    losses: Vec<String>,
    records: u64,
    lost: u64,
}

impl Reading<'_> {
    fn piece(
        &mut self,
        number: usize,
        range: Range<usize>,
        piece: Piece,
        uuids: &mut RandomUuids,
    ) -> Result<(), Failure> {
        let file = self.file;
        let source = format!("record {number} at offset {}", range.start);
        match piece {
            Piece::Record { body, restored } => {
                self.records += 1;
                let text = match &restored {
                    None => &file[body],
                    Some((text, what)) => {
                        let what = match what {
                            Restored::Bit => "one bit had changed",
                            Restored::Line => "its header line is damaged",
                        };
                        self.restored.push(format!("{source}: restored, {what}"));
                        &text[..]
                    }
                };
                self.record(number, source, text, uuids)
            }
            Piece::Lost => {
                self.lost += 1;
                let bytes = range.len();
                let line = format!(
                    "{source}: {bytes} bytes are damaged; rows that can be read in them may hold wrong values"
                );
                self.losses.push(line);
                self.damaged(number, source, &file[range], uuids)
            }
        }
    }

    /// Applies a record whose body has the right hash.
    fn record(
        &mut self,
        number: usize,
        source: String,
        text: &[u8],
        uuids: &mut RandomUuids,
    ) -> Result<(), Failure> {
        if self.magic == Magic::Standalone {
            if number > 0 {
                return self.change(transaction(source, text), uuids);
            }
            let schema = Value::parse(text).ok();
            let schema = schema.and_then(|json| Schema::from_json(&json).ok());
            return self.begin(&source, schema);
        }
        if number == 0 {
            let header = Header::decode(text)?;
            let Some(snapshot) = header.snapshot() else {
                let details = "the server has not joined its cluster, so there are no contents";
                return Err(Failure::new(details));
            };
            return match change_of(source, snapshot.data.json()) {
                Some(change) => self.change(change, uuids),
                None => Err(Failure::new("the header of the file has no contents")),
            };
        }
        match Record::decode(text) {
            Ok(record) => {
                if let Kind::Entry(entry) = record.kind {
                    let index = entry.index.0;
                    self.entries.retain(|(earlier, _)| *earlier < index);
                    let change = entry
                        .payload
                        .and_then(|payload| change_of(source, payload.data.json()));
                    self.entries.extend(change.map(|change| (index, change)));
                }
            }
            Err(error) => self.losses.push(format!("{source}: {error}")),
        }
        Ok(())
    }

    /// Applies bytes that no longer form a record.
    fn damaged(
        &mut self,
        number: usize,
        source: String,
        text: &[u8],
        uuids: &mut RandomUuids,
    ) -> Result<(), Failure> {
        if self.magic == Magic::Standalone {
            if number > 0 {
                return self.change(transaction(source, text), uuids);
            }
            let begin = memmem::find(text, b"\n{").map_or(0, |at| at + 1);
            return self.begin(&source, schema_of(&text[begin..]).map(|(schema, _)| schema));
        }
        // An entry whose position is lost follows the previous one.
        let index = self.entries.last().map_or(0, |(index, _)| index + 1);
        let member = [&b"\"prev_data\":"[..], b"\"data\":"];
        let begins = member.map(|name| memmem::find(text, name).map(|at| at + name.len()));
        let change = match begins.into_iter().flatten().next() {
            Some(begin) => change_of(source, &text[begin..]),
            None => Some(transaction(source, text)),
        };
        match change {
            Some(change) if number == 0 => self.change(change, uuids),
            Some(change) => {
                self.entries.push((index, change));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Record 0 of a standalone file.
    fn begin(&mut self, source: &str, schema: Option<Schema>) -> Result<(), Failure> {
        match schema {
            // The user's schema is used instead.
            _ if self.contents.is_some() => Ok(()),
            Some(schema) => {
                self.contents = Some(Contents::new(Arc::new(schema)));
                Ok(())
            }
            None => Err(Failure::new(format!(
                "{source} holds no schema that can be read: name a file with the schema as the third argument"
            ))),
        }
    }

    fn change(&mut self, change: Change, uuids: &mut RandomUuids) -> Result<(), Failure> {
        let Change {
            source,
            schema,
            rows,
        } = change;
        match (schema, &mut self.contents, rows) {
            (Some(schema), contents, Some(rows)) => {
                // All rows, under this schema: everything before is superseded.
                let mut all = Contents::new(Arc::new(schema));
                all.apply(fragments::read(&rows, &all.schema.clone()), &source);
                *contents = Some(all);
            }
            (Some(schema), Some(contents), None) => contents.convert(schema, uuids)?,
            (None, Some(contents), Some(rows)) => {
                let found = fragments::read(&rows, &contents.schema.clone());
                contents.apply(found, &source);
            }
            (None, _, None) => {}
            (_, None, _) => {
                return Err(Failure::new(format!(
                    "no schema can be read before {source}: name a file with the schema as the third argument"
                )));
            }
        }
        Ok(())
    }

    fn finish(mut self, name: &str, uuids: &mut RandomUuids) -> Result<Salvaged, Failure> {
        for (_, change) in std::mem::take(&mut self.entries) {
            self.change(change, uuids)?;
        }
        let Some(mut contents) = self.contents else {
            return Err(Failure::new(format!("{name}: there is no schema in it")));
        };
        self.losses.append(&mut contents.losses);
        contents.losses = self.losses;
        Ok(Salvaged {
            contents,
            records: self.records,
            restored: self.restored,
            lost: self.lost,
        })
    }
}

fn transaction(source: String, text: &[u8]) -> Change {
    Change {
        source,
        schema: None,
        rows: Some(text.to_vec()),
    }
}

/// A change from the text of `[null,T]`, `[S,T]` or `[S,null]`, whose end may be damaged.
fn change_of(source: String, text: &[u8]) -> Option<Change> {
    let text = text.trim_ascii_start().strip_prefix(b"[")?;
    let (schema, rest) = match text.trim_ascii_start().strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (schema, length) = schema_of(text)?;
            (Some(schema), &text[length..])
        }
    };
    let rest = rest.trim_ascii_start().strip_prefix(b",")?;
    let is_null = rest.trim_ascii_start().starts_with(b"null");
    Some(Change {
        source,
        schema,
        rows: (!is_null).then(|| rest.to_vec()),
    })
}

/// The schema at the beginning of a text, and its length.
fn schema_of(text: &[u8]) -> Option<(Schema, usize)> {
    let mut reader = Reader::new(text);
    reader.skip().ok()?;
    let length = reader.offset();
    let json = Value::parse(&text[..length]).ok()?;
    Some((Schema::from_json(&json).ok()?, length))
}
