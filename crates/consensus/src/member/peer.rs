//! The other members, as this one hears them: connections that come and go, and messages.
//!
//! Invariant: nothing of a message takes effect before [`guard::check`] has let it through.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use super::{Member, Output, Repeated};
use crate::guard::{self, GuardView, Reaction, SERVERS_MAX};
use crate::message::PeerMessage;

/// Peers that are kept, beyond which messages and connections of servers that are in no list are ignored.
const PEERS_MAX: usize = 2 * SERVERS_MAX;

/// A peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    /// Messages can be sent to it.
    pub(super) is_up: bool,
    /// When that changed last.
    pub(super) changed_ms: Option<u64>,
    /// When its last message came.
    pub(super) last_message_ms: Option<u64>,
    /// The tick of its last answer to this member as leader ([`super::lease`]).
    pub(super) heard_tick: u64,
    /// The tick at which this member, as leader, last told it the commit index although nothing was
    /// new (`commit_notice.rs`); `None`: not over this connection.
    pub(super) told_tick: Option<u64>,
    /// Its file is damaged: it has lost entries that the algorithm believes it to have, until it acknowledges one.
    pub(super) is_damaged: bool,
    /// Its vote in the present term, if this member knows.
    pub(super) voted_for: Option<Sid>,
    /// The last entry that this member has sent to it as the leader of a term.
    sent: Option<(Term, Index)>,
}

impl Member {
    /// The entry of a peer. `None`: too many are known, and this one is in no list.
    fn known_peer(&mut self, sid: Sid) -> Option<&mut Peer> {
        let is_refused = self.peers.len() >= PEERS_MAX
            && !self.peers.contains_key(&sid)
            && !self.membership.contains(sid);
        if !is_refused {
            return Some(self.peers.entry(sid).or_default());
        }
        if !std::mem::replace(&mut self.are_peers_refused, true) {
            let text = format!(
                "ignoring server {sid} and further ones that are no members: {PEERS_MAX} servers have sent messages. Let only members reach \
                 this port"
            );
            self.log(Level::Warn, text);
        }
        None
    }

    /// A message has come: once the guard lets it through, it goes where it is handled.
    pub(super) fn message(&mut self, from: Sid, message: PeerMessage) {
        if self.failure.is_some() {
            return;
        }
        let now_ms = self.now_ms;
        let Some(peer) = self.known_peer(from) else {
            return;
        };
        peer.last_message_ms = Some(now_ms);
        if !self.is_heeded(&message) {
            return;
        }
        let view = GuardView {
            sid: self.settings.sid,
            term: self.node.term(),
            leader: self.node.leader(),
            last_index: self.node.last_index(),
            persisted: self.node.persisted(),
            sent: self.sent_to(from),
            log: &self.node,
        };
        if let Err(refusal) = guard::check(from, &message, &view) {
            match refusal.reaction() {
                Reaction::Reset => self.outputs.push_back(Output::Refuse {
                    from,
                    reason: refusal.to_string(),
                }),
                Reaction::Drop => {
                    self.log_repeated(refusal.level(), refusal.kind(), refusal.to_string());
                }
                // Any process may connect, so a server that is in no list stops no member.
                Reaction::Stop(_) if !self.membership.contains(from) => {
                    let text = format!("ignoring server {from}, which is no member: {refusal}");
                    self.log_repeated(Level::Warn, Repeated::Stranger, text);
                }
                Reaction::Stop(unfit) => self.fail_unfit(unfit, &refusal.to_string()),
            }
            return;
        }
        self.remark_lower_term(from, &message);
        match message {
            PeerMessage::Forward {
                term,
                first,
                answered,
                forwards,
            } => self.forwards_received(from, term, first, answered, forwards),
            PeerMessage::Outcomes { term, outcomes } => {
                self.outcomes_received(from, term, outcomes);
            }
            PeerMessage::SnapshotOffer { term, snapshot } => {
                self.snapshot_offered(from, term, snapshot);
            }
            PeerMessage::SnapshotChunk {
                term,
                index,
                offset,
                bytes,
            } => self.chunk_received(from, term, index, offset, bytes),
            PeerMessage::SnapshotProgress {
                term,
                index,
                offset,
            } => self.progress_received(from, term, index, offset),
            PeerMessage::SnapshotRequest {
                term,
                last_index,
                last_term,
                address,
                name,
            } => self.snapshot_requested(from, term, (last_term, last_index), &address, &name),
            PeerMessage::AddServer { address, name } => self.add_server(from, &address, &name),
            PeerMessage::AddServerReply {
                is_success,
                comment,
                remote_addresses,
            } => self.add_server_reply(from, is_success, &comment, remote_addresses),
            PeerMessage::RemoveServer { server_id } => {
                self.remove_server(from, server_id);
            }
            PeerMessage::RemoveServerReply {
                is_success,
                target,
                comment,
            } => self.remove_server_reply(from, is_success, target, &comment),
            PeerMessage::NotMember { term } => self.not_member(from, term),
            PeerMessage::FindEntries {
                after,
                through,
                ids,
            } => self.entries_sought(from, after, through, ids),
            PeerMessage::FoundEntries {
                after,
                through,
                is_complete,
                found,
                outcomes,
            } => self.entries_found(from, (after, through), is_complete, found, outcomes),
            message => self.algorithm_message(from, message),
        }
    }

