//! Locks that a relay's sessions have at its source ([`crate::locks`]): claims, and news of them.
//!
//! At the source the relay's session owns the locks of all its clients. So `assert` is judged here
//! first, by the lock table: when a transaction is taken, and once more when it is forwarded,
//! because it may have waited. A claim that is made later follows the transaction on the same way.
//! So when the source executes the transaction, the session owns its lock there too, or no client
//! of the relay does.

use super::Parts;
use super::forwarding::Forwarding;
use crate::message::{Completion, LockNews, SourceRequest};

/// Has the relay make the claims of the lock table.
pub(super) fn claim(forwarding: &mut Forwarding, parts: &Parts<'_>) {
    let claims = parts
        .environment
        .lock_table()
        .take_claims(parts.outputs.database());
    for (name, claim) in claims {
        forwarding.ask_source(SourceRequest::Lock { name, claim });
    }
}

/// The relay has news of a claim to a lock.
pub(super) fn hear(
    forwarding: &mut Forwarding,
    (name, number, news): (&str, u64, LockNews),
    parts: &mut Parts<'_>,
) {
    let notified = parts.environment.lock_table().hear(name, number, news);
    // News of one claim may make another one necessary: a lock that was lost is claimed again.
    claim(forwarding, parts);
    if let Some(session) = notified {
        parts
            .outputs
            .complete(session, Completion::LockNotification);
    }
}
