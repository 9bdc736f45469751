//! Back references: for each row of a table, the rows that refer to it weakly, and how often.
//!
//! Invariant between commits: the map holds exactly the weak references in the committed rows, each
//! with its number of atoms. The commit uses it to find the holders of references to deleted rows
//! without a scan, and updates it at its end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use corvid_data::Uuid;

use crate::row_id::RowId;

/// Weak references to the rows of one table. Ordered, so that the holders of one target are a
/// range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackRefs {
    counts: BTreeMap<(Uuid, RowId), u32>,
    total: u64,
}

const FIRST: RowId = RowId {
    table: corvid_data::TableId(0),
    uuid: Uuid::ZERO,
};

impl BackRefs {
    /// Adds `change` (usually 1 or -1) to the number of atoms in `source` that refer to `target`.
    pub(crate) fn adjust(&mut self, target: Uuid, source: RowId, change: i64) {
        let counted = |count: u32| {
            let now = i64::from(count) + change;
            u32::try_from(now).expect("weak references are counted exactly")
        };
        match self.counts.entry((target, source)) {
            Entry::Vacant(entry) => match counted(0) {
                0 => {}
                count => drop(entry.insert(count)),
            },
            Entry::Occupied(mut entry) => match counted(*entry.get()) {
                0 => drop(entry.remove()),
                count => *entry.get_mut() = count,
            },
        }
        self.total = self.total.wrapping_add_signed(change);
    }

    /// The rows that refer to `target`, each once, in order.
    pub(crate) fn sources(&self, target: Uuid) -> impl Iterator<Item = RowId> + '_ {
        self.counts
            .range((target, FIRST)..)
            .take_while(move |((uuid, _), _)| *uuid == target)
            .map(|((_, source), _)| *source)
    }

    /// Number of weak references to rows of this table.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::TableId;

    fn uuid(n: u8) -> Uuid {
        let mut bytes = [0; 16];
        bytes[15] = n;
        Uuid(bytes)
    }

    #[test]
    fn sources_are_those_of_the_target_only() {
        let mut backrefs = BackRefs::default();
        let a = RowId::new(TableId(0), uuid(1));
        let b = RowId::new(TableId(3), uuid(9));
        backrefs.adjust(uuid(5), b, 1);
        backrefs.adjust(uuid(5), a, 2);
        backrefs.adjust(uuid(6), a, 1);
        assert_eq!(backrefs.sources(uuid(5)).collect::<Vec<_>>(), [a, b]);
        assert_eq!(backrefs.total(), 4);
        backrefs.adjust(uuid(5), a, -2);
        assert_eq!(backrefs.sources(uuid(5)).collect::<Vec<_>>(), [b]);
        assert_eq!(backrefs.sources(uuid(4)).count(), 0);
        assert_eq!(backrefs.total(), 2);
    }
}
