//! Loading: applies a transaction read from a log without building a delta.
//!
//! A commit compares each touched row with a copy of its former version and builds a delta of the
//! differences. A record already names the differing columns and their differences. So here rows
//! are changed in place, and only the replaced data are kept. Then the commit's rules are checked
//! on the touched rows. Sometimes a commit would do more than accept: an error, a deletion,
//! garbage, a weak reference to drop. Then the steps are turned into the journal of an ordinary
//! transaction, and the ordinary commit continues, so rules, consequences and messages are the
//! same.
//!
//! Invariant: as in any transaction, counts of references change only when nothing can fail any
//! more. Until then restoring the old data is a full rollback. Work is proportional to the elements
//! of the record, not to the size of a row's sets.

use corvid_data::{
    Arc, ColumnId, Datum, Recorded, RecordedRow, Row, TableId, Uuid, UuidSource, WireError,
};
use smallvec::SmallVec;

use super::{apply, new_row, own};
use crate::commit::commit;
use crate::database::Database;
use crate::hash::Map;
use crate::index::Keys;
use crate::own_reference::{is_misplaced, is_own};
use crate::page::Slot;
use crate::row_builder::{NewRow, Prepared, PreparedRow};
use crate::row_id::RowId;
use crate::transaction::Transaction;

/// A change of a row.
struct Step {
    id: RowId,
    slot: Slot,
    kind: StepKind,
}

enum StepKind {
    /// An inserted row, with the hashes of its keys.
    Inserted(Keys),
    /// A written row: its columns, and their previous data.
    Written(SmallVec<[(ColumnId, Datum); 4]>),
}

/// The steps of one transaction.
#[derive(Default)]
struct Steps {
    steps: SmallVec<[Step; 1]>,
    /// Changes in the number of strong references to a row, except those from the row to itself.
    strong: SmallVec<[(RowId, i64); 2]>,
    /// Whether a row's reference to itself is in a column that refers to another table.
    has_own_references: bool,
    /// Changes in weak references: target, source, 1 or -1.
    weak: SmallVec<[(RowId, RowId, i64); 1]>,
}

/// The steps need an ordinary commit.
struct Irregular;

impl Database {
    /// Applies a transaction read from a log, as [`Database::apply_recorded`] does, without
    /// returning the changes. Rows that it modifies keep their `_version`, so this is for databases
    /// that are not served yet.
    ///
    /// # Errors
    /// Those of [`Database::apply_recorded`].
    pub fn load(
        &mut self,
        recorded: Recorded,
        uuids: &mut dyn UuidSource,
    ) -> Result<(), WireError> {
        self.load_prepared(recorded.into(), uuids)
    }

    /// Applies a prepared transaction, as [`Database::load`] does.
    ///
    /// # Errors
    /// Those of [`Database::apply_recorded`].
    pub fn load_prepared(
        &mut self,
        prepared: Prepared,
        uuids: &mut dyn UuidSource,
    ) -> Result<(), WireError> {
        let Prepared { is_diff, rows } = prepared;
        let mut steps = Steps::default();
        let mut rows = rows.into_iter();
        while let Some(row) = rows.next() {
            let is_deleted =
                matches!(&row, PreparedRow::Recorded(recorded) if recorded.columns.is_none());
            let outcome = if !is_deleted {
                steps.step(self, row, is_diff, uuids)
            } else {
                // From the first deletion on, the transaction continues as an ordinary one.
                let mut txn = steps.into_transaction(self);
                let mut applied = apply(&mut txn, row.into_recorded(), is_diff, uuids);
                for row in rows {
                    applied =
                        applied.and_then(|()| apply(&mut txn, row.into_recorded(), is_diff, uuids));
                }
                return match applied {
                    Ok(()) => commit(txn, uuids).map(drop),
                    Err(error) => {
                        txn.rollback();
                        Err(error)
                    }
                };
            };
            if let Err(error) = outcome {
                steps.into_transaction(self).rollback();
                return Err(error);
            }
        }
        // The counts change only after every check has passed, and then nothing can fail.
        match steps.check(self) {
            Ok(()) => {
                steps.count(self);
                Ok(())
            }
            Err(Irregular) => commit(steps.into_transaction(self), uuids).map(drop),
        }
    }
}

