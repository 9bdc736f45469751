//! A host and its server as the scheduler and the clients of a run see them, whatever the kind of the server.
//!
//! Invariant: whatever only members have (files, votes, commands) is not here.

use corvid_service::Now;

use crate::server::machine::Machine;

/// See the module.
pub(super) trait Server {
    /// The time as this host's server reads it.
    fn now(&self, now_ms: u64) -> Now;

    /// Whether it is up and not paused.
    fn is_running(&self, now_ms: u64) -> bool;

    /// When it acts next without input, by the time of all.
    fn next_ms(&self, now_ms: u64) -> Option<u64>;

    /// Its shards and databases, while it is up.
    fn machine(&self) -> Option<&Machine>;

    /// The same, to be changed.
    fn machine_mut(&mut self) -> Option<&mut Machine>;

    /// The time of all at which its clock shows this.
    fn global_ms(&self, local_ms: u64) -> u64;

    /// Whether it says that it leads.
    fn shows_leader(&self) -> bool;
}
