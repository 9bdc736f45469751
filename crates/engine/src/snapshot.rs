//! A frozen view of a database that any thread may walk while the writer goes on.
//!
//! Invariant: shows exactly one commit. The writer copies a page before it changes one that a snapshot holds.

use corvid_data::{Arc, HashSeed, Row, Schema, TableId};

use crate::database::Database;
use crate::page::Page;

/// Pages shared with the database at one commit; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    schema: Arc<Schema>,
    seed: HashSeed,
    tables: Arc<[Frozen]>,
}

/// One table of it.
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

    /// Rows in a table.
    #[must_use]
    pub fn row_count(&self, table: TableId) -> usize {
        self.tables[usize::from(table.0)].row_count
    }
}
