//! A table in memory: rows in copy-on-write pages, found by UUID and by the schema's indexes, each
//! with the number of strong references to it.
//!
//! Invariants: every row is in exactly one slot, and that slot is in `slots_by_uuid` and in every
//! index. The count of strong references of a free slot is zero. `atoms` counts the atoms of the
//! rows. All this holds after each call, even in the middle of a transaction. Counts of strong
//! references and back references are those of the last commit: only [`crate::commit`] changes
//! them. A table knows nothing of transactions, of the rules of schemas, or of other tables.

use corvid_data::{Arc, ColumnId, Datum, HashSeed, Row, TableSchema, Uuid};

use crate::backrefs::BackRefs;
use crate::column_index::{ColumnIndex, ColumnIndexes};
use crate::hash::hash_uuid;
use crate::index::{Index, Keys, indexed};
use crate::page::{PAGE_SLOTS, Page, Slot};
use crate::slot_table::SlotTable;

/// The rows of one table.
#[derive(Debug)]
pub(crate) struct Table {
    pages: Vec<Arc<Page>>,
    seed: HashSeed,
    /// By the hash of the row's UUID.
    slots_by_uuid: SlotTable,
    /// The number of strong references from other rows to the row in each slot. Ends at the last
    /// slot that ever had any, so it is empty for tables without references to them.
    strong: Vec<u32>,
    free: Vec<Slot>,
    indexes: Box<[Index]>,
    /// Indexes that conditions need and the schema does not declare.
    column_indexes: ColumnIndexes,
    atoms: u64,
    /// Weak references to rows of this table.
    pub(crate) backrefs: BackRefs,
}

/// Atoms of a row: its columns, `_uuid` and `_version`.
pub(crate) fn row_atoms(row: &Row) -> u64 {
    2 + row.columns.iter().map(Datum::atom_count).sum::<u64>()
}

impl Table {
    /// An empty table.
    pub(crate) fn new(schema: &TableSchema, seed: HashSeed) -> Table {
        let indexes = indexed(schema)
            .map(|columns| Index::new(columns.into(), seed))
            .collect();
        Table {
            pages: Vec::new(),
            seed,
            slots_by_uuid: SlotTable::default(),
            strong: Vec::new(),
            free: Vec::new(),
            indexes,
            column_indexes: ColumnIndexes::new(seed),
            atoms: 0,
            backrefs: BackRefs::default(),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.slots_by_uuid.len()
    }

    /// Number of atoms held.
    pub(crate) fn atoms(&self) -> u64 {
        self.atoms
    }

    /// The pages, to be shared with a snapshot.
    pub(crate) fn pages(&self) -> &[Arc<Page>] {
        &self.pages
    }

    /// Slots without rows. The last one is used next.
    pub(crate) fn free(&self) -> &[Slot] {
        &self.free
    }

    /// Gives an empty table these pages and free slots.
    pub(crate) fn set_pages(&mut self, pages: Vec<Arc<Page>>, free: Vec<Slot>) {
        assert!(self.pages.is_empty(), "only an empty table is given pages");
        self.pages = pages;
        self.free = free;
    }

    /// Replaces the list of free slots, which decides the order of their use.
    pub(crate) fn replace_free(&mut self, free: Vec<Slot>) {
        self.free = free;
    }

    /// The schema's indexes.
    pub(crate) fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The index over one column that conditions requested, if it is complete.
    pub(crate) fn column_index(&self, column: ColumnId) -> Option<&ColumnIndex> {
        self.column_indexes.find(column)
    }

    /// Reports that rows are about to be looked up by a column without an index. Returns whether an
    /// index was begun.
    pub(crate) fn want_column_index(&mut self, column: ColumnId) -> bool {
        let rows = self.len();
        self.column_indexes.want(column, rows)
    }

    /// Reports that an operation is about to search for rows by a column that may have no index.
    /// Returns whether an index was begun.
    pub(crate) fn count_column_walk(&mut self, column: ColumnId) -> bool {
        let rows = self.len();
        self.column_indexes.count_walk(column, rows)
    }

    /// Continues the indexes that were begun, for up to `pages_max` pages. Returns whether work is
    /// left.
    pub(crate) fn advance_column_indexes(&mut self, pages_max: usize) -> bool {
        self.column_indexes.advance(&self.pages, pages_max)
    }

    /// Compares the column indexes with the rows. For tests.
    ///
    /// # Errors
    /// A description of the first difference.
    pub(crate) fn check_column_indexes(&self) -> Result<(), String> {
        self.column_indexes.check_invariants(|| self.slots())
    }

    /// The sum of [`SlotTable::collisions`] over all slot tables. For tests.
    pub(crate) fn collisions(&self) -> u64 {
        let indexes = self.indexes.iter().map(Index::collisions);
        self.slots_by_uuid.collisions() + indexes.sum::<u64>()
    }

    /// All rows, in slot order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Row>> + '_ {
        self.pages.iter().flat_map(|page| page.rows())
    }

