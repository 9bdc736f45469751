//! Finds references of a row to its own UUID, and those among them in columns that refer to another
//! table.
//!
//! A strong reference that holds the UUID of its own row does not count: it needs no target and
//! keeps nothing alive (docs/spec/protocol.md 5.12). The reference implementation compares only
//! UUIDs, so this holds even if the column refers to rows of *another* table:
//!
//! ```text
//! table A, column b: a strong reference to rows of table B
//! A row 1111: b = 1111        accepted, whether or not B has a row 1111
//! A row 2222: b = 1111        refused, unless B has a row 1111
//! ```
//!
//! Files contain such rows, so the engine follows the same rule. They are mistakes of their
//! writers, so the server logs them when it opens a file ([`Database::own_references`]).

use corvid_data::{AtomRef, ColumnId, TableId, Uuid};

use crate::database::Database;
use crate::row_id::RowId;

/// Whether a strong reference names its own row, and so does not count.
#[inline]
pub(crate) fn is_own(source: RowId, target: Uuid) -> bool {
    source.uuid == target
}

/// Whether such a reference is in a column that refers to another table.
#[inline]
pub(crate) fn is_misplaced(source: RowId, target: RowId) -> bool {
    source.uuid == target.uuid && source.table != target.table
}

/// A strong reference to another table that holds the UUID of its own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnReference {
    /// The row's table.
    pub table: TableId,
    /// The column with the reference.
    pub column: ColumnId,
    /// The table that the column refers to.
    pub target: TableId,
    /// The UUID of the row, which the reference holds.
    pub uuid: Uuid,
}

impl Database {
    /// Strong references to other tables that hold the UUID of their own rows. Costs nothing unless
    /// one was ever added; then it visits all rows.
    #[must_use]
    pub fn own_references(&self) -> Vec<OwnReference> {
        let mut found = Vec::new();
        if !self.has_own_references {
            return found;
        }
        for (table, _) in self.schema.iter() {
            for reference in &*self.layouts[usize::from(table.0)].strong {
                for row in self.rows(table) {
                    let holds = |atom: Option<AtomRef<'_>>| {
                        atom.and_then(AtomRef::as_uuid) == Some(row.uuid)
                    };
                    let datum = &row.columns[usize::from(reference.column.0)];
                    for (target, is_value) in [(reference.key, false), (reference.value, true)] {
                        let Some(target) = target.filter(|target| *target != table) else {
                            continue;
                        };
                        let mut pairs = datum.iter();
                        if pairs.any(|(key, value)| holds(if is_value { value } else { Some(key) }))
                        {
                            found.push(OwnReference {
                                table,
                                column: reference.column,
                                target,
                                uuid: row.uuid,
                            });
                        }
                    }
                }
            }
        }
        found
    }
}
