//! Pages hold the rows: 256 slots, shared with snapshots, which the writer copies once per
//! snapshot.
//!
//! A page knows no UUID, no index and no schema. Only [`crate::table::Table`] uses it, and only
//! [`crate::Snapshot`] reads it.

use corvid_data::{Arc, Row};

/// Slots of a page: 2 KiB of pointers, so that copying one after a snapshot costs well under a
/// microsecond.
pub(crate) const PAGE_SLOTS: usize = 256;

/// The number of a slot in the pages of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The slot `number` of a table.
    ///
    /// Four billion rows do not fit into any memory, so running out is a bug.
    pub(crate) fn new(number: usize) -> Slot {
        Slot(u32::try_from(number).expect("a table has fewer than 2^32 rows"))
    }

    /// The slot's number in the table.
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }

    /// The index of the slot's page.
    pub(crate) fn page(self) -> usize {
        self.0 as usize / PAGE_SLOTS
    }

    /// The slot's offset in its page.
    pub(crate) fn offset(self) -> usize {
        self.0 as usize % PAGE_SLOTS
    }
}

/// 256 slots, each with at most one row.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    slots: [Option<Arc<Row>>; PAGE_SLOTS],
}

impl Page {
    /// A page without rows.
    pub(crate) fn empty() -> Page {
        Page {
            slots: [const { None }; PAGE_SLOTS],
        }
    }

    /// The row at `offset`.
    pub(crate) fn get(&self, offset: usize) -> Option<&Arc<Row>> {
        self.slots[offset].as_ref()
    }

    /// The slot at `offset`, to fill or empty it.
    pub(crate) fn get_mut(&mut self, offset: usize) -> &mut Option<Arc<Row>> {
        &mut self.slots[offset]
    }

    /// The rows in the page, in slot order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Row>> + '_ {
        self.slots.iter().flatten()
    }

    /// The slots, in order.
    pub(crate) fn slots(&self) -> &[Option<Arc<Row>>; PAGE_SLOTS] {
        &self.slots
    }
}
