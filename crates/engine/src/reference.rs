//! The columns of a table that hold references, and the changes of references from one version of a
//! row to the next.
//!
//! [`ReferenceColumn::changes`] yields the changes for both reference counts (strong) and back
//! references (weak), forwards at commit and backwards when a commit is undone. Nothing else
//! interprets reference columns.

use corvid_data::diff::{self, Change};
use corvid_data::{
    AtomRef, BaseType, ColumnDiff, ColumnId, Datum, RefType, Row, TableId, TableSchema, Uuid,
};

static NOTHING: Datum = Datum::empty();

/// A column with references of one strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReferenceColumn {
    /// The column.
    pub(crate) column: ColumnId,
    /// The table to which its elements or keys refer.
    pub(crate) key: Option<TableId>,
    /// The table to which its values refer.
    pub(crate) value: Option<TableId>,
}

impl ReferenceColumn {
    /// The columns of `table` that hold references of this strength.
    pub(crate) fn of(table: &TableSchema, strength: RefType) -> Box<[ReferenceColumn]> {
        let target = |base: &BaseType| {
            base.reference
                .as_ref()
                .filter(|reference| reference.ref_type == strength)
                .map(|reference| reference.table)
        };
        table
            .iter()
            .map(|(column, schema)| ReferenceColumn {
                column,
                key: target(&schema.column_type.key),
                value: schema.column_type.value.as_ref().and_then(target),
            })
            .filter(|reference| reference.key.is_some() || reference.value.is_some())
            .collect()
    }

    /// This column of a row; empty if there is no row.
    fn datum<'a>(&self, row: Option<&'a Row>) -> &'a Datum {
        row.map_or(&NOTHING, |row| &row.columns[usize::from(self.column.0)])
    }

    /// Calls `visit` with each reference that one version has and the other lacks: `1` for added,
    /// `-1` for removed. `diffs` are the differences of all columns, in either direction, if both
    /// versions exist and have been compared. With them the work is proportional to the difference,
    /// otherwise to the column.
    #[inline]
    pub(crate) fn changes(
        &self,
        old: Option<&Row>,
        new: Option<&Row>,
        diffs: Option<&[ColumnDiff]>,
        visit: &mut dyn FnMut(TableId, Uuid, i64),
    ) {
        let diffs = diffs.filter(|_| old.is_some() && new.is_some());
        let (old, new) = (self.datum(old), self.datum(new));
        // Most columns are shared, including all those that a new row leaves empty.
        if !old.ptr_eq(new) {
            self.column_changes(old, new, diffs, visit);
        }
    }

    /// Visits the changes of data that are not shared.
    fn column_changes(
        &self,
        old: &Datum,
        new: &Datum,
        diffs: Option<&[ColumnDiff]>,
        visit: &mut dyn FnMut(TableId, Uuid, i64),
    ) {
        // The difference of a scalar or optional column is its new value and does not show the old
        // one. Such columns have at most one element, and comparing so few is cheap.
        match diffs.filter(|_| old.len().max(new.len()) > 1) {
            None => self.datum_changes(old, new, None, visit),
            Some(diffs) => {
                if let Ok(at) = diffs.binary_search_by_key(&self.column, |diff| diff.column) {
                    self.datum_changes(old, new, Some(&diffs[at].diff), visit);
                }
            }
        }
    }

    /// Visits the changes between two data of this column. `diff` is their difference, if it names
    /// every key that was added, removed or given another value. That holds in columns of several
    /// elements.
    pub(crate) fn datum_changes(
        &self,
        old: &Datum,
        new: &Datum,
        diff: Option<&Datum>,
        visit: &mut dyn FnMut(TableId, Uuid, i64),
    ) {
        let mut count = |atom: AtomRef<'_>, table: Option<TableId>, sign| {
            if let (Some(table), Some(uuid)) = (table, atom.as_uuid()) {
                visit(table, uuid, sign);
            }
        };
        let mut count_pair = |key: Option<AtomRef<'_>>, value: Option<AtomRef<'_>>, sign| {
            if let Some(key) = key {
                count(key, self.key, sign);
            }
            if let Some(value) = value {
                count(value, self.value, sign);
            }
        };
        let Some(diff) = diff else {
            diff::changes(old, new, &mut |change| match change {
                Change::Added(key, value) => count_pair(Some(key), value, 1),
                Change::Removed(key, value) => count_pair(Some(key), value, -1),
                Change::Replaced(_, before, after) => {
                    count_pair(None, Some(before), -1);
                    count_pair(None, Some(after), 1);
                }
            });
            return;
        };
        // If the lengths differ by the whole difference, all of it was added or all of it was
        // removed.
        let all = match (old.len(), new.len()) {
            (before, after) if before + diff.len() == after => Some(1),
            (before, after) if after + diff.len() == before => Some(-1),
            _ => None,
        };
        for (key, value) in diff {
            if value.is_none() {
                // An element of a set is in one of the two, so one search tells in which.
                let searched = || if old.contains(key) { -1 } else { 1 };
                count_pair(Some(key), None, all.unwrap_or_else(searched));
                continue;
            }
            match (old.get(key), new.get(key)) {
                (Some(before), Some(after)) => {
                    count_pair(None, Some(before), -1);
                    count_pair(None, Some(after), 1);
                }
                (before @ Some(_), None) => count_pair(Some(key), before, -1),
                (None, after @ Some(_)) => count_pair(Some(key), after, 1),
                (None, None) => unreachable!("a difference is between these two"),
            }
        }
    }
}
