//! Step 6: removes weak references to deleted rows, and to rows that never existed, from every row
//! of the database.
//!
//! The references come from two sources: those that changed rows added, and the back references of
//! deleted rows. Both are processed completely, so the order in which rows were touched makes no
//! difference.

use std::collections::BTreeMap;

use corvid_data::{Atom, AtomRef, ColumnId, Datum, Row, Tag, Uuid, WireError};
use smallvec::SmallVec;

use super::net_change::difference;
use super::{Commit, Refusal};
use crate::hash::Set;
use crate::journal::Effect;
use crate::reference::ReferenceColumn;
use crate::row_id::RowId;
use crate::transaction::{Transaction, Written};
use crate::work_budget;

/// Rows that hold dangling weak references, each with the missing targets.
type Holders = BTreeMap<RowId, Set<RowId>>;

impl Commit<'_, '_> {
    /// Removes every dangling weak reference. Rows that lose a strong reference with it become
    /// suspects.
    pub(super) fn drop_weak_references(&mut self) -> Result<(), Refusal> {
        let mut holders = Holders::new();
        self.find_dangling_additions(&mut holders);
        if holders.is_empty() && self.deleted.is_empty() {
            return Ok(());
        }
        // The back references are those of the last commit. They may name a row that this
        // transaction has changed or deleted since; `purge` looks at the row's current contents.
        for target in self.deleted.drain(..) {
            let Transaction {
                database, budget, ..
            } = &mut *self.txn;
            let table = &database.tables[usize::from(target.table.0)];
            for source in table.backrefs.sources(target.uuid) {
                budget.spend(work_budget::CHANGE)?;
                let missing = holders.entry(source);
                let none = || Set::with_hasher(database.seed);
                missing.or_insert_with(none).insert(target);
            }
        }
        for (source, missing) in holders {
            self.purge(source, &missing)?;
        }
        Ok(())
    }

    fn find_dangling_additions(&self, holders: &mut Holders) {
        let txn = &*self.txn;
        for touched in txn.journal.rows() {
            if !matches!(touched.effect, Effect::Inserted | Effect::Modified) {
                continue;
            }
            let old = touched.old.as_deref();
            let new = txn.row(touched).map(|row| &**row);
            for reference in &*txn.layout(touched.id.table).weak {
                reference.changes(old, new, Some(&touched.diffs), &mut |table, uuid, sign| {
                    if sign > 0 && !txn.table(table).contains(uuid) {
                        let missing = holders.entry(touched.id);
                        let none = || Set::with_hasher(txn.database.seed);
                        missing.or_insert_with(none).insert(RowId::new(table, uuid));
                    }
                });
            }
        }
    }

    /// Removes the references of `source` to `missing` rows. The row may no longer hold them, or
    /// may be deleted itself.
    fn purge(&mut self, source: RowId, missing: &Set<RowId>) -> Result<(), WireError> {
        let Some(slot) = self.txn.table(source.table).find(source.uuid) else {
            return Ok(());
        };
        let before = self.txn.table(source.table).at(slot).clone();
        let mut written: SmallVec<[Written; 2]> = SmallVec::new();
        for reference in &*self.txn.layout(source.table).weak {
            let datum = &before.columns[usize::from(reference.column.0)];
            if let Some((purged, removed)) = reference.without(datum, missing) {
                self.check_minimum(source, reference.column, datum, &purged, missing)?;
                let schema = self.txn.table_schema(source.table);
                let column_type = &schema.column(reference.column).column_type;
                let is_diff = column_type.is_composite() && !column_type.is_map();
                written.push(Written {
                    column: reference.column,
                    datum: purged,
                    diff: is_diff.then_some(removed),
                });
            }
        }
        if written.is_empty() {
            return Ok(());
        }
        // Includes rows that `source` no longer named. Recording too many only makes a conversion
        // start over more often.
        self.dropped.extend(missing);
        let columns: SmallVec<[ColumnId; 4]> =
            written.iter().map(|written| written.column).collect();
        self.txn.write(source.table, slot, written.into_iter());
        let after = self.txn.table(source.table).at(slot).clone();
        self.record_columns(source, &columns, &after);
        self.release(source, &before, Some(&after));
        Ok(())
    }

