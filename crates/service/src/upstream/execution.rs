//! Execution of a transaction for a client that is described, as the server does that executes
//! transactions of others.
//!
//! The leader of a cluster executes what other members forward. A follower executes a transaction
//! again whose result the leader's message has lost, and a relay one whose lock its session has
//! lost; both undo it. Invariant: the outcome follows from the text, the client, the UUIDs and the
//! rows alone.

use corvid_consensus::database::ClientIdentity;
use corvid_data::UuidSource;
use corvid_engine::{Context, LockOwner, Outcome, TooLong, WorkBudget};

use super::Parts;
use super::identity::identities_in;

/// The locks that the session held when its transaction was forwarded.
struct ForwardedLocks<'l>(&'l [String]);

impl LockOwner for ForwardedLocks<'_> {
    fn owns(&self, lock: &str) -> bool {
        self.0.iter().any(|held| held == lock)
    }
}

/// Executes the text of a transaction for a described client, with all its selections. The client
/// has waited for as many milliseconds as the text says.
///
/// # Errors
/// It exceeds the budget, and has changed nothing.
pub(crate) fn execute_for(
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
    parts.database.execute_within(params, &mut context, budget)
}
