//! Remarks in the log about messages that have no effect, in the words of docs/spec/distribution.md 1.5.
//!
//! Invariant: a remark changes nothing, and is made before the message is handled. Called by `peer.rs` alone.

use corvid_log::cluster::Sid;
use corvid_rpc::Level;

use super::{Member, Repeated, Role};
use crate::message::PeerMessage;
use crate::wire;

impl Member {
    /// A message of a term that is over. A damaged member may well ask in one.
    pub(super) fn remark_lower_term(&mut self, from: Sid, message: &PeerMessage) {
        let own = self.node.term();
        let Some(term) = message.term().filter(|term| *term < own) else {
            return;
        };
        if matches!(message, PeerMessage::SnapshotRequest { .. }) {
            return;
        }
        let (method, name) = (wire::method_name(message), self.name_of(from));
        let text = format!(
            "rejecting term {term} < current term {own} received in {method} message from server {name}"
        );
        self.log_repeated(Level::Info, Repeated::LowerTerm, text);
    }

    /// A vote request that a leadership which is well makes vain, or an answer to a pre-vote that is won.
    pub(super) fn remark_vote(&mut self, from: Sid, message: &PeerMessage) {
        match message {
            PeerMessage::Vote {
                term, is_transfer, ..
            } if !is_transfer && self.node.ignores_vote(*term) => {
                let text = if self.node.is_leader() {
                    "ignoring vote request received as leader".to_owned()
                } else {
                    format!(
                        "ignoring vote request received after only {} ms (minimum election time is {} ms)",
                        self.view.since_reset_ms(self.now_ms),
                        self.ticker.timer_ms()
                    )
                };
                self.log_repeated(Level::Warn, Repeated::IgnoredVote, text);
            }
            PeerMessage::VoteReply {
                term,
                is_prevote: true,
                ..
            } => {
                let is_voting = self.node.role() == Role::Candidate && !self.node.is_precandidate();
                if is_voting && *term == self.node.term() {
                    let text = format!(
                        "ignoring pre-vote reply from server {} during the actual election on term {term}.",
                        self.name_of(from)
                    );
                    self.log_repeated(Level::Warn, Repeated::LatePreVote, text);
                }
            }
            _ => {}
        }
    }
}
