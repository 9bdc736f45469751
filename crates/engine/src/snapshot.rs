//! A frozen view of a database, which any thread may read while the writer continues.
//!
//! Invariant: a snapshot shows exactly one commit. The writer copies a page before it changes one
//! that a snapshot holds.

use corvid_data::{Arc, HashSeed, Row, Schema, TableId};

use crate::database::Database;
use crate::page::{PAGE_SLOTS, Page};

/// Pages shared with the database at one commit; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    schema: Arc<Schema>,
    seed: HashSeed,
    tables: Arc<[Frozen]>,
}

/// One table of the snapshot.
#[derive(Clone, Debug)]
struct Frozen {
    pages: Vec<Arc<Page>>,
    row_count: usize,
}

impl Snapshot {
    /// Shares the pages of `database`.
    pub(crate) fn of(database: &Database) -> Snapshot {
        let tables = database.tables.iter();
        let tables: Vec<Frozen> = tables
            .map(|table| Frozen {
                pages: table.pages().to_vec(),
                row_count: table.len(),
            })
            .collect();
        Snapshot {
            schema: Arc::clone(&database.schema),
            seed: database.seed,
            tables: Arc::from(tables),
        }
    }

    /// The schema at that commit.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The seed of the database's hashes.
    #[must_use]
    pub fn hash_seed(&self) -> HashSeed {
        self.seed
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: TableId) -> impl Iterator<Item = &Arc<Row>> + '_ {
        let pages = &self.tables[usize::from(table.0)].pages;
        pages.iter().flat_map(|page| page.rows())
    }

    /// The rows of a table from the slot `from` on, in the order of slots. Each comes with the next
    /// slot, from which the caller can continue after a pause. The first slot is 0.
    pub fn rows_from(
        &self,
        table: TableId,
        from: usize,
    ) -> impl Iterator<Item = (usize, &Arc<Row>)> + '_ {
        let pages = &self.tables[usize::from(table.0)].pages;
        let first = from / PAGE_SLOTS;
        let pages = pages.iter().enumerate().skip(first);
        pages.flat_map(move |(page, rows)| {
            let offset = if page == first { from % PAGE_SLOTS } else { 0 };
            let slots = rows.slots().iter().enumerate().skip(offset);
            slots.filter_map(move |(slot, row)| Some((page * PAGE_SLOTS + slot + 1, row.as_ref()?)))
        })
    }

    /// Number of rows in a table.
    #[must_use]
    pub fn row_count(&self, table: TableId) -> usize {
        self.tables[usize::from(table.0)].row_count
    }

    /// Number of rows in all tables.
    #[must_use]
    pub fn rows_count(&self) -> u64 {
        self.tables.iter().map(|table| table.row_count as u64).sum()
    }
}
