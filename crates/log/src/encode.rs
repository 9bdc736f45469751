//! Record bodies: a commit's changes, and the schema of record 0 (docs/spec/storage.md 3 and 4).
//!
//! A record holds only data that must survive a restart. Ephemeral columns, `_uuid` and `_version`
//! stay out, and a commit without persistent changes makes no record. The cost is proportional to
//! the delta. The code that commits calls this module; time is an input.

use corvid_data::{Delta, RowChange, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::write;

use crate::commit_ids::END_COMMENT;
use crate::{Magic, Record};

/// The special members of a transaction record.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// Wall-clock time of the commit, ms since the Unix epoch.
    pub date_ms: i64,
    /// `_comment`; omitted if empty.
    pub comment: &'a str,
    /// Whether modified rows carry differences (`_is_diff`). Otherwise they carry the full new
    /// values of changed columns, as readers older than 2.15 need them.
    pub is_diff: bool,
    /// Whether inserted rows include columns with default values. Readers do not need them, but
    /// they help a person who reads a backup.
    pub with_defaults: bool,
}

/// Whether `delta` makes a record, because something persistent changed.
#[must_use]
pub fn is_recorded(schema: &Schema, delta: &Delta) -> bool {
    let mut changes = delta.changes.iter();
    changes.any(|change| is_written(schema.table(change.table), change))
}

fn is_written(table: &TableSchema, change: &RowChange) -> bool {
    change.old.is_none() || change.new.is_none() || has_persistent_diff(table, change)
}

/// Appends the record of `delta`. Returns its bytes, or `None`, with nothing appended, if nothing
/// persistent changed and it records no end of a transaction ([`END_COMMENT`]).
pub fn write_transaction(
    out: &mut Vec<u8>,
    schema: &Schema,
    delta: &Delta,
    date_ms: i64,
    is_diff: bool,
) -> Option<usize> {
    let record = Record::begin(out, Magic::Standalone);
    write_commit(record, schema, delta, date_ms, is_diff)
}

/// Like [`write_transaction`], for a record of about `bytes` bytes: reserves that much memory at
/// once.
pub fn write_long_transaction(
    out: &mut Vec<u8>,
    schema: &Schema,
    delta: &Delta,
    date_ms: i64,
    is_diff: bool,
    bytes: usize,
) -> Option<usize> {
    let record = Record::begin_long(out, Magic::Standalone, bytes);
    write_commit(record, schema, delta, date_ms, is_diff)
}

fn write_commit(
    mut record: Record<'_>,
    schema: &Schema,
    delta: &Delta,
    date_ms: i64,
    is_diff: bool,
) -> Option<usize> {
    let comment = &delta.comment;
    let wrote = write_body(
        record.body(),
        schema,
        delta,
        &Stamp {
            date_ms,
            comment,
            is_diff,
            with_defaults: false,
        },
    );
    let is_end = delta.is_empty() && comment.starts_with(END_COMMENT);
    (wrote || is_end).then(|| record.finish())
}

/// Appends record 0. Returns its bytes.
pub fn write_schema(out: &mut Vec<u8>, schema: &Schema) -> usize {
    let mut record = Record::begin(out, Magic::Standalone);
    schema.to_json().write(record.body());
    record.finish()
}

/// Appends the object of a transaction; `false` if it has no row.
pub(crate) fn write_body(
    out: &mut Vec<u8>,
    schema: &Schema,
    delta: &Delta,
    stamp: &Stamp<'_>,
) -> bool {
    write_head(out, stamp);
    let mut tables = Tables::default();
    for change in &delta.changes {
        let table = schema.table(change.table);
        if !is_written(table, change) {
            continue;
        }
        tables.row(out, schema, change.table, change.uuid);
        write_change(out, table, change, stamp.is_diff);
    }
    tables.finish(out)
}

/// Appends the opening brace and the special members; the members of tables follow.
pub(crate) fn write_head(out: &mut Vec<u8>, stamp: &Stamp<'_>) {
    out.push(b'{');
    if !stamp.comment.is_empty() {
        out.extend_from_slice(b"\"_comment\":");
        write::string(out, stamp.comment.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"_date\":");
    write::integer(out, stamp.date_ms);
    if stamp.is_diff {
        out.extend_from_slice(b",\"_is_diff\":true");
    }
}

/// The punctuation between rows, which arrive grouped by table.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    open: Option<TableId>,
    closed: Vec<TableId>,
}

impl Tables {
    /// Appends the separator and the name of row `uuid`, and opens its table if this is the table's
    /// first row.
    pub(crate) fn row(&mut self, out: &mut Vec<u8>, schema: &Schema, table: TableId, uuid: Uuid) {
        if self.open == Some(table) {
            out.push(b',');
        } else {
            if let Some(previous) = self.open.replace(table) {
                out.push(b'}');
                self.closed.push(previous);
            }
            // A repeated member name would hide the table's earlier rows from every reader.
            assert!(
                !self.closed.contains(&table),
                "rows of a delta are grouped by table"
            );
            out.push(b',');
            write::identifier(out, schema.table(table).name.as_bytes());
            out.extend_from_slice(b":{");
        }
        out.push(b'"');
        out.extend_from_slice(&uuid.to_text());
        out.extend_from_slice(b"\":");
    }

    /// Closes the last table and the object; `false` if there was no row.
    pub(crate) fn finish(self, out: &mut Vec<u8>) -> bool {
        if self.open.is_some() {
            out.push(b'}');
        }
        out.push(b'}');
        self.open.is_some()
    }
}

fn has_persistent_diff(table: &TableSchema, change: &RowChange) -> bool {
    change
        .diffs
        .iter()
        .any(|diff| table.column(diff.column).persistent)
}

fn write_change(out: &mut Vec<u8>, table: &TableSchema, change: &RowChange, is_diff: bool) {
    let Some(new) = &change.new else {
        out.extend_from_slice(b"null");
        return;
    };
    if change.old.is_none() {
        write_row(out, table, new, false);
        return;
    }
    let mut separator = b'{';
    for diff in change
        .diffs
        .iter()
        .filter(|diff| table.column(diff.column).persistent)
    {
        let column = table.column(diff.column);
        let datum = if is_diff {
            &diff.diff
        } else {
            &new.columns[usize::from(diff.column.0)]
        };
        out.push(separator);
        separator = b',';
        write::identifier(out, column.name.as_bytes());
        out.push(b':');
        wire::write_datum(out, datum, column.column_type.is_map());
    }
    out.push(b'}');
}

/// Appends a whole row: its persistent columns, without default values unless `with_defaults`.
pub(crate) fn write_row(
    out: &mut Vec<u8>,
    table: &TableSchema,
    row: &corvid_data::Row,
    with_defaults: bool,
) {
    out.push(b'{');
    let empty = out.len();
    for (column, datum) in table.columns().iter().zip(&row.columns) {
        let is_left_out = !with_defaults && datum.is_default(&column.column_type);
        if !column.persistent || is_left_out {
            continue;
        }
        if out.len() > empty {
            out.push(b',');
        }
        write::identifier(out, column.name.as_bytes());
        out.push(b':');
        wire::write_datum(out, datum, column.column_type.is_map());
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests;
