//! Fills an empty database from one record that inserts all its rows (docs/spec/storage.md 9), in
//! pieces and without a journal.
//!
//! A commit of that many rows would keep a journal entry for each, only to find that every
//! reference has its row and every key is unique. Here rows go straight into their tables, and the
//! commit's rules are then checked on the whole. If a commit would not simply accept the rows (an
//! error, garbage, a weak reference to drop), the result is [`Irregular`]. The caller then starts
//! over with an ordinary transaction, which does these things and produces the error. So a
//! [`BulkLoad`] needs no rollback: dropping it unfinished drops the database.

use corvid_data::{Arc, AtomRef, Datum, Row, TableId};

use crate::database::Database;
use crate::own_reference::{is_misplaced, is_own};
use crate::reference::ReferenceColumn;
use crate::row_id::RowId;

/// A commit would not accept the rows as they are. The database is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular;

/// A database that is being filled with rows.
#[derive(Debug)]
pub struct BulkLoad {
    database: Database,
}

impl BulkLoad {
    /// Fills `database`, which must be empty.
    #[must_use]
    pub fn new(database: Database) -> BulkLoad {
        assert!(database.tables.iter().all(|table| table.len() == 0));
        BulkLoad { database }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Another row has the same UUID, or the same key in an index.
    pub fn add(
        &mut self,
        table: TableId,
        rows: impl IntoIterator<Item = Arc<Row>>,
    ) -> Result<(), Irregular> {
        let table = &mut self.database.tables[usize::from(table.0)];
        for row in rows {
            if table.contains(row.uuid) {
                return Err(Irregular);
            }
            let keys = table.keys(&row);
            let mut indexes = table.indexes().iter().zip(&keys);
            if indexes
                .any(|(index, hash)| index.has_duplicate(*hash, None, &row, |slot| table.at(slot)))
            {
                return Err(Irregular);
            }
            table.insert_keyed(row, &keys, 0);
        }
        Ok(())
    }

    /// The finished database, with all counts up to date.
    ///
    /// # Errors
    /// A commit would not accept these rows as they are.
    pub fn finish(mut self) -> Result<Database, Irregular> {
        let schema = self.database.schema.clone();
        for (id, table) in schema.iter() {
            if self.database.row_count(id) > table.max_rows as usize && table.max_rows != u32::MAX {
                return Err(Irregular);
            }
            self.count_references(id)?;
        }
        // Garbage shows only once the references of all tables are counted.
        for (id, table) in schema.iter() {
            let rows = &self.database.tables[usize::from(id.0)];
            if !table.is_root && rows.rows().any(|row| rows.strong(row.uuid) == 0) {
                return Err(Irregular);
            }
        }
        Ok(self.database)
    }

    /// Counts the references of a table's rows at their targets, which must exist.
    fn count_references(&mut self, id: TableId) -> Result<(), Irregular> {
        let Database {
            tables, layouts, ..
        } = &mut self.database;
        let layout = &layouts[usize::from(id.0)];
        if layout.strong.is_empty() && layout.weak.is_empty() {
            return Ok(());
        }
        let pages = tables[usize::from(id.0)].pages().to_vec();
        let mut has_own_references = false;
        for row in pages.iter().flat_map(|page| page.rows()) {
            let source = RowId::new(id, row.uuid);
            for (columns, is_strong) in [(&layout.strong, true), (&layout.weak, false)] {
                for column in columns {
                    for target in targets(*column, row) {
                        // A row's reference to itself keeps nothing alive, and needs no target.
                        if is_strong && is_own(source, target.uuid) {
                            has_own_references |= is_misplaced(source, target);
                            continue;
                        }
                        let table = &mut tables[usize::from(target.table.0)];
                        if !table.contains(target.uuid) {
                            return Err(Irregular);
                        }
                        if is_strong {
                            table.adjust_strong(target.uuid, 1);
                        } else {
                            table.backrefs.adjust(target.uuid, source, 1);
                        }
                    }
                }
            }
        }
        self.database.has_own_references |= has_own_references;
        Ok(())
    }
}

/// The rows to which a column of a row refers.
fn targets(column: ReferenceColumn, row: &Row) -> impl Iterator<Item = RowId> + '_ {
    let datum: &Datum = &row.columns[usize::from(column.column.0)];
    datum.iter().flat_map(move |(key, value)| {
        let id = |atom: Option<AtomRef<'_>>, table: Option<TableId>| {
            Some(RowId::new(table?, atom?.as_uuid()?))
        };
        [id(Some(key), column.key), id(value, column.value)]
            .into_iter()
            .flatten()
    })
}