    /// A message of the algorithm.
    fn algorithm_message(&mut self, from: Sid, mut message: PeerMessage) {
        if self.is_installing() {
            return;
        }
        if let PeerMessage::Vote { .. } = &message
            && self.tell_not_member(from)
        {
            return;
        }
        // Such a request ends a leadership that is well. Any process may connect, so a server that is in no list waits as any candidate.
        if let PeerMessage::Vote { is_transfer, .. } = &mut message {
            *is_transfer &= self.membership.contains(from);
        }
        self.remark_vote(from, &message);
        self.candidacy_noted(&message);
        if let PeerMessage::VoteReply {
            is_granted: true,
            is_prevote: false,
            ..
        } = &message
        {
            self.peers.entry(from).or_default().voted_for = Some(self.settings.sid);
        }
        if let PeerMessage::TimeoutNow { term } = &message {
            let text = format!("received leadership transfer from {from} in term {term}");
            self.log(Level::Info, text);
            self.view.election_began(self.now_ms, true);
        }
        self.departure_noted(from, &message);
        let of_leader = match &message {
            PeerMessage::Append { commit, .. } | PeerMessage::Heartbeat { commit, .. } => {
                Some(*commit)
            }
            _ => None,
        };
        let is_append = matches!(&message, PeerMessage::Append { .. });
        let is_heartbeat_reply = matches!(&message, PeerMessage::HeartbeatReply { .. });
        let stored = match &message {
            PeerMessage::AppendReply {
                index,
                rejection: None,
                ..
            } => Some(*index),
            _ => None,
        };
        let is_answer = matches!(
            &message,
            PeerMessage::AppendReply { .. } | PeerMessage::HeartbeatReply { .. }
        );
        let term = message.term();
        let vote = (self.node.term(), self.node.vote());
        self.node.step(from, message);
        let is_given = self.node.vote() == Some(from);
        if is_given && vote != (self.node.term(), self.node.vote()) {
            self.view.vote_given(self.now_ms);
        }
        if is_answer && term == Some(self.node.term()) {
            self.peers.entry(from).or_default().heard_tick = self.lease.ticks;
            if is_heartbeat_reply {
                self.repeat_commit(from);
            }
        }
        // A timeout that began no election has changed neither role nor leader.
        if let Some(commit) = of_leader
            && term == Some(self.node.term())
            && self.node.leader() == Some(from)
        {
            self.view.leader_heard(self.now_ms);
            self.view.leader_committed(commit);
            // A heartbeat tells no more than what this member is known to have.
            if is_append && self.node.term_of(commit) == term {
                self.catching_up.told(commit);
            }
        }
        if let Some(index) = stored {
            self.peers.entry(from).or_default().is_damaged = false;
            self.sending_answered(from, index);
        }
    }

    /// A message of the log leaves for a peer: what it may acknowledge from now on.
    pub(super) fn log_sent(&mut self, to: Sid, message: &PeerMessage) {
        let (term, end) = match message {
            PeerMessage::Append {
                term,
                prev_index,
                entries,
                ..
            } => (*term, Index(prev_index.0 + entries.len() as u64)),
            PeerMessage::SnapshotOffer { term, snapshot } => (*term, snapshot.index),
            _ => return,
        };
        let sent = &mut self.peers.entry(to).or_default().sent;
        *sent = match *sent {
            Some((known, before)) if known == term => Some((term, before.max(end))),
            _ => Some((term, end)),
        };
    }

    /// The last entry that this member has sent to a peer as the leader of its term; 0: none.
    fn sent_to(&self, sid: Sid) -> Index {
        let sent = self.peers.get(&sid).and_then(|peer| peer.sent);
        sent.filter(|(term, _)| *term == self.node.term())
            .map_or(Index(0), |(_, end)| end)
    }

    /// A connection is there; messages on the one before may have been lost.
    pub(super) fn peer_up(&mut self, sid: Sid) {
        let now_ms = self.now_ms;
        let Some(peer) = self.known_peer(sid) else {
            return;
        };
        peer.is_up = true;
        peer.changed_ms = Some(now_ms);
        peer.told_tick = None;
        self.node.unreachable(sid);
        self.sending_interrupted(sid);
        if self.node.leader() == Some(sid) {
            self.receiving_resumed(sid);
            self.resend_forwards();
        }
        self.ask_for_entries(sid);
        if let Some(joining) = &mut self.joining {
            joining.next_ms = self.now_ms;
            self.joining_time();
        }
        if let Some(repairing) = &mut self.repairing {
            repairing.next_ms = self.now_ms;
            self.repairing_time();
        }
    }

    /// There is no connection any more.
    pub(super) fn peer_down(&mut self, sid: Sid) {
        if let Some(peer) = self.peers.get_mut(&sid) {
            // A connection that cannot be made is no news.
            if std::mem::replace(&mut peer.is_up, false) {
                peer.changed_ms = Some(self.now_ms);
            }
            if !self.membership.contains(sid) {
                self.peers.remove(&sid);
            }
        }
        self.node.unreachable(sid);
        self.sending_interrupted(sid);
        self.joiner_down(sid);
    }

    /// Whether this peer takes part: messages can be sent to it, and its file is intact.
    pub(super) fn takes_part(&self, sid: Sid) -> bool {
        let peer = self.peers.get(&sid);
        peer.is_some_and(|peer| peer.is_up && !peer.is_damaged)
    }

    /// Whether messages can be sent to this peer.
    pub(super) fn is_up(&self, sid: Sid) -> bool {
        self.peers.get(&sid).is_some_and(|peer| peer.is_up)
    }
}