impl Steps {
    /// Inserts or writes a row.
    fn step(
        &mut self,
        database: &mut Database,
        row: PreparedRow,
        is_diff: bool,
        uuids: &mut dyn UuidSource,
    ) -> Result<(), WireError> {
        let id = RowId::new(row.table(), row.uuid());
        let table = &database.tables[usize::from(id.table.0)];
        let found = table.find(id.uuid);
        let (slot, columns) = match (found, row) {
            (None, PreparedRow::New(NewRow { row, keys, .. })) => {
                self.insert(database, id, row, keys);
                return Ok(());
            }
            (None, PreparedRow::Recorded(RecordedRow { columns, .. })) => {
                let row = new_row(database, id, columns.unwrap_or_default(), uuids)?;
                let keys = table.keys(&row);
                self.insert(database, id, Arc::new(row), keys);
                return Ok(());
            }
            (Some(slot), row) => (slot, row.into_recorded().columns.unwrap_or_default()),
        };
        self.steps.push(Step {
            id,
            slot,
            kind: StepKind::Written(SmallVec::new()),
        });
        for (column, given) in own(columns) {
            self.write(database, id, slot, column, given, is_diff)?;
        }
        Ok(())
    }

    fn insert(&mut self, database: &mut Database, id: RowId, row: Arc<Row>, keys: Keys) {
        self.record_references(database, id, None, &row);
        let table = &mut database.tables[usize::from(id.table.0)];
        let slot = table.insert_keyed(row, &keys, 0);
        self.steps.push(Step {
            id,
            slot,
            kind: StepKind::Inserted(keys),
        });
    }

    /// Writes a column of the row of the last step.
    fn write(
        &mut self,
        database: &mut Database,
        id: RowId,
        slot: Slot,
        column: ColumnId,
        given: Datum,
        is_diff: bool,
    ) -> Result<(), WireError> {
        let at = usize::from(id.table.0);
        let before = database.tables[at].at(slot).columns[usize::from(column.0)].clone();
        let (after, diff) = if is_diff {
            let column_type = &database.schema.table(id.table).column(column).column_type;
            let is_composite = column_type.is_composite();
            // The difference of a scalar is its new value.
            let mut after = if is_composite {
                before.clone()
            } else {
                Datum::empty()
            };
            after.apply_diff(&given, column_type)?;
            (after, is_composite.then_some(given))
        } else {
            (given, None)
        };
        self.record_column(database, id, column, &before, &after, diff.as_ref());
        database.tables[at].write_column(slot, column, after);
        if let Some(StepKind::Written(written)) = self.steps.last_mut().map(|step| &mut step.kind) {
            written.push((column, before));
        }
        Ok(())
    }

    /// Records the references of a new row.
    fn record_references(&mut self, database: &Database, id: RowId, old: Option<&Row>, new: &Row) {
        let layout = &database.layouts[usize::from(id.table.0)];
        for reference in &*layout.strong {
            reference.changes(old, Some(new), None, &mut |table, uuid, sign| {
                self.record_strong(id, RowId::new(table, uuid), sign);
            });
        }
        for reference in &*layout.weak {
            reference.changes(old, Some(new), None, &mut |table, uuid, sign| {
                self.weak.push((RowId::new(table, uuid), id, sign));
            });
        }
    }

    /// Records the changes in the references of a column. If there is a `diff`, the work is
    /// proportional to it.
    fn record_column(
        &mut self,
        database: &Database,
        id: RowId,
        column: ColumnId,
        before: &Datum,
        after: &Datum,
        diff: Option<&Datum>,
    ) {
        let layout = &database.layouts[usize::from(id.table.0)];
        for reference in layout.strong.iter().filter(|other| other.column == column) {
            reference.datum_changes(before, after, diff, &mut |table, uuid, sign| {
                self.record_strong(id, RowId::new(table, uuid), sign);
            });
        }
        for reference in layout.weak.iter().filter(|other| other.column == column) {
            reference.datum_changes(before, after, diff, &mut |table, uuid, sign| {
                self.weak.push((RowId::new(table, uuid), id, sign));
            });
        }
    }

    fn record_strong(&mut self, source: RowId, target: RowId, sign: i64) {
        if is_own(source, target.uuid) {
            self.has_own_references |= is_misplaced(source, target);
        } else {
            self.strong.push((target, sign));
        }
    }

