//! The state of a clustered database besides its rows: its role, the last entry that is applied, the requests for its member.
//!
//! See `corvid_consensus::database` for the messages and the rules of exactly once.

use corvid_consensus::database::{MemberRequest, Proposal};
use corvid_log::cluster::{Eid, Index, Sid, Term};

use super::DatabaseService;

/// The part that the member has in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It leads in this term: the database executes and proposes.
    Leads(Term),
    /// It follows, in this term, a leader that may be known: the database applies and forwards.
    Follows(Term, Option<Sid>),
}

/// The state of a clustered database.
pub(super) struct Clustered {
    pub(super) part: Part,
    /// The last entry that is applied, and the id of the last one with data.
    pub(super) applied: Index,
    pub(super) applied_eid: Eid,
    /// The commits of this batch.
    pub(super) proposals: Vec<Proposal>,
    /// Further requests of this batch, which come behind the proposals.
    pub(super) requests: Vec<MemberRequest>,
}

impl Clustered {
    pub(super) fn new(applied: Index, applied_eid: Eid) -> Clustered {
        Clustered {
            part: Part::Follows(Term(0), None),
            applied,
            applied_eid,
            proposals: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Takes the requests for the member, in order.
    pub(super) fn take_requests(&mut self) -> Vec<MemberRequest> {
        let proposals = std::mem::take(&mut self.proposals);
        let mut requests = std::mem::take(&mut self.requests);
        if let (Part::Leads(term), false) = (self.part, proposals.is_empty()) {
            requests.insert(0, MemberRequest::Propose { term, proposals });
        }
        requests
    }
}

impl DatabaseService {
    /// Takes the requests for the member of a clustered database, in order. No other database has any.
    pub(crate) fn take_member_requests(&mut self) -> impl Iterator<Item = MemberRequest> + use<> {
        let requests = self.model.cluster_mut().map(Clustered::take_requests);
        requests.into_iter().flatten()
    }
}
