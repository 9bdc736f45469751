//! The transaction history: the newest commits by id. A client that reconnects gets the changes
//! since the last commit that it has seen (docs/spec/protocol.md 4.9).
//!
//! Invariant: entries are consecutive and the newest commit is last. There is always an entry,
//! unless the database keeps no history. The history is limited to 100 entries, and to as many
//! atoms as the database holds.
//!
//! Ids are random, so a client can only name an id that was sent to some client. If every id that
//! was sent is too old for the history, no commit is kept, and a commit's memory is free when its
//! transaction ends. That rule applies to ids of this process. If other processes send the same
//! ids, as the members of a cluster do, every id counts as sent ([`crate::Monitors::share_ids`]).
//! The history knows deltas, not subscriptions.

use std::collections::VecDeque;

use corvid_data::{Arc, Datum, Delta, Row, Uuid};

/// Limit on entries. A client's id is found if fewer commits than this came after it.
const ENTRIES_MAX: usize = 100;

/// A commit with more atoms than this is large: freeing it takes 100 us or more.
const LARGE_ATOMS: u64 = 4096;

/// The newest commits of one database.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: VecDeque<Entry>,
    /// Sum over `entries`.
    atoms: u64,
    /// Commits since an id may last have been sent to a client, counted up to [`ENTRIES_MAX`].
    unsent: usize,
    /// Large commits that were dropped, with their atoms.
    dropped: Vec<(Arc<Delta>, u64)>,
}

#[derive(Debug)]
struct Entry {
    txn: Uuid,
    /// `None` for the first entry: the history begins with the state after it.
    delta: Option<Arc<Delta>>,
    atoms: u64,
}

impl History {
    /// A history that begins with the state after `last_txn`, or an empty one if that is all zeros.
    pub(crate) fn new(last_txn: Uuid) -> History {
        let mut history = History {
            unsent: ENTRIES_MAX,
            ..History::default()
        };
        if last_txn != Uuid::ZERO {
            history.entries.push_back(Entry {
                txn: last_txn,
                delta: None,
                atoms: 0,
            });
        }
        history
    }

    /// Called when the id of the newest commit is about to be sent to a client.
    pub(crate) fn mark_sent(&mut self) {
        self.unsent = 0;
    }

