//! Locks that a relay's sessions have at its source ([`crate::locks`]): claims and news of them, and transactions that `assert` one.
//!
//! At the source the relay's session owns the locks of all its clients. So `assert` is judged here first, by the lock table: when a
//! transaction is taken, and once more when it is forwarded, because it may have waited. A claim that follows takes the same way as the
//! transaction, behind it, so at the source too the session owns its lock when the transaction is executed, or nobody here does.

use corvid_engine::{Outcome, WorkBudget};

use super::super::replies::Answer;
use super::{Clustered, Parts};
use crate::job::Derived;
use crate::message::Completion;
use crate::upstream::{LockNews, Number, SourceRequest, identity_of};

impl Clustered {
    /// Has the relay make the claims of the lock table.
    pub(in super::super) fn claim_locks(&mut self, parts: &Parts<'_>) {
        let claims = parts
            .environment
            .lock_table()
            .take_claims(parts.outputs.database());
        for (name, claim) in claims {
            self.push_source_request(SourceRequest::Lock { name, claim });
        }
    }

    /// The relay has news of a claim to a lock.
    pub(super) fn hear_of_lock(
        &mut self,
        name: &str,
        number: u64,
        news: LockNews,
        parts: &mut Parts<'_>,
    ) {
        let notified = parts.environment.lock_table().hear(name, number, news);
        self.claim_locks(parts);
        if let Some(session) = notified {
            parts
                .outputs
                .complete(session, Completion::LockNotification);
        }
    }

    /// A waiting transaction asserts a lock that its session has lost in the meantime: it is executed here, without the lock.
    pub(super) fn fail_assertion(&mut self, number: Number, parts: &mut Parts<'_>) {
        let Some((entry, _)) = self.in_flight.take(number) else {
            return;
        };
        let request = &entry.request;
        let client = identity_of(request, parts.environment.owned_locks(request.session));
        let mut uuids = Derived::from(parts.environment.fresh());
        let mut budget = WorkBudget::unlimited();
        let text = (request.params(), &client, 0);
        let outcome = self.run_forward(text, &mut uuids, &mut budget, parts);
        let answer = match outcome {
            Ok(Outcome::Done { result, delta, .. }) => {
                if let Some(delta) = delta {
                    parts.database.undo(&delta);
                }
                Answer::Result(result)
            }
            // A `wait` before the `assert` is not satisfied any more.
            Ok(Outcome::Blocked { .. }) => Answer::Canceled,
            Err(_) => unreachable!("nothing limits it"),
        };
        self.drop_once(&entry.request, parts);
        self.finish(entry, answer, false, parts);
    }
}
