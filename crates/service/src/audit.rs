//! The audit trail: who did what to which database, as JSON, one object per line.
//!
//! The database makes an [`Entry`] when it releases a commit, refuses a transaction because its
//! client lacks a right, cannot store a commit, or is converted. An entry shares the commit's
//! delta, so making one costs the same for any number of rows. A separate thread writes entries
//! out. Operators rely on the format: `docs/operate/audit.md` describes it. Nothing here knows
//! files or clocks; the caller formats dates.

mod exclusions;

use std::sync::Arc;

use corvid_data::diff::{Change, changes};
use corvid_data::wire::{write_atom, write_datum};
use corvid_data::{ColumnSchema, Datum, Delta, Row, RowChange, Schema, TableSchema, Tag, Uuid};
use corvid_engine::OperationKind;
use corvid_json::write;
use corvid_json::writer::{ArrayWriter, ObjectWriter};
use corvid_log::cluster::Sid;
use corvid_log::commit_client;
use corvid_monitor::SessionId;

use crate::message::SessionInfo;
pub use exclusions::{Excluded, Exclusions};

/// Rows per record; a larger transaction has several records.
const ROWS_PER_RECORD: usize = 1000;

/// Columns with up to this many elements are shown before and after; of larger ones, only the
/// elements added and removed.
const WHOLE_MAX: usize = 64;

/// Longest text of a refused request, bytes; longer ones are truncated, since their client may not
/// even write.
const TEXT_BYTES_MAX: usize = 1024;

/// Approximate memory of an entry and of each row, in addition to values, bytes.
const ENTRY_BYTES: usize = 512;
const ROW_BYTES: usize = 256;
const TEXT_OVERHEAD_BYTES: usize = 24;

/// One entry of the trail.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Date of the entry, ms since the Unix epoch.
    pub date_ms: i64,
    /// The database's schema at that time.
    pub schema: corvid_data::Arc<Schema>,
    /// The actor.
    pub who: Actor,
    /// The action.
    pub what: Action,
}

/// The actor of an entry.
#[derive(Clone, Debug)]
pub enum Actor {
    /// A client.
    Client(SessionId, Arc<SessionInfo>),
    /// The client of a trusted relay: the relay's session, and the client as the relay describes
    /// it, a JSON object.
    RelayedClient(SessionId, Arc<SessionInfo>, Arc<str>),
    /// The server itself, mostly for the status of remotes.
    Server,
    /// The active server of which this one is a backup; it knows the client.
    Source,
    /// Another member of the cluster: the one that forwarded the transaction, or the leader. Its
    /// audit log names the client or the next member. `None` if the transaction was committed
    /// before this member knew a leader.
    Member(Option<Sid>),
}

/// A text of a refused request in the audit trail: beyond a kilobyte it is truncated, and ends with
/// the number of missing bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortText(String);

impl ShortText {
    /// Truncates a text if it is too long.
    #[must_use]
    pub fn of(text: &str) -> ShortText {
        if text.len() <= TEXT_BYTES_MAX {
            return ShortText(text.to_owned());
        }
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        ShortText(format!(
            "{}... ({} more bytes)",
            &text[..end],
            text.len() - end
        ))
    }

    /// Whether this names an operation that may change rows: not `commit`, unlike
    /// [`OperationKind::is_writing`].
    pub(crate) fn is_writing(&self) -> bool {
        OperationKind::of(self.as_bytes()).is_none_or(|kind| kind.action().is_some())
    }

    fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The action of an entry.
#[derive(Clone, Debug)]
pub enum Action {
    /// A transaction changed rows.
    Committed {
        /// The transaction's id, as `monitor_cond_since` gives it.
        txn: Uuid,
        /// The changed rows.
        delta: corvid_data::Arc<Delta>,
        /// Length of the commit's record in the file, bytes.
        record_bytes: usize,
    },
    /// A transaction would have changed rows, but could not be stored and has been undone.
    Unstored {
        /// The rows that would have changed.
        delta: corvid_data::Arc<Delta>,
        /// Length of the record that could not be written, bytes.
        record_bytes: usize,
        /// The error.
        details: String,
    },
    /// A transaction was refused because its client lacks a right.
    Denied {
        /// The kind of right that is missing.
        tag: Tag,
        /// The error's details, as the client got them.
        details: ShortText,
        /// Name and table of each operation, as far as the request has them.
        operations: Vec<(ShortText, ShortText)>,
        /// The transaction's comments.
        comment: ShortText,
    },
    /// A relay has forwarded a request that changes something, and the request has ended. The
    /// source's audit log has the rows.
    Relayed {
        /// True if the source has confirmed the request. False if the connection was lost: the
        /// source may have executed it.
        is_certain: bool,
        /// Name and table of each operation that writes.
        operations: Vec<(ShortText, ShortText)>,
        /// The transaction's comments.
        comment: ShortText,
    },
    /// The database now has the schema of this entry.
    Converted,
}

impl Entry {
    /// Approximate memory of the entry, bytes. Replaced and deleted values do not count: earlier
    /// entries or the tables hold them anyway.
    #[must_use]
    pub fn weight(&self) -> usize {
        let more = match &self.what {
            Action::Committed {
                delta,
                record_bytes,
                ..
            }
            | Action::Unstored {
                delta,
                record_bytes,
                ..
            } => delta.changes.len() * ROW_BYTES + record_bytes,
            Action::Denied {
                details,
                operations,
                comment,
                ..
            } => texts_weight(operations, &[details, comment]),
            Action::Relayed {
                operations,
                comment,
                ..
            } => texts_weight(operations, &[comment]),
            Action::Converted => 0,
        };
        ENTRY_BYTES + more
    }