    /// Whether a client may have an id of a commit that the history can hold.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent < ENTRIES_MAX
    }

    /// Adds a commit. `database_atoms` is the size of the database after it. `is_sent` tells
    /// whether ids of commits are sent to some client. An all-zero `txn` ends the history, because
    /// later states have no ids.
    pub(crate) fn record(
        &mut self,
        txn: Uuid,
        delta: &Arc<Delta>,
        database_atoms: u64,
        is_sent: bool,
    ) {
        if txn == Uuid::ZERO {
            *self = History::default();
            return;
        }
        // A client may have an id for as long as the history could still hold it. After
        // `ENTRIES_MAX` commits without a client that gets ids, no id in the history can be named.
        if is_sent {
            self.unsent = 0;
        } else if self.unsent == ENTRIES_MAX {
            return self.skip(txn, delta);
        } else {
            self.unsent += 1;
        }
        let atoms = atoms_of(delta);
        self.atoms += atoms;
        self.entries.push_back(Entry {
            txn,
            delta: Some(delta.clone()),
            atoms,
        });
        // The newest entry always stays: its id is the one that replies carry.
        while self.entries.len() > 1
            && (self.entries.len() > ENTRIES_MAX || self.atoms > database_atoms)
        {
            self.drop_first();
        }
        assert!(self.entries.len() <= ENTRIES_MAX, "the history is bounded");
        // Comes after the trimming, which decides the first entry.
        self.release_first();
    }

    /// Checks the atom count, and that no changes are missing. O(entries): for simulations.
    ///
    /// # Panics
    /// If a check fails.
    pub(crate) fn check(&self) {
        let atoms: u64 = self.entries.iter().map(|entry| entry.atoms).sum();
        assert_eq!(self.atoms, atoms, "the atoms are their sum");
        let mut later = self.entries.iter().skip(1);
        assert!(
            later.all(|entry| entry.delta.is_some()),
            "a client that reconnects misses no commit"
        );
    }

    /// Drops the changes of the first entry: the history begins with the state after it, so no
    /// client can ask for them. Its atoms stay counted until the entry is dropped. Otherwise a
    /// large deletion that no commit follows would keep all that it freed.
    fn release_first(&mut self) {
        if let Some(first) = self.entries.front_mut()
            && let Some(delta) = first.delta.take()
            && first.atoms > LARGE_ATOMS
            && frees_much(&delta)
        {
            self.dropped.push((delta, first.atoms));
        }
    }

    /// Skips a commit, because no client has an id of a commit before it. If the history begins
    /// again, it begins with the state after this commit.
    fn skip(&mut self, txn: Uuid, delta: &Arc<Delta>) {
        while !self.entries.is_empty() {
            self.drop_first();
        }
        self.entries.push_back(Entry {
            txn,
            delta: None,
            atoms: 0,
        });
        if replaces_much(delta) && frees_much(delta) {
            self.dropped.push((delta.clone(), atoms_of(delta)));
        }
    }

    fn drop_first(&mut self) {
        if let Some(dropped) = self.entries.pop_front() {
            self.atoms -= dropped.atoms;
            let is_large = |delta: &Arc<Delta>| dropped.atoms > LARGE_ATOMS && frees_much(delta);
            let large = dropped.delta.filter(is_large);
            self.dropped
                .extend(large.map(|delta| (delta, dropped.atoms)));
        }
    }

    /// Number of commits that can be sent to a client, and their atoms. The first entry is the
    /// state before those.
    pub(crate) fn size(&self) -> (usize, u64) {
        let first = self.entries.front().map_or(0, |entry| entry.atoms);
        (self.entries.len().saturating_sub(1), self.atoms - first)
    }

    /// Large deltas that were dropped since the last call, with their atoms, for another thread to
    /// free.
    pub(crate) fn take_dropped(&mut self) -> Vec<(Arc<Delta>, u64)> {
        std::mem::take(&mut self.dropped)
    }

    /// Id of the newest commit; all zeros without a history.
    pub(crate) fn last_txn(&self) -> Uuid {
        self.entries.back().map_or(Uuid::ZERO, |entry| entry.txn)
    }

    /// Whether the history has the commits after `txn`.
    pub(crate) fn contains(&self, txn: Uuid) -> bool {
        self.entries.iter().any(|entry| entry.txn == txn)
    }

    /// The commits after `txn`, oldest first; `None` if it is unknown.
    pub(crate) fn since(&self, txn: Uuid) -> Option<impl Iterator<Item = &Arc<Delta>>> {
        let found = self.entries.iter().rposition(|entry| entry.txn == txn)?;
        let later = self.entries.iter().skip(found + 1);
        debug_assert!(
            later.clone().all(|entry| entry.delta.is_some()),
            "only the first entry is without its changes"
        );
        Some(later.filter_map(|entry| entry.delta.as_ref()))
    }
}

/// Atoms that count for an entry: both versions of every changed row.
fn atoms_of(delta: &Delta) -> u64 {
    let of_row = |row: &Arc<Row>| 2 + row.columns.iter().map(Datum::atom_count).sum::<u64>();
    let versions = delta
        .changes
        .iter()
        .flat_map(|change| change.old.iter().chain(&change.new));
    versions.map(of_row).sum()
}

/// Whether the replaced versions of a fresh commit have more than [`LARGE_ATOMS`]. The new versions
/// stay in their tables.
fn replaces_much(delta: &Delta) -> bool {
    let mut atoms = 0;
    let olds = delta
        .changes
        .iter()
        .filter_map(|change| change.old.as_ref());
    for row in olds {
        atoms += 2 + row.columns.iter().map(Datum::atom_count).sum::<u64>();
        if atoms > LARGE_ATOMS {
            return true;
        }
    }
    false
}

