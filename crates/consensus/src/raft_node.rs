//! The consensus algorithm, implemented by the library `raft`. No other module names that library,
//! so it can be replaced by a modified copy.
//!
//! Invariants, each of which prevents a panic or lost data in the library:
//! - Nothing is stepped between the library's `ready` and `advance_append_async`: both are inside
//!   [`RaftNode::ready`].
//! - The library draws election timeouts from its own source of randomness. After every call
//!   [`RaftNode`] restores the caller's timeout, so that a seed replays.
//! - If an append or a snapshot ends before the commit index, the library acknowledges everything
//!   up to the commit index, although it has compared nothing. [`RaftNode`] makes the leader ask
//!   about that entry instead ([`committed`]).
//! - A leader commits an entry of its term only when a majority of the voters has stored it. This
//!   is checked after every call that moved the commit index.
//! - A sole voter that does not lead neither ticks nor campaigns while a part of its log is not
//!   stored. It would lead at once, which the library allows only with a stored log.
//!
//! Called by `member`. This module must not know files, connections, databases, or the addresses of
//! servers.

mod committed;
mod convert;
mod log;

use std::collections::BTreeMap;

use corvid_log::cluster::{Index, Sid, Term};
use raft::eraftpb::{
    ConfChange, ConfChangeType, ConfState, Entry, EntryType, HardState, Message, MessageType,
};
use raft::{Config, ProgressState, RawNode, SnapshotStatus, StateRole};

use crate::entry::EntryBody;
use crate::guard::SERVERS_MAX;
use crate::member::{KeptEntries, Role};
use crate::message::PeerMessage;
use log::MemoryLog;

/// Minimum number of ticks without a message from the leader before a follower may stand for
/// election.
pub(crate) const ELECTION_TICKS: usize = 10;
/// Ticks between heartbeats.
const HEARTBEAT_TICKS: usize = 3;
/// Bytes of entries in one message, not counting its first entry.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of messages with entries in flight to one peer.
const MESSAGES_UNDER_WAY_MAX: usize = 64;
/// Bytes of committed entries handed over at a time, not counting the first entry.
const COMMITTED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of uncommitted entries beyond which proposals wait.
const UNCOMMITTED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Maximum number of servers whose ids are remembered; messages from further ones are ignored.
/// Servers in lists are always remembered.
const SIDS_MAX: usize = 4 * SERVERS_MAX;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) term: Term,
    pub(crate) index: Index,
    pub(crate) body: EntryBody,
}

/// The state with which a node starts.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) sid: Sid,
    pub(crate) snapshot: (Index, Term),
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) term: Term,
    pub(crate) vote: Option<Sid>,
    /// Everything up to this entry is committed and applied.
    pub(crate) commit: Index,
    /// The voters as of that entry.
    pub(crate) voters: Vec<Sid>,
}

/// Work that the library wants done, in order.
#[derive(Debug)]
pub(crate) struct Work {
    /// Repeated in [`RaftNode::stored`].
    pub(crate) number: u64,
    /// Set if term or vote has changed. Must be stored.
    pub(crate) hard: Option<(Term, Option<Sid>)>,
    /// Entries to store. They replace entries with the same index and all later ones.
    pub(crate) entries: Vec<LogEntry>,
    /// Set if the commit index has advanced.
    pub(crate) commit: Option<Index>,
    /// Messages to send once term and vote are stored.
    pub(crate) messages: Vec<(Sid, Outgoing)>,
    /// Messages to send once all of this work is stored.
    pub(crate) promises: Vec<(Sid, Outgoing)>,
    /// Entries that are committed, stored, and to be applied now.
    pub(crate) committed: Vec<LogEntry>,
}

/// A message of the library.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// For the wire.
    Message(PeerMessage),
    /// The peer needs a snapshot.
    Snapshot,
}

/// How far a peer has progressed, as its leader sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerProgress {
    pub(crate) matched: Index,
    pub(crate) next: Index,
    pub(crate) is_in_snapshot: bool,
}

/// One node of the consensus algorithm.
pub(crate) struct RaftNode {
    raw: RawNode<MemoryLog>,
    sids: BTreeMap<u64, Sid>,
    /// The election timeout in ticks, at least [`ELECTION_TICKS`].
    timeout_ticks: usize,
    unstored: u64,
    commit_seen: u64,
    /// The commit index after the last call.
    commit_checked: u64,
    hard_seen: (u64, u64),
}

