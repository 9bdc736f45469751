//! One member of a clustered database: inputs are handled in order, each may yield outputs.
//!
//! ```text
//! loop {
//!     member.handle(now_ms, input);           // several inputs that are there already may be handled before the outputs are taken:
//!     while let Some(output) = member.next_output() { .. }       // what they propose is stored and sent together
//!     wait for an input, or until member.deadline_ms(), then handle Input::Time
//! }
//! ```
//!
//! | File | Owns |
//! |---|---|
//! | `input.rs`, `output.rs`, `settings.rs`, `status.rs` | the interface |
//! | `turn.rs` | what the algorithm wants done: records, messages, committed entries |
//! | `view.rs` | changes of role, term and leader: what the database, `_Server` and the log are told |
//! | `log_file.rs`, `records.rs`, `rewrite.rs` | what the file has, and what waits for it |
//! | `ticker.rs` | ticks and election timeouts |
//! | `forwarding.rs` | transactions that followers send to the leader |
//! | `membership.rs`, `joining.rs`, `leaving.rs` | lists of members and their changes |
//! | `sending.rs`, `receiving.rs` | snapshots for members that are far behind |
//! | `commands.rs` | operators' commands, handing the leadership over |
//!
//! Invariant: a message leaves only after the records that it promises are stored ([`Input::Storage`]). Called by the server and the
//! simulator. It must not know sockets, files or clocks.

mod commands;
mod forwarding;
mod input;
mod joining;
mod leaving;
mod log_file;
mod membership;
mod output;
mod receiving;
mod records;
mod rewrite;
mod sending;
mod settings;
mod status;
mod ticker;
mod turn;
mod view;

use std::collections::{BTreeMap, VecDeque};

use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StorageReply, StorageRequest, StoreError};
use corvid_rpc::Level;

pub use input::{Command, CommandToken, Input};
pub use output::{Output, Rewrite, ServerRow};
pub use settings::{Recovered, Settings};
pub use status::{Connected, PeerStatus, Phase, Role, Status};

use crate::database::{MemberRequest, Proposal};
use crate::entry::EntryBody;
use crate::guard::{self, GuardView, Reaction};
use crate::message::PeerMessage;
use crate::peers::DialTarget;
use crate::raft_node::{LogEntry, Opening, RaftNode};
use forwarding::Forwarding;
use log_file::{LogFile, Mark, Trouble};
use membership::{Departing, Joining, Leaving, Membership, Transfer};
use receiving::Receiving;
use sending::Sending;
use ticker::Ticker;
use view::View;

/// See the module.
#[derive(Debug)]
pub struct Member {
    settings: Settings,
    cid: Option<Cid>,
    now_ms: u64,
    node: RaftNode,
    ticker: Ticker,
    file: LogFile,
    membership: Membership,
    forwarding: Forwarding,
    joining: Option<Joining>,
    leaving: Option<Leaving>,
    departing: Option<Departing>,
    transfer: Option<Transfer>,
    /// Snapshots on their way to peers.
    sending: BTreeMap<Sid, Sending>,
    /// A snapshot on its way from the leader.
    receiving: Option<Receiving>,
    /// Index, term and eid of the snapshot in the file; index 0: none.
    snapshot: (Index, Term, Eid),
    /// Peers with a connection, and when their last message came.
    peers: BTreeMap<Sid, Peer>,
    view: View,
    /// The last entry that the database has applied.
    applied: Index,
    /// The last entry with data that was handed to the database.
    last_eid: Eid,
    /// Proposals that the algorithm does not accept at present, in order.
    held: VecDeque<Proposal>,
    /// The timer of an entry that is proposed and not committed.
    next_timer_ms: Option<u64>,
    /// The commit index at the last heartbeat: who has it is not behind.
    commit_before: Index,
    next_rewrite_ms: u64,
    /// The member cannot take part any more; the text says why.
    failure: Option<String>,
    has_left: bool,
    is_dirty: bool,
    outputs: VecDeque<Output>,
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    is_up: bool,
    last_message_ms: Option<u64>,
    voted_for: Option<Sid>,
}

