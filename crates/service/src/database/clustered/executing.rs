//! Transactions that other members have forwarded, executed by the leader's database.
//!
//! They are executed like those of its own sessions, with the identity that was forwarded. A commit is reported as proposed at once; its
//! entry shows whether it happened. An outcome without a commit leaves when everything that it has seen is committed. Nothing blocks here.
//! New rows get UUIDs that follow from the transaction's id, so the member that has the session can compute a lost result again.

use bytes::Bytes;
use corvid_consensus::database::{
    ClientIdentity, Forward, ForwardMethod, ForwardOnce, ForwardOrigin, ForwardOutcome, MemberEvent,
};
use corvid_data::{Arc, Delta, UuidSource};
use corvid_engine::{Context, LockOwner, Outcome, Tally, TooLong, WorkBudget};

use super::super::replies::{Answer, Forwarded};
use super::{Clustered, Part, Parts};
use crate::job::Derived;
use crate::once::{CANCELED, Once};
use crate::upstream::identities_in;

/// The locks that the session held when its transaction was forwarded.
pub(super) struct ForwardedLocks<'l>(pub(super) &'l [String]);

impl LockOwner for ForwardedLocks<'_> {
    fn owns(&self, lock: &str) -> bool {
        self.0.iter().any(|held| held == lock)
    }
}

/// Longer requests are not executed inline, bytes.
const SHORT_BYTES: usize = 16 * 1024;

/// Whether a transaction may be tried inline.
pub(in super::super) fn is_short_forward(forward: &Forward) -> bool {
    forward.method == ForwardMethod::Transact && forward.params.len() <= SHORT_BYTES
}

/// The event with these requests, if there are any.
pub(in super::super) fn event_of(
    origin: ForwardOrigin,
    forwards: impl Iterator<Item = Forward>,
) -> Option<MemberEvent> {
    let forwards: Vec<Forward> = forwards.collect();
    (!forwards.is_empty()).then_some(MemberEvent::Execute { origin, forwards })
}

/// A transaction that another member has forwarded, when it has been executed.
pub(in super::super) struct Executed {
    pub(in super::super) answer: Answer,
    /// Its commit, whether that is durable, and the result that the other member is told at once.
    pub(in super::super) commit: Option<(Arc<Delta>, bool, Option<ForwardOutcome>)>,
    /// `None`: it was executed before.
    pub(in super::super) tally: Option<Tally>,
}

impl Executed {
    fn without_commit(answer: Answer, tally: Option<Tally>) -> Executed {
        Executed {
            answer,
            commit: None,
            tally,
        }
    }
}

impl Clustered {
    /// Whether a forwarded transaction may be executed: this leadership is the one that it was
    /// forwarded to. One of an earlier term is in doubt where it came from.
    pub(in super::super) fn executes_for(&self, origin: ForwardOrigin) -> bool {
        self.part == Part::Leads(origin.term)
    }

    /// Executes a transaction that another member has forwarded.
    ///
    /// # Errors
    /// It exceeds the budget, and has changed nothing.
    pub(in super::super) fn execute_forward(
        &mut self,
        forward: &Forward,
        budget: &mut WorkBudget,
        parts: &mut Parts<'_>,
    ) -> Result<Executed, TooLong> {
        let once = forward.once.map(|ForwardOnce { id, after }| Once {
            id: id.0,
            after: after.map(|after| after.0),
        });
        if let Some(answer) = once.and_then(|once| parts.once.judge(once)) {
            return Ok(Executed::without_commit(answer, None));
        }
        let mut uuids = Derived::from(forward.id.0);
        let text = (&*forward.params, &forward.client, forward.elapsed_ms);
        let outcome = self.run_forward(text, &mut uuids, budget, parts)?;
        let outcome = match self.limits.limit_result(outcome, parts.database) {
            Ok(outcome) => outcome,
            // Nothing has changed and nothing is remembered: sent again, it fails again.
            Err(error) => return Ok(Executed::without_commit(Answer::Error(error), None)),
        };
        Ok(match outcome {
            Outcome::Done {
                result,
                delta: Some(delta),
                durable,
                tally,
                ..
            } => {
                let (answer, proposed) = match once {
                    // The other member does not know the entry by its id, so it is told when that is committed.
                    Some(_) => (Answer::Result(result), None),
                    None => (
                        Answer::Nothing,
                        Some(ForwardOutcome::Proposed(result.into())),
                    ),
                };
                Executed {
                    answer,
                    commit: Some((delta, durable, proposed)),
                    tally: Some(tally),
                }
            }
            Outcome::Done { result, tally, .. } => {
                let answer = Answer::Result(result);
                if let Some(once) = once {
                    // The member that has the session forwards only what may write.
                    parts.once.came_to_nothing(once.id, true, &answer);
                }
                Executed::without_commit(answer, Some(tally))
            }
            Outcome::Blocked { .. } => Executed::without_commit(Answer::Blocked, None),
        })
    }

    /// Executes the text of a transaction for a client that is described, with all its selections.
    /// The client has waited for as many milliseconds as the text says.
    pub(super) fn run_forward(
        &self,
        (params, client, elapsed_ms): (&[u8], &ClientIdentity, u64),
        uuids: &mut dyn UuidSource,
        budget: &mut WorkBudget,
        parts: &mut Parts<'_>,
    ) -> Result<Outcome, TooLong> {
        *budget = parts.environment.limit_selections(*budget);
        let mut context = Context {
            elapsed_ms,
            read_only: client.is_read_only,
            identities: &identities_in(client),
            can_wait: true,
            uuids,
            locks: &ForwardedLocks(&client.locks),
        };
        let database = &mut *parts.database;
        let outcome = database.execute_within(params, &mut context, budget)?;
        Ok(self.limit_entry(outcome, database, parts.file.is_diff()))
    }

    /// A forwarded transaction is released: its commit and everything that it has seen is committed.
    pub(in super::super) fn release_forwarded(&mut self, forwarded: Forwarded, answer: Answer) {
        let index = self.applied;
        let outcome = match answer {
            Answer::Result(result) => ForwardOutcome::Unchanged(index, result.into()),
            Answer::Error(error) => {
                let mut json = Vec::new();
                error.write_json(&mut json);
                ForwardOutcome::Refused(index, json.into())
            }
            Answer::Blocked => ForwardOutcome::Blocked(index),
            Answer::Refused(error) => ForwardOutcome::Refused(index, error),
            Answer::Canceled => ForwardOutcome::Refused(index, Bytes::from_static(CANCELED)),
            // Its commit was reported when it was executed.
            _ => return,
        };
        self.report_outcome(forwarded, outcome);
    }
}
