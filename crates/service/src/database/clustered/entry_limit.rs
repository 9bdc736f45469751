//! Transactions that other members would refuse, refused here instead, with an error for their
//! client alone.
//!
//! A message that a peer refuses resets the connection, and its sender sends it again: one client
//! would stop its member for all others, and an entry that members do not take would stop the
//! cluster. So the leader checks what it is about to propose or to return, before the commit
//! counts, and a follower checks what it is about to forward. The limits are those by which the
//! receiver checks (`corvid_consensus::limits`).

use corvid_consensus::limits::{ENTRY_BYTES_MAX, RESULT_BYTES_MAX, transaction_entry_bytes_max};
use corvid_data::{Tag, WireError};
use corvid_engine::{Database, Outcome};
use corvid_log::cluster::data_fits;

/// The limits of what a leader proposes and returns.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryLimits {
    /// Bytes of an entry's data.
    pub(super) entry_bytes_max: usize,
    /// The election timer, which limits entries of transactions further; `None` until the database
    /// leads.
    election_timer_ms: Option<u64>,
    /// Bytes of the result of a forwarded transaction.
    result_bytes_max: usize,
}

impl Default for EntryLimits {
    fn default() -> EntryLimits {
        EntryLimits {
            entry_bytes_max: ENTRY_BYTES_MAX,
            election_timer_ms: None,
            result_bytes_max: RESULT_BYTES_MAX,
        }
    }
}

impl EntryLimits {
    /// Bytes of the data of a transaction's entry.
    fn transaction_bytes_max(&self) -> usize {
        let in_time = self
            .election_timer_ms
            .map_or(usize::MAX, transaction_entry_bytes_max);
        in_time.min(self.entry_bytes_max)
    }

    /// Sets smaller limits of entries and results than members take.
    pub(super) fn lower(&mut self, entry_bytes_max: usize, result_bytes_max: usize) {
        self.entry_bytes_max = entry_bytes_max.min(ENTRY_BYTES_MAX);
        self.result_bytes_max = result_bytes_max.min(RESULT_BYTES_MAX);
    }

    /// Sets the election timer of the cluster that the database leads, ms.
    pub(super) fn set_election_timer(&mut self, timer_ms: u64) {
        self.election_timer_ms = Some(timer_ms);
    }

    /// The outcome of a transaction that was just executed. If the leader may not propose its
    /// commit, the commit is undone, and the transaction has failed at it.
    pub(super) fn limit_entry(
        &self,
        outcome: Outcome,
        database: &mut Database,
        is_diff: bool,
    ) -> Outcome {
        let bytes_max = self.transaction_bytes_max();
        let Outcome::Done {
            mut result,
            deferred_selections,
            deferred_bytes,
            delta: Some(delta),
            durable,
            mut tally,
        } = outcome
        else {
            return outcome;
        };
        if data_fits(database.schema(), &delta, is_diff, bytes_max) {
            return Outcome::Done {
                result,
                deferred_selections,
                deferred_bytes,
                delta: Some(delta),
                durable,
                tally,
            };
        }
        // Nobody has seen it: the next transaction must not, either.
        database.undo(&delta);
        let mut details = format!(
            "transaction makes an entry of more than {bytes_max} bytes, the most that members of a cluster take"
        );
        if let Some(timer_ms) = self.election_timer_ms
            && bytes_max < self.entry_bytes_max
        {
            details += &format!(
                " with an election timer of {timer_ms} ms (cluster/change-election-timer); divide the transaction"
            );
        }
        let error = WireError::new(Tag::ResourcesExhausted, details);
        // As every error of a commit, it follows the results of all operations.
        assert_eq!(result.pop(), Some(b']'), "a result is an array");
        if result.len() > 1 {
            result.push(b',');
        }
        error.write_json(&mut result);
        result.push(b']');
        tally.error = Some(error.tag);
        tally.has_failed_at_commit = true;
        Outcome::Done {
            result,
            deferred_selections,
            deferred_bytes: 0,
            delta: None,
            durable: false,
            tally,
        }
    }

    /// The outcome of a forwarded transaction, unless its result is longer than the member takes
    /// that has forwarded it: then its changes are undone, and the error is returned.
    ///
    /// # Errors
    /// The result is too long.
    pub(super) fn limit_result(
        &self,
        outcome: Outcome,
        database: &mut Database,
    ) -> Result<Outcome, Box<WireError>> {
        let bytes_max = self.result_bytes_max;
        match outcome {
            Outcome::Done { result, delta, .. } if result.len() > bytes_max => {
                if let Some(delta) = delta {
                    database.undo(&delta);
                }
                let details = format!(
                    "result is longer than {bytes_max} bytes, the most that members of a cluster take"
                );
                Err(Box::new(WireError::new(Tag::ResourcesExhausted, details)))
            }
            outcome => Ok(outcome),
        }
    }
}
