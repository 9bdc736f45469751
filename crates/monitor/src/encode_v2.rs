//! `<table-updates2>` of `monitor_cond`, `update2`, `monitor_cond_since` and `update3` (docs/spec/protocol.md 4.7): new rows without
//! defaults, modifications as differences.
//!
//! Cost: proportional to the change. A single commit's differences come from its delta; those of merged commits are computed here, skipping
//! the parts that old and new share. Called once per group and set of changes, for the selected events.

use corvid_data::{ColumnId, Datum, Delta, Row, TableSchema, Uuid};

use crate::body::{Body, RowWriter};
use crate::change_set::Entry;
use crate::subscription::{Event, TableSubscription};

/// Appends one row of the initial content.
pub(crate) fn initial(body: &mut Body, table: &TableSchema, asked: &TableSubscription, row: &Row) {
    write_new(body, table, asked, Event::Initial, row);
}

/// Appends a row that comes into view.
pub(crate) fn insert(body: &mut Body, table: &TableSchema, asked: &TableSubscription, row: &Row) {
    write_new(body, table, asked, Event::Insert, row);
}

/// Appends a row that leaves the view.
pub(crate) fn delete(body: &mut Body, table: &TableSchema, uuid: Uuid) {
    body.begin_row(table, uuid);
    body.out().extend_from_slice(b"{\"delete\":null}");
}

/// Appends one row's net change. `delta`: the commit of which `entry` is a change, if the change set has only one.
pub(crate) fn change(
    body: &mut Body,
    table: &TableSchema,
    asked: &TableSubscription,
    entry: &Entry,
    delta: Option<&Delta>,
) {
    match (&entry.old, &entry.new) {
        (None, Some(row)) => insert(body, table, asked, row),
        (Some(_), None) => delete(body, table, entry.uuid),
        (Some(old), Some(new)) => write_modify(body, table, asked, entry, (old, new), delta),
        (None, None) => {}
    }
}

/// `{"initial":ROW}` or `{"insert":ROW}`, columns at their default left out.
fn write_new(
    body: &mut Body,
    table: &TableSchema,
    asked: &TableSubscription,
    event: Event,
    row: &Row,
) {
    body.begin_row(table, row.uuid);
    let kind: &[u8] = if event == Event::Initial {
        b"{\"initial\":"
    } else {
        b"{\"insert\":"
    };
    body.out().extend_from_slice(kind);
    let mut writer = RowWriter::begin(body.out(), table);
    for column in asked.columns_for(event) {
        if !is_default(table, row, column) {
            writer.cell(row, column);
        }
    }
    writer.end();
    body.out().push(b'}');
}

fn is_default(table: &TableSchema, row: &Row, column: ColumnId) -> bool {
    match column {
        ColumnId::UUID => row.uuid == Uuid::ZERO,
        ColumnId::VERSION => row.version == Uuid::ZERO,
        ColumnId(own) => {
            row.columns[usize::from(own)].is_default(&table.column(column).column_type)
        }
    }
}

/// `{"modify":ROW}`, or nothing when no column that reports modifications differs.
fn write_modify(
    body: &mut Body,
    table: &TableSchema,
    asked: &TableSubscription,
    entry: &Entry,
    (old, new): (&Row, &Row),
    delta: Option<&Delta>,
) {
    let mark = body.mark();
    body.begin_row(table, entry.uuid);
    body.out().extend_from_slice(b"{\"modify\":");
    let mut writer = RowWriter::begin(body.out(), table);
    match delta {
        Some(delta) => {
            for diff in &delta.changes[entry.change].diffs {
                if asked.select_of(diff.column).has(Event::Modify) {
                    writer.datum(diff.column, &diff.diff);
                }
            }
        }
        None => write_differences(&mut writer, table, asked, (old, new)),
    }
    if asked.select_of(ColumnId::VERSION).has(Event::Modify) && old.version != new.version {
        writer.cell(new, ColumnId::VERSION);
    }
    if writer.end() {
        body.rewind(mark);
    } else {
        body.out().push(b'}');
    }
}

fn write_differences(
    writer: &mut RowWriter<'_>,
    table: &TableSchema,
    asked: &TableSubscription,
    (old, new): (&Row, &Row),
) {
    for column in asked.columns_for(Event::Modify) {
        if column.is_standard() {
            continue;
        }
        let own = usize::from(column.0);
        let (old, new) = (&old.columns[own], &new.columns[own]);
        if old.ptr_eq(new) {
            continue;
        }
        if let Some(diff) = Datum::diff(old, new, &table.column(column).column_type) {
            writer.datum(column, &diff);
        }
    }
}