impl Member {
    /// A member as its file describes it. `seed` decides its election timeouts.
    #[must_use]
    pub fn new(settings: Settings, recovered: Recovered, now_ms: u64, seed: u64) -> Member {
        let opened = Opened::new(&settings, recovered);
        let mut ticker = Ticker::new(opened.timer_ms, now_ms, seed);
        let timeout = ticker.draw();
        let forwarding = Forwarding::new(ticker.random(u64::MAX));
        let mark = opened.mark;
        let (node, failure) = match RaftNode::new(&opened.opening, timeout) {
            Ok(node) => (node, opened.failure),
            Err(error) => (RaftNode::empty(settings.sid, timeout), Some(error)),
        };
        let is_recording = opened.snapshot.0 > Index(0);
        let file = LogFile::new(settings.sid, is_recording, opened.position, mark);
        let mut member = Member {
            cid: opened.cid,
            now_ms,
            node,
            ticker,
            file,
            membership: Membership::new(opened.servers),
            forwarding,
            joining: opened.remotes.map(|remotes| Joining {
                remotes,
                next_ms: now_ms,
            }),
            leaving: None,
            departing: None,
            transfer: None,
            sending: BTreeMap::new(),
            receiving: None,
            snapshot: opened.snapshot,
            peers: BTreeMap::new(),
            view: View::new(now_ms),
            applied: mark.commit,
            last_eid: opened.last_eid,
            held: VecDeque::new(),
            next_timer_ms: None,
            commit_before: Index(0),
            next_rewrite_ms: u64::MAX,
            failure: None,
            has_left: false,
            is_dirty: true,
            outputs: VecDeque::new(),
            settings,
        };
        for (index, list) in opened.lists {
            member.membership.committed(index, list);
        }
        member.node.applied(mark.commit);
        if let Some(reason) = failure {
            member.fail(&reason);
        } else if opened.was_removed {
            member.finish_leaving();
        } else if member.node.is_sole_voter() {
            member.view.election_began(now_ms, false);
            member.node.campaign();
        }
        member
    }

