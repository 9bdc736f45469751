//! Log lines about messages that have no effect, in the words of docs/spec/distribution.md 1.5.
//!
//! Invariant: a remark changes nothing, and is made before the message is handled. Only
//! `messages.rs` calls this module.

use corvid_log::cluster::Sid;
use corvid_rpc::Level;

use super::context::Context;
use super::election::Election;
use super::roster::Roster;
use super::{Repeated, Role};
use crate::message::PeerMessage;
use crate::wire;

/// Remarks on a message of an older term. A damaged member may legitimately ask in one.
pub(crate) fn remark_lower_term(
    cx: &mut Context,
    roster: &Roster,
    from: Sid,
    message: &PeerMessage,
) {
    let own = cx.node.term();
    let Some(term) = message.term().filter(|term| *term < own) else {
        return;
    };
    if matches!(message, PeerMessage::SnapshotRequest { .. }) {
        return;
    }
    let (method, name) = (wire::method_name(message), roster.name_of(from));
    let text = format!(
        "rejecting term {term} < current term {own} received in {method} message from server {name}"
    );
    cx.log_repeated(Level::Info, Repeated::LowerTerm, text);
}

/// Remarks on a vote request that is rejected because the leader is healthy, and on a pre-vote
/// reply that arrives after the pre-vote was won.
pub(crate) fn remark_vote(
    cx: &mut Context,
    roster: &Roster,
    election: &Election,
    from: Sid,
    message: &PeerMessage,
) {
    match message {
        PeerMessage::Vote {
            term, is_transfer, ..
        } if !is_transfer && cx.node.ignores_vote(*term) => {
            let text = if cx.node.is_leader() {
                "ignoring vote request received as leader".to_owned()
            } else {
                format!(
                    "ignoring vote request received after only {} ms (minimum election time is {} ms)",
                    election.view.since_reset_ms(cx.now_ms),
                    election.timer_ms()
                )
            };
            cx.log_repeated(Level::Warn, Repeated::IgnoredVote, text);
        }
        PeerMessage::VoteReply {
            term,
            is_prevote: true,
            ..
        } => {
            let is_voting = cx.node.role() == Role::Candidate && !cx.node.is_precandidate();
            if is_voting && *term == cx.node.term() {
                let text = format!(
                    "ignoring pre-vote reply from server {} during the actual election on term {term}.",
                    roster.name_of(from)
                );
                cx.log_repeated(Level::Warn, Repeated::LatePreVote, text);
            }
        }
        _ => {}
    }
}
