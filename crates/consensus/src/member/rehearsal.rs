//! Failures that are provoked (`cluster/failure-test`, docs/spec/distribution.md 1.12), as far as they concern elections and membership. The
//! server provokes the others, which concern messages and the process.

use super::{Member, Rehearsal, Role};

impl Member {
    /// Begins a rehearsal, or ends the one under way.
    pub(super) fn rehearse(&mut self, rehearsal: Rehearsal) {
        if rehearsal == Rehearsal::ForceElection {
            return self.force_election();
        }
        if rehearsal == Rehearsal::Transfer {
            return self.transfer_for_test();
        }
        self.rehearsal = rehearsal;
        if self
            .ticker
            .set_delayed(rehearsal == Rehearsal::DelayElections)
        {
            self.draw_timeout();
        }
    }

    /// Stands for election although the election timeout has not passed. A healthy cluster ignores it, and the next heartbeat makes this member
    /// a follower again.
    fn force_election(&mut self) {
        if self.node.is_leader() || self.failure.is_some() || self.is_installing() {
            return;
        }
        self.node.campaign();
        if self.node.role() != Role::Candidate {
            // It is no member, or its log is not stored.
            return;
        }
        self.draw_timeout();
        self.view.election_began(self.now_ms, false);
        let kind = self.election_kind();
        self.log_begun_election(kind);
    }

    /// This member, as leader, has begun to add a server.
    pub(super) fn started_to_add(&mut self) {
        if self.rehearsal != Rehearsal::TransferAfterStartingToAdd {
            return;
        }
        self.rehearsal = Rehearsal::None;
        self.transfer_for_test();
    }

    fn transfer_for_test(&mut self) {
        if self.transfer.is_none() && self.hand_over_leadership() {
            self.note_transfer("a test asked for it");
            self.await_transfer(None, false);
        }
    }
}
