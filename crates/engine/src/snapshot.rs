//! A frozen view of a database that any thread may walk while the writer goes on.
//!
//! Invariant: shows exactly one commit. The writer copies a page before it changes one that a snapshot holds.

use corvid_data::{Arc, Row, Schema, TableId};

use crate::page::Page;
use crate::table::Table;

/// Pages shared with the database at one commit; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    schema: Arc<Schema>,
    tables: Arc<[Frozen]>,
}

/// One table of it.
#[derive(Clone, Debug)]
struct Frozen {
    pages: Vec<Arc<Page>>,
    row_count: usize,
}

impl Snapshot {
    /// Shares the pages of `tables`.
    pub(crate) fn of(schema: &Arc<Schema>, tables: &[Table]) -> Snapshot {
        let tables: Vec<Frozen> = tables
            .iter()
            .map(|table| Frozen {
                pages: table.pages().to_vec(),
                row_count: table.len(),
            })
            .collect();
        Snapshot {
            schema: Arc::clone(schema),
            tables: Arc::from(tables),
        }
    }

    /// The schema at that commit.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
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
