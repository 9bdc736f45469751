//! The requests of a batch for the server that decides the order of commits.
//!
//! A member of a cluster asks its own member, a relay asks its source. Invariant: requests leave in
//! the order in which they were made. They know no request of a client and no row.

use corvid_consensus::database::{Forward, MemberRequest};
use corvid_log::cluster::{Index, Term};

use crate::message::SourceRequest;

/// The requests of a batch, which are taken at its end.
pub(crate) enum Requests {
    /// For the member of a cluster.
    Member(Vec<MemberRequest>),
    /// For the source of a relay.
    Relay(Vec<SourceRequest>),
}

impl Requests {
    /// Whether the other server is the source of a relay.
    pub(super) fn are_for_source(&self) -> bool {
        matches!(self, Requests::Relay(_))
    }

    /// Adds a request for the member. A relay has no member.
    pub(super) fn push_for_member(&mut self, request: MemberRequest) {
        match self {
            Requests::Member(requests) => requests.push(request),
            Requests::Relay(_) => unreachable!("a relay has no member to ask"),
        }
    }

    /// Adds a request for the source of a relay. A member has no source.
    pub(super) fn push_for_source(&mut self, request: SourceRequest) {
        match self {
            Requests::Relay(requests) => requests.push(request),
            Requests::Member(_) => unreachable!("a member has no source to ask"),
        }
    }

    /// Has the leader of this term, or the source, execute a transaction.
    pub(super) fn push_forward(&mut self, term: Term, forward: Box<Forward>) {
        match self {
            Requests::Member(requests) => requests.push(MemberRequest::Forward { term, forward }),
            Requests::Relay(requests) => requests.push(SourceRequest::Forward(forward)),
        }
    }

    /// Reports that all entries, or changes, through this one are applied.
    pub(super) fn report_applied(&mut self, through: Index) {
        match self {
            Requests::Member(requests) => requests.push(MemberRequest::Applied(through)),
            Requests::Relay(requests) => requests.push(SourceRequest::Applied(through)),
        }
    }

    /// Takes the requests for the member, in order.
    pub(super) fn take_for_member(&mut self) -> Vec<MemberRequest> {
        match self {
            Requests::Member(requests) => std::mem::take(requests),
            Requests::Relay(_) => Vec::new(),
        }
    }

    /// Takes the requests for the source of a relay, in order.
    pub(super) fn take_for_source(&mut self) -> Vec<SourceRequest> {
        match self {
            Requests::Relay(requests) => std::mem::take(requests),
            Requests::Member(_) => Vec::new(),
        }
    }
}
