//! Transactions that other members have forwarded, executed by the leader's database.
//!
//! They are executed like those of its own sessions, with the identity that was forwarded. A commit is reported as proposed at once; its
//! entry shows whether it happened. An outcome without a commit leaves when everything that it has seen is committed. Nothing blocks here.
//! New rows get UUIDs that follow from the transaction's id, so the member that has the session can compute a lost result again.

use bytes::Bytes;
use corvid_consensus::database::{
    ClientIdentity, Forward, ForwardMethod, ForwardOnce, ForwardOrigin, ForwardOutcome, MemberEvent,
};
use corvid_data::UuidSource;
use corvid_engine::{Context, LockOwner, Outcome, TooLong, WorkBudget};

use super::super::replies::{Answer, Forwarded, Origin, Pending};
use super::super::{DatabaseService, Now};
use super::Part;
use super::identity::identities_in;
use crate::job::Derived;
use crate::message::ToDatabase;
use crate::once::{CANCELED, Once};

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
fn event_of(origin: ForwardOrigin, forwards: impl Iterator<Item = Forward>) -> Option<MemberEvent> {
    let forwards: Vec<Forward> = forwards.collect();
    (!forwards.is_empty()).then_some(MemberEvent::Execute { origin, forwards })
}

impl DatabaseService {
    /// Executes requests that another member has forwarded, unless this leadership is over.
    /// Requests that must wait for others are queued.
    pub(super) fn execute_forwards(
        &mut self,
        now: Now,
        origin: ForwardOrigin,
        forwards: Vec<Forward>,
    ) {
        let mut budget = WorkBudget::unlimited();
        let left = self.execute_forwards_within(now, origin, forwards, &mut budget);
        self.barrier_queue.push_first(left.map(ToDatabase::Member));
    }

    /// The same within a budget. Returns the event with the requests that are left: the first one
    /// exceeds the budget and has changed nothing, or it is a conversion or comes after one. A
    /// conversion and the requests after it need events of their own, because barriers are judged
    /// once for each event.
    pub(in super::super) fn execute_forwards_within(
        &mut self,
        now: Now,
        origin: ForwardOrigin,
        forwards: Vec<Forward>,
        budget: &mut WorkBudget,
    ) -> Option<MemberEvent> {
        let mut forwards = forwards.into_iter();
        let mut is_first = true;
        while let Some(forward) = forwards.next() {
            // A transaction of an earlier term is in doubt where it came from.
            let is_present = |cluster: &super::Clustered| cluster.part == Part::Leads(origin.term);
            if !self.model.cluster().is_some_and(is_present) {
                return None;
            }
            let forwarded = Forwarded {
                origin,
                id: forward.id,
                once: forward.once.map(|once| once.id.0),
            };
            match forward.method {
                ForwardMethod::Transact => {
                    if let Err(TooLong) = self.execute_forward(now, forwarded, &forward, budget) {
                        return event_of(origin, std::iter::once(forward).chain(forwards));
                    }
                }
                ForwardMethod::Convert if is_first => {
                    self.convert_forward(now, forwarded, &forward);
                    return event_of(origin, forwards);
                }
                ForwardMethod::Convert => {
                    return event_of(origin, std::iter::once(forward).chain(forwards));
                }
            }
            is_first = false;
        }
        None
    }

    fn execute_forward(
        &mut self,
        now: Now,
        forwarded: Forwarded,
        forward: &Forward,
        budget: &mut WorkBudget,
    ) -> Result<(), TooLong> {
        let origin = Origin::Forwarded(forwarded);
        let once = forward.once.map(|ForwardOnce { id, after }| Once {
            id: id.0,
            after: after.map(|after| after.0),
        });
        if let Some(answer) = once.and_then(|once| self.executor.once.judge(once)) {
            self.pending.push(Pending::answer(answer, origin));
            self.release();
            return Ok(());
        }
        let mut uuids = Derived::from(forward.id.0);
        let outcome = self.run_forward(
            &forward.params,
            &forward.client,
            forward.elapsed_ms,
            &mut uuids,
            budget,
        )?;
        let limits = self.model.cluster().map(|cluster| cluster.limits);
        let limits = limits.unwrap_or_default();
        let outcome = match limits.limit_result(outcome, &mut self.database) {
            Ok(outcome) => outcome,
            Err(error) => {
                // Nothing has changed and nothing is remembered: sent again, it fails again.
                self.pending
                    .push(Pending::answer(Answer::Error(error), origin));
                self.release();
                return Ok(());
            }
        };
        match outcome {
            Outcome::Done {
                result,
                delta: Some(delta),
                durable,
                tally,
                ..
            } => {
                self.observers.counts.executed(&tally, true);
                let committed = delta.clone();
                let (answer, proposed) = match once {
                    // The other member does not know the entry by its id, so it is told when that is committed.
                    Some(_) => (Answer::Result(result), None),
                    None => (
                        Answer::Nothing,
                        Some(ForwardOutcome::Proposed(result.into())),
                    ),
                };
                self.queue_executed(now, Some(delta), durable, answer, origin);
                if let Some(outcome) = proposed {
                    self.model.report_outcome(forwarded, outcome);
                }
                self.retry_affected(now, Some(&committed));
            }
            Outcome::Done { result, tally, .. } => {
                self.observers.counts.executed(&tally, false);
                let answer = Answer::Result(result);
                if let Some(once) = once {
                    // The member that has the session forwards only what may write.
                    self.executor.once.came_to_nothing(once.id, true, &answer);
                }
                self.pending.push(Pending::answer(answer, origin));
            }
            Outcome::Blocked { .. } => {
                self.pending.push(Pending::answer(Answer::Blocked, origin));
            }
        }
        self.release();
        Ok(())
    }

    /// Executes a transaction for a client that is described, with all its selections.
    pub(super) fn run_forward(
        &mut self,
        params: &[u8],
        client: &ClientIdentity,
        elapsed_ms: u64,
        uuids: &mut dyn UuidSource,
        budget: &mut WorkBudget,
    ) -> Result<Outcome, TooLong> {
        *budget = self.environment.limit_selections(*budget);
        let mut context = Context {
            elapsed_ms,
            read_only: client.is_read_only,
            identities: &identities_in(client),
            can_wait: true,
            uuids,
            locks: &ForwardedLocks(&client.locks),
        };
        let outcome = self.database.execute_within(params, &mut context, budget)?;
        Ok(self.limit_entry(outcome))
    }

    /// A forwarded transaction is released: its commit and everything that it has seen is committed.
    pub(in super::super) fn release_forwarded(&mut self, forwarded: Forwarded, answer: Answer) {
        let Some(cluster) = self.model.cluster() else {
            return;
        };
        let index = cluster.applied;
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
        self.model.report_outcome(forwarded, outcome);
    }
}
