//! A database: schema and tables, the home of every committed row.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, Recorded, Row, Schema, TableId, Uuid, WireError};

use crate::{Context, Outcome, Snapshot};

/// One database in memory. A single writer owns it.
#[derive(Debug)]
pub struct Database {
    schema: Arc<Schema>,
}

impl Database {
    /// An empty database.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Database {
        Database { schema }
    }

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Executes one attempt of a `transact` request. `params` is the raw text of the `params` array, a valid JSON array whose
    /// first element (the database name) is skipped. On success the changes are applied.
    pub fn execute(&mut self, params: &[u8], context: &mut Context<'_>) -> Outcome {
        let _ = (params, context);
        todo!()
    }

    /// Takes back a commit that could not be stored; deltas are undone newest first.
    pub fn undo(&mut self, delta: &Delta) {
        let _ = delta;
        todo!()
    }

    /// Applies a transaction read from a log, under all checks of a commit.
    ///
    /// # Errors
    /// What a commit may answer, or `transaction deletes row U that does not exist` (storage.md 4.1). Nothing changes then.
    pub fn replay(
        &mut self,
        recorded: Recorded,
        uuids: &mut dyn UuidSource,
    ) -> Result<Delta, WireError> {
        let _ = (recorded, uuids);
        todo!()
    }

    /// This content under another schema (protocol.md 4.15), everything checked as if freshly inserted.
    ///
    /// # Errors
    /// The datum or commit error of the first misfit.
    pub fn convert(
        &self,
        schema: Arc<Schema>,
        uuids: &mut dyn UuidSource,
    ) -> Result<Database, WireError> {
        let _ = (schema, uuids);
        todo!()
    }

    /// A frozen view; costs one pointer per page.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }

    /// A row by identity.
    #[must_use]
    pub fn get(&self, table: TableId, uuid: Uuid) -> Option<&Arc<Row>> {
        let _ = (table, uuid);
        todo!()
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: TableId) -> impl Iterator<Item = &Arc<Row>> + '_ {
        let _ = table;
        std::iter::empty()
    }

    /// Rows in a table.
    #[must_use]
    pub fn row_count(&self, table: TableId) -> usize {
        let _ = table;
        todo!()
    }

    /// Calls `visit` for every row that matches *any* clause (monitor semantics), through an index or `_uuid` where clauses
    /// allow it, each row once.
    pub fn for_each_matching_any(
        &self,
        table: TableId,
        condition: &crate::Condition,
        visit: &mut dyn FnMut(&Arc<Row>),
    ) {
        let _ = (table, condition, visit);
        todo!()
    }

    /// Atoms held, `_uuid` and `_version` counted (protocol.md 4.9, history).
    #[must_use]
    pub fn atom_count(&self) -> u64 {
        todo!()
    }

    /// Weak references held, for `memory/show`.
    #[must_use]
    pub fn weak_reference_count(&self) -> u64 {
        todo!()
    }
}
