//! Indexes over single columns that conditions need and the schema does not declare. An index is
//! begun when rows are first looked up by `==` on a column without one. Every change updates it. It
//! is dropped once the updates have cost more than look-ups saved.
//!
//! An index is built some pages at a time, because the table may be large: rows in slots below
//! `covered` are in it, the other rows are not. Until it covers the table, look-ups walk the table.
//! Any number of rows may hold the same value.
//!
//! Invariant: for every slot below `covered`, the chain of its row's value holds it, even in the
//! middle of a transaction. Memory: 8 bytes per slot and 10 per distinct value, for at most
//! [`INDEXES_MAX`] columns of a table. [`crate::table`] owns the indexes and reports every change
//! to them; they know no conditions.

use corvid_data::{Arc, ColumnId, Datum, HashSeed, Row};

use crate::hash::hash_data;
use crate::page::{PAGE_SLOTS, Page, Slot};
use crate::slot_chains::SlotChains;

/// Limit on the columns of one table that get an index.
const INDEXES_MAX: usize = 4;
/// Smaller tables than this are walked.
const ROWS_MIN: usize = 64;
/// An index is dropped after this many changes per row of the table without a look-up: they have
/// cost more than rebuilding it would.
const CHANGES_PER_ROW: usize = 2;

/// A column gets an index after this many operations that walked the table for it. A single walk is
/// cheaper than an index.
const WALKS: u32 = 8;

/// The indexes of one table.
#[derive(Debug)]
pub(crate) struct ColumnIndexes {
    seed: HashSeed,
    indexes: Vec<ColumnIndex>,
    /// Columns without an index, with the number of walks for each.
    walks: Vec<(ColumnId, u32)>,
}

/// The slots of the rows with a given value of one column.
#[derive(Debug)]
pub(crate) struct ColumnIndex {
    column: ColumnId,
    seed: HashSeed,
    chains: SlotChains,
    /// Slots below this number are in the chains.
    covered: usize,
    /// Changes for which the index is updated before it is dropped. A look-up resets the number.
    changes_left: usize,
}

impl ColumnIndexes {
    /// No indexes yet.
    pub(crate) fn new(seed: HashSeed) -> ColumnIndexes {
        ColumnIndexes {
            seed,
            indexes: Vec::new(),
            walks: Vec::new(),
        }
    }

    /// The index over `column`, if there is one and it covers the table.
    pub(crate) fn find(&self, column: ColumnId) -> Option<&ColumnIndex> {
        self.indexes
            .iter()
            .find(|index| index.column == column && index.is_complete())
    }

    /// Reports that rows are about to be looked up by `column`, in a table of `rows` rows. Returns
    /// whether an index was begun.
    pub(crate) fn want(&mut self, column: ColumnId, rows: usize) -> bool {
        let changes_left = CHANGES_PER_ROW * rows.max(ROWS_MIN);
        if let Some(index) = self.indexes.iter_mut().find(|index| index.column == column) {
            // The index was useful again, so it gets a new allowance of updates.
            index.changes_left = changes_left;
            return false;
        }
        let begin = rows >= ROWS_MIN && self.indexes.len() < INDEXES_MAX && !column.is_standard();
        if begin {
            self.indexes.push(ColumnIndex {
                column,
                seed: self.seed,
                chains: SlotChains::default(),
                covered: 0,
                changes_left,
            });
        }
        begin
    }

    /// Reports that an operation is about to search for rows by `column`, in a table of `rows`
    /// rows. Returns whether an index was begun.
    pub(crate) fn count_walk(&mut self, column: ColumnId, rows: usize) -> bool {
        let is_there = self.indexes.iter().any(|index| index.column == column);
        if is_there || rows < ROWS_MIN {
            // The index exists already, or the table is too small for one.
            return self.want(column, rows);
        }
        let position = self.walks.iter().position(|(walked, _)| *walked == column);
        let position = position.unwrap_or_else(|| {
            self.walks.push((column, 0));
            self.walks.len() - 1
        });
        self.walks[position].1 += 1;
        if self.walks[position].1 < WALKS {
            return false;
        }
        self.walks.swap_remove(position);
        self.want(column, rows)
    }

