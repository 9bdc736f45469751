//! The first rows of an order that is not there: all rows are read, in pieces between which the
//! replica takes updates, and only as many are kept as the page needs.
//!
//! Pieces are read in a scattered sequence. So few rows are kept and dropped again, even if they
//! came in the opposite order. Two threads read them, because a viewer waits: the time goes into
//! fetching each row from memory, where neither of them holds up the other.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use corvid::data::{Datum, TableId, Uuid};
use corvid::{Idl, RowId};
use corvid_filter::Where;

use super::ledger::Ledger;
use super::{Page, Sort, is_selected};

/// The slots of a piece: rows that are read while the replica takes no updates.
pub(super) const PIECE: usize = 4096;

/// Rows that are kept beyond those that the page needs, because rows may leave the page while
/// others are read.
const SPARE: usize = 256;

/// The threads that read the rows of one selection.
const READERS: usize = 2;

/// Tables with fewer pieces are read by one thread.
const SHARED_PIECES: usize = 8;

/// A selection is begun anew if more rows change meanwhile.
const CHANGED_MAX: usize = 4096;

/// The pieces of `slots` slots, scattered.
pub(super) fn pieces(slots: usize) -> impl Iterator<Item = Range<usize>> {
    let count = slots.div_ceil(PIECE);
    // A step of about the golden ratio that shares no factor with the count meets each piece once.
    let is_apart = |step: &usize| gcd(*step, count) == 1;
    let step = (count * 618 / 1000..count).find(is_apart).unwrap_or(1);
    (0..count).map(move |at| {
        let begin = at * step % count * PIECE;
        begin..slots.min(begin + PIECE)
    })
}

fn gcd(one: usize, other: usize) -> usize {
    match other {
        0 => one,
        _ => gcd(other, one % other),
    }
}

/// Access to the replica, for a while in which it takes no updates.
type SharedHold<'h> = dyn Fn(&mut dyn FnMut(&Idl)) + Sync + 'h;

/// A selection of the first rows of an order.
pub(super) struct Selection {
    table: TableId,
    filter: Option<Where>,
    sort: Sort,
    /// The number of rows that are kept at least.
    wanted: usize,
    /// The first rows among those that were read, in no order, and some more.
    first: Vec<(Datum, Uuid)>,
    /// All rows up to this one are among `first`; `None` if no row was left out.
    limit: Option<(Datum, Uuid)>,
    /// Rows that the filter selects.
    selected: usize,
}

impl Selection {
    /// A selection of the first `end` rows.
    pub(super) fn new(table: TableId, filter: Option<Where>, sort: Sort, end: usize) -> Selection {
        Selection {
            table,
            filter,
            sort,
            wanted: end + SPARE,
            first: Vec::new(),
            limit: None,
            selected: 0,
        }
    }

