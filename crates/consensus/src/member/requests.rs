//! The requests of the database, and proposals that wait until the algorithm accepts them.

use super::Member;
use crate::database::MemberRequest;
use crate::entry::EntryBody;

impl Member {
    /// Handles a request.
    pub(super) fn database(&mut self, request: MemberRequest) {
        match request {
            MemberRequest::Propose { term, proposals } => {
                if self.announced_term() == Some(term) {
                    self.held.extend(proposals);
                    self.propose_held();
                }
            }
            MemberRequest::Forward { term, forward } => self.forward(term, *forward),
            MemberRequest::Outcome {
                origin,
                id,
                outcome,
            } => self.outcome(origin, id, outcome),
            MemberRequest::Find {
                after,
                through,
                ids,
            } => self.search(after, through, ids),
            MemberRequest::Applied(index) => self.applied = self.applied.max(index),
            // Those of a relay.
            MemberRequest::Misfit { .. }
            | MemberRequest::Withdraw { .. }
            | MemberRequest::Lock { .. } => {}
            MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
            } => self.snapshot_made(index, eid, Some((token, snapshot))),
        }
    }

    /// Proposes what waits, in one step. Proposals that the algorithm does not accept now go on waiting.
    pub(super) fn propose_held(&mut self) {
        // The leadership of a member that was removed ends: what it proposes now may be lost.
        if self.held.is_empty() || self.departing.is_some() {
            return;
        }
        let bodies = self
            .held
            .iter()
            .map(|proposal| {
                let result = proposal.result.clone().unwrap_or_default();
                EntryBody::commit(proposal.eid, &proposal.data).with_result(result)
            })
            .collect();
        if self.node.propose(bodies) {
            self.held.clear();
        }
    }
}