    /// Checks that a commit would accept the steps as they are.
    fn check(&mut self, database: &Database) -> Result<(), Irregular> {
        self.check_references(database)?;
        for step in &self.steps {
            let schema = database.schema.table(step.id.table);
            let table = &database.tables[usize::from(step.id.table.0)];
            let is_new = matches!(step.kind, StepKind::Inserted(_));
            if is_new && schema.max_rows != u32::MAX && table.len() > schema.max_rows as usize {
                return Err(Irregular);
            }
            for (number, index) in table.indexes().iter().enumerate() {
                let row = table.at(step.slot);
                let hash = match &step.kind {
                    // If a later step changes the key, that step checks it.
                    StepKind::Inserted(keys) => keys[number],
                    StepKind::Written(written) => {
                        let mut columns = written.iter().map(|(column, _)| column);
                        if !columns.any(|column| index.columns().contains(column)) {
                            continue;
                        }
                        index.hash(row)
                    }
                };
                if index.has_duplicate(hash, Some(step.slot), row, |slot| table.at(slot)) {
                    return Err(Irregular);
                }
            }
        }
        Ok(())
    }

    /// Checks that every referenced row exists, and that every row outside the root set has a
    /// reference.
    fn check_references(&mut self, database: &Database) -> Result<(), Irregular> {
        let exists =
            |target: &RowId| database.tables[usize::from(target.table.0)].contains(target.uuid);
        let mut added = self.weak.iter().filter(|(_, _, sign)| *sign > 0);
        if !added.all(|(target, ..)| exists(target)) {
            return Err(Irregular);
        }
        self.strong.sort_unstable();
        self.strong.dedup_by(|next, sum| {
            let is_same = next.0 == sum.0;
            if is_same {
                sum.1 += next.1;
            }
            is_same
        });
        for (target, change) in &self.strong {
            if !exists(target) {
                return Err(Irregular);
            }
            if !database.schema.table(target.table).is_root
                && self.references_to(database, *target, *change) == 0
            {
                return Err(Irregular);
            }
        }
        // A new row can only have references from this transaction, which `strong` lists. A sum of
        // zero was refused above.
        for step in &self.steps {
            if matches!(step.kind, StepKind::Written(_))
                || database.schema.table(step.id.table).is_root
            {
                continue;
            }
            if self
                .strong
                .binary_search_by_key(&step.id, |(id, _)| *id)
                .is_err()
            {
                return Err(Irregular);
            }
        }
        Ok(())
    }

    fn references_to(&self, database: &Database, target: RowId, change: i64) -> i64 {
        let before = database.tables[usize::from(target.table.0)].strong(target.uuid);
        let left = i64::from(before) + change;
        assert!(left >= 0, "strong references are counted exactly");
        left
    }

    /// Updates counts and back references.
    fn count(&self, database: &mut Database) {
        database.has_own_references |= self.has_own_references;
        for (target, change) in self.strong.iter().filter(|(_, change)| *change != 0) {
            database.tables[usize::from(target.table.0)].adjust_strong(target.uuid, *change);
        }
        for (target, source, sign) in &self.weak {
            let table = &mut database.tables[usize::from(target.table.0)];
            table.backrefs.adjust(target.uuid, *source, *sign);
        }
    }

    /// Turns the steps into a transaction, for a commit or a rollback.
    fn into_transaction(self, database: &mut Database) -> Transaction<'_> {
        // From the last step to the first, so that the original of a row with several steps is its
        // version before the first of them.
        let mut originals: Map<RowId, Option<Arc<Row>>> = Map::with_hasher(database.seed);
        for step in self.steps.iter().rev() {
            let table = &database.tables[usize::from(step.id.table.0)];
            let before = match &step.kind {
                StepKind::Inserted(_) => None,
                StepKind::Written(written) => {
                    let present = originals
                        .get(&step.id)
                        .cloned()
                        .flatten()
                        .unwrap_or_else(|| table.at(step.slot).clone());
                    let mut row = Row::clone(&present);
                    for (column, datum) in written.iter().rev() {
                        row.columns[usize::from(column.0)] = datum.clone();
                    }
                    Some(Arc::new(row))
                }
            };
            originals.insert(step.id, before);
        }
        let mut txn = Transaction::begin(database);
        for Step { id, slot, .. } in &self.steps {
            let strong = strong_of(&txn, id.table, id.uuid);
            let original = originals.get(id).cloned().flatten();
            let before = || original.map(|row| (row, strong));
            txn.journal.touch(*id, *slot, before);
        }
        txn
    }
}

fn strong_of(txn: &Transaction<'_>, table: TableId, uuid: Uuid) -> u32 {
    txn.table(table).strong(uuid)
}
