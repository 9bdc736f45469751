//! Converts a snapshot of a database to another schema (docs/spec/protocol.md 4.15), then applies
//! the commits that the source makes meanwhile.
//!
//! Invariant of [`Converted`]: its contents equal a conversion of the source as of the last delta
//! carried over. Carrying over applies a change to the converted contents. The new schema may have
//! removed rows (garbage) and references (without a row) from these. If such a removal could matter
//! for a later commit, [`Converted::carry_over`] refuses instead of guessing, and the caller
//! converts the source anew.

use corvid_data::{Arc, Delta, Row, RowChange, Schema, TableId, UuidSource, WireError};

use crate::commit::commit_recording_dropped;
use crate::database::Database;
use crate::hash::{Set, TrustedSet};
use crate::mapping::Mapping;
use crate::row_id::RowId;
use crate::snapshot::Snapshot;
use crate::transaction::{Transaction, Written};

/// A database converted from a snapshot of another. Later commits of the source can be carried over
/// to it. `Send`.
#[derive(Debug)]
pub struct Converted {
    mapping: Mapping,
    database: Database,
    losses: Losses,
}

/// Why a commit of the source cannot be carried over. A conversion of the whole source may still
/// succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The change violates a rule of the new schema, or concerns something that the conversion has
    /// removed.
    #[error("{0}")]
    Violation(WireError),
    /// A row was inserted to which references had been dropped.
    #[error("a row appears to which references were dropped")]
    Reappeared,
    /// A row was deleted to which contents that the conversion has removed may refer.
    #[error("a row was deleted to which dropped content may refer")]
    Referenced,
    /// Whether a table exceeds its limit of rows depends on when garbage is collected.
    #[error("a limit of rows depends on garbage")]
    Limited,
}

/// Things that the conversion has removed, and that a conversion of a later state might keep or
/// fail on.
#[derive(Debug)]
struct Losses {
    /// Rows to which weak references were dropped here, while the source still has the references.
    references: Set<RowId>,
    /// Tables of the new schema that lost rows as garbage, which still exist in the source.
    garbage: TrustedSet<TableId>,
}

/// Builds a new database of `schema` with every table and column that both schemas have. All commit
/// checks see every row as inserted.
///
/// # Errors
/// The first datum that does not fit its new type, or the error of the commit.
pub(crate) fn convert(
    source: &Snapshot,
    schema: &Arc<Schema>,
    uuids: &mut dyn UuidSource,
) -> Result<Converted, WireError> {
    let mapping = Mapping::new(source.schema(), schema);
    let mut database = Database::new(Arc::clone(schema), source.hash_seed());
    let mut txn = Transaction::begin(&mut database);
    for (table, _) in schema.iter() {
        let Some(old_table) = mapping.source_of(table) else {
            continue;
        };
        for row in source.rows(old_table) {
            insert(&mut txn, &mapping, table, row, uuids)?;
        }
    }
    let mut losses = Losses {
        references: Set::with_hasher(source.hash_seed()),
        garbage: TrustedSet::default(),
    };
    commit_recording_dropped(txn, uuids, &mut losses.references)?;
    for (table, _) in schema.iter() {
        let before = mapping
            .source_of(table)
            .map_or(0, |old| source.row_count(old));
        if database.row_count(table) < before {
            losses.garbage.insert(table);
        }
    }
    Ok(Converted {
        mapping,
        database,
        losses,
    })
}

impl Converted {
    /// The contents so far.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The converted database, to be served in place of its source.
    #[must_use]
    pub fn into_database(self) -> Database {
        self.database
    }

    /// Applies the next commit of the source as one transaction, with all checks of the new schema.
    /// `delta` has the source's schema, and continues from the snapshot or the last delta carried
    /// over. Returns the commit under the new schema, which is empty if the change touches nothing
    /// that the new schema has. Comment and durability are those of `delta`.
    ///
    /// # Errors
    /// The result might differ from a conversion of the source after the commit. Nothing changes
    /// then, and later commits cannot be carried over either.
    pub fn carry_over(
        &mut self,
        delta: &Delta,
        uuids: &mut dyn UuidSource,
    ) -> Result<Delta, Misfit> {
        // Checked before anything changes, because it depends only on the delta and the losses so
        // far.
        self.check_losses(delta)?;
        let mut dropped = Set::with_hasher(self.database.seed);
        let mut txn = Transaction::begin(&mut self.database);
        for change in &delta.changes {
            if let Err(error) = apply(&mut txn, &self.mapping, change, uuids) {
                txn.rollback();
                return Err(Misfit::Violation(error));
            }
        }
        let carried =
            commit_recording_dropped(txn, uuids, &mut dropped).map_err(Misfit::Violation)?;
        // Only the commit shows which rows it inserted, so this check follows it and undoes it.
        if self.brings_back(&carried) {
            self.database.undo(&carried);
            return Err(Misfit::Reappeared);
        }
        // Losses are recorded only for commits that stay.
        self.losses.references.extend(dropped);
        self.record_garbage(delta, &carried);
        Ok(Delta {
            comment: delta.comment.clone(),
            durable: delta.durable,
            ..carried
        })
    }

