//! A database: its schema and tables. It owns every committed row.
//!
//! A single writer owns the database and calls everything here; other threads read through
//! [`Snapshot`]. Between calls the tables hold exactly the last commit, and
//! [`Database::check_invariants`] succeeds.

use corvid_data::wire::StringCache;
use corvid_data::{
    Arc, Delta, HashSeed, Recorded, Row, Schema, TableId, Uuid, UuidSource, WireError,
};

use crate::layout::Layout;
use crate::page::PAGE_SLOTS;
use crate::table::Table;
use crate::{Context, Converted, Outcome, Snapshot, TooLong, WorkBudget};
use crate::{apply_recorded, execution, invariants, lookup, undo};

/// One database in memory, owned by a single writer.
#[derive(Debug)]
pub struct Database {
    pub(crate) schema: Arc<Schema>,
    pub(crate) seed: HashSeed,
    /// One layout per table, in the order of table ids.
    pub(crate) layouts: Box<[Layout]>,
    /// One table per schema table, in the order of table ids.
    pub(crate) tables: Box<[Table]>,
    /// Strings of recent transactions, to share with later ones.
    pub(crate) strings: StringCache,
    /// Some transaction added a strong reference to another table that holds the UUID of its own
    /// row.
    pub(crate) has_own_references: bool,
    /// Some indexes over columns were begun and do not cover their tables yet.
    is_indexing: bool,
}

impl Database {
    /// An empty database. Its hash tables use `seed`; no result depends on it.
    #[must_use]
    pub fn new(schema: Arc<Schema>, seed: HashSeed) -> Database {
        let tables = schema.tables().iter();
        Database {
            layouts: Layout::of_schema(&schema),
            tables: tables.map(|table| Table::new(table, seed)).collect(),
            seed,
            strings: StringCache::default(),
            has_own_references: false,
            is_indexing: false,
            schema,
        }
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The seed of the hashes, for other structures of the same database.
    #[must_use]
    pub fn hash_seed(&self) -> HashSeed {
        self.seed
    }

    /// Executes one attempt of a `transact` request. `params` is the raw text of the `params`
    /// array, a valid JSON array whose first element (the database name) is skipped. On success the
    /// changes are applied.
    pub fn execute(&mut self, params: &[u8], context: &mut Context<'_>) -> Outcome {
        let mut unlimited = WorkBudget::unlimited();
        match execution::execute(self, params, context, &mut unlimited) {
            Ok(outcome) => outcome,
            Err(TooLong) => unreachable!("the budget is unlimited"),
        }
    }

    /// Executes an attempt, as [`Database::execute`] does, within a budget. Subtracts the work from
    /// it.
    ///
    /// # Errors
    /// The attempt needs more than the budget; nothing has changed.
    pub fn execute_within(
        &mut self,
        params: &[u8],
        context: &mut Context<'_>,
        budget: &mut WorkBudget,
    ) -> Result<Outcome, TooLong> {
        execution::execute(self, params, context, budget)
    }

    /// Undoes a commit that could not be stored. Deltas must be undone newest first.
    pub fn undo(&mut self, delta: &Delta) {
        undo::undo(self, delta);
    }

    /// Applies an undone commit again. The delta that was undone last comes first.
    pub fn redo(&mut self, delta: &Delta) {
        undo::redo(self, delta);
    }

    /// Applies a transaction read from a log, with all checks of a commit.
    ///
    /// # Errors
    /// The errors of a commit, and `transaction deletes row U that does not exist`
    /// (docs/spec/storage.md 4.1). Nothing changes then.
    pub fn apply_recorded(
        &mut self,
        recorded: Recorded,
        uuids: &mut dyn UuidSource,
    ) -> Result<Delta, WireError> {
        apply_recorded::apply_recorded(self, recorded, uuids)
    }

    /// Converts the contents to another schema (docs/spec/protocol.md 4.15). Everything is checked
    /// as if freshly inserted.
    ///
    /// # Errors
    /// The datum or commit error of the first misfit.
    pub fn convert(
        &self,
        schema: Arc<Schema>,
        uuids: &mut dyn UuidSource,
    ) -> Result<Database, WireError> {
        self.snapshot()
            .convert(schema, uuids)
            .map(Converted::into_database)
    }

    /// A frozen view. Costs one pointer per page.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self)
    }