    /// Adds the rows of up to `pages_max` more pages to the first index that does not cover the
    /// table. Returns whether work is left.
    pub(crate) fn advance(&mut self, pages: &[Arc<Page>], pages_max: usize) -> bool {
        if let Some(index) = self.indexes.iter_mut().find(|index| !index.is_complete()) {
            index.cover(pages, pages_max);
        }
        self.indexes.iter().any(|index| !index.is_complete())
    }

    /// Records that a row was inserted at `slot`.
    pub(crate) fn inserted(&mut self, slot: Slot, row: &Row) {
        self.indexes
            .iter_mut()
            .for_each(|index| index.insert(slot, row));
        self.drop_unused();
    }

    /// Records that the row at `slot` was removed.
    pub(crate) fn removed(&mut self, slot: Slot, row: &Row) {
        self.indexes
            .iter_mut()
            .for_each(|index| index.remove(slot, row));
        self.drop_unused();
    }

    /// Records that the row at `slot` was replaced by another version.
    pub(crate) fn replaced(&mut self, slot: Slot, old: &Row, new: &Row) {
        for index in &mut self.indexes {
            let (old_value, new_value) = (index.value(old), index.value(new));
            if !old_value.ptr_eq(new_value) && old_value != new_value {
                index.remove(slot, old);
                index.insert(slot, new);
            }
        }
        self.drop_unused();
    }

    /// Records that a column of the row at `slot` is about to change from one value to another.
    pub(crate) fn rewritten(&mut self, slot: Slot, column: ColumnId, old: &Datum, new: &Datum) {
        for index in self
            .indexes
            .iter_mut()
            .filter(|index| index.column == column)
        {
            if index.covers(slot) {
                index.chains.remove(index.hash(old), slot);
                index.chains.insert(index.hash(new), slot);
                index.count_change();
            }
        }
        self.drop_unused();
    }

    fn drop_unused(&mut self) {
        self.indexes.retain(|index| index.changes_left > 0);
    }

    /// Checks the invariant against the rows of the table. For tests.
    ///
    /// # Errors
    /// A description of the first difference.
    pub(crate) fn check_invariants<'a, I: Iterator<Item = (Slot, &'a Arc<Row>)>>(
        &self,
        rows: impl Fn() -> I,
    ) -> Result<(), String> {
        for index in &self.indexes {
            let mut expected = 0;
            for (slot, row) in rows().filter(|(slot, _)| index.covers(*slot)) {
                let found = index.candidates(index.value(row));
                if found.filter(|candidate| *candidate == slot).count() != 1 {
                    return Err(format!("row {} is not in its column index", row.uuid));
                }
                expected += 1;
            }
            let counted = index.chains.len();
            if counted != expected {
                return Err(format!("a column index has {counted} of {expected} rows"));
            }
        }
        Ok(())
    }
}