    /// Appends the entry's records, each with a newline, and calls `written` after each. Writes
    /// nothing if all rows are excluded. `time` is the entry's date.
    pub fn write(
        &self,
        time: &str,
        exclusions: &Exclusions,
        out: &mut Vec<u8>,
        written: &mut impl FnMut(&mut Vec<u8>),
    ) {
        match &self.what {
            Action::Committed { txn, delta, .. } => {
                let outcome = [("outcome", &b"committed"[..]), ("txn", &txn.to_text())];
                self.write_rows(time, exclusions, delta, &outcome, out, written);
                return;
            }
            Action::Unstored { delta, details, .. } => {
                let outcome = [("outcome", &b"failed"[..]), ("error", details.as_bytes())];
                self.write_rows(time, exclusions, delta, &outcome, out, written);
                return;
            }
            Action::Denied {
                tag,
                details,
                operations,
                comment,
            } => {
                let mut object = self
                    .head(time, out)
                    .string("outcome", b"denied")
                    .string("error", tag.text().as_bytes())
                    .string("details", details.as_bytes());
                object = with_comment(object, &comment.0);
                write_operations(object.member("operations"), operations);
                object.end();
            }
            Action::Relayed {
                is_certain,
                operations,
                comment,
            } => {
                let excluded = exclusions.of(&self.schema);
                let is_included = |(_, table): &(ShortText, ShortText)| {
                    let table = self.schema.table_id(&table.0);
                    table.is_none_or(|table| !excluded.has_table(table))
                };
                let included = operations.iter().filter(|it| is_included(it)).cloned();
                let included: Vec<_> = included.collect();
                if included.is_empty() && !operations.is_empty() {
                    return;
                }
                let outcome: &[u8] = match is_certain {
                    true => b"relayed",
                    false => b"unknown",
                };
                let object = self.head(time, out).string("outcome", outcome);
                let mut object = with_comment(object, &comment.0);
                write_operations(object.member("operations"), &included);
                object.end();
            }
            Action::Converted => {
                let object = self.head(time, out).string("outcome", b"converted");
                object
                    .string("version", self.schema.version.as_bytes())
                    .end();
            }
        }
        out.push(b'\n');
        written(out);
    }

    /// Writes the time, the database and the actor.
    fn head<'o>(&self, time: &str, out: &'o mut Vec<u8>) -> ObjectWriter<'o> {
        let mut object = ObjectWriter::new(out)
            .string("time", time.as_bytes())
            .string("database", self.schema.name.as_bytes());
        self.who.write(object.member("who"));
        object
    }

    fn write_rows(
        &self,
        time: &str,
        exclusions: &Exclusions,
        delta: &Delta,
        outcome: &[(&str, &[u8])],
        out: &mut Vec<u8>,
        written: &mut impl FnMut(&mut Vec<u8>),
    ) {
        let excluded = exclusions.of(&self.schema);
        let is_included = |change: &&RowChange| !excluded.has_table(change.table);
        let included: Vec<&RowChange> = delta.changes.iter().filter(is_included).collect();
        let parts = included.len().div_ceil(ROWS_PER_RECORD);
        for (number, rows) in included.chunks(ROWS_PER_RECORD).enumerate() {
            let mut object = self.head(time, out);
            for (name, value) in outcome {
                object = object.string(name, value);
            }
            object = with_comment(object, commit_client::split(&delta.comment).1);
            if parts > 1 {
                write::integer(object.member("part"), number as i64 + 1);
                write::integer(object.member("parts"), parts as i64);
            }
            if included.len() < delta.changes.len() {
                let left_out = delta.changes.len() - included.len();
                write::integer(object.member("excluded"), left_out as i64);
            }
            let mut list = ArrayWriter::new(object.member("rows"));
            for change in rows {
                write_row(&self.schema, &excluded, change, list.element());
            }
            list.end();
            object.end();
            out.push(b'\n');
            written(out);
        }
    }
}

/// Approximate memory of an entry's texts, bytes.
fn texts_weight(operations: &[(ShortText, ShortText)], others: &[&ShortText]) -> usize {
    let names = operations.iter().flat_map(|(op, table)| [op, table]);
    let texts = names.chain(others.iter().copied());
    texts.map(|text| TEXT_OVERHEAD_BYTES + text.0.len()).sum()
}