impl std::fmt::Debug for RaftNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RaftNode")
            .field("term", &self.raw.raft.term)
            .field("state", &self.raw.raft.state)
            .finish_non_exhaustive()
    }
}

impl RaftNode {
    /// # Errors
    /// The state contradicts itself.
    pub(crate) fn new(opening: &Opening, timeout_ticks: usize) -> Result<RaftNode, String> {
        let id = opening.sid.number();
        let mut sids = BTreeMap::new();
        sids.insert(id, opening.sid);
        for sid in opening.voters.iter().copied().chain(opening.vote) {
            if sids.insert(sid.number(), sid).is_some_and(|old| old != sid) {
                return Err(format!("two servers have ids that begin like {}", sid.0));
            }
        }
        let mut state = ConfState {
            voters: opening.voters.iter().map(|sid| sid.number()).collect(),
            ..ConfState::default()
        };
        // A server outside the list gets the log, and has no vote.
        if !opening.voters.is_empty() && !opening.voters.contains(&opening.sid) {
            state.learners = vec![id];
        }
        let hard = HardState {
            term: opening.term.0,
            vote: opening.vote.map_or(0, Sid::number),
            commit: opening.commit.0,
            ..HardState::default()
        };
        let hard_seen = (hard.term, hard.vote);
        let log = MemoryLog::new(opening.snapshot, &opening.entries, hard, state);
        let config = Config {
            id,
            election_tick: ELECTION_TICKS,
            heartbeat_tick: HEARTBEAT_TICKS,
            max_election_tick: 1 << 40,
            applied: opening.commit.0,
            max_size_per_msg: MESSAGE_BYTES_MAX,
            max_inflight_msgs: MESSAGES_UNDER_WAY_MAX,
            check_quorum: true,
            pre_vote: true,
            batch_append: true,
            // The member decides when to announce a commit: [`RaftNode::append_to`].
            skip_bcast_commit: true,
            max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
            max_committed_size_per_ready: COMMITTED_BYTES_MAX,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raw = RawNode::new(&config, log, &logger).map_err(|error| error.to_string())?;
        let mut node = RaftNode {
            raw,
            sids,
            timeout_ticks,
            unstored: 0,
            commit_seen: opening.commit.0,
            commit_checked: opening.commit.0,
            hard_seen,
        };
        node.after_call();
        Ok(node)
    }

    /// A node for a member that cannot take part: it knows nothing and asks for nothing.
    pub(crate) fn empty(sid: Sid, timeout_ticks: usize) -> RaftNode {
        let opening = Opening {
            sid,
            snapshot: (Index(0), Term(0)),
            entries: Vec::new(),
            term: Term(0),
            vote: None,
            commit: Index(0),
            voters: Vec::new(),
        };
        // An empty state is consistent; only a zero id is rejected.
        RaftNode::new(&opening, timeout_ticks).expect("a server id that does not begin with zeros")
    }

    /// Sets the election timeout, ticks.
    pub(crate) fn set_timeout(&mut self, ticks: usize) {
        self.timeout_ticks = ticks.max(ELECTION_TICKS);
        self.restore_timeout();
    }

    fn restore_timeout(&mut self) {
        let ticks = self.timeout_ticks;
        self.raw.raft.set_randomized_election_timeout(ticks);
    }

    /// Ends every call of the library: restores the caller's timeout and checks the commit index.
    fn after_call(&mut self) {
        self.restore_timeout();
        let raft = &self.raw.raft;
        let commit = raft.raft_log.committed;
        let before = std::mem::replace(&mut self.commit_checked, commit);
        if commit == before {
            return;
        }
        // Clients were told of everything up to the earlier index.
        assert!(
            commit > before,
            "the commit index falls from {before} to {commit}"
        );
        // An entry of this term commits all earlier ones, so a majority must have it. With fewer
        // copies, the next leader may lack what clients are about to be told.
        let is_own = raft.state == StateRole::Leader
            && raft
                .raft_log
                .term(commit)
                .is_ok_and(|term| term == raft.term);
        if is_own {
            let tracker = raft.prs();
            let voters = tracker.conf().voters();
            let voters = tracker.iter().filter(|(id, _)| voters.contains(**id));
            let (count, stored) = voters.fold((0, 0), |(count, stored), (_, progress)| {
                (count + 1, stored + usize::from(progress.matched >= commit))
            });
            assert!(
                stored > count / 2,
                "entry {commit} is committed, but {stored} of {count} voters have it"
            );
        }
    }

    /// Advances the clock by one tick. Returns whether an election timeout, or a leader's period,
    /// has passed with it.
    pub(crate) fn tick(&mut self) -> bool {
        if !self.may_campaign() {
            return false;
        }
        let has_acted = self.raw.tick();
        self.after_call();
        has_acted
    }

    /// Stands for election at once.
    pub(crate) fn campaign(&mut self) {
        if self.may_campaign() {
            let _ = self.raw.campaign();
            self.after_call();
        }
    }

    /// Forgets the leader of this term, so that this member grants votes without waiting for the
    /// election timeout. Term and vote stay.
    pub(crate) fn leader_is_gone(&mut self) {
        if self.raw.raft.state == StateRole::Follower {
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
            self.after_call();
        }
    }

    /// If this member leads, turns it into a follower without a leader in the same term.
    pub(crate) fn step_down(&mut self) {
        if self.is_leader() {
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
            self.after_call();
        }
    }

    /// Whether the node may stand for election. A sole voter leads as soon as it stands, which
    /// requires a stored log.
    fn may_campaign(&self) -> bool {
        let raft = &self.raw.raft;
        let is_sole = raft.prs().is_singleton() && raft.promotable();
        raft.state == StateRole::Leader || !is_sole || self.unstored == 0
    }

    /// Whether a vote request of this term changes nothing and gets no answer, because this member
    /// leads or has just heard from the leader.
    pub(crate) fn ignores_vote(&self, term: Term) -> bool {
        let raft = &self.raw.raft;
        let is_led = raft.leader_id != raft::INVALID_ID;
        term.0 > raft.term && is_led && raft.election_elapsed < raft.election_timeout()
    }

    /// Handles a message that [`crate::guard`] has accepted. Ignores messages that do not belong to
    /// the algorithm.
    pub(crate) fn step(&mut self, from: Sid, message: PeerMessage) {
        let id = from.number();
        // The library knows a peer by half of its id. A second server with the same half must not
        // speak for the first one.
        if self.sids.len() >= SIDS_MAX && !self.sids.contains_key(&id) {
            return;
        }
        if id == 0 || *self.sids.entry(id).or_insert(from) != from {
            return;
        }
        if matches!(message, PeerMessage::TimeoutNow { .. }) && !self.may_campaign() {
            return;
        }
        let message = match committed::hint(&message) {
            Some((term, commit)) if self.is_leader() && term == self.term() => {
                return self.probe_from(id, commit);
            }
            // The hint is for another term, so only the term matters: let the library see just
            // that.
            Some((term, commit)) => PeerMessage::HeartbeatReply { term, commit },
            None => message,
        };
        if let Some(message) = convert::to_raft(id, self.raw.raft.id, message) {
            self.step_raw(message);
        }
    }

    /// Installs a snapshot that is stored already. Afterwards the log is that of the snapshot.
    pub(crate) fn install(
        &mut self,
        from: Sid,
        leader_term: Term,
        (index, term): (Index, Term),
        voters: &[Sid],
    ) {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgSnapshot);
        message.from = from.number();
        message.to = self.raw.raft.id;
        message.term = leader_term.0;
        let mut state = ConfState::default();
        for sid in voters {
            self.sids.insert(sid.number(), *sid);
            state.voters.push(sid.number());
        }
        if !state.voters.contains(&self.raw.raft.id) {
            state.learners.push(self.raw.raft.id);
        }
        let metadata = message.mut_snapshot().mut_metadata();
        metadata.index = index.0;
        metadata.term = term.0;
        metadata.set_conf_state(state);
        self.step_raw(message);
    }

