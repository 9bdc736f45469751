//! The handle through which a database sends requests to the thread that decides its commits: the
//! member of its cluster, or its relay.

use crate::member::handle::{MemberHandle, ToMember};
use crate::relay::handle::{RelayHandle, ToRelay};

/// The queue of the deciding thread; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamHandle {
    /// The queue of a cluster member.
    Member(MemberHandle),
    /// The queue of a relay.
    Relay(RelayHandle),
}

impl UpstreamHandle {
    /// Orders the thread to end, and then its database.
    pub(crate) fn end(&self) {
        match self {
            UpstreamHandle::Member(member) => member.post([ToMember::End]),
            UpstreamHandle::Relay(relay) => relay.post([ToRelay::End]),
        }
    }
}