fn write_operations(out: &mut Vec<u8>, operations: &[(ShortText, ShortText)]) {
    let mut list = ArrayWriter::new(out);
    for (operation, table) in operations {
        let object = ObjectWriter::new(list.element());
        let object = object.string("op", operation.as_bytes());
        object.string("table", table.as_bytes()).end();
    }
    list.end();
}

impl Actor {
    fn write(&self, out: &mut Vec<u8>) {
        let (session, info, told) = match self {
            Actor::Server => return ObjectWriter::new(out).string("peer", b"server").end(),
            Actor::Source => return ObjectWriter::new(out).string("peer", b"source").end(),
            Actor::Member(sid) => {
                let object = ObjectWriter::new(out).string("peer", b"member");
                return match sid {
                    Some(sid) => object.string("sid", sid.0.to_string().as_bytes()).end(),
                    None => object.end(),
                };
            }
            Actor::Client(session, info) => (session, info, None),
            Actor::RelayedClient(session, info, told) => (session, info, Some(told)),
        };
        let mut object = ObjectWriter::new(out).string("peer", info.peer.as_bytes());
        if let Some(client) = &info.client_id {
            object = object.string("client", client.as_bytes());
        }
        if !info.role.is_empty() {
            object = object.string("role", info.role.as_bytes());
        }
        object = object.string("remote", info.remote.as_bytes());
        object = object.string("session", format!("{:x}", session.0).as_bytes());
        if let Some(told) = told {
            object = object.raw("for", told.as_bytes());
        }
        object.end();
    }
}

fn with_comment<'o>(object: ObjectWriter<'o>, comment: &str) -> ObjectWriter<'o> {
    if comment.is_empty() {
        object
    } else {
        object.string("comment", comment.as_bytes())
    }
}

fn write_row(schema: &Schema, excluded: &Excluded, change: &RowChange, out: &mut Vec<u8>) {
    let table = schema.table(change.table);
    let mut object = ObjectWriter::new(out)
        .string("table", table.name.as_bytes())
        .string("uuid", &change.uuid.to_text());
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            object = object.string("op", b"update");
            let mut columns = ObjectWriter::new(object.member("columns"));
            for diff in &change.diffs {
                if excluded.has_column(change.table, diff.column) {
                    continue;
                }
                let column = table.column(diff.column);
                let at = usize::from(diff.column.0);
                let out = columns.member(column.name.as_bytes());
                write_change(column, &old.columns[at], &new.columns[at], out);
            }
            columns.end();
        }
        (None, Some(row)) => {
            object = object.string("op", b"insert");
            write_cells(table, excluded, change, row, object.member("after"));
        }
        (Some(row), None) => {
            object = object.string("op", b"delete");
            write_cells(table, excluded, change, row, object.member("before"));
        }
        (None, None) => {}
    }
    object.end();
}

/// Writes the columns of a row that differ from their defaults.
fn write_cells(
    table: &TableSchema,
    excluded: &Excluded,
    change: &RowChange,
    row: &Row,
    out: &mut Vec<u8>,
) {
    let mut cells = ObjectWriter::new(out);
    for (id, column) in table.iter() {
        let datum = &row.columns[usize::from(id.0)];
        if !excluded.has_column(change.table, id) && !datum.is_default(&column.column_type) {
            let out = cells.member(column.name.as_bytes());
            write_datum(out, datum, column.column_type.is_map());
        }
    }
    cells.end();
}

/// Writes a changed column: both values if they are small, otherwise the elements added and
/// removed.
fn write_change(column: &ColumnSchema, old: &Datum, new: &Datum, out: &mut Vec<u8>) {
    let is_map = column.column_type.is_map();
    let mut object = ObjectWriter::new(out);
    if old.len().max(new.len()) <= WHOLE_MAX {
        write_datum(object.member("before"), old, is_map);
        write_datum(object.member("after"), new, is_map);
        object.end();
        return;
    }
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    changes(old, new, &mut |change| match change {
        Change::Added(key, value) => added.push((key, value)),
        Change::Removed(key, value) => removed.push((key, value)),
        Change::Replaced(key, before, after) => {
            removed.push((key, Some(before)));
            added.push((key, Some(after)));
        }
    });
    for (name, elements) in [("removed", removed), ("added", added)] {
        let out = object.member(name);
        out.extend_from_slice(if is_map { b"[\"map\"," } else { b"[\"set\"," });
        let mut list = ArrayWriter::new(out);
        for (key, value) in elements {
            match value {
                None => write_atom(list.element(), key),
                Some(value) => {
                    let mut pair = ArrayWriter::new(list.element());
                    write_atom(pair.element(), key);
                    write_atom(pair.element(), value);
                    pair.end();
                }
            }
        }
        list.end();
        out.push(b']');
    }
    object.end();
}
