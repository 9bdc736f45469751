//! The way of a database's requests to the thread that decides its commits: the member of its cluster, or its relay.

use crate::member::handle::MemberHandle;
use crate::relay::handle::RelayHandle;

/// The queue of that thread; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamHandle {
    /// Of a member.
    Member(MemberHandle),
    /// Of a relay.
    Relay(RelayHandle),
}
