//! Encodes rows of `<table-updates>`, in one of two encodings:
//!
//! - [`Encoding::Rows`], for `monitor` and `update` (docs/spec/protocol.md 4.6): whole rows, old
//!   and new. Includes every selected column of a changed row, as the format requires.
//! - [`Encoding::Differences`], for `monitor_cond`, `update2`, `monitor_cond_since` and `update3`
//!   (docs/spec/protocol.md 4.7): new rows without defaults, modifications as differences.
//!   Proportional to the change. The differences of a single commit come from its delta. Those of
//!   merged commits are computed here, skipping the parts that old and new share.
//!
//! Called once per group and change set, for the selected events.

use corvid_data::{ColumnId, Datum, Delta, Row, TableSchema, Uuid};

use crate::body::{Body, RowWriter};
use crate::change_set::Entry;
use crate::group::Encoding;
use crate::subscription::{Event, TableSubscription};

impl Encoding {
    /// Appends one row of the initial contents.
    pub(crate) fn initial(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        row: &Row,
    ) {
        self.whole(body, table, asked, Event::Initial, row);
    }

    /// Appends a row that enters the view.
    pub(crate) fn insert(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        row: &Row,
    ) {
        self.whole(body, table, asked, Event::Insert, row);
    }

    /// Appends a row that leaves the view.
    pub(crate) fn delete(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        row: &Row,
    ) {
        match self {
            Encoding::Rows => self.whole(body, table, asked, Event::Delete, row),
            Encoding::Differences => {
                body.begin_row(table, row.uuid);
                body.out().extend_from_slice(b"{\"delete\":null}");
            }
        }
    }

    /// Appends one row's net change. `delta` is the commit that contains the change, if the change
    /// set covers only one.
    pub(crate) fn change(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        entry: &Entry,
        delta: Option<&Delta>,
    ) {
        match (&entry.old, &entry.new) {
            (None, Some(row)) => self.insert(body, table, asked, row),
            (Some(row), None) => self.delete(body, table, asked, row),
            (Some(old), Some(new)) => self.modify(body, table, asked, entry, (old, new), delta),
            (None, None) => {}
        }
    }

    /// Writes one member with a whole row.
    fn whole(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        event: Event,
        row: &Row,
    ) {
        body.begin_row(table, row.uuid);
        body.out().push(b'{');
        self.write_row(body, table, asked, event, row);
        body.out().push(b'}');
    }

    fn write_row(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        event: Event,
        row: &Row,
    ) {
        let member: &[u8] = match (self, event) {
            (Encoding::Rows, Event::Delete) => b"\"old\":",
            (Encoding::Rows, _) => b"\"new\":",
            (Encoding::Differences, Event::Initial) => b"\"initial\":",
            (Encoding::Differences, _) => b"\"insert\":",
        };
        body.out().extend_from_slice(member);
        let mut writer = RowWriter::begin(body.out(), table);
        for column in asked.columns_for(event) {
            if self == Encoding::Rows || !is_default(table, row, column) {
                writer.cell(row, column);
            }
        }
        writer.end();
    }

    /// Writes `{"old":ROW1,"new":ROW2}` or `{"modify":ROW}`, or nothing if no column differs whose
    /// modifications are selected.
    fn modify(
        self,
        body: &mut Body,
        table: &TableSchema,
        asked: &TableSubscription,
        entry: &Entry,
        (old, new): (&Row, &Row),
        delta: Option<&Delta>,
    ) {
        let mark = body.mark();
        body.begin_row(table, entry.uuid);
        let member: &[u8] = match self {
            Encoding::Rows => b"{\"old\":",
            Encoding::Differences => b"{\"modify\":",
        };
        body.out().extend_from_slice(member);
        let mut writer = RowWriter::begin(body.out(), table);
        match self {
            Encoding::Rows => {
                for column in asked.columns_for(Event::Modify) {
                    if differs(entry, (old, new), column, delta) {
                        writer.cell(old, column);
                    }
                }
            }
            Encoding::Differences => {
                write_differences(&mut writer, table, asked, entry, (old, new), delta);
            }
        }
        // Nothing may be left: merged commits can cancel out, and changed columns can be
        // deselected.
        if writer.end() {
            return body.rewind(mark);
        }
        if self == Encoding::Rows {
            body.out().push(b',');
            self.write_row(body, table, asked, Event::Modify, new);
        }
        body.out().push(b'}');
    }
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

fn write_differences(
    writer: &mut RowWriter<'_>,
    table: &TableSchema,
    asked: &TableSubscription,
    entry: &Entry,
    (old, new): (&Row, &Row),
    delta: Option<&Delta>,
) {
    match delta {
        Some(delta) => {
            for diff in &delta.changes[entry.change].diffs {
                if asked.select_of(diff.column).has(Event::Modify) {
                    writer.datum(diff.column, &diff.diff);
                }
            }
        }
        None => {
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
    }
    if asked.select_of(ColumnId::VERSION).has(Event::Modify) && old.version != new.version {
        writer.cell(new, ColumnId::VERSION);
    }
}
