//! `<table-updates>` of `monitor` and `update` (docs/spec/protocol.md 4.6): whole rows, old and new.
//!
//! Cost: every selected column of a changed row, as the format requires. Called once per group and set of changes, for the selected events.

use corvid_data::{ColumnId, Delta, Row, TableSchema};

use crate::body::{Body, RowWriter};
use crate::change_set::Entry;
use crate::subscription::{Event, TableSubscription};

/// Appends one row of the initial content.
pub(crate) fn initial(body: &mut Body, table: &TableSchema, asked: &TableSubscription, row: &Row) {
    write_whole(body, table, asked, Event::Initial, row);
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
        (None, Some(row)) => write_whole(body, table, asked, Event::Insert, row),
        (Some(row), None) => write_whole(body, table, asked, Event::Delete, row),
        (Some(old), Some(new)) => write_modify(body, table, asked, entry, (old, new), delta),
        (None, None) => {}
    }
}

/// `{"new":ROW}` or `{"old":ROW}`.
fn write_whole(
    body: &mut Body,
    table: &TableSchema,
    asked: &TableSubscription,
    event: Event,
    row: &Row,
) {
    body.begin_row(table, row.uuid);
    body.out().push(b'{');
    write_row(body, table, asked, event, row);
    body.out().push(b'}');
}

fn write_row(
    body: &mut Body,
    table: &TableSchema,
    asked: &TableSubscription,
    event: Event,
    row: &Row,
) {
    let member: &[u8] = if event == Event::Delete {
        b"\"old\":"
    } else {
        b"\"new\":"
    };
    body.out().extend_from_slice(member);
    let mut writer = RowWriter::begin(body.out(), table);
    for column in asked.columns_for(event) {
        writer.cell(row, column);
    }
    writer.end();
}

/// `{"old":ROW1,"new":ROW2}`, or nothing when no column that reports modifications differs.
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
    body.out().extend_from_slice(b"{\"old\":");
    let mut writer = RowWriter::begin(body.out(), table);
    for column in asked.columns_for(Event::Modify) {
        if differs(entry, (old, new), column, delta) {
            writer.cell(old, column);
        }
    }
    if writer.end() {
        body.rewind(mark);
        return;
    }
    body.out().push(b',');
    write_row(body, table, asked, Event::Modify, new);
    body.out().push(b'}');
}

fn differs(
    entry: &Entry,
    (old, new): (&Row, &Row),
    column: ColumnId,
    delta: Option<&Delta>,
) -> bool {
    match (column, delta) {
        (ColumnId::UUID, _) => false,
        (ColumnId::VERSION, _) => old.version != new.version,
        (_, Some(delta)) => delta.changes[entry.change]
            .diffs
            .iter()
            .any(|diff| diff.column == column),
        (ColumnId(own), None) => {
            let own = usize::from(own);
            !old.columns[own].ptr_eq(&new.columns[own]) && old.columns[own] != new.columns[own]
        }
    }
}