    /// Handles one input. `now_ms` never decreases; its origin is arbitrary.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.has_left {
            return;
        }
        self.is_dirty = true;
        match input {
            Input::Time => self.time(),
            Input::Database(request) => self.database(request),
            Input::Peer { from, message } => self.message(from, message),
            Input::PeerUp(sid) => self.peer_up(sid),
            Input::PeerDown(sid) => self.peer_down(sid),
            Input::LearnedCluster(cid) => self.cid = self.cid.or(Some(cid)),
            Input::Storage(StorageReply::Appended(position, Ok(()))) => self.release(position),
            Input::Storage(StorageReply::Appended(position, Err(error))) => {
                if !self.file.is_obsolete(position) {
                    self.append_failed(&error);
                }
            }
            Input::Storage(StorageReply::Rewrite(number, outcome)) => {
                self.rewrite_stage(number, outcome);
            }
            Input::FilePoisoned => self.file_poisoned(),
            Input::SnapshotRead {
                to,
                index,
                offset,
                bytes,
            } => self.snapshot_read(to, index, offset, bytes),
            Input::SnapshotWritten { index, end } => self.snapshot_written(index, end),
            Input::SnapshotInstalled { index, outcome } => self.snapshot_installed(index, outcome),
            Input::SnapshotMade { index, eid } => self.snapshot_made(index, eid, None),
            Input::Command { token, command } => self.command(token, command),
        }
    }

    /// The next output, to be carried out before the ones behind it. `None`: the member waits for an input.
    pub fn next_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() && self.is_dirty {
            self.is_dirty = false;
            self.turn();
        }
        self.outputs.pop_front()
    }

    /// When [`Input::Time`] is due, if nothing else comes before.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        if self.has_left {
            return u64::MAX;
        }
        [
            self.ticker.next_ms(),
            self.file.deadline_ms(),
            self.forwarding.deadline_ms(),
            self.next_rewrite_ms,
            self.joining.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.leaving.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.transfer.as_ref().map_or(u64::MAX, |it| it.until_ms),
        ]
        .into_iter()
        .min()
        .unwrap_or(u64::MAX)
    }

    fn time(&mut self) {
        let now_ms = self.now_ms;
        if self.failure.is_none() && !self.is_installing() {
            for _ in 0..self.ticker.due(now_ms) {
                self.tick();
            }
        } else {
            self.ticker.due(now_ms);
        }
        let mut requests = Vec::new();
        self.file.retry(now_ms, &self.node, &mut requests);
        self.request(requests);
        if self.next_rewrite_ms <= now_ms {
            self.next_rewrite_ms = u64::MAX;
            if self.is_poisoned() {
                self.outputs.push_back(Output::MakeSnapshot);
            }
        }
        if self.forwarding.deadline_ms() <= now_ms {
            self.resend_forwards();
        }
        self.joining_time();
        self.leaving_time();
        self.transfer_time();
        self.sending_time();
    }

    fn tick(&mut self) {
        let was_leader = self.node.is_leader();
        if self.node.tick() && !was_leader {
            let ticks = self.ticker.draw();
            self.node.set_timeout(ticks);
            self.view.timeout_fired(self.now_ms);
            self.log_election();
        }
        self.commit_before = self.node.commit();
    }

    fn database(&mut self, request: MemberRequest) {
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
            MemberRequest::Applied(index) => self.applied = self.applied.max(index),
            MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
            } => self.snapshot_made(index, eid, Some((token, snapshot))),
        }
    }

    /// Proposes what waits, in one step. Proposals that the algorithm does not accept now go on waiting.
    fn propose_held(&mut self) {
        // The leadership of a member that was removed ends: what it proposes now may be lost.
        if self.held.is_empty() || self.departing.is_some() {
            return;
        }
        let bodies = self
            .held
            .iter()
            .map(|proposal| EntryBody::commit(proposal.eid, &proposal.data))
            .collect();
        if self.node.propose(bodies) {
            self.held.clear();
        }
    }

    fn message(&mut self, from: Sid, message: PeerMessage) {
        if self.failure.is_some() {
            return;
        }
        let peer = self.peers.entry(from).or_default();
        peer.last_message_ms = Some(self.now_ms);
        let view = GuardView {
            sid: self.settings.sid,
            term: self.node.term(),
            leader: self.node.leader(),
            last_index: self.node.last_index(),
            persisted: self.node.persisted(),
        };
        if let Err(refusal) = guard::check(from, &message, &view) {
            match refusal.reaction() {
                Reaction::Reset => self.outputs.push_back(Output::Refuse {
                    from,
                    reason: refusal.to_string(),
                }),
                Reaction::Drop => {
                    let level = match refusal {
                        guard::Refusal::SecondLeader { .. } => Level::Error,
                        _ => Level::Debug,
                    };
                    self.log(level, refusal.to_string());
                }
                Reaction::Stop => self.fail(&refusal.to_string()),
            }
            return;
        }
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
            PeerMessage::AddServer { address, name } => self.add_server(from, &address, &name),
            PeerMessage::AddServerReply {
                is_success,
                comment,
                remote_addresses,
            } => self.add_server_reply(from, is_success, &comment, remote_addresses),
            PeerMessage::RemoveServer { server_id, is_kick } => {
                self.remove_server(from, server_id, is_kick);
            }
            PeerMessage::RemoveServerReply {
                is_success,
                target,
                comment,
            } => self.remove_server_reply(from, is_success, target, &comment),
            PeerMessage::NotMember { term } => self.not_member(from, term),
            message => self.algorithm_message(from, message),
        }
    }

    /// A message of the algorithm.
    fn algorithm_message(&mut self, from: Sid, message: PeerMessage) {
        if self.is_installing() {
            return;
        }
        if let PeerMessage::Vote { .. } = &message
            && self.tell_not_member(from)
        {
            return;
        }
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
        self.node.step(from, message);
    }

    fn peer_up(&mut self, sid: Sid) {
        self.peers.entry(sid).or_default().is_up = true;
        self.node.unreachable(sid);
        self.sending_interrupted(sid);
        if self.node.leader() == Some(sid) {
            self.receiving_resumed(sid);
            self.resend_forwards();
        }
        if let Some(joining) = &mut self.joining {
            joining.next_ms = self.now_ms;
            self.joining_time();
        }
    }

    fn peer_down(&mut self, sid: Sid) {
        if let Some(peer) = self.peers.get_mut(&sid) {
            peer.is_up = false;
        }
        self.node.unreachable(sid);
        self.sending_interrupted(sid);
        self.joiner_down(sid);
    }

    fn is_up(&self, sid: Sid) -> bool {
        self.peers.get(&sid).is_some_and(|peer| peer.is_up)
    }

    /// Records through this position are stored.
    fn release(&mut self, position: LogPosition) {
        if self.file.trouble != Trouble::None && self.file.trouble != Trouble::Poisoned {
            if !self.file.is_waiting() {
                return;
            }
            self.file.trouble = Trouble::None;
            let text = "the file takes records again: this member has stored what was missing";
            self.log(Level::Info, text.to_owned());
        }
        let stored = self.file.answered(position);
        if let Some(number) = stored.number {
            self.node.stored(number);
        }
        self.send_all(stored.messages);
        // Records that were made while the file was in trouble.
        let mut requests = Vec::new();
        let number = self.file.catch_up(&self.node, &mut requests);
        self.request(requests);
        if let Some(number) = number {
            self.node.stored(number);
        }
    }

    fn append_failed(&mut self, error: &StoreError) {
        let is_swapping = |it: &rewrite::Rewriting| it.stage == rewrite::Stage::Swapping;
        if !self.is_poisoned()
            && let Some(rewriting) = self.file.rewriting.take_if(|it| !is_swapping(it))
        {
            self.give_up_rewrite(&rewriting);
        }
        if !self.file.failed(self.now_ms) {
            return;
        }
        self.log(
            Level::Error,
            format!(
                "{}: {}; this member acknowledges nothing until the file takes records again, which is tried until it succeeds: \
                 check the disk",
                error.details, error.io_error
            ),
        );
        self.hand_over_leadership();
    }

    fn request(&mut self, requests: Vec<StorageRequest>) {
        if !requests.is_empty() {
            self.outputs.push_back(Output::Store(requests));
        }
    }

    fn send(&mut self, to: Sid, message: PeerMessage) {
        if to != self.settings.sid {
            self.outputs.push_back(Output::Send { to, message });
        }
    }

    fn log(&mut self, level: Level, text: String) {
        self.outputs.push_back(Output::Log(level, text));
    }

    /// This member cannot take part any more.
    fn fail(&mut self, reason: &str) {
        let text = format!(
            "{reason}. This member does not vote or serve any more: remove it from the cluster (cluster/kick at another member), remove \
             its file, and join the cluster again"
        );
        self.log(Level::Error, text.clone());
        self.failure = Some(text.clone());
        self.outputs.push_back(Output::Failed(text));
    }

    fn snapshot_index(&self) -> Index {
        self.snapshot.0
    }

    /// The file has another snapshot now.
    fn new_snapshot(&mut self, index: Index, term: Term, eid: Eid) {
        self.snapshot = (index, term, eid);
        self.node.set_snapshot(index, term);
        self.node.compact(index.min(self.applied));
        self.membership.compact(index);
        self.sendings_restart();
    }

    /// The name of a server in log lines.
    fn name_of(&self, sid: Sid) -> String {
        let address = self.membership.address(sid).unwrap_or_default();
        nickname(sid, address)
    }

    fn dial_targets(&self) -> Vec<DialTarget> {
        let own = self.settings.sid;
        let servers = self
            .membership
            .servers()
            .into_iter()
            .flat_map(Servers::iter);
        let mut targets: Vec<DialTarget> = servers
            .filter(|(sid, _)| *sid != own)
            .map(|(sid, address)| DialTarget {
                address: address.to_owned(),
                sid: Some(sid),
            })
            .collect();
        for (sid, joiner) in &self.membership.joiners {
            targets.push(DialTarget {
                address: joiner.address.clone(),
                sid: Some(*sid),
            });
        }
        let remotes = self.joining.iter().flat_map(|joining| &joining.remotes);
        for address in remotes {
            let is_known = targets.iter().any(|target| target.address == *address);
            if !is_known && *address != self.settings.address {
                targets.push(DialTarget {
                    address: address.clone(),
                    sid: None,
                });
            }
        }
        targets
    }
}