    fn step_raw(&mut self, message: Message) {
        // The library queues its answers in `msgs`. Remember where they begin, because an
        // acknowledgement past what the message held must become a question before it leaves.
        let answered = self.raw.raft.msgs.len();
        let place = committed::place(&message);
        let _ = self.raw.step(message);
        if let Some(place) = place {
            let mut messages = std::mem::take(&mut self.raw.raft.msgs);
            let log = &self.raw.raft.raft_log;
            let answers = messages.get_mut(answered..).unwrap_or_default();
            committed::ask_back(answers, place, |index| log.term(index).unwrap_or_default());
            self.raw.raft.msgs = messages;
        }
        self.after_call();
    }

    /// Appends entries as leader in one step; they get the indexes after the last one. Returns
    /// `false` if they are not accepted now: this member does not lead, is transferring its
    /// leadership, or has too much in flight.
    pub(crate) fn propose(&mut self, bodies: Vec<EntryBody>) -> bool {
        if bodies.is_empty() || !self.is_leader() {
            return false;
        }
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raw.raft.id;
        let entries: Vec<Entry> = bodies
            .into_iter()
            .map(|body| Entry {
                data: body.text().clone(),
                context: body.result().clone(),
                ..Entry::default()
            })
            .collect();
        message.set_entries(entries.into());
        let outcome = self.raw.raft.step(message).is_ok();
        self.after_call();
        outcome
    }