impl ColumnIndex {
    /// The slots of rows that probably hold `value`: the hash is equal, and the caller compares.
    pub(crate) fn candidates(&self, value: &Datum) -> impl Iterator<Item = Slot> + '_ {
        self.chains.candidates(self.hash(value))
    }

    fn hash(&self, value: &Datum) -> u64 {
        hash_data(self.seed, std::iter::once(value))
    }

    fn is_complete(&self) -> bool {
        self.covered == usize::MAX
    }

    fn covers(&self, slot: Slot) -> bool {
        slot.number() < self.covered
    }

    fn value<'r>(&self, row: &'r Row) -> &'r Datum {
        &row.columns[usize::from(self.column.0)]
    }

    fn cover(&mut self, pages: &[Arc<Page>], pages_max: usize) {
        let first = self.covered / PAGE_SLOTS;
        for page in pages.iter().skip(first).take(pages_max) {
            for (offset, row) in page.slots().iter().enumerate() {
                if let Some(row) = row {
                    let value = self.hash(self.value(row));
                    self.chains.insert(value, Slot::new(self.covered + offset));
                }
            }
            self.covered += PAGE_SLOTS;
        }
        if self.covered >= pages.len() * PAGE_SLOTS {
            // The index also covers slots that the table gets later.
            self.covered = usize::MAX;
        }
    }

    fn count_change(&mut self) {
        self.changes_left = self.changes_left.saturating_sub(1);
    }

    fn insert(&mut self, slot: Slot, row: &Row) {
        if self.covers(slot) {
            self.chains.insert(self.hash(self.value(row)), slot);
            self.count_change();
        }
    }

    fn remove(&mut self, slot: Slot, row: &Row) {
        if self.covers(slot) {
            self.chains.remove(self.hash(self.value(row)), slot);
            self.count_change();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use corvid_data::{Atom, AtomType, ColumnSchema, ColumnType, TableSchema, Uuid};

    const HOST: ColumnId = ColumnId(0);

    fn table() -> Table {
        let column = ColumnSchema {
            name: "host".into(),
            column_type: ColumnType::scalar(AtomType::Integer),
            mutable: true,
            persistent: true,
        };
        let schema = TableSchema::new("T".into(), vec![column]);
        Table::new(&schema, HashSeed::FIXED)
    }

    fn host(number: usize) -> Datum {
        Datum::one(Atom::Integer(number as i64))
    }

    fn uuid(number: usize) -> Uuid {
        Uuid((number as u128).to_be_bytes())
    }

    fn row(number: usize, of_host: usize) -> Arc<Row> {
        Arc::new(Row {
            uuid: uuid(number),
            version: Uuid::ZERO,
            columns: [host(of_host)].into(),
        })
    }

    /// Number of rows of `of_host` according to the index; `None` while it is being built.
    fn found(table: &Table, of_host: usize) -> Option<usize> {
        let index = table.column_index(HOST)?;
        Some(index.candidates(&host(of_host)).count())
    }

    #[test]
    fn an_index_is_correct_while_it_is_built_and_afterwards() {
        // The invariant check compares each row with the others of its host, so miri gets fewer of
        // these.
        let (hosts, last) = if cfg!(miri) { (50, 1110) } else { (10, 2000) };
        let mut table = table();
        for number in 0..1000 {
            table.insert(row(number, number % hosts), 0);
        }
        assert!(table.want_column_index(HOST) && !table.want_column_index(HOST));
        assert!(table.advance_column_indexes(2));
        // Below and above the covered slots: a removed row, a row moved to another host, a replaced
        // row, new rows.
        for first in [100, 900] {
            table.remove(uuid(first));
            let slot = table.find(uuid(first + 1)).unwrap();
            table.write_column(slot, HOST, host(77));
            let slot = table.find(uuid(first + 2)).unwrap();
            table.replace(slot, row(first + 2, 77));
            table.check_column_indexes().unwrap();
        }
        let more = last - 1000;
        for number in 1000..1000 + more / 10 {
            table.insert(row(number, 5), 0);
        }
        assert_eq!(found(&table, 77), None);
        assert!(!table.advance_column_indexes(100));
        table.check_column_indexes().unwrap();
        assert_eq!(found(&table, 77), Some(4));
        assert_eq!(found(&table, 5), Some(1000 / hosts + more / 10));
        for number in 1000 + more / 10..last {
            table.insert(row(number, 5), 0);
        }
        table.check_column_indexes().unwrap();
        assert_eq!(found(&table, 5), Some(1000 / hosts + more));
    }

    #[test]
    fn an_index_that_costs_more_than_it_saves_is_dropped() {
        let mut table = table();
        for number in 0..ROWS_MIN {
            table.insert(row(number, number), 0);
        }
        table.want_column_index(HOST);
        table.advance_column_indexes(100);
        let slot = table.find(uuid(3)).unwrap();
        let change = |table: &mut Table, count: usize| {
            for number in 0..count {
                table.write_column(slot, HOST, host(ROWS_MIN + number));
            }
        };
        let limit = CHANGES_PER_ROW * ROWS_MIN;
        change(&mut table, limit - 1);
        table.want_column_index(HOST);
        change(&mut table, limit - 1);
        assert!(table.column_index(HOST).is_some());
        change(&mut table, 1);
        assert!(table.column_index(HOST).is_none());
    }

    #[test]
    fn small_tables_and_standard_columns_get_no_index() {
        let mut table = table();
        assert!(!table.want_column_index(HOST));
        for number in 0..ROWS_MIN {
            table.insert(row(number, number), 0);
        }
        assert!(!table.want_column_index(ColumnId::VERSION));
    }
}