/// How logs and `cluster/status` name a server (docs/spec/distribution.md 1.1).
#[must_use]
pub fn nickname(sid: Sid, address: &str) -> String {
    match address.strip_prefix("unix:") {
        Some(path) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            file.split('.').next().unwrap_or(file).to_owned()
        }
        None => sid.to_string(),
    }
}

/// The contents of a file, taken apart.
struct Opened {
    cid: Option<Cid>,
    snapshot: (Index, Term, Eid),
    opening: Opening,
    mark: Mark,
    servers: Option<(Index, Servers)>,
    /// Lists in committed entries.
    lists: Vec<(Index, Servers)>,
    timer_ms: u64,
    last_eid: Eid,
    position: LogPosition,
    remotes: Option<Vec<String>>,
    was_removed: bool,
    failure: Option<String>,
}

impl Opened {
    fn new(settings: &Settings, recovered: Recovered) -> Opened {
        let own = settings.sid;
        let none = Eid(corvid_data::Uuid::ZERO);
        let mut timer_ms = corvid_log::cluster::ELECTION_TIMER_DEFAULT_MS;
        let mut last_eid = none;
        let mut snapshot = (Index(0), Term(0), none);
        let mut servers = None;
        if let Some(meta) = recovered.snapshot {
            timer_ms = meta.election_timer_ms;
            last_eid = meta.eid;
            snapshot = (meta.index, meta.term, meta.eid);
            servers = Some((meta.index, meta.servers));
        }
        let mut lists = Vec::new();
        let mut is_listed_later = false;
        for entry in &recovered.entries {
            let is_committed = entry.index <= recovered.commit;
            if let Some(list) = &entry.servers {
                is_listed_later |= !is_committed && list.contains(own);
                if is_committed {
                    lists.push((entry.index, list.clone()));
                }
            }
            if is_committed {
                timer_ms = entry.election_timer_ms.unwrap_or(timer_ms);
                if let Some(payload) = &entry.payload {
                    last_eid = payload.eid;
                }
            }
        }
        let last_list = lists.last().or(servers.as_ref()).map(|(_, list)| list);
        let is_member = last_list.is_some_and(|list| list.contains(own));
        let all_lists = servers.iter().chain(&lists);
        let was_member = all_lists.clone().any(|(_, list)| list.contains(own));
        let voters =
            last_list.map_or_else(Vec::new, |list| list.iter().map(|(sid, _)| sid).collect());
        let remotes = if is_member || was_member && !is_listed_later {
            None
        } else if recovered.remote_addresses.is_empty() {
            // Its file has a snapshot, but no committed list has this server yet.
            let addresses = last_list.into_iter().flat_map(Servers::iter);
            Some(addresses.map(|(_, address)| address.to_owned()).collect())
        } else {
            Some(recovered.remote_addresses)
        };
        let entries: Vec<LogEntry> = recovered
            .entries
            .iter()
            .map(|entry| LogEntry {
                term: entry.term,
                index: entry.index,
                body: EntryBody::of(entry),
            })
            .collect();
        let last = entries.last().map_or(snapshot.0, |entry| entry.index);
        let commit = recovered.commit.max(snapshot.0);
        let failure = (commit > last)
            .then(|| format!("the file commits entry {commit}, but its log ends at {last}"));
        let commit = commit.min(last);
        Opened {
            cid: recovered.cid,
            snapshot,
            mark: Mark {
                hard: (recovered.term, recovered.vote),
                last,
                commit,
            },
            opening: Opening {
                sid: own,
                snapshot: (snapshot.0, snapshot.1),
                entries,
                term: recovered.term,
                vote: recovered.vote,
                commit,
                voters,
            },
            servers,
            lists,
            timer_ms,
            last_eid,
            position: recovered.position,
            was_removed: was_member && !is_member && !is_listed_later,
            remotes,
            failure,
        }
    }
}
