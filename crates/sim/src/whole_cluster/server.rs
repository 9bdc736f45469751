//! A host and its server as the scheduler and the clients of a run see them, for both kinds of
//! servers.
//!
//! Invariant: concepts that only members have (files, votes, commands) are not here.

use corvid_service::Now;

use crate::server::machine::Machine;

/// A host with its server: a member or a relay.
pub(super) trait Server {
    /// Returns the time as this host's server reads it.
    fn now(&self, now_ms: u64) -> Now;

    /// Whether the server is up and not paused.
    fn is_running(&self, now_ms: u64) -> bool;

    /// Returns the global time at which the server next acts without input, ms.
    fn next_ms(&self, now_ms: u64) -> Option<u64>;

    /// Returns the server's shards and databases while it is up.
    fn machine(&self) -> Option<&Machine>;

    /// Returns the same, mutably.
    fn machine_mut(&mut self) -> Option<&mut Machine>;

    /// Returns the global time at which the server's clock shows this time, ms.
    fn global_ms(&self, local_ms: u64) -> u64;

    /// Whether the server says that it leads.
    fn shows_leader(&self) -> bool;
}
