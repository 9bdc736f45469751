//! References of a row to its own identity, and which of them are to another table.
//!
//! A strong reference that holds the UUID of its own row counts for nothing: it needs no target and keeps nothing alive
//! (docs/spec/protocol.md 5.12). The reference compares UUIDs only, so this holds even where the column refers to rows of *another* table:
//!
//! ```text
//! table A, column b: a strong reference to rows of table B
//! A row 1111: b = 1111        accepted, whether or not B has a row 1111
//! A row 2222: b = 1111        refused, unless B has a row 1111
//! ```
//!
//! Files hold such rows, so the engine has the same rule. Nobody means to write them: whoever opens a file names them
//! ([`Database::own_references`]).

use corvid_data::{AtomRef, ColumnId, TableId, Uuid};

use crate::database::Database;
use crate::row_id::RowId;

/// Whether a strong reference is one of a row to itself, and so counts for nothing.
#[inline]
pub(crate) fn is_own(source: RowId, target: Uuid) -> bool {
    source.uuid == target
}

/// Whether it is one of those to another table.
#[inline]
pub(crate) fn is_misplaced(source: RowId, target: RowId) -> bool {
    source.uuid == target.uuid && source.table != target.table
}

/// A strong reference to another table that holds the identity of its own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnReference {
    /// The row's table.
    pub table: TableId,
    /// Where the reference is.
    pub column: ColumnId,
    /// What the column refers to.
    pub target: TableId,
    /// The row, and what the reference holds.
    pub uuid: Uuid,
}

impl Database {
    /// Strong references to other tables that hold the identity of their own rows. Costs nothing unless one was ever added; then all rows
    /// are looked at.
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