    /// Appends a change of one voter; `body` has the new list of servers. Returns `false` if that
    /// is not possible now, see [`RaftNode::may_change_voters`].
    pub(crate) fn propose_change(&mut self, sid: Sid, is_added: bool, body: &EntryBody) -> bool {
        if !self.may_change_voters() {
            return false;
        }
        self.sids.insert(sid.number(), sid);
        let change = conf_change(sid, is_added, false);
        let outcome = self
            .raw
            .propose_conf_change(body.text().to_vec(), change)
            .is_ok();
        self.after_call();
        outcome
    }

    /// Whether a change of voters may be proposed. Otherwise the library would append an empty
    /// entry instead.
    pub(crate) fn may_change_voters(&self) -> bool {
        let raft = &self.raw.raft;
        self.is_leader()
            && raft.lead_transferee.is_none()
            && !raft.has_pending_conf()
            && raft.apply_to_current_term()
    }

    /// Applies a change of one server: a committed change of a voter, or the start or end of
    /// sending the log to a non-voter.
    pub(crate) fn apply_change(&mut self, sid: Sid, is_added: bool, is_learner: bool) {
        self.sids.insert(sid.number(), sid);
        let _ = self
            .raw
            .apply_conf_change(&conf_change(sid, is_added, is_learner));
        self.after_call();
    }

    /// Sends one follower the commit index, and the entries that it lacks.
    pub(crate) fn append_to(&mut self, to: Sid) {
        // The library panics if it does not know the peer.
        if self.is_leader() && self.raw.raft.prs().get(to.number()).is_some() {
            self.raw.raft.send_append(to.number());
        }
    }

    /// Asks a peer to take over the leadership.
    pub(crate) fn transfer(&mut self, to: Sid) {
        self.raw.transfer_leader(to.number());
        self.after_call();
    }

    /// The peer to which the leadership is being transferred.
    pub(crate) fn transferee(&self) -> Option<Sid> {
        let id = self.raw.raft.lead_transferee?;
        self.sids.get(&id).copied()
    }

    /// Reports that messages to this peer may have been lost.
    pub(crate) fn unreachable(&mut self, sid: Sid) {
        self.raw.report_unreachable(sid.number());
    }

    /// Reports that the snapshot requested by [`Outgoing::Snapshot`] has arrived, or that sending
    /// it was abandoned.
    pub(crate) fn snapshot_sent(&mut self, sid: Sid, is_success: bool) {
        let status = if is_success {
            SnapshotStatus::Finish
        } else {
            SnapshotStatus::Failure
        };
        self.raw.report_snapshot(sid.number(), status);
    }

    /// Sends the snapshot of this index to a peer that has lost entries it had acknowledged.
    /// Nothing else is sent until it has arrived.
    pub(crate) fn begin_snapshot(&mut self, sid: Sid, index: Index) {
        let id = sid.number();
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Leader {
            return;
        }
        let Some(progress) = raft.mut_prs().get_mut(id) else {
            return;
        };
        progress.become_probe();
        progress.pending_request_snapshot = index.0;
        // The library sends snapshots only to active peers, but a peer that takes no part must not
        // count as active. So mark it active for this call only.
        let was_active = std::mem::replace(&mut progress.recent_active, true);
        raft.send_append(id);
        if let Some(progress) = raft.mut_prs().get_mut(id) {
            progress.recent_active = was_active;
        }
        self.after_call();
    }

