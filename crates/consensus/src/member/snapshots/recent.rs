//! The ids of recent committed entries, and outcomes that followers may not have received: the
//! answers to other members' questions ([`super::search`]).
//!
//! Invariant: one id for each index after `base`, without gaps; an entry without data has the zero
//! id. Everything is in memory. It starts with the committed entries of the file, and starts over
//! with an installed snapshot. A commit costs one id.

use std::collections::{BTreeSet, VecDeque};

use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Index};

use crate::database::ForwardOutcome;

/// Maximum number of ids, 16 bytes each; beyond it the oldest are dropped.
const IDS_MAX: usize = 1 << 18;
/// Approximate maximum bytes of outcomes; beyond it the oldest are dropped.
const OUTCOMES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an outcome without its text.
const OVERHEAD_BYTES: usize = 64;

/// The id of an entry without data.
const NO_ID: Eid = Eid(Uuid::ZERO);

/// Recently committed ids and unacknowledged outcomes.
#[derive(Debug)]
pub(crate) struct Recent {
    /// The entry before the first id.
    base: Index,
    ids: VecDeque<Eid>,
    /// Outcomes of transactions that this member executed for others as leader of earlier terms,
    /// not acknowledged by them.
    outcomes: VecDeque<(Eid, ForwardOutcome)>,
    outcomes_bytes: usize,
}

/// Approximate bytes of memory that an outcome occupies.
fn bytes_of(outcome: &ForwardOutcome) -> usize {
    let text = match outcome {
        ForwardOutcome::Proposed(text)
        | ForwardOutcome::Unchanged(_, text)
        | ForwardOutcome::Refused(_, text) => text.len(),
        ForwardOutcome::Blocked(_) => 0,
    };
    text + OVERHEAD_BYTES
}

impl Recent {
    /// Starts after this entry.
    pub(crate) fn new(base: Index) -> Recent {
        Recent {
            base,
            ids: VecDeque::new(),
            outcomes: VecDeque::new(),
            outcomes_bytes: 0,
        }
    }

    /// Forgets all ids; the next one belongs to the entry after this one.
    pub(crate) fn restart(&mut self, base: Index) {
        self.base = base;
        self.ids.clear();
    }

    fn last(&self) -> Index {
        Index(self.base.0 + self.ids.len() as u64)
    }

    /// An entry has been committed.
    pub(crate) fn push(&mut self, index: Index, id: Option<Eid>) {
        // A misplaced id would tell another member that a commit of its client is lost.
        assert!(
            index == self.last().next(),
            "entry {index} is committed after entry {}",
            self.last()
        );
        if self.ids.len() == IDS_MAX {
            self.ids.pop_front();
            self.base = self.base.next();
        }
        self.ids.push_back(id.unwrap_or(NO_ID));
        assert!(self.ids.len() <= IDS_MAX, "{} ids", self.ids.len());
    }

    /// Retains the outcome of a transaction.
    pub(crate) fn keep_outcome(&mut self, id: Eid, outcome: ForwardOutcome) {
        self.outcomes_bytes += bytes_of(&outcome);
        self.outcomes.push_back((id, outcome));
        while self.outcomes_bytes > OUTCOMES_BYTES_MAX
            && let Some((_, oldest)) = self.outcomes.pop_front()
        {
            self.outcomes_bytes -= bytes_of(&oldest);
        }
        assert!(
            self.outcomes_bytes <= OUTCOMES_BYTES_MAX
                && (self.outcomes_bytes == 0) == self.outcomes.is_empty(),
            "{} outcomes of {} bytes",
            self.outcomes.len(),
            self.outcomes_bytes
        );
    }

    /// The retained outcomes of these transactions.
    pub(crate) fn outcomes_of(&self, ids: &BTreeSet<Eid>) -> Vec<(Eid, ForwardOutcome)> {
        let kept = self.outcomes.iter();
        kept.filter(|(id, _)| ids.contains(id)).cloned().collect()
    }

    /// Whether the entries up to this one are known to be committed.
    pub(crate) fn reaches(&self, through: Index) -> bool {
        self.last() >= through
    }

    /// Whether the ids of all entries after `after` and up to `through` are here.
    pub(crate) fn covers(&self, after: Index, through: Index) -> bool {
        self.base <= after && self.reaches(through)
    }

    /// Those of `ids` that belong to entries up to `through`.
    pub(crate) fn find(&self, through: Index, ids: &BTreeSet<Eid>) -> Vec<Eid> {
        let count = usize::try_from(through.0.saturating_sub(self.base.0)).unwrap_or(usize::MAX);
        let found = self.ids.iter().take(count);
        found.filter(|id| ids.contains(id)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Eid {
        Eid(Uuid((1 << 100 | u128::from(number)).to_be_bytes()))
    }

    #[test]
    fn entries_are_found_where_they_were_committed_and_nowhere_else() {
        let mut recent = Recent::new(Index(10));
        for index in 11..=20 {
            recent.push(Index(index), (index % 2 == 0).then(|| id(index)));
        }
        assert!(recent.covers(Index(10), Index(20)) && recent.covers(Index(12), Index(15)));
        assert!(!recent.covers(Index(9), Index(15)) && !recent.covers(Index(12), Index(21)));
        let ids = [99, 18, 14, 12, 11].map(id).into();
        assert_eq!(recent.find(Index(17), &ids), [id(12), id(14)]);
        recent.restart(Index(20));
        assert!(recent.find(Index(20), &ids).is_empty());
        assert!(!recent.covers(Index(19), Index(20)) && recent.covers(Index(20), Index(20)));
    }

    #[test]
    fn the_oldest_ids_and_outcomes_are_forgotten() {
        let mut recent = Recent::new(Index(0));
        let count = IDS_MAX as u64 + 5;
        for index in 1..=count {
            recent.push(Index(index), Some(id(index)));
        }
        assert!(recent.covers(Index(5), Index(count)) && !recent.covers(Index(4), Index(count)));
        let ids = [5, 6, count].map(id).into();
        assert_eq!(recent.find(Index(count), &ids), [id(6), id(count)]);
        let outcome = ForwardOutcome::Proposed(vec![0; OUTCOMES_BYTES_MAX / 2].into());
        for number in 6..9 {
            recent.keep_outcome(id(number), outcome.clone());
        }
        let outcomes = recent.outcomes_of(&[6, 8].map(id).into());
        assert_eq!(outcomes, [(id(8), outcome)]);
    }
}
