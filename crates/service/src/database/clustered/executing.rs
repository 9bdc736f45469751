//! Transactions that other members have forwarded, executed by the leader's database.
//!
//! They are executed like those of its own sessions, with the identity that was forwarded. A commit
//! is reported as proposed at once; its entry shows whether it happened. An outcome without a
//! commit leaves when everything that it has seen is committed. Nothing blocks here. New rows get
//! UUIDs that follow from the transaction's id, so the member that has the session can compute a
//! lost result again.

use bytes::Bytes;
use corvid_consensus::database::{
    Forward, ForwardMethod, ForwardOrigin, ForwardOutcome, MemberEvent,
};
use corvid_data::{Arc, Delta};
use corvid_engine::{Outcome, Tally, TooLong, WorkBudget};
use corvid_log::cluster::Index;

use super::entry_limit::EntryLimits;
use crate::executor::record_end;
use crate::job::Derived;
use crate::once::{CANCELED, Once};
use crate::recorded_client;
use crate::replies::Answer;
use crate::upstream::{Parts, execute_for};

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

/// Executes a transaction that another member has forwarded.
///
/// # Errors
/// It exceeds the budget, and has changed nothing.
pub(super) fn execute(
    origin: ForwardOrigin,
    forward: &Forward,
    budget: &mut WorkBudget,
    limits: &EntryLimits,
    parts: &mut Parts<'_>,
) -> Result<Executed, TooLong> {
    let once = forward.once.map(|once| Once {
        id: once.id.0,
        after: once.after.map(|after| after.0),
        is_repeated: once.is_repeated,
        came: None,
    });
    if let Some(answer) = once.and_then(|once| parts.once.judge(once)) {
        return Ok(Executed::without_commit(answer, None));
    }
    let mut uuids = Derived::from(forward.id.0);
    let text = (&*forward.params, &forward.client, forward.elapsed_ms);
    let mut outcome = execute_for(text, &mut uuids, budget, parts)?;
    // The member that has the session forwards only what may write.
    record_end(&mut outcome, once, || true);
    // Before its length is judged.
    let names_clients = parts.names_clients;
    let client = || names_clients.then(|| recorded_client::of_forward(origin, &forward.client));
    recorded_client::complete_outcome(&mut outcome, client);
    let outcome = limits.limit_entry(outcome, parts.database, parts.is_diff);
    let outcome = match limits.limit_result(outcome, parts.database) {
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
                // The other member does not know the entry by its id, so it is told when that is
                // committed.
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
                parts.once.came_to_nothing(once, true, &answer);
            }
            Executed::without_commit(answer, Some(tally))
        }
        Outcome::Blocked { .. } => Executed::without_commit(Answer::Blocked, None),
    })
}

/// The outcome that the member is told that has forwarded a transaction, when the transaction is
/// released; it is based on entries through `applied`. `None`: it was told when the transaction was
/// executed.
pub(super) fn outcome_of(answer: Answer, applied: Index) -> Option<ForwardOutcome> {
    Some(match answer {
        Answer::Result(result) => ForwardOutcome::Unchanged(applied, result.into()),
        Answer::Error(error) => {
            let mut json = Vec::new();
            error.write_json(&mut json);
            ForwardOutcome::Refused(applied, json.into())
        }
        Answer::Blocked => ForwardOutcome::Blocked(applied),
        Answer::Refused(error) => ForwardOutcome::Refused(applied, error),
        Answer::Canceled => ForwardOutcome::Refused(applied, Bytes::from_static(CANCELED)),
        _ => return None,
    })
}