    /// The next work, if there is any.
    pub(crate) fn ready(&mut self) -> Option<Work> {
        if !self.raw.has_ready() {
            return None;
        }
        // From here to `advance_append_async` nothing may step the library.
        let mut ready = self.raw.ready();
        let number = ready.number();
        let messages = self.outgoing(ready.take_messages());
        let promises = self.outgoing(ready.take_persisted_messages());
        let raw_entries = ready.take_entries();
        let entries = raw_entries.iter().map(convert::entry).collect();
        let committed: Vec<LogEntry> = ready
            .take_committed_entries()
            .iter()
            .map(convert::entry)
            .collect();
        let snapshot = ready.snapshot().get_metadata();
        if snapshot.index > 0 {
            let (index, term) = (Index(snapshot.index), Term(snapshot.term));
            self.raw.mut_store().restart(index, term);
        }
        let raft = &self.raw.raft;
        let hard = (raft.term, raft.vote);
        let commit = raft.raft_log.committed;
        let is_hard_new = std::mem::replace(&mut self.hard_seen, hard) != hard;
        let is_commit_new = std::mem::replace(&mut self.commit_seen, commit) != commit;
        let persisted = raft.raft_log.persisted;
        // The log in memory must have the entries before the library advances past them: it reads
        // them back.
        self.raw.mut_store().append(raw_entries);
        self.raw.advance_append_async(ready);
        self.after_call();
        self.unstored = number;
        // The database shows clients what it applies, and this member's copy may be the one that
        // makes the majority. So an entry is handed over only once this member has stored it.
        if let Some(LogEntry { index, .. }) = committed.last() {
            assert!(
                index.0 <= persisted.min(commit),
                "entry {index} is handed over, but {persisted} is stored and {commit} committed"
            );
        }
        let vote = self.sids.get(&hard.1).copied();
        Some(Work {
            number,
            hard: is_hard_new.then_some((Term(hard.0), vote)),
            entries,
            commit: is_commit_new.then_some(Index(commit)),
            messages,
            promises,
            committed,
        })
    }

    fn outgoing(&self, messages: Vec<Message>) -> Vec<(Sid, Outgoing)> {
        messages
            .into_iter()
            .filter_map(|mut message| {
                let to = *self.sids.get(&message.to)?;
                if self.is_stale_acknowledgement(&message) {
                    return None;
                }
                self.place_entries(&mut message)?;
                let outgoing = match message.get_msg_type() {
                    MessageType::MsgSnapshot => Outgoing::Snapshot,
                    _ => Outgoing::Message(convert::from_raft(&message)?),
                };
                Some((to, outgoing))
            })
            .collect()
    }

    /// Whether a message acknowledges entries to the leader of a term that ended in the same turn.
    /// The next leader's entries may have replaced them before they were stored. Dropping it is
    /// like losing it on the way.
    fn is_stale_acknowledgement(&self, message: &Message) -> bool {
        message.get_msg_type() == MessageType::MsgAppendResponse
            && message.term < self.raw.raft.term
    }

    /// Corrects the position of an append. If an append without entries is still queued, the
    /// library adds entries to it, even if they do not follow its position: this happens when a
    /// commit was announced and a rejection arrived in the same turn. A peer message implies the
    /// indexes of its entries, so the position must match the first one. Returns `None` if the
    /// entry before them is no longer known; the message then counts as lost.
    fn place_entries(&self, message: &mut Message) -> Option<()> {
        let first = message.get_entries().first().map(|entry| entry.index);
        if let Some(first) = first.filter(|first| *first != message.index + 1) {
            message.index = first - 1;
            message.log_term = self.raw.raft.raft_log.term(first - 1).ok()?;
        }
        Some(())
    }

    /// Reports that everything up to the [`Work`] with this number is stored.
    pub(crate) fn stored(&mut self, number: u64) {
        self.raw.on_persist_ready(number);
        if self.unstored <= number {
            self.unstored = 0;
        }
        self.after_call();
    }

    /// Reports that everything up to this entry has been handed over to be applied, changes of
    /// voters included.
    pub(crate) fn applied(&mut self, index: Index) {
        let log = &self.raw.raft.raft_log;
        let index = index.0.min(log.committed).min(log.persisted);
        if index > log.applied {
            self.raw.advance_apply_to(index);
        }
    }

    /// Forgets entries up to this one, which a snapshot includes and which must be applied, except
    /// for the last ones within these limits.
    pub(crate) fn compact(&mut self, index: Index, kept: KeptEntries) {
        let index = index.0.min(self.raw.raft.raft_log.applied);
        self.raw.mut_store().compact(Index(index), kept);
    }

    /// As leader, forgets entries that the snapshot includes and that every peer has.
    pub(crate) fn forget_known(&mut self) {
        if self.is_leader() {
            let peers = self.raw.raft.prs().iter();
            let known = peers.map(|(_, progress)| progress.matched).min();
            let index = known.unwrap_or(0).min(self.raw.raft.raft_log.applied);
            self.raw.mut_store().forget(Index(index));
        }
    }

