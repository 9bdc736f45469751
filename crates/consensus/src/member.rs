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
//! | `opened.rs` | the file's contents as the member begins with them |
//! | `requests.rs` | the requests of the database, proposals that wait |
//! | `peer.rs`, `addresses.rs` | the other members: their messages and connections, their names |
//! | `turn.rs` | what the algorithm wants done: records, messages, committed entries |
//! | `remarks.rs` | remarks in the log about messages that have no effect |
//! | `catching_up.rs` | whether the contents are those of the cluster, so that `_Server` may say `connected` |
//! | `view.rs` | changes of role, term and leader: what the database, `_Server` and the log are told |
//! | `log_file.rs`, `records.rs`, `rewrite.rs`, `storing.rs` | what the file has, and what waits for it |
//! | `ticker.rs` | ticks and election timeouts |
//! | `lease.rs` | how long a leader leads without a majority |
//! | `commit_notice.rs` | when followers learn of commits |
//! | `succession.rs` | elections before the timeout, when the leader's process is gone |
//! | `forwarding.rs` | transactions that followers send to the leader |
//! | `membership.rs`, `joining.rs`, `leaving.rs` | lists of members and their changes |
//! | `sending.rs`, `receiving.rs` | snapshots for members that are far behind |
//! | `recent.rs`, `search.rs` | recent entries, for members whose snapshot does not tell which entries it contains |
//! | `repairing.rs` | damaged files, which a snapshot of the leader replaces |
//! | `attention.rs` | members that are silent or stand still |
//! | `failure.rs` | members that must not take part any more |
//! | `commands.rs` | operators' commands, handing the leadership over |
//! | `rehearsal.rs` | failures that are provoked |
//!
//! Invariant: a message leaves only after the records that it promises are stored ([`Input::Storage`]). Called by the server and the
//! simulator. It must not know sockets, files or clocks.

mod absence;
mod addresses;
mod attention;
mod catching_up;
mod commands;
mod commit_notice;
mod failure;
mod forwarding;
mod input;
mod joining;
mod lease;
mod leaving;
mod log_file;
mod membership;
mod opened;
mod opening;
mod output;
mod peer;
mod receiving;
mod recent;
mod records;
mod rehearsal;
mod remarks;
mod repairing;
mod requests;
mod rewrite;
mod search;
mod sending;
mod settings;
mod status;
mod storing;
mod succession;
mod ticker;
mod turn;
mod view;

use std::collections::{BTreeMap, VecDeque};

use corvid_log::cluster::{Cid, Eid, Index, Sid, Term};
use corvid_log::storage::StorageReply;
use corvid_rpc::Level;

pub use absence::Absence;
pub use input::{Command, CommandToken, Input, Rehearsal};
pub use output::{Output, Repeated, Rewrite, ServerRow};
pub use settings::{KeptEntries, Recovered, Repair, Settings};
pub use status::{Connected, FileState, PeerStatus, Phase, Role, Status};