    /// Records in the journal that `columns` of a row changed again.
    fn record_columns(&mut self, id: RowId, columns: &[ColumnId], new: &Row) {
        let schema = self.txn.database.schema.table(id.table);
        let position = self.txn.journal.position(id).expect("writing touches");
        let touched = &mut self.txn.journal.rows_mut()[position];
        let Some(old) = &touched.old else { return };
        touched.effect = Effect::Modified;
        for column in columns {
            // The write has recorded the difference, if that is the one from before the
            // transaction.
            if touched.diffs.iter().any(|diff| diff.column == *column) {
                continue;
            }
            let index = usize::from(column.0);
            let diff = difference(schema, *column, &old.columns[index], &new.columns[index]);
            touched.diffs.extend(diff);
        }
        touched.diffs.sort_unstable_by_key(|diff| diff.column);
    }

    /// The texts are the reference's, including its spelling.
    fn check_minimum(
        &self,
        id: RowId,
        column: ColumnId,
        before: &Datum,
        after: &Datum,
        missing: &Set<RowId>,
    ) -> Result<(), WireError> {
        let schema = self.txn.table_schema(id.table);
        let column_schema = schema.column(column);
        if after.len() >= column_schema.column_type.min as usize {
            return Ok(());
        }
        let inserted = self
            .txn
            .journal
            .find(id)
            .is_some_and(|touched| touched.old.is_none());
        let zero = missing.iter().any(|target| target.uuid == Uuid::ZERO)
            && before.iter().any(|(key, value)| {
                let is_zero = |atom: AtomRef<'_>| atom == AtomRef::Uuid(Uuid::ZERO);
                is_zero(key) || value.is_some_and(is_zero)
            });
        let (column, table, uuid) = (&column_schema.name, &schema.name, id.uuid);
        let details = if inserted && zero {
            format!(
                "Weak reference column \"{column}\" in \"{table}\" row {uuid} (inserted within this transaction) contained \
                 all-zeros UUID (probably as the default value for this column) but deleting this value caused a \
                 constraint volation because this column is not allowed to be empty."
            )
        } else {
            let count = before.len() - after.len();
            let when = if inserted {
                "(inserted within this transaction) "
            } else {
                ""
            };
            format!(
                "Deletion of {count} weak reference(s) to deleted (or never-existing) rows from column \"{column}\" in \
                 \"{table}\" row {uuid} {when}caused this column to become empty, but constraints on this column \
                 disallow an empty column."
            )
        };
        Err(WireError::new(Tag::ConstraintViolation, details))
    }
}

impl ReferenceColumn {
    /// Removes references to `missing` rows from `datum`. Returns the remaining datum, and the keys
    /// that were looked up and removed, which for a set are all removed elements. `None` if there
    /// are no such references. Keys are looked up, so a large set is not walked. Values are
    /// unordered and are scanned.
    fn without(&self, datum: &Datum, missing: &Set<RowId>) -> Option<(Datum, Datum)> {
        let (mut purged, mut removed) = (datum.clone(), Datum::empty());
        if let Some(table) = self.key {
            for target in missing.iter().filter(|target| target.table == table) {
                if purged.remove(AtomRef::Uuid(target.uuid)) {
                    removed.insert(Atom::Uuid(target.uuid), None);
                }
            }
        }
        if let Some(table) = self.value {
            let is_missing = |value: Option<AtomRef<'_>>| {
                value
                    .and_then(AtomRef::as_uuid)
                    .is_some_and(|uuid| missing.contains(&RowId::new(table, uuid)))
            };
            for (key, _) in datum.iter().filter(|(_, value)| is_missing(*value)) {
                purged.remove(key);
            }
        }
        (purged.len() < datum.len()).then_some((purged, removed))
    }
}