    /// Sets the snapshot to send to peers that need older entries.
    pub(crate) fn set_snapshot(&mut self, index: Index, term: Term) {
        self.raw.mut_store().set_snapshot(index, term);
    }

    pub(crate) fn term(&self) -> Term {
        Term(self.raw.raft.term)
    }

    pub(crate) fn vote(&self) -> Option<Sid> {
        self.sids.get(&self.raw.raft.vote).copied()
    }

    pub(crate) fn role(&self) -> Role {
        match self.raw.raft.state {
            StateRole::Follower => Role::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        }
    }

    /// Whether the member is in the pre-vote phase of an election.
    pub(crate) fn is_precandidate(&self) -> bool {
        self.raw.raft.state == StateRole::PreCandidate
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.raw.raft.state == StateRole::Leader
    }

    /// The leader of the current term, if known.
    pub(crate) fn leader(&self) -> Option<Sid> {
        self.sids.get(&self.raw.raft.leader_id).copied()
    }

    pub(crate) fn commit(&self) -> Index {
        Index(self.raw.raft.raft_log.committed)
    }

    pub(crate) fn last_index(&self) -> Index {
        Index(self.raw.raft.raft_log.last_index())
    }

    /// The last entry that any [`Work`] has listed.
    pub(crate) fn logged(&self) -> Index {
        Index(self.raw.store().last())
    }

    /// The last stored entry.
    pub(crate) fn persisted(&self) -> Index {
        Index(self.raw.raft.raft_log.persisted)
    }

    /// The term of an entry in memory, or of the snapshot.
    pub(crate) fn term_of(&self, index: Index) -> Option<Term> {
        let term = self.raw.raft.raft_log.term(index.0).ok()?;
        (term > 0).then_some(Term(term))
    }

    /// Entries from this one on that the snapshot does not include.
    pub(crate) fn entries_from(&self, index: Index) -> impl Iterator<Item = LogEntry> + '_ {
        self.raw.store().entries_from(index)
    }

    /// Bytes of the entries in memory.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.raw.store().bytes()
    }

    /// Whether this member is a voter.
    pub(crate) fn is_voter(&self) -> bool {
        self.raw.raft.promotable()
    }

    /// Whether this member is the only voter.
    pub(crate) fn is_sole_voter(&self) -> bool {
        self.is_voter() && self.raw.raft.prs().is_singleton()
    }

    /// How far a peer has progressed, if this node tracks it.
    pub(crate) fn progress(&self, sid: Sid) -> Option<PeerProgress> {
        let id = sid.number();
        let tracker = self.raw.raft.prs();
        let progress = tracker.get(id)?;
        Some(PeerProgress {
            matched: Index(progress.matched),
            next: Index(progress.next_idx),
            is_in_snapshot: progress.state == ProgressState::Snapshot,
        })
    }

    /// Whether another known server's id begins with the same half, or the half is zero.
    pub(crate) fn collides(&self, sid: Sid) -> bool {
        let id = sid.number();
        id == 0 || self.sids.get(&id).is_some_and(|known| *known != sid)
    }
}

fn conf_change(sid: Sid, is_added: bool, is_learner: bool) -> ConfChange {
    let mut change = ConfChange {
        node_id: sid.number(),
        ..ConfChange::default()
    };
    change.set_change_type(match (is_added, is_learner) {
        (true, false) => ConfChangeType::AddNode,
        (true, true) => ConfChangeType::AddLearnerNode,
        (false, _) => ConfChangeType::RemoveNode,
    });
    change
}

/// Whether an entry changes the voters, judging by its text.
fn changes_voters(body: &EntryBody) -> bool {
    let text = body.text();
    if text.starts_with(b"\"servers\":") {
        return true;
    }
    if body.is_empty() || body.is_own_form() {
        return false;
    }
    body.parse(Term(1), Index(1))
        .is_ok_and(|entry| entry.servers.is_some())
}

/// The library's form of an entry.
fn raft_entry(entry: &LogEntry) -> Entry {
    let mut raft = Entry {
        term: entry.term.0,
        index: entry.index.0,
        ..Entry::default()
    };
    if changes_voters(&entry.body) {
        raft.set_entry_type(EntryType::EntryConfChange);
        raft.context = entry.body.text().clone();
    } else {
        raft.data = entry.body.text().clone();
        // The library passes the context on with the entry.
        raft.context = entry.body.result().clone();
    }
    raft
}

#[cfg(test)]
mod tests;
