//! Which columns of a table hold references, and what changes in them from one version of a row to the next.
//!
//! Both reference counts (strong) and back references (weak) are fed from [`ReferenceColumn::changes`], forwards at commit and
//! backwards when a commit is undone; nothing else interprets reference columns.

use corvid_data::diff::{self, Change};
use corvid_data::{AtomRef, BaseType, ColumnId, Datum, RefType, Row, TableId, TableSchema, Uuid};

static NOTHING: Datum = Datum::empty();

/// A column with references of one strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReferenceColumn {
    /// The column.
    pub(crate) column: ColumnId,
    /// What its elements or keys refer to.
    pub(crate) key: Option<TableId>,
    /// What its values refer to.
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

    /// This column of a row; nothing when there is no row.
    fn datum<'a>(&self, row: Option<&'a Row>) -> &'a Datum {
        row.map_or(&NOTHING, |row| &row.columns[usize::from(self.column.0)])
    }

    /// Calls `visit` with each reference that one version has and the other lacks: `1` for added, `-1` for removed. Work follows the
    /// difference, not the size.
    pub(crate) fn changes(
        &self,
        old: Option<&Row>,
        new: Option<&Row>,
        visit: &mut dyn FnMut(TableId, Uuid, i64),
    ) {
        let (old, new) = (self.datum(old), self.datum(new));
        if old.ptr_eq(new) {
            return;
        }
        let mut key = |atom: AtomRef<'_>, sign| {
            if let (Some(table), Some(uuid)) = (self.key, atom.as_uuid()) {
                visit(table, uuid, sign);
            }
        };
        // Keys and values are visited in two passes only when both refer to something, which no known schema does.
        if self.key.is_some() {
            diff::changes(old, new, &mut |change| match change {
                Change::Added(atom, _) => key(atom, 1),
                Change::Removed(atom, _) => key(atom, -1),
                Change::Replaced(..) => {}
            });
        }
        let Some(table) = self.value else { return };
        let mut value = |atom: Option<AtomRef<'_>>, sign| {
            if let Some(uuid) = atom.and_then(AtomRef::as_uuid) {
                visit(table, uuid, sign);
            }
        };
        diff::changes(old, new, &mut |change| match change {
            Change::Added(_, atom) => value(atom, 1),
            Change::Removed(_, atom) => value(atom, -1),
            Change::Replaced(_, before, after) => {
                value(Some(before), -1);
                value(Some(after), 1);
            }
        });
    }
}