    /// All rows with their slots, in slot order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Slot, &Arc<Row>)> + '_ {
        let slots = self.pages.iter().flat_map(|page| page.slots());
        slots
            .enumerate()
            .filter_map(|(number, row)| Some((Slot::new(number), row.as_ref()?)))
    }

    /// Calls `visit` with each row and its slot. For walks that search for few rows among many,
    /// where an iterator would cost more than the comparison.
    pub(crate) fn for_each<'t>(&'t self, mut visit: impl FnMut(Slot, &'t Arc<Row>)) {
        for (number, page) in self.pages.iter().enumerate() {
            let first = number * PAGE_SLOTS;
            for (offset, row) in page.slots().iter().enumerate() {
                if let Some(row) = row {
                    visit(Slot::new(first + offset), row);
                }
            }
        }
    }

    /// The slot of a row.
    pub(crate) fn find(&self, uuid: Uuid) -> Option<Slot> {
        self.find_hashed(hash_uuid(self.seed, uuid), uuid)
    }

    fn find_hashed(&self, hash: u64, uuid: Uuid) -> Option<Slot> {
        let mut candidates = self.slots_by_uuid.candidates(hash);
        candidates.find(|slot| self.at(*slot).uuid == uuid)
    }

    /// The slot that a row has if it exists, found without reading the row. It may be the slot of
    /// another row.
    pub(crate) fn guess(&self, uuid: Uuid) -> Option<Slot> {
        self.slots_by_uuid
            .candidates(hash_uuid(self.seed, uuid))
            .next()
    }

    /// Looks up a row by UUID.
    pub(crate) fn get(&self, uuid: Uuid) -> Option<&Arc<Row>> {
        self.find(uuid).map(|slot| self.at(slot))
    }

    /// Whether a row exists.
    pub(crate) fn contains(&self, uuid: Uuid) -> bool {
        self.find(uuid).is_some()
    }

    /// The row at a filled slot.
    pub(crate) fn at(&self, slot: Slot) -> &Arc<Row> {
        self.pages[slot.page()]
            .get(slot.offset())
            .expect("slots come from this table and are filled")
    }

    /// Number of strong references from other rows at the last commit; zero for missing rows.
    pub(crate) fn strong(&self, uuid: Uuid) -> u32 {
        self.find(uuid).map_or(0, |slot| self.strong_at(slot))
    }

    /// Adds `change` to a row's count of strong references. A missing row has no count.
    pub(crate) fn adjust_strong(&mut self, uuid: Uuid, change: i64) {
        if let Some(slot) = self.find(uuid) {
            let now = i64::from(self.strong_at(slot)) + change;
            let now = u32::try_from(now).expect("strong references are counted exactly");
            self.set_strong(slot, now);
        }
    }

    /// [`Table::strong`] of the row at `slot`.
    pub(crate) fn strong_at(&self, slot: Slot) -> u32 {
        self.strong.get(slot.number()).copied().unwrap_or(0)
    }

    fn set_strong(&mut self, slot: Slot, strong: u32) {
        if let Some(count) = self.strong.get_mut(slot.number()) {
            *count = strong;
        } else if strong > 0 {
            self.strong.resize(slot.number() + 1, 0);
            self.strong[slot.number()] = strong;
        }
    }

    /// The hashes of a row's keys.
    pub(crate) fn keys(&self, row: &Row) -> Keys {
        self.indexes.iter().map(|index| index.hash(row)).collect()
    }

    /// Adds a row that does not exist yet, with the number of strong references from other rows to
    /// it.
    pub(crate) fn insert(&mut self, row: Arc<Row>, strong: u32) -> Slot {
        let keys = self.keys(&row);
        self.insert_keyed(row, &keys, strong)
    }

    /// Adds a row, as [`Table::insert`] does, whose keys have these hashes.
    pub(crate) fn insert_keyed(&mut self, row: Arc<Row>, keys: &Keys, strong: u32) -> Slot {
        let hash = hash_uuid(self.seed, row.uuid);
        assert!(
            self.find_hashed(hash, row.uuid).is_none(),
            "row {} inserted twice",
            row.uuid
        );
        // A row that is missing in an index would allow a second row with its key.
        assert_eq!(
            keys.len(),
            self.indexes.len(),
            "a row has a key for each index"
        );
        // The order of free slots decides where the row goes, and slots decide the order of rows in
        // results. A replay depends on both ([`crate::row_slots`]).
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        self.atoms += row_atoms(&row);
        for (index, hash) in self.indexes.iter_mut().zip(keys) {
            index.insert_hashed(slot, *hash);
        }
        self.column_indexes.inserted(slot, &row);
        self.slots_by_uuid.insert(hash, slot);
        assert_eq!(
            self.strong_at(slot),
            0,
            "nothing refers to the row of a free slot"
        );
        self.set_strong(slot, strong);
        let before = self.entry(slot).replace(row);
        assert!(before.is_none(), "a row goes into a free slot");
        slot
    }

    /// Removes a row. Returns it with its count of strong references.
    pub(crate) fn remove(&mut self, uuid: Uuid) -> Option<(Arc<Row>, u32)> {
        let slot = self.find(uuid)?;
        let strong = self.strong_at(slot);
        self.set_strong(slot, 0);
        self.slots_by_uuid.remove(hash_uuid(self.seed, uuid), slot);
        let row = self
            .entry(slot)
            .take()
            .expect("only filled slots are found");
        for index in &mut self.indexes {
            index.remove(slot, &row);
        }
        self.column_indexes.removed(slot, &row);
        self.atoms -= row_atoms(&row);
        self.free.push(slot);
        Some((row, strong))
    }

    /// Replaces the row at `slot` by another version and returns the old one.
    pub(crate) fn replace(&mut self, slot: Slot, row: Arc<Row>) -> Arc<Row> {
        self.atoms += row_atoms(&row);
        let old = self
            .entry(slot)
            .replace(row)
            .expect("only filled slots are replaced");
        self.atoms -= row_atoms(&old);
        let new = self.pages[slot.page()]
            .get(slot.offset())
            .expect("filled just now");
        assert_eq!(old.uuid, new.uuid, "a row keeps its identity");
        self.column_indexes.replaced(slot, &old, new);
        for index in &mut self.indexes {
            if !index.same_key(&old, new) {
                index.remove(slot, &old);
                index.insert(slot, new);
            }
        }
        old
    }

    /// Writes a column of the row at `slot`. A shared version is copied first, so that its other
    /// holders do not see the change.
    pub(crate) fn write_column(&mut self, slot: Slot, column: ColumnId, datum: Datum) {
        let position = usize::from(column.0);
        let Table {
            pages,
            indexes,
            column_indexes,
            atoms,
            ..
        } = self;
        let row = Arc::make_mut(&mut pages[slot.page()])
            .get_mut(slot.offset())
            .as_mut()
            .expect("only filled slots are written");
        let old = &row.columns[position];
        if old.ptr_eq(&datum) {
            return;
        }
        *atoms -= old.atom_count();
        *atoms += datum.atom_count();
        column_indexes.rewritten(slot, column, old, &datum);
        // The key is removed from its index before it changes, and added afterwards: the index
        // finds an entry by the hash of the row's current key.
        let keyed = |index: &Index| index.columns().contains(&column);
        for index in indexes.iter_mut().filter(|index| keyed(index)) {
            index.remove(slot, row);
        }
        let row = Arc::make_mut(row);
        row.columns[position] = datum;
        for index in indexes.iter_mut().filter(|index| keyed(index)) {
            index.insert(slot, row);
        }
    }

    /// Gives the row at `slot` another `_version`.
    pub(crate) fn set_version(&mut self, slot: Slot, version: Uuid) {
        let row = self
            .entry(slot)
            .as_mut()
            .expect("only filled slots are written");
        Arc::make_mut(row).version = version;
    }

    fn entry(&mut self, slot: Slot) -> &mut Option<Arc<Row>> {
        Arc::make_mut(&mut self.pages[slot.page()]).get_mut(slot.offset())
    }

    /// Adds a page and returns its first slot. The other slots become free; the lowest is used
    /// next.
    fn grow(&mut self) -> Slot {
        let first = self.pages.len() * PAGE_SLOTS;
        self.pages.push(Arc::new(Page::empty()));
        self.free
            .extend((first + 1..first + PAGE_SLOTS).rev().map(Slot::new));
        Slot::new(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, AtomType, ColumnSchema, ColumnType};

    fn table() -> Table {
        let mut schema = TableSchema::new(
            "T".into(),
            vec![ColumnSchema {
                name: "n".into(),
                column_type: ColumnType::scalar(AtomType::Integer),
                mutable: true,
                persistent: true,
            }],
        );
        schema.indexes = vec![vec![ColumnId(0)], vec![ColumnId::UUID]];
        Table::new(&schema, HashSeed::FIXED)
    }

    fn number(n: i64) -> Datum {
        Datum::one(Atom::Integer(n))
    }

    fn row(n: u8) -> Arc<Row> {
        Arc::new(Row {
            uuid: Uuid([n; 16]),
            version: Uuid::ZERO,
            columns: [number(i64::from(n))].into(),
        })
    }

    #[test]
    fn slots_are_used_again() {
        let mut table = table();
        let first = table.insert(row(1), 0);
        table.insert(row(2), 5);
        assert_eq!(
            table.remove(Uuid([1; 16])).map(|(_, strong)| strong),
            Some(0)
        );
        assert_eq!(table.insert(row(3), 0), first);
        assert_eq!(table.strong(Uuid([2; 16])), 5);
        assert_eq!((table.len(), table.atoms()), (2, 6));
        assert!(table.remove(Uuid([1; 16])).is_none());
    }

    #[test]
    fn tables_grow_by_pages() {
        let mut table = table();
        for n in 0..=255 {
            table.insert(row(n), 0);
        }
        assert_eq!(table.pages().len(), 1);
        let uuid = Uuid(*b"between two rows");
        let extra = Row {
            uuid,
            ..Row::clone(&row(0))
        };
        table.insert(Arc::new(extra), 0);
        assert_eq!(table.pages().len(), 2);
        assert_eq!(table.rows().count(), 257);
    }

    #[test]
    fn writing_leaves_other_holders_of_the_row_and_page_alone() {
        let mut table = table();
        let slot = table.insert(row(1), 0);
        let (held, pages) = (table.at(slot).clone(), table.pages().to_vec());
        table.write_column(slot, ColumnId(0), number(9));
        assert_eq!(held, row(1));
        assert_eq!(pages[0].get(slot.offset()), Some(&row(1)));
        assert_eq!(table.at(slot).columns[0], number(9));
        // A row that is not shared is written in place.
        drop((held, pages));
        let before = Arc::as_ptr(table.at(slot));
        table.write_column(slot, ColumnId(0), number(10));
        assert_eq!(before, Arc::as_ptr(table.at(slot)));
        let index = &table.indexes()[0];
        let found: Vec<Slot> = index.candidates([number(10)].iter()).collect();
        assert_eq!(found, [slot]);
    }
}