/// Whether freeing a delta frees more than [`LARGE_ATOMS`]. Versions of a large column share most
/// of it, so this is rarely true of a commit that changed a few elements. Waking another thread for
/// those would cost more than freeing them.
fn frees_much(delta: &Delta) -> bool {
    let versions = delta
        .changes
        .iter()
        .flat_map(|change| change.old.iter().chain(&change.new));
    let mut atoms = 0;
    for row in versions {
        // Dropping a shared row only decrements a count.
        atoms += 2;
        if row.is_unique() {
            let columns = row.columns.iter();
            atoms += columns
                .map(|datum| datum.unshared_atoms(LARGE_ATOMS))
                .sum::<u64>();
        }
        if atoms > LARGE_ATOMS {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, RowChange, TableId};

    fn txn(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    /// Inserts one row of `atoms` atoms, including `_uuid` and `_version`.
    fn delta(atoms: u64) -> Arc<Delta> {
        let mut set = Datum::empty();
        for atom in 2..atoms {
            set.insert(Atom::Integer(i64::try_from(atom).expect("small")), None);
        }
        let row = Row {
            uuid: txn(1),
            version: Uuid::ZERO,
            columns: Box::new([set]),
        };
        Arc::new(Delta {
            changes: vec![RowChange {
                table: TableId(0),
                uuid: txn(1),
                old: None,
                new: Some(Arc::new(row)),
                diffs: Box::default(),
            }],
            ..Delta::default()
        })
    }

    fn later(history: &History, number: u8) -> Option<usize> {
        history.since(txn(number)).map(Iterator::count)
    }

    #[test]
    fn commits_after_a_known_id_are_found() {
        let mut history = History::new(txn(9));
        assert_eq!(history.last_txn(), txn(9));
        assert_eq!(later(&history, 9), Some(0));
        history.record(txn(1), &delta(3), 1000, true);
        history.record(txn(2), &delta(3), 1000, true);
        assert_eq!(history.last_txn(), txn(2));
        assert_eq!(later(&history, 9), Some(2));
        assert_eq!(later(&history, 1), Some(1));
        assert_eq!(later(&history, 2), Some(0));
        assert_eq!(later(&history, 3), None);
    }

    #[test]
    fn at_most_a_hundred_entries_are_kept() {
        let mut history = History::new(Uuid::ZERO);
        for number in 1..=150 {
            history.record(txn(number), &delta(3), 10_000, true);
        }
        assert_eq!(later(&history, 50), None);
        assert_eq!(later(&history, 51), Some(99));
    }

    #[test]
    fn atoms_are_bounded_by_the_database_but_one_entry_stays() {
        let mut history = History::new(Uuid::ZERO);
        history.record(txn(1), &delta(10), 25, true);
        history.record(txn(2), &delta(10), 25, true);
        assert_eq!(later(&history, 1), Some(1));
        history.record(txn(3), &delta(10), 25, true);
        assert_eq!(later(&history, 1), None);
        assert_eq!(later(&history, 2), Some(1));
        history.record(txn(4), &delta(30), 25, true);
        assert_eq!(later(&history, 3), None);
        assert_eq!(later(&history, 4), Some(0));
    }

    #[test]
    fn large_commits_are_not_freed_here() {
        let mut history = History::new(Uuid::ZERO);
        history.record(txn(1), &delta(LARGE_ATOMS + 1), 100, true);
        history.record(txn(2), &delta(10), 100, true);
        assert_eq!(history.take_dropped().len(), 1);
        history.record(txn(3), &delta(100), 100, true);
        assert!(history.take_dropped().is_empty());
    }

    #[test]
    fn changes_that_nobody_can_ask_for_are_released_at_once() {
        let mut history = History::new(Uuid::ZERO);
        history.record(txn(1), &delta(10), 100, true);
        let deletion = delta(LARGE_ATOMS + 1);
        history.record(txn(2), &deletion, 0, true);
        assert_eq!((later(&history, 2), history.size()), (Some(0), (0, 0)));
        let dropped = history.take_dropped();
        assert_eq!(dropped.len(), 1);
        drop(dropped);
        assert_eq!(
            Arc::strong_count(&deletion),
            1,
            "the history does not hold it"
        );
    }

    #[test]
    fn small_changes_of_large_rows_are_freed_here() {
        let mut history = History::new(Uuid::ZERO);
        let inserted = delta(4 * LARGE_ATOMS);
        let mut row = inserted.changes[0].new.clone().expect("an insert");
        history.record(txn(1), &inserted, 10, true);
        drop(inserted);
        for number in 2..10 {
            let mut next = Row::clone(&row);
            next.columns[0].insert(Atom::Integer(-i64::from(number)), None);
            let next = Arc::new(next);
            let changed = RowChange {
                table: TableId(0),
                uuid: txn(1),
                old: Some(std::mem::replace(&mut row, next.clone())),
                new: Some(next),
                diffs: Box::default(),
            };
            let changed = Arc::new(Delta {
                changes: vec![changed],
                ..Delta::default()
            });
            history.record(txn(number), &changed, 10, true);
            assert!(history.take_dropped().is_empty(), "{number}");
        }
    }

    #[test]
    fn commits_are_kept_while_a_sent_id_may_be_requested() {
        let mut history = History::new(txn(200));
        for number in 1..=3 {
            history.record(txn(number), &delta(3), 10_000, false);
        }
        assert_eq!(history.last_txn(), txn(3));
        assert_eq!((history.size(), later(&history, 2)), ((0, 0), None));
        // A client gets the id of the third commit, sees the fourth, and leaves.
        history.mark_sent();
        history.record(txn(4), &delta(3), 10_000, true);
        for number in 5..104 {
            assert_eq!(later(&history, 4), Some(usize::from(number) - 5));
            history.record(txn(number), &delta(3), 10_000, false);
        }
        assert_eq!(later(&history, 3), None);
        assert_eq!(later(&history, 4), Some(99));
        history.record(txn(104), &delta(3), 10_000, false);
        assert_eq!(later(&history, 4), None);
        history.record(txn(105), &delta(3), 10_000, false);
        assert_eq!((history.size(), history.last_txn()), ((0, 0), txn(105)));
        // This client leaves before the next commit.
        history.mark_sent();
        history.record(txn(106), &delta(3), 10_000, false);
        assert_eq!(later(&history, 105), Some(1));
    }

    #[test]
    fn large_commits_are_not_freed_here_while_no_id_is_sent() {
        let mut history = History::new(txn(200));
        let large = delta(LARGE_ATOMS + 1);
        let deletion = |row: Option<Arc<Row>>| {
            let changes = vec![RowChange {
                table: TableId(0),
                uuid: txn(1),
                old: row,
                new: None,
                diffs: Box::default(),
            }];
            Arc::new(Delta {
                changes,
                ..Delta::default()
            })
        };
        history.record(txn(1), &large, 10_000, false);
        assert!(history.take_dropped().is_empty(), "its row is in the table");
        let row = large.changes[0].new.clone();
        drop(large);
        history.record(txn(2), &deletion(row), 10_000, false);
        assert_eq!(history.take_dropped().len(), 1);
    }

    #[test]
    fn a_zero_id_ends_the_history() {
        let mut history = History::new(txn(1));
        history.record(Uuid::ZERO, &delta(3), 1000, true);
        assert_eq!(history.last_txn(), Uuid::ZERO);
        assert_eq!(later(&history, 1), None);
        assert!(history.since(Uuid::ZERO).is_none());
    }
}