    /// Reads all rows.
    pub(super) fn read_all(&mut self, slots: usize, hold: &SharedHold<'_>) {
        let pieces: Vec<Range<usize>> = pieces(slots).collect();
        let next = AtomicUsize::new(0);
        let read = |part: &mut Selection| {
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                hold(&mut |idl| part.read(idl, piece.clone()));
            }
        };
        let helpers = match pieces.len() < SHARED_PIECES {
            true => 0,
            false => READERS - 1,
        };
        let mut others: Vec<Selection> = (0..helpers).map(|_| self.another()).collect();
        thread::scope(|scope| {
            for part in &mut others {
                // Without a thread the others read its pieces, too.
                let _ = thread::Builder::new().spawn_scoped(scope, || read(part));
            }
            read(self);
        });
        for part in others {
            self.merge(part);
        }
    }

    /// A selection for another part of the rows.
    pub(super) fn another(&self) -> Selection {
        Selection {
            filter: self.filter.clone(),
            first: Vec::new(),
            limit: None,
            ..*self
        }
    }

    /// Adds the rows of another part.
    pub(super) fn merge(&mut self, other: Selection) {
        self.selected += other.selected;
        self.first.extend(other.first);
        let sort = self.sort;
        let compare = |one: &(Datum, Uuid), other: &(Datum, Uuid)| {
            sort.compare((&one.0, one.1), (&other.0, other.1))
        };
        self.limit = match (self.limit.take(), other.limit) {
            (Some(one), Some(other)) => Some(match compare(&one, &other).is_le() {
                true => one,
                false => other,
            }),
            (one, other) => one.or(other),
        };
        // Beyond the nearer limit, one part may have left rows out.
        if let Some(limit) = &self.limit {
            self.first.retain(|row| compare(row, limit).is_le());
        }
    }

    /// Reads a piece of the rows.
    pub(super) fn read(&mut self, idl: &Idl, slots: Range<usize>) {
        for view in idl.views_in(self.table, slots) {
            if !is_selected(self.filter.as_ref(), view) {
                continue;
            }
            self.selected += 1;
            let (value, uuid) = (self.sort.value(view), view.uuid());
            if let Some((limit, limit_uuid)) = &self.limit
                && self
                    .sort
                    .compare((value, uuid), (limit, *limit_uuid))
                    .is_ge()
            {
                continue;
            }
            self.first.push((value.clone(), uuid));
            if self.first.len() >= 2 * self.wanted {
                self.cut();
            }
        }
    }

    /// Leaves rows out, so that only as many as are wanted remain.
    fn cut(&mut self) {
        let sort = self.sort;
        let last = self.wanted - 1;
        self.first.select_nth_unstable_by(last, |one, other| {
            sort.compare((&one.0, one.1), (&other.0, other.1))
        });
        self.first.truncate(self.wanted);
        self.limit = self.first.last().cloned();
    }

    /// The page, once all pieces have been read. `ledger` has what has changed since the first one.
    /// `None` if too much has: the selection is to be begun anew.
    pub(super) fn finish(
        mut self,
        idl: &Idl,
        ledger: &Ledger,
        places: Range<usize>,
    ) -> Option<Page> {
        let changed = ledger.pending();
        if changed.len() > CHANGED_MAX {
            return None;
        }
        let table = self.table;
        let is_there = |uuid: Uuid| idl.row(table, uuid).is_some();
        // Without tracking, a row may have gone unnoticed.
        self.first
            .retain(|(_, uuid)| !changed.contains(uuid) && is_there(*uuid));
        let mut selected_now = 0;
        for uuid in changed {
            let view = idl.view(RowId { table, uuid: *uuid });
            let Some(view) = view.filter(|view| is_selected(self.filter.as_ref(), *view)) else {
                continue;
            };
            selected_now += 1;
            let value = self.sort.value(view);
            let limit = self.limit.as_ref();
            let is_within = limit.is_none_or(|(limit, limit_uuid)| {
                let order = self.sort.compare((value, *uuid), (limit, *limit_uuid));
                order.is_le()
            });
            if is_within {
                self.first.push((value.clone(), *uuid));
            }
        }
        if self.limit.is_some() && self.first.len() < places.end {
            return None;
        }
        let sort = self.sort;
        self.first
            .sort_unstable_by(|one, other| sort.compare((&one.0, one.1), (&other.0, other.1)));
        let page = self.first.iter().map(|(_, uuid)| *uuid);
        let (selected, is_counted) = match self.filter {
            None => (idl.row_count(table), true),
            Some(_) if changed.is_empty() => (self.selected, true),
            // Whether a changed row was among those that were counted is not known.
            Some(_) => {
                let counted = self.selected.saturating_sub(changed.len()) + selected_now;
                (counted.max(self.first.len()), false)
            }
        };
        Some(Page {
            uuids: page.skip(places.start).take(places.len()).collect(),
            selected,
            is_counted,
            is_ready: true,
        })
    }
}