    /// Looks up a row by UUID.
    #[must_use]
    pub fn get(&self, table: TableId, uuid: Uuid) -> Option<&Arc<Row>> {
        self.table(table).get(uuid)
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: TableId) -> impl Iterator<Item = &Arc<Row>> + '_ {
        self.table(table).rows()
    }

    /// Number of rows in a table.
    #[must_use]
    pub fn row_count(&self, table: TableId) -> usize {
        self.table(table).len()
    }

    /// Calls `visit` for every row that matches *any* clause (monitor semantics), each row once.
    /// Uses an index or `_uuid` if the clauses allow it.
    pub fn for_each_matching_any(
        &self,
        table: TableId,
        condition: &crate::Condition,
        visit: &mut dyn FnMut(&Arc<Row>),
    ) {
        let table = self.table(table);
        lookup::for_each_matching_any(table, condition, &mut |slot| visit(table.at(slot)));
    }

    /// The number of rows that [`Database::for_each_matching_any`] visits. If that is less than a
    /// whole table, it is counted only up to `max`.
    #[must_use]
    pub fn rows_visited(&self, table: TableId, condition: &crate::Condition, max: usize) -> usize {
        lookup::rows_visited(self.table(table), condition, max)
    }

    /// Reports that rows that match any clause of `condition` are about to be visited, possibly
    /// repeatedly. Columns that would find these rows get an index if they have none.
    /// [`Database::index`] builds it, not this call.
    pub fn want_index(&mut self, table: TableId, condition: &crate::Condition) {
        let table = &mut self.tables[usize::from(table.0)];
        for column in lookup::columns_wanted(table, condition) {
            self.is_indexing |= table.want_column_index(column);
        }
    }

    /// Reports that an operation is about to search for rows that match all clauses of `condition`.
    /// A column by which operations search repeatedly gets an index too.
    pub(crate) fn count_walk(&mut self, table: TableId, condition: &crate::Condition) {
        let table = &mut self.tables[usize::from(table.0)];
        if let Some(column) = lookup::column_walked(table, condition) {
            self.is_indexing |= table.count_column_walk(column);
        }
    }

    /// Whether [`Database::index`] has work to do.
    #[must_use]
    pub fn is_indexing(&self) -> bool {
        self.is_indexing
    }

    /// Adds up to `rows_max` more rows to the indexes that were begun.
    pub fn index(&mut self, rows_max: usize) {
        let pages_max = rows_max.div_ceil(PAGE_SLOTS);
        let mut tables = self.tables.iter_mut();
        // Stops at the first table with work left. The tables after it wait for later calls, so
        // that this call stays short.
        self.is_indexing = tables.any(|table| table.advance_column_indexes(pages_max));
    }

    /// Number of atoms held, including `_uuid` and `_version` (docs/spec/protocol.md 4.9, history).
    #[must_use]
    pub fn atom_count(&self) -> u64 {
        self.tables.iter().map(Table::atoms).sum()
    }

    /// Number of weak references held, for `memory/show`.
    #[must_use]
    pub fn weak_reference_count(&self) -> u64 {
        self.tables.iter().map(|table| table.backrefs.total()).sum()
    }

    /// Recomputes every count, index and back reference from the rows and compares. For tests.
    ///
    /// # Errors
    /// A description of the first difference.
    #[doc(hidden)]
    pub fn check_invariants(&self) -> Result<(), String> {
        invariants::check(self)
    }

    /// Pairs of entries, in all tables and indexes, whose look-ups begin in the same bucket. For
    /// tests: it visits all entries.
    #[doc(hidden)]
    #[must_use]
    pub fn hash_collisions(&self) -> u64 {
        self.tables.iter().map(Table::collisions).sum()
    }

    fn table(&self, table: TableId) -> &Table {
        &self.tables[usize::from(table.0)]
    }
}