use crate::database::Proposal;
use crate::message::{CHUNK_BYTES_MAX, PeerMessage};
use crate::raft_node::RaftNode;
use attention::Attention;
use catching_up::CatchingUp;
use commit_notice::CommitNotice;
use failure::Failure;
use forwarding::Forwarding;
use lease::Lease;
use log_file::LogFile;
use membership::{Departing, Joining, Leaving, Membership, Transfer};
use opened::Opened;
use peer::Peer;
use receiving::Receiving;
use recent::Recent;
use repairing::Repairing;
use search::Search;
use sending::Sending;
use succession::Succession;
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
    lease: Lease,
    file: LogFile,
    membership: Membership,
    forwarding: Forwarding,
    joining: Option<Joining>,
    repairing: Option<Repairing>,
    leaving: Option<Leaving>,
    departing: Option<Departing>,
    transfer: Option<Transfer>,
    /// The leader's process is gone.
    succession: Option<Succession>,
    /// Snapshots on their way to peers.
    sending: BTreeMap<Sid, Sending>,
    chunk_bytes: usize,
    /// A snapshot on its way from the leader.
    receiving: Option<Receiving>,
    recent: Recent,
    /// The database wants to know which entries are in the snapshot that was installed.
    searching: Option<Search>,
    /// Index, term and eid of the snapshot in the file; index 0: none.
    snapshot: (Index, Term, Eid),
    /// Peers with a connection, and when their last message came.
    peers: BTreeMap<Sid, Peer>,
    /// A server was refused because there are too many peers; one line is enough.
    are_peers_refused: bool,
    view: View,
    attention: Attention,
    catching_up: CatchingUp,
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
    notice: CommitNotice,
    next_rewrite_ms: u64,
    rehearsal: Rehearsal,
    /// No snapshot is made for a damaged member before.
    next_snapshot_ms: u64,
    /// The member cannot take part any more.
    failure: Option<Failure>,
    has_left: bool,
    is_dirty: bool,
    outputs: VecDeque<Output>,
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
            lease: Lease::default(),
            file,
            membership: Membership::new(opened.servers),
            forwarding,
            joining: opened.remotes.map(|remotes| Joining {
                remotes,
                next_ms: now_ms,
            }),
            repairing: opened.repair.map(|last| Repairing::new(last, now_ms)),
            leaving: None,
            departing: None,
            transfer: None,
            succession: None,
            sending: BTreeMap::new(),
            chunk_bytes: CHUNK_BYTES_MAX,
            receiving: None,
            recent: Recent::new(opened.snapshot.0),
            searching: None,
            snapshot: opened.snapshot,
            peers: BTreeMap::new(),
            are_peers_refused: false,
            view: View::new(now_ms),
            attention: Attention::new(now_ms),
            catching_up: CatchingUp::new(!is_recording),
            applied: mark.commit,
            last_eid: opened.last_eid,
            held: VecDeque::new(),
            next_timer_ms: None,
            commit_before: Index(0),
            notice: CommitNotice::new(),
            next_rewrite_ms: u64::MAX,
            rehearsal: Rehearsal::None,
            next_snapshot_ms: 0,
            failure: None,
            has_left: false,
            is_dirty: true,
            outputs: VecDeque::new(),
            settings,
        };
        for (index, list) in opened.lists {
            member.membership.committed(index, list);
        }
        let committed = opened.opening.entries.iter();
        for entry in committed.take_while(|entry| entry.index <= mark.commit) {
            let commit = entry.body.as_commit();
            member
                .recent
                .committed(entry.index, commit.map(|(eid, _)| eid));
        }
        member.node.applied(mark.commit);
        member.repair_began();
        if let Some((unfit, reason)) = opened.unfit {
            member.fail_again(unfit, &reason);
        } else if let Some(reason) = failure {
            member.fail(&reason);
        } else if opened.was_removed {
            member.departure_resumed();
        } else if member.node.is_sole_voter() {
            member.view.election_began(now_ms, false);
            member.node.campaign();
            // As the reference, whose timer has run since the machine started.
            let term = member.node.term();
            let text =
                format!("term {term}: {now_ms} ms timeout expired, starting election (vote)");
            member.log_repeated(Level::Info, Repeated::Timeout, text);
        }
        member
    }

    /// Sends snapshots in chunks of so many bytes, at most [`CHUNK_BYTES_MAX`]: tests make them small.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        self.chunk_bytes = bytes.clamp(1, CHUNK_BYTES_MAX);
    }

    /// Handles one input. `now_ms` never decreases; its origin is arbitrary.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.has_left {
            // It has nothing to hand over any more.
            if let Input::Command {
                token,
                command: Command::Shutdown,
            } = input
            {
                let reply = Ok(String::new());
                self.outputs.push_back(Output::CommandDone(token, reply));
            }
            return;
        }
        self.is_dirty = true;
        match input {
            Input::Time => self.time(),
            Input::Database(request) => self.database(request),
            Input::Peer { from, message } => self.message(from, message),
            Input::PeerUp(sid) => self.peer_up(sid),
            Input::PeerDown(sid) => self.peer_down(sid),
            Input::PeerRefused(sid) => self.peer_refused(sid),
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
            Input::FileDamaged => self.file_damaged(),
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
            self.notice.due_ms,
            self.joining.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.repairing.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.leaving.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.transfer.as_ref().map_or(u64::MAX, |it| it.until_ms),
            self.succession.as_ref().map_or(u64::MAX, |it| it.next_ms),
            self.searching.as_ref().map_or(u64::MAX, |it| it.next_ms),
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
        self.rewrite_time();
        if self.forwarding.deadline_ms() <= now_ms {
            self.resend_forwards();
        }
        self.joining_time();
        self.repairing_time();
        self.leaving_time();
        self.transfer_time();
        self.succession_time();
        self.searching_time();
        self.sending_time();
        self.attention_time();
    }

    fn tick(&mut self) {
        let was_leader = self.node.is_leader();
        if self.node.tick() && !was_leader {
            self.draw_timeout();
            self.view.timeout_fired(self.now_ms);
            self.log_election();
        }
        self.lease_tick(was_leader);
        self.node.forget_known();
        self.commit_before = self.node.commit();
    }

    /// Draws a new election timeout.
    fn draw_timeout(&mut self) {
        let ticks = self.ticker.draw();
        self.node.set_timeout(ticks);
    }

    fn send(&mut self, to: Sid, message: PeerMessage) {
        if to != self.settings.sid {
            self.notice.sent(to, &message);
            self.log_sent(to, &message);
            self.outputs.push_back(Output::Send { to, message });
        }
    }

    fn log(&mut self, level: Level, text: String) {
        self.outputs.push_back(Output::Log(level, None, text));
    }

    /// Logs a line of a kind whose rate is limited.
    fn log_repeated(&mut self, level: Level, kind: Repeated, text: String) {
        self.outputs.push_back(Output::Log(level, Some(kind), text));
    }

    fn snapshot_index(&self) -> Index {
        self.snapshot.0
    }

    /// The file has another snapshot now.
    fn new_snapshot(&mut self, index: Index, term: Term, eid: Eid) {
        self.snapshot = (index, term, eid);
        self.node.set_snapshot(index, term);
        self.node
            .compact(index.min(self.applied), self.settings.kept);
        self.membership.compact(index);
        self.sendings_restart();
    }
}