    /// Refuses changes for which removed contents would matter. Before a conversion drops garbage,
    /// and pairs whose other half dangles, it checks their strong references. It also counts rows
    /// before it has collected all garbage.
    fn check_losses(&self, delta: &Delta) -> Result<(), Misfit> {
        if self.losses.garbage.is_empty() && self.losses.references.is_empty() {
            return Ok(());
        }
        for change in &delta.changes {
            let Some(table) = self.mapping.target_of(change.table) else {
                continue;
            };
            if change.new.is_none() && self.mapping.is_unguarded(table) {
                return Err(Misfit::Referenced);
            }
            let limit = self.database.schema().table(table).max_rows;
            if change.old.is_none() && limit != u32::MAX && self.losses.garbage.contains(&table) {
                return Err(Misfit::Limited);
            }
        }
        Ok(())
    }

    /// Whether the commit inserted a row to which references had been dropped. A new conversion
    /// would keep these references.
    fn brings_back(&self, carried: &Delta) -> bool {
        let losses = &self.losses.references;
        !losses.is_empty()
            && carried.changes.iter().any(|change| {
                change.old.is_none() && losses.contains(&RowId::new(change.table, change.uuid))
            })
    }

    /// Records the tables that lost rows that the source keeps.
    fn record_garbage(&mut self, delta: &Delta, carried: &Delta) {
        let mut deleted = Set::with_hasher(self.database.seed);
        for change in &delta.changes {
            let Some(table) = self.mapping.target_of(change.table) else {
                continue;
            };
            if change.new.is_none() {
                deleted.insert(RowId::new(table, change.uuid));
            } else if self.database.get(table, change.uuid).is_none() {
                self.losses.garbage.insert(table);
            }
        }
        for change in carried.changes.iter().filter(|change| change.new.is_none()) {
            if !deleted.contains(&RowId::new(change.table, change.uuid)) {
                self.losses.garbage.insert(change.table);
            }
        }
    }
}

/// Inserts the converted form of `row`.
fn insert(
    txn: &mut Transaction<'_>,
    mapping: &Mapping,
    table: TableId,
    row: &Row,
    uuids: &mut dyn UuidSource,
) -> Result<(), WireError> {
    let row = Row {
        uuid: row.uuid,
        version: uuids.fresh(),
        columns: mapping.columns(table, txn.layout(table), row)?,
    };
    txn.insert(table, row);
    Ok(())
}

/// Applies `change`, which was made in the source, to the converted database.
fn apply(
    txn: &mut Transaction<'_>,
    mapping: &Mapping,
    change: &RowChange,
    uuids: &mut dyn UuidSource,
) -> Result<(), WireError> {
    let Some(table) = mapping.target_of(change.table) else {
        return Ok(());
    };
    match (txn.table(table).find(change.uuid), &change.new) {
        (Some(slot), Some(row)) => {
            let columns = mapping.changed_columns(table, row, &change.diffs)?;
            txn.write(table, slot, columns.into_iter().map(Written::from));
        }
        // The row was inserted, or was garbage here so far. Unless something refers to it now, the
        // commit collects it again.
        (None, Some(row)) => insert(txn, mapping, table, row, uuids)?,
        (Some(slot), None) => txn.delete(table, slot),
        // The row was garbage here.
        (None, None) => {}
    }
    Ok(())
}

impl Snapshot {
    /// Converts these contents to another schema (docs/spec/protocol.md 4.15). Everything is
    /// checked as if freshly inserted. Runs on any thread while the writer continues;
    /// [`Converted::carry_over`] applies the commits made meanwhile.
    ///
    /// # Errors
    /// The datum or commit error of the first misfit.
    #[allow(clippy::needless_pass_by_value)]
    pub fn convert(
        &self,
        schema: Arc<Schema>,
        uuids: &mut dyn UuidSource,
    ) -> Result<Converted, WireError> {
        convert(self, &schema, uuids)
    }
}
