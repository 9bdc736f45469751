//! References between the rows of the replica, for changes that concern more than one row
//! (docs/spec/idl.md 5.2).
//!
//! A reference is a UUID in a datum, and following it is a look-up, so reading needs no further
//! data. Only change tracking asks for the referrers of a row. Invariant: there is exactly one arc
//! per pair of a row and a UUID that one of its columns names, whether or not the named row exists.
//! An arc takes 40 bytes.

use std::collections::BTreeSet;

use corvid_data::diff::{Change, Changes};
use corvid_data::{AtomRef, ColumnType, Datum, TableId, Uuid};

use crate::row::Row;

/// A position of a row whose column holds references.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReferenceColumn {
    pub(crate) place: usize,
    is_key: bool,
    is_value: bool,
}

impl ReferenceColumn {
    /// `None` if a column of the type cannot hold references.
    pub(crate) fn new(place: usize, column_type: &ColumnType) -> Option<ReferenceColumn> {
        let is_key = column_type.key.reference.is_some();
        let value = column_type.value.as_ref();
        let is_value = value.is_some_and(|value| value.reference.is_some());
        (is_key || is_value).then_some(ReferenceColumn {
            place,
            is_key,
            is_value,
        })
    }

    fn targets(
        self,
        key: AtomRef<'_>,
        value: Option<AtomRef<'_>>,
    ) -> impl Iterator<Item = Uuid> + use<> {
        let key = self.is_key.then(|| key.as_uuid()).flatten();
        let value = value.filter(|_| self.is_value).and_then(AtomRef::as_uuid);
        key.into_iter().chain(value)
    }

    fn names(self, datum: &Datum, target: Uuid) -> bool {
        (self.is_key && datum.contains(AtomRef::Uuid(target)))
            || (self.is_value && datum.values().any(|value| value.as_uuid() == Some(target)))
    }
}

/// The arcs, ordered by target.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Referrers {
    arcs: BTreeSet<(Uuid, TableId, Uuid)>,
}

impl Referrers {
    pub(crate) fn clear(&mut self) {
        self.arcs.clear();
    }

    /// The rows that refer to `target`.
    pub(crate) fn of(&self, target: Uuid) -> impl Iterator<Item = (TableId, Uuid)> + '_ {
        let from = (target, TableId(0), Uuid::ZERO);
        let to = (target, TableId(u16::MAX), Uuid([0xff; 16]));
        self.arcs
            .range(from..=to)
            .map(|(_, table, uuid)| (*table, *uuid))
    }

    pub(crate) fn inserted(&mut self, table: TableId, row: &Row, places: &[ReferenceColumn]) {
        for place in places {
            for (key, value) in &row.columns[place.place] {
                for target in place.targets(key, value) {
                    self.arcs.insert((target, table, row.uuid));
                }
            }
        }
    }

    pub(crate) fn deleted(&mut self, table: TableId, row: &Row, places: &[ReferenceColumn]) {
        for place in places {
            for (key, value) in &row.columns[place.place] {
                for target in place.targets(key, value) {
                    self.arcs.remove(&(target, table, row.uuid));
                }
            }
        }
    }

    /// Updates the arcs after the column at `place` changed; `row` is the new version of the row.
    pub(crate) fn changed(
        &mut self,
        table: TableId,
        row: &Row,
        place: ReferenceColumn,
        old: &Datum,
        places: &[ReferenceColumn],
    ) {
        let mut lost = Vec::new();
        for change in Changes::new(old, &row.columns[place.place]) {
            match change {
                Change::Added(key, value) => {
                    for target in place.targets(key, value) {
                        self.arcs.insert((target, table, row.uuid));
                    }
                }
                Change::Removed(key, value) => lost.extend(place.targets(key, value)),
                Change::Replaced(key, before, after) => {
                    lost.extend(place.targets(key, Some(before)));
                    for target in place.targets(key, Some(after)) {
                        self.arcs.insert((target, table, row.uuid));
                    }
                }
            }
        }
        for target in lost {
            let is_named = |other: &ReferenceColumn| other.names(&row.columns[other.place], target);
            if !places.iter().any(is_named) {
                self.arcs.remove(&(target, table, row.uuid));
            }
        }
    }
}
