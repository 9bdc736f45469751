//! Rows as they were after a transaction that is too old for the transaction history: what a
//! monitor needs to send a client that was away only the difference
//! (docs/internals/monitors.md, "Long absences").
//!
//! Somebody else reads the rows from the database's files, which takes a while. Meanwhile
//! [`PastRows::observe`] keeps the first old version of each row that a commit changes. A row that
//! was not read has not changed between the transaction and the end of what was read. So its first
//! old version is also the one after the transaction.
//!
//! ```text
//! txn ............ asked ............... end of what is read ......... now
//! rows read:      changed in here, as they were after txn
//! rows observed:          first old versions of changes in here
//! ```
//!
//! Invariant: the observation begins no later than the end of what is read, with the commits that
//! are executed and not stored. Once [`PastRows::complete`] was called, the rows include every one
//! of the tables that differs from the present one.

use std::collections::BTreeMap;

use corvid_data::{Arc, ColumnId, Delta, HashSeed, Row, Schema, TableId, TableSchema, Uuid};
use corvid_engine::Database;
use corvid_engine::condition::Clause;

use crate::change_set::{ChangeSet, Entry};
use crate::condition::TableCondition;
use crate::subscription::{Subscription, TableSubscription};

/// The old versions of rows; `None`: there was no such row.
type Versions = BTreeMap<(TableId, Uuid), Option<Arc<Row>>>;

/// The rows of some tables that differ from those after a transaction, as they were then.
#[derive(Debug)]
pub struct PastRows {
    /// Sorted.
    tables: Vec<TableId>,
    rows: Versions,
    rows_max: usize,
}

/// The answer to whether a difference since a transaction is known.
#[derive(Clone, Copy, Debug)]
pub enum PastAnswer<'a> {
    /// It is not, and will not be.
    None,
    /// It is being looked for.
    Wait,
    /// These rows were different.
    Rows(&'a PastRows),
}

/// Nothing is known about transactions that are too old for the history.
#[must_use]
pub fn no_past<'a>(_: Uuid, _: &[TableId]) -> PastAnswer<'a> {
    PastAnswer::None
}

impl PastRows {
    /// Begins to observe the rows of these tables, of which at most `rows_max` may differ.
    #[must_use]
    pub fn new(mut tables: Vec<TableId>, rows_max: usize) -> PastRows {
        tables.sort_unstable();
        PastRows {
            tables,
            rows: Versions::new(),
            rows_max,
        }
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &[TableId] {
        &self.tables
    }

    /// Whether it has all of these tables.
    #[must_use]
    pub fn covers(&self, tables: &[TableId]) -> bool {
        tables.iter().all(|table| self.has(*table))
    }

    fn has(&self, table: TableId) -> bool {
        self.tables.binary_search(&table).is_ok()
    }

    /// A commit is executed. Returns false if too many rows differ.
    #[must_use]
    pub fn observe(&mut self, delta: &Delta) -> bool {
        for change in &delta.changes {
            if self.has(change.table) {
                let key = (change.table, change.uuid);
                self.rows.entry(key).or_insert_with(|| change.old.clone());
            }
        }
        self.rows.len() <= self.rows_max
    }

    /// Adds the rows that were read. Returns false if too many rows differ.
    #[must_use]
    pub fn complete(
        &mut self,
        rows: impl IntoIterator<Item = (TableId, Uuid, Option<Arc<Row>>)>,
    ) -> bool {
        for (table, uuid, row) in rows {
            // Changes of a row that were observed may have been read too, and then others before.
            self.rows.insert((table, uuid), row);
        }
        self.rows.len() <= self.rows_max
    }

    /// The net change from these rows to the present ones, as `subscription` sees it.
    pub(crate) fn changes(
        &self,
        schema: &Schema,
        subscription: &Subscription,
        database: &Database,
        seed: HashSeed,
    ) -> ChangeSet {
        let mut changes = ChangeSet::new(seed);
        for ((id, uuid), old) in &self.rows {
            let Some(asked) = subscription.table(*id) else {
                continue;
            };
            let table = schema.table(*id);
            let new = database.get(*id, *uuid);
            if let Some(entry) = net_change(asked, table, *uuid, old.as_ref(), new) {
                changes.push(*id, entry);
            }
        }
        changes
    }
}

/// The change of a row as `asked` sees it; `None` if it sees none.
fn net_change(
    asked: &TableSubscription,
    table: &TableSchema,
    uuid: Uuid,
    old: Option<&Arc<Row>>,
    new: Option<&Arc<Row>>,
) -> Option<Entry> {
    let in_view = |row: Option<&Arc<Row>>| {
        row.filter(|row| asked.condition.matches(table, row))
            .cloned()
    };
    let (old, new) = (in_view(old), in_view(new));
    let is_seen = match (&old, &new) {
        (None, None) => false,
        (Some(old), Some(new)) => asked.columns.iter().any(|subscribed| {
            let own = usize::from(subscribed.column.0);
            !subscribed.column.is_standard() && old.columns[own] != new.columns[own]
        }),
        _ => true,
    };
    is_seen.then_some(Entry {
        uuid,
        old,
        new,
        change: 0,
    })
}

/// Whether files have everything that a subscription depends on: neither versions of rows nor
/// columns that are not stored.
pub(crate) fn is_in_files(schema: &Schema, subscription: &Subscription) -> bool {
    subscription.tables().iter().all(|asked| {
        let table = schema.table(asked.table);
        let is_stored = |column: ColumnId| match column {
            ColumnId::UUID => true,
            ColumnId::VERSION => false,
            own => table.column(own).persistent,
        };
        let mut columns = asked.columns.iter();
        let is_condition_stored = match &*asked.condition {
            TableCondition::Always | TableCondition::Never => true,
            TableCondition::Any(condition) => condition.clauses.iter().all(|clause| match clause {
                Clause::Constant(_) => true,
                Clause::Compare { column, .. } => is_stored(*column),
            }),
        };
        is_condition_stored && columns.all(|subscribed| is_stored(subscribed.column))
    })
}
