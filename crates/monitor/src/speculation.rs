//! Commits that are executed but not stored yet: the difference between the state on which requests
//! are executed and the state that has been sent to members of groups.
//!
//! Commits are numbered in the order of their execution. A number is not reused if its commit is
//! undone. Invariant: `commits` holds the commits after `stored`, oldest first. Cost of a commit:
//! one step per run of changes of one table. Owned by `Monitors`.

use std::collections::VecDeque;

use corvid_data::{Arc, Delta, Schema, Uuid};

use crate::subscription::Subscription;

/// The executed commits that are not stored.
#[derive(Debug)]
pub(crate) struct Speculation {
    executed: u64,
    stored: u64,
    commits: VecDeque<Commit>,
    /// For each table the last commit that changed it, or a later one.
    changed: Vec<u64>,
}

#[derive(Debug)]
struct Commit {
    number: u64,
    txn: Uuid,
    delta: Arc<Delta>,
}

/// The state on which a request is executed, as a subscription sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsOf {
    /// The last executed commit.
    pub(crate) executed: u64,
    /// The last stored commit, which groups have recorded.
    pub(crate) stored: u64,
    /// The last commit that changed a table of the subscription, or a later one.
    pub(crate) touched: u64,
}

impl Speculation {
    /// No commit is executed yet.
    pub(crate) fn new(schema: &Schema) -> Speculation {
        Speculation {
            executed: 0,
            stored: 0,
            commits: VecDeque::new(),
            changed: vec![0; schema.iter().count()],
        }
    }

    /// Records that a commit is executed. Its id is final.
    pub(crate) fn execute(&mut self, delta: &Arc<Delta>, txn: Uuid) {
        self.executed += 1;
        let runs = delta.changes.chunk_by(|one, next| one.table == next.table);
        for run in runs {
            if let Some(changed) = self.changed.get_mut(usize::from(run[0].table.0)) {
                *changed = self.executed;
            }
        }
        self.commits.push_back(Commit {
            number: self.executed,
            txn,
            delta: delta.clone(),
        });
    }

    /// Records that the oldest commit is stored. Returns its number, id and changes.
    pub(crate) fn pop_stored(&mut self) -> Option<(u64, Uuid, Arc<Delta>)> {
        let Commit { number, txn, delta } = self.commits.pop_front()?;
        assert!(
            self.stored < number && number <= self.executed,
            "commits are stored in order, after their execution"
        );
        self.stored = number;
        Some((number, txn, delta))
    }

    /// Drops all commits that are not stored, because they are undone. Returns the number of the
    /// last stored one.
    pub(crate) fn undo(&mut self) -> u64 {
        self.commits.clear();
        // `stored` may be later than the table's last remaining change. That is allowed, and only
        // makes cached texts look older than they are.
        for changed in &mut self.changed {
            *changed = self.stored.min(*changed);
        }
        self.stored
    }

    /// The current state as `subscription` sees it. O(tables of the subscription).
    pub(crate) fn as_of(&self, subscription: &Subscription) -> AsOf {
        let asked = subscription.tables().iter();
        let changed = asked.filter_map(|asked| self.changed.get(usize::from(asked.table.0)));
        AsOf {
            executed: self.executed,
            stored: self.stored,
            touched: changed.copied().max().unwrap_or(0),
        }
    }

    /// Checks the numbers. O(commits): for simulations.
    ///
    /// # Panics
    /// If they contradict each other.
    pub(crate) fn check(&self) {
        let numbers = || self.commits.iter().map(|commit| commit.number);
        assert!(
            numbers().is_sorted_by(|one, next| one < next),
            "commits are in the order of their execution"
        );
        assert!(
            numbers().next().is_none_or(|first| self.stored < first),
            "what is stored is not speculative"
        );
        let newest = numbers().next_back().unwrap_or(self.stored);
        assert!(
            self.changed.iter().all(|changed| *changed <= newest),
            "no table was changed by a commit that is undone"
        );
        assert!(newest <= self.executed, "numbers are not reused");
    }

    /// Whether every commit is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// The id of the last executed commit; `None` if all are stored.
    pub(crate) fn last_txn(&self) -> Option<Uuid> {
        self.commits.back().map(|commit| commit.txn)
    }

    /// The commits, oldest first.
    pub(crate) fn deltas(&self) -> impl Iterator<Item = &Arc<Delta>> {
        self.commits.iter().map(|commit| &commit.delta)
    }

    /// The changes of the commits after the one with this id; `None` if the id is unknown. All
    /// zeros is not an id: commits have it if no history is kept.
    pub(crate) fn since(&self, txn: Uuid) -> Option<impl Iterator<Item = &Arc<Delta>>> {
        if txn == Uuid::ZERO {
            return None;
        }
        let found = self.commits.iter().rposition(|commit| commit.txn == txn)?;
        let later = self.commits.iter().skip(found + 1);
        Some(later.map(|commit| &commit.delta))
    }
}
