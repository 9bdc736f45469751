//! The way of a database's requests to the thread that decides its commits: the member of its cluster, or its relay.

use corvid_consensus::MemberRequest;

use crate::member::handle::{MemberHandle, ToMember};
use crate::relay::handle::{RelayHandle, ToRelay};

/// The queue of that thread; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamHandle {
    /// Of a member.
    Member(MemberHandle),
    /// Of a relay.
    Relay(RelayHandle),
}

impl UpstreamHandle {
    /// Sends a request of the database.
    pub(crate) fn request(&self, request: MemberRequest) {
        match self {
            UpstreamHandle::Member(member) => member.post([ToMember::Request(request)]),
            UpstreamHandle::Relay(relay) => relay.post([ToRelay::Request(request)]),
        }
    }
}
