//! Routing of messages from other members, of changes of their connections, and of requests from
//! the database.
//!
//! Invariant: no message takes effect before [`guard::check`] has accepted it, and a failed member
//! handles none.

use std::collections::BTreeSet;

use corvid_log::cluster::{Eid, Sid, Term};
use corvid_rpc::Level;

use super::disk::rewrite::{self, Made};
use super::failure::Failure;
use super::forwarding::followers::Sent;
use super::roster::leaving::Requested;
use super::snapshots::search::{self, Answer, Span};
use super::snapshots::serving::{Request, Stock};
use super::{Member, Output, Repeated, remarks};
use crate::database::MemberRequest;
use crate::guard::{self, GuardView, Reaction, Refusal};
use crate::message::PeerMessage;

impl Member {
    /// Handles a request from the database.
    pub(super) fn handle_request(&mut self, request: MemberRequest) {
        let timer_ms = self.election.timer_ms();
        match request {
            MemberRequest::Propose { term, proposals } => {
                // Proposals of another leadership are dropped: the database has executed them on a
                // state that this leadership does not share.
                if self.election.announced_term(&self.cx) == Some(term) {
                    self.commits.enqueue(proposals);
                    self.propose();
                }
            }
            MemberRequest::Forward { term, forward } => {
                self.forwarding
                    .forward(&mut self.cx, timer_ms, term, *forward);
            }
            MemberRequest::Outcome {
                origin,
                id,
                outcome,
            } => {
                let cx = &mut self.cx;
                if self.forwarding.keep_outcome(cx, origin, id, outcome) {
                    // The follower answers its client only after applying what the outcome depends
                    // on.
                    self.commits.notice.await_through(cx.node.last_index());
                }
            }
            MemberRequest::Find {
                after,
                through,
                ids,
            } => {
                let pace = (timer_ms, self.has_leader());
                let search = &mut self.snapshots.search;
                search.begin(&mut self.cx, &self.roster, pace, (after, through), ids);
            }
            MemberRequest::Applied(index) => self.commits.apply(index),
            MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
                // For files that the caller keeps.
                commits: _,
            } => self.compact(Made {
                index,
                eid,
                contents: Some((token, snapshot)),
            }),
        }
    }

    /// The database has made a snapshot: rewrites the file with it.
    pub(super) fn compact(&mut self, made: Made) {
        // Work that the algorithm has found so far belongs in both files.
        self.work();
        let servers = self.roster.servers_at(made.index).cloned();
        let refusal = if self.roster.is_joining() {
            Some(rewrite::JOINING)
        } else if self.roster.is_leaving() {
            Some(rewrite::LEAVING)
        } else {
            None
        };
        let is_installing = self.snapshots.receiving.is_installing();
        let timer_ms = self.election.timer_ms();
        self.disk.compact(
            &mut self.cx,
            made,
            (servers, timer_ms),
            refusal,
            is_installing,
        );
    }

    /// Whether this member leads, or can reach the leader.
    pub(super) fn has_leader(&self) -> bool {
        self.cx.reachable_leader().is_some() || self.leads()
    }

    /// Admits a server that sends or connects. Returns `false` if too many are known and this one
    /// is in no list.
    fn admit_peer(&mut self, sid: Sid, change: impl FnOnce(&mut super::peers::Peer)) -> bool {
        let is_member = self.roster.contains(sid);
        match self.cx.peers.admit(sid, is_member) {
            Ok(peer) => {
                change(peer);
                true
            }
            Err(remark) => {
                if let Some((level, text)) = remark {
                    self.cx.log(level, text);
                }
                false
            }
        }
    }

    /// Handles a message: the guard checks it first, then it is routed.
    pub(super) fn handle_message(&mut self, from: Sid, message: PeerMessage) {
        if self.cx.has_failed() {
            return;
        }
        let now_ms = self.cx.now_ms;
        let is_admitted = self.admit_peer(from, |peer| peer.last_message_ms = Some(now_ms));
        // A damaged member hears only messages about its repair: to any other it might answer as if
        // its log were whole.
        if !is_admitted || !self.disk.heeds(&message) {
            return;
        }
        let node = &self.cx.node;
        let view = GuardView {
            sid: self.cx.own(),
            term: node.term(),
            leader: node.leader(),
            last_index: node.last_index(),
            persisted: node.persisted(),
            sent: self.cx.outbox.sent_to(from, node.term()),
            log: node,
        };
        if let Err(refusal) = guard::check(from, &message, &view) {
            return self.refuse_message(from, &refusal);
        }
        remarks::remark_lower_term(&mut self.cx, &self.roster, from, &message);
        self.route_message(from, message);
    }

    /// Reacts to a message that the guard refused.
    fn refuse_message(&mut self, from: Sid, refusal: &Refusal) {
        let is_new = self.roster.is_joining() && !self.disk.has_snapshot();
        match refusal.reaction() {
            Reaction::Reset => self.cx.put(Output::Refuse {
                from,
                reason: refusal.to_string(),
            }),
            Reaction::Drop => {
                let text = refusal.to_string();
                self.cx.log_repeated(refusal.level(), refusal.kind(), text);
            }
            // Any process may connect, so a server that is in no list must not stop a member. A
            // server that joins knows no list yet, and is stopped: its file was put back to the
            // state before its admission, and it may have voted since.
            Reaction::Stop(_) if !self.roster.contains(from) && !is_new => {
                let text = format!("ignoring server {from}, which is not a member: {refusal}");
                self.cx.log_repeated(Level::Warn, Repeated::Stranger, text);
            }
            Reaction::Stop(unfit) => {
                self.cx.fail(Failure::unfit(unfit, &refusal.to_string()));
            }
        }
    }

    fn route_message(&mut self, from: Sid, message: PeerMessage) {
        let timer_ms = self.election.timer_ms();
        match message {
            PeerMessage::Forward {
                term,
                first,
                answered,
                forwards,
            } => {
                let sent = Sent {
                    first,
                    answered,
                    forwards,
                };
                self.handle_forwards(from, term, sent);
            }
            PeerMessage::Outcomes { term, outcomes } => {
                let cx = &mut self.cx;
                self.forwarding
                    .hear_outcomes(cx, timer_ms, from, term, outcomes);
            }
            PeerMessage::SnapshotOffer { term, snapshot } => {
                let is_enough = self.disk.is_enough(&snapshot);
                let (receiving, offer) = (&mut self.snapshots.receiving, (term, snapshot));
                if receiving.hear_offer(&mut self.cx, &self.roster, from, offer, is_enough) {
                    self.install_if_complete();
                }
            }
            PeerMessage::SnapshotChunk {
                term,
                index,
                offset,
                bytes,
            } => {
                let receiving = &mut self.snapshots.receiving;
                receiving.hear_chunk(&mut self.cx, from, term, (index, offset), bytes);
            }
            PeerMessage::SnapshotProgress {
                term,
                index,
                offset,
            } => {
                let sending = &mut self.snapshots.sending;
                sending.hear_progress(&mut self.cx, timer_ms, from, term, (index, offset));
            }
            PeerMessage::SnapshotRequest {
                term,
                last_index,
                last_term,
                address,
                name,
            } => {
                let request = Request {
                    term,
                    last: (last_term, last_index),
                    address: &address,
                    name: &name,
                };
                self.handle_snapshot_request(from, &request);
            }
            PeerMessage::AddServer { address, name } => {
                let (leads, is_pending) = (self.leads(), self.disk.file.is_list_pending());
                let (cx, server) = (&mut self.cx, (&*address, &*name));
                if self.roster.hear_joiner(cx, leads, is_pending, from, server)
                    && self.election.take_transfer_on_add()
                {
                    self.transfer_for_test();
                }
            }
            PeerMessage::AddServerReply {
                is_success,
                comment,
                remote_addresses,
            } => {
                let answer = (is_success, &*comment);
                let has_snapshot = self.disk.has_snapshot();
                let cx = &mut self.cx;
                self.roster
                    .hear_admission(cx, from, answer, remote_addresses, has_snapshot);
            }
            PeerMessage::RemoveServer { server_id } => self.handle_removal(from, server_id),
            PeerMessage::RemoveServerReply {
                is_success,
                target,
                comment,
            } => {
                let cx = &mut self.cx;
                if self
                    .roster
                    .hear_removal(cx, from, is_success, target, &comment)
                {
                    self.leave();
                }
            }
            PeerMessage::NotMember { term } => {
                if self.roster.hear_not_member(&mut self.cx, from, term) {
                    self.leave();
                }
            }
            PeerMessage::FindEntries {
                after,
                through,
                ids,
            } => self.handle_question(from, (after, through), ids),
            PeerMessage::FoundEntries {
                after,
                through,
                is_complete,
                found,
                outcomes,
            } => {
                let answer = Answer {
                    span: (after, through),
                    is_complete,
                    found,
                    outcomes,
                };
                let has_leader = self.has_leader();
                let search = &mut self.snapshots.search;
                search.hear_answer(&mut self.cx, &self.roster, has_leader, from, answer);
            }
            message => self.handle_algorithm(from, message),
        }
    }

    /// Handles transactions that a member has sent to this leader.
    fn handle_forwards(&mut self, from: Sid, term: Term, sent: Sent) {
        if self.roster.contains(from)
            && self
                .forwarding
                .hear_forwards(&mut self.cx, from, term, sent)
        {
            self.execute_forwards();
        }
    }

    /// Handles a request for a snapshot from a member with a damaged file.
    fn handle_snapshot_request(&mut self, from: Sid, request: &Request<'_>) {
        // A follower that knows of a removal says so too, because the leader may be a server that
        // the removed one has never heard of.
        if self.tell_not_member(from) || !self.leads() {
            return;
        }
        let stock = Stock {
            snapshot: self.disk.snapshot(),
            applied: self.commits.applied(),
            is_rewriting: self.disk.is_rewriting(),
        };
        let (cx, snapshots) = (&mut self.cx, &mut self.snapshots);
        let sending = &mut snapshots.sending;
        snapshots
            .serving
            .serve(cx, &self.roster, sending, stock, from, request);
    }

    /// Tells a server that it was removed while it was down, if that is certain. Returns whether it
    /// was told.
    fn tell_not_member(&mut self, from: Sid) -> bool {
        let (leads, is_pending) = (self.leads(), self.disk.file.is_list_pending());
        self.roster
            .tell_not_member(&mut self.cx, from, leads, is_pending)
    }

    /// Handles a member's request for a removal.
    fn handle_removal(&mut self, from: Sid, target: Sid) {
        if !self.roster.may_ask_for_removal(&mut self.cx, from, target) {
            return;
        }
        let ends = (Some(from), target);
        let (lease, leads) = (&self.election.lease, self.leads());
        let requested = self
            .roster
            .request_removal(&mut self.cx, lease, leads, target, Some(from));
        let (is_success, comment) = match requested {
            Requested::Begun => return,
            Requested::Leave => match self.start_leaving() {
                Ok(_) => {
                    let file = &mut self.disk.file;
                    return self.roster.answer_own_removal(&mut self.cx, file, from);
                }
                Err(reason) => (false, reason),
            },
            Requested::Ended(is_success, comment) => (is_success, comment),
        };
        let file = &mut self.disk.file;
        self.roster
            .end_removal(&mut self.cx, file, ends, is_success, &comment);
    }

    /// Handles the question of a member that has installed a snapshot and looks for entries.
    fn handle_question(&mut self, from: Sid, span: Span, ids: Vec<Eid>) {
        let recent = &self.snapshots.recent;
        if !self.roster.contains(from) || !recent.reaches(span.1) {
            return;
        }
        let ids: BTreeSet<Eid> = ids.into_iter().collect();
        let kept = self.forwarding.outcomes_of(from, &ids);
        let message = search::answer(recent, kept, span, &ids);
        self.cx.send(from, message);
    }

    /// Handles a message of the algorithm.
    fn handle_algorithm(&mut self, from: Sid, mut message: PeerMessage) {
        // While a snapshot is being installed, nothing may be promised: the file that would back
        // the promise is being replaced. The message counts as lost.
        if self.snapshots.receiving.is_installing() {
            return;
        }
        if let PeerMessage::Vote { .. } = &message
            && self.tell_not_member(from)
        {
            return;
        }
        // A transfer request ends a healthy leadership. Any process may connect, so a server that
        // is in no list has to wait like any candidate.
        if let PeerMessage::Vote { is_transfer, .. } = &mut message {
            *is_transfer &= self.roster.contains(from);
        }
        remarks::remark_vote(&mut self.cx, &self.roster, &self.election, from, &message);
        self.election.note_candidacy(&self.cx, &message);
        if let PeerMessage::VoteReply {
            is_granted: true,
            is_prevote: false,
            ..
        } = &message
        {
            let own = self.cx.own();
            self.cx.peers.note_vote(from, own);
        }
        if let PeerMessage::TimeoutNow { term } = &message {
            let text = format!("received leadership transfer from {from} in term {term}");
            self.cx.log(Level::Info, text);
            self.election.view.begin_election(self.cx.now_ms, true);
        }
        if self.roster.note_departure(&self.cx, from, &message) {
            self.leave();
        }
        self.step(from, message);
    }

    /// Steps the algorithm, and notes what the message reveals about its sender.
    fn step(&mut self, from: Sid, message: PeerMessage) {
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
        let is_answer = is_heartbeat_reply || matches!(&message, PeerMessage::AppendReply { .. });
        let term = message.term();
        let cx = &mut self.cx;
        let vote = (cx.node.term(), cx.node.vote());
        cx.node.step(from, message);
        let view = &mut self.election.view;
        let is_given = cx.node.vote() == Some(from);
        if is_given && vote != (cx.node.term(), cx.node.vote()) {
            view.restart_timeout(cx.now_ms);
        }
        let is_present = term == Some(cx.node.term());
        // Only now is it known whether the algorithm accepts the sender as leader. A timeout that
        // began no election has changed neither role nor leader.
        if let Some(commit) = of_leader
            && is_present
            && cx.node.leader() == Some(from)
        {
            view.hear_leader(cx.now_ms);
            view.note_leader_commit(commit);
            // Heartbeats do not count: they announce no more than this member is known to have.
            if is_append && cx.node.term_of(commit) == term {
                self.commits.catching_up.note_commit(commit);
            }
        }
        if is_answer && is_present {
            self.election.lease.hear(from);
            if is_heartbeat_reply {
                let tick = self.election.lease.ticks();
                self.commits.notice.repeat(cx, from, tick);
            }
        }
        if let Some(index) = stored {
            self.election.lease.note_stored(from, index);
            cx.peers.set_damaged(from, false);
            self.snapshots.sending.hear_stored(cx, from, index);
        }
    }

    /// A connection is up. Messages on the previous one may have been lost.
    pub(super) fn connect_peer(&mut self, sid: Sid) {
        let now_ms = self.cx.now_ms;
        let is_admitted = self.admit_peer(sid, |peer| {
            peer.is_up = true;
            peer.changed_ms = Some(now_ms);
        });
        if !is_admitted {
            return;
        }
        let timer_ms = self.election.timer_ms();
        let (cx, snapshots) = (&mut self.cx, &mut self.snapshots);
        // Messages in flight on the old connection may be lost. Forget what this peer was told, and
        // repeat every request to it that has no reply.
        self.commits.notice.forget_peer(sid);
        cx.node.unreachable(sid);
        snapshots.sending.interrupt(cx, sid);
        if cx.node.leader() == Some(sid) {
            snapshots.receiving.resume(cx, sid);
            self.forwarding.resend(cx, timer_ms);
        }
        snapshots.search.ask(cx, &self.roster, sid);
        self.roster.ask_now(cx);
        let is_receiving = snapshots.receiving.is_receiving();
        self.disk.ask_for_repair(cx, is_receiving);
    }

    /// The connection is down.
    pub(super) fn disconnect_peer(&mut self, sid: Sid) {
        let is_member = self.roster.contains(sid);
        let cx = &mut self.cx;
        if cx.peers.disconnect(sid, cx.now_ms, is_member) {
            cx.outbox.forget_peer(sid);
            self.election.lease.forget_peer(sid);
            self.commits.notice.forget_peer(sid);
        }
        self.election.lease.disconnect_peer(sid);
        cx.node.unreachable(sid);
        self.snapshots.sending.interrupt(cx, sid);
        self.roster.drop_joiner(cx, sid);
    }

    /// A peer's process is gone.
    pub(super) fn refuse_peer(&mut self, sid: Sid) {
        let is_unfit = self.cx.has_failed()
            || self.disk.is_repairing()
            || self.snapshots.receiving.is_installing();
        if !is_unfit {
            self.election.note_refused(&mut self.cx, &self.roster, sid);
        }
    }
}
