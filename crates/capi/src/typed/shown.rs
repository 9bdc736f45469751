//! The structs of a table's shown rows by the slots of these rows in the core: the way from a row
//! that the core has found to its struct, without a look-up by UUID, each step of which would fetch
//! memory that is in no cache.
//!
//! Invariant: every entry holds the struct of a live row, so no pointer here outlives its struct.
//! The core may give a slot to another row before the structs follow, so an entry is good only for
//! the row whose UUID it has. A caller that finds another row there looks the struct up by UUID.

use std::ptr;

use corvid::Uuid;

use super::class::corvid_idl_row;

/// A struct, and the row that it belongs to.
#[derive(Clone, Copy)]
struct Entry {
    uuid: Uuid,
    /// Null: the slot is empty.
    row: *mut corvid_idl_row,
}

const EMPTY: Entry = Entry {
    uuid: Uuid([0; 16]),
    row: ptr::null_mut(),
};

/// Structs by slot. See the head of this file.
#[derive(Default)]
pub(crate) struct ShownRows {
    entries: Vec<Entry>,
}

impl ShownRows {
    /// The struct of the row that the core has in a slot.
    pub(crate) fn get(&self, slot: usize, uuid: Uuid) -> Option<*mut corvid_idl_row> {
        let entry = self.entries.get(slot)?;
        (entry.uuid == uuid && !entry.row.is_null()).then_some(entry.row)
    }

    /// The row in a slot has a struct.
    pub(crate) fn insert(&mut self, slot: usize, uuid: Uuid, row: *mut corvid_idl_row) {
        if slot >= self.entries.len() {
            // The core's slots are dense, so this is amortized as in a vector.
            self.entries.resize(slot + 1, EMPTY);
        }
        self.entries[slot] = Entry { uuid, row };
    }

    /// The struct is not that of a live row any more. Another row may have its slot by now.
    pub(crate) fn remove(&mut self, slot: usize, row: *mut corvid_idl_row) {
        if let Some(entry) = self.entries.get_mut(slot)
            && entry.row == row
        {
            *entry = EMPTY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_good_for_its_own_row_only() {
        let row = |address: usize| ptr::without_provenance_mut::<corvid_idl_row>(address);
        let [ann, bob] = [1, 2].map(|byte| Uuid([byte; 16]));
        let mut rows = ShownRows::default();
        rows.insert(3, ann, row(8));
        assert_eq!(rows.get(3, ann), Some(row(8)));
        assert_eq!(rows.get(3, bob), None, "the core has another row there");
        assert_eq!(rows.get(0, Uuid([0; 16])), None, "an empty slot");
        // The core reuses the slot; then the previous row's struct is taken out.
        rows.insert(3, bob, row(16));
        rows.remove(3, row(8));
        assert_eq!(rows.get(3, bob), Some(row(16)));
        rows.remove(3, row(16));
        assert_eq!(rows.get(3, bob), None);
    }
}
