//! One member of a clustered database: it handles inputs in order, and each may yield outputs.
//!
//! ```text
//! loop {
//!     // Inputs that are already there may all be handled before the outputs are taken:
//!     // what they propose is then stored and sent together.
//!     member.handle(now_ms, input);
//!     while let Some(output) = member.next_output() { .. }
//!     wait for an input, or until member.deadline_ms(), then handle Input::Time
//! }
//! ```
//!
//! ```text
//!  Input  -->  Member: the route of each input
//!                |      |         |        |           |            |
//!            Election  Disk    Roster  Snapshots  Forwarding     Commits     parts, which own
//!                |      |         |        |           |            |        their fields
//!                \______\_________\________\___________\___________/
//!                       Context: identity, time, algorithm, peers, outputs   -->  Output
//! ```
//!
//! Each file, what it owns, and what it must not know:
//!
//! - `election.rs`: when this member stands for election, how long it leads, leadership transfers,
//!   what others are told of its role. Not: the file, snapshots, transactions.
//! - `disk.rs`: the file: records in flight, what is stored, rewriting, repair. Not: who is a
//!   member, elections.
//! - `roster.rs`: lists of members, joining, leaving. Not: contents of snapshots, transactions,
//!   elections except the lease.
//! - `snapshots.rs`: snapshots sent and received, which entries one contains. Not: elections,
//!   transactions except their ids and outcomes.
//! - `forwarding.rs`: transactions that followers send to the leader. Not: the file, snapshots,
//!   lists of members.
//! - `commits.rs`: proposals, what is committed and applied, when followers learn of it. Not: the
//!   file, lists of members.
//! - `context.rs`, `outbox.rs`, `peers.rs`, `failure.rs`: the surroundings of every part. Not: the
//!   parts.
//! - `attention.rs`: detecting members that are silent or fall behind. Not: how that is remedied.
//! - `turn.rs`, `messages.rs`, `commands.rs`: routing: which parts an input, or work of the
//!   algorithm, concerns, and in which order. Not: how a part does it.
//! - `input.rs`, `output.rs`, `settings.rs`, `status.rs`: the interface.
//! - `opened.rs`, `opening.rs`: the file's contents as the member starts with them.
//! - `remarks.rs`, `report.rs`: lines for the log and the report for operators; they change
//!   nothing.
//!
//! A part changes its own fields and the context. It gets what it needs from another part as an
//! argument, and returns its decisions that concern another part. One exception: the roster is lent
//! the file (`disk/log_file.rs`) and writes to it.
//!
//! Invariant: a message leaves only after the records that it promises are stored
//! ([`Input::Storage`]). The server and the simulator call this module. It must not know sockets,
//! files or clocks.

mod attention;
mod commands;
mod commits;
mod context;
mod disk;
mod election;
mod failure;
mod forwarding;
mod input;
mod messages;
mod opened;
mod opening;
mod outbox;
mod output;
mod peers;
mod remarks;
mod report;
mod roster;
mod settings;
mod snapshots;
mod status;
mod turn;

use corvid_log::cluster::{Index, Term};
use corvid_log::storage::{RewriteNumber, RewriteStage, StorageReply, StoreError};

pub use input::{Command, CommandToken, Input, Rehearsal};
pub use output::{Absence, Output, Repeated, Rewrite, ServerRow};
pub use settings::{KeptEntries, Recovered, Repair, Settings};
pub use status::{Connected, FileState, PeerStatus, Phase, Role, Status};

use crate::database::MemberEvent;
use crate::raft_node::RaftNode;
use attention::{Attention, OwnLog};
use commits::Commits;
use context::Context;
use disk::log_file::LogFile;
use disk::rewrite::{Made, Progress};
use disk::{Disk, StoredSnapshot};
use election::Election;
use election::ticker::Ticker;
use failure::Failure;
use forwarding::Forwarding;
use opened::Opened;
use outbox::Outbox;
use peers::PeerTable;
use roster::Roster;
use snapshots::Snapshots;
use snapshots::receiving::{self, Installed};
use snapshots::sending::Part;

/// One member of a clustered database.
#[derive(Debug)]
pub struct Member {
    cx: Context,
    election: Election,
    disk: Disk,
    roster: Roster,
    snapshots: Snapshots,
    forwarding: Forwarding,
    commits: Commits,
    attention: Attention,
    /// Whether an input has been handled since the last turn.
    is_dirty: bool,
}

impl Member {
    /// Starts a member in the state that its file describes. `seed` determines its election
    /// timeouts.
    #[must_use]
    pub fn new(settings: Settings, recovered: Recovered, now_ms: u64, seed: u64) -> Member {
        let own = settings.sid;
        let opened = Opened::new(&settings, recovered);
        let mut ticker = Ticker::new(opened.timer_ms, now_ms, seed);
        let timeout = ticker.draw();
        let forwarding = Forwarding::new(ticker.random(u64::MAX));
        let mark = opened.mark;
        let (node, failure) = match RaftNode::new(&opened.opening, timeout) {
            Ok(node) => (node, opened.failure),
            Err(error) => (RaftNode::empty(own, timeout), Some(error)),
        };
        let snapshot = opened.snapshot;
        let is_recording = snapshot.index > Index(0);
        let file = LogFile::new(own, is_recording, opened.position, mark);
        let repair = opened
            .repair
            .map(|last| disk::repair::Repair::new(last, now_ms));
        let mut member = Member {
            cx: Context {
                settings,
                cid: opened.cid,
                now_ms,
                node,
                peers: PeerTable::default(),
                failure: None,
                outbox: Outbox::default(),
            },
            election: Election::new(own, ticker, now_ms),
            disk: Disk::new(file, snapshot, repair),
            roster: Roster::new(opened.servers, opened.lists, opened.remotes, now_ms),
            snapshots: Snapshots::new(snapshot.index),
            forwarding,
            commits: Commits::new(mark.commit, opened.last_eid, !is_recording),
            attention: Attention::new(now_ms),
            is_dirty: true,
        };
        // These entries are committed, so other members may ask which ids a snapshot with them
        // contains.
        let entries = opened.opening.entries.iter();
        for entry in entries.take_while(|entry| entry.index <= mark.commit) {
            let eid = entry.body.as_commit().map(|(eid, _)| eid);
            member.snapshots.recent.push(entry.index, eid);
        }
        member.cx.node.applied(mark.commit);
        member.disk.log_repair(&mut member.cx);
        if let Some((unfit, reason)) = opened.unfit {
            member.cx.fail(Failure::noted(unfit, &reason));
        } else if let Some(reason) = failure {
            member.cx.fail(Failure::other(&reason));
        } else if opened.was_removed {
            member.roster.resume_departure(&mut member.cx);
        } else if member.cx.node.is_sole_voter() {
            member.election.stand_alone(&mut member.cx);
        }
        member
    }

    /// Sends snapshots in chunks of this many bytes, at most
    /// [`CHUNK_BYTES_MAX`](crate::message::CHUNK_BYTES_MAX). Tests make them small.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        self.snapshots.sending.set_chunk_bytes(bytes);
    }

    /// Handles one input. `now_ms` is monotonic; its origin is arbitrary.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        // Deadlines are compared with this time, so it never goes back.
        self.cx.now_ms = self.cx.now_ms.max(now_ms);
        if self.roster.has_left() {
            // A member that has left has no leadership to transfer.
            if let Input::Command {
                token,
                command: Command::Shutdown,
            } = input
            {
                self.cx.put(Output::CommandDone(token, Ok(String::new())));
            }
            return;
        }
        self.is_dirty = true;
        match input {
            Input::Time => self.pass_time(),
            Input::Database(request) => self.handle_request(request),
            Input::Peer { from, message } => self.handle_message(from, message),
            Input::PeerUp(sid) => self.connect_peer(sid),
            Input::PeerDown(sid) => self.disconnect_peer(sid),
            Input::PeerRefused(sid) => self.refuse_peer(sid),
            // A server belongs to one cluster for good, so the first id that it learned stays.
            Input::LearnedCluster(cid) => self.cx.cid = self.cx.cid.or(Some(cid)),
            // Messages that promise these records may leave only now.
            Input::Storage(StorageReply::Appended(position, Ok(()))) => self.release(position),
            Input::Storage(StorageReply::Appended(position, Err(error))) => {
                if self.disk.fail_append(&mut self.cx, position, &error) {
                    self.hand_over_leadership();
                }
            }
            Input::Storage(StorageReply::Rewrite(number, outcome)) => {
                self.advance_rewrite(number, outcome);
            }
            Input::FilePoisoned => {
                if self.disk.poison(&mut self.cx) {
                    self.hand_over_leadership();
                }
            }
            Input::FileDamaged => {
                if self.disk.damage(&mut self.cx) {
                    self.hand_over_leadership();
                }
            }
            Input::SnapshotRead {
                to,
                index,
                offset,
                bytes,
            } => {
                let part = Part {
                    index,
                    offset,
                    bytes,
                };
                let (snapshot, timer_ms) = (self.disk.snapshot(), self.election.timer_ms());
                let meta = || {
                    let servers = self.roster.servers_at(snapshot.index)?;
                    Some(snapshot.meta(servers, timer_ms))
                };
                let sending = &mut self.snapshots.sending;
                sending.hear_file(&mut self.cx, &self.roster, to, part, meta);
            }
            Input::SnapshotWritten { index, end } => {
                let receiving = &mut self.snapshots.receiving;
                if receiving.hear_written(&mut self.cx, index, end) {
                    self.install_if_complete();
                }
            }
            Input::SnapshotInstalled { index, outcome } => {
                let receiving = &mut self.snapshots.receiving;
                if let Some(installed) = receiving.hear_installed(&mut self.cx, index, outcome) {
                    self.take_installed(installed);
                }
            }
            Input::SnapshotMade { index, eid } => self.compact(Made {
                index,
                eid,
                contents: None,
            }),
            Input::Command { token, command } => self.handle_command(token, command),
        }
    }

    /// The next output, which must be executed before later ones. `None`: the member waits for an
    /// input.
    pub fn next_output(&mut self) -> Option<Output> {
        if self.cx.outbox.is_empty() && self.is_dirty {
            self.is_dirty = false;
            self.turn();
        }
        self.cx.outbox.take()
    }

    /// When [`Input::Time`] is due, ms, unless another input comes first.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        if self.roster.has_left() {
            return u64::MAX;
        }
        [
            self.election.deadline_ms(),
            self.disk.deadline_ms(),
            self.roster.deadline_ms(),
            self.snapshots.search.deadline_ms(),
            self.forwarding.deadline_ms(),
            self.commits.notice.deadline_ms(),
        ]
        .into_iter()
        .min()
        .unwrap_or(u64::MAX)
    }

    /// The member's role and term, as in [`Member::status`].
    #[must_use]
    pub fn role_and_term(&self) -> (Role, Term) {
        (self.cx.node.role(), self.cx.node.term())
    }

    /// The state for operators.
    #[must_use]
    pub fn status(&self, now_ms: u64) -> Status {
        report::status(self, now_ms)
    }

    fn pass_time(&mut self) {
        let (now_ms, timer_ms) = (self.cx.now_ms, self.election.timer_ms());
        let ticks = self.election.ticker.due(now_ms);
        // Ticks begin elections. A failed member must not take part in one, and during an
        // installation the file that would back a vote is being replaced.
        if !self.cx.has_failed() && !self.snapshots.receiving.is_installing() {
            for _ in 0..ticks {
                self.election.tick(&mut self.cx, &self.roster);
            }
        }
        self.disk.retry(&mut self.cx);
        let is_installing = self.snapshots.receiving.is_installing();
        self.disk.rewrite_time(&mut self.cx, is_installing);
        if self.forwarding.deadline_ms() <= now_ms {
            self.forwarding.resend(&mut self.cx, timer_ms);
        }
        self.roster.joining_time(&mut self.cx);
        let is_receiving = self.snapshots.receiving.is_receiving();
        self.disk.repair_time(&mut self.cx, is_receiving);
        self.continue_leaving();
        self.election.transfer_time(&mut self.cx);
        self.election.succession_time(&mut self.cx);
        let pace = (timer_ms, self.has_leader());
        let (cx, snapshots) = (&mut self.cx, &mut self.snapshots);
        snapshots.search.ask_again(cx, &self.roster, pace);
        snapshots.sending.give_up_late(cx);
        // `continue_leaving` may have ended the membership in this very call.
        if !self.roster.has_left() {
            let own = OwnLog {
                applied: self.commits.applied(),
                received: snapshots.receiving.progress().map_or(0, |(bytes, _)| bytes),
                is_there: !self.roster.is_joining() && !self.disk.is_repairing(),
            };
            let (roster, sending) = (&self.roster, &snapshots.sending);
            self.attention
                .look(cx, &self.election, roster, own, sending);
        }
    }

    /// A new file has reached a stage.
    fn advance_rewrite(
        &mut self,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) {
        // Work that the algorithm has found so far must be in the journal before it is taken.
        self.work();
        match self.disk.advance_rewrite(&mut self.cx, number, outcome) {
            Progress::None => {}
            Progress::InPlace(snapshot) => self.take_compaction(snapshot),
            Progress::Lasting { position, token } => {
                // Release first: promises that waited for the swap leave before the database can
                // ask for another rewrite.
                self.release(position);
                self.disk.end_rewrite(&mut self.cx, token);
            }
        }
    }

    /// Installs the leader's snapshot, if all of it has arrived.
    fn install_if_complete(&mut self) {
        if let Some(hard) = self.snapshots.receiving.complete(&mut self.cx) {
            // Work that the algorithm has found so far belongs to the old file.
            self.work();
            self.snapshots.receiving.install(&mut self.cx, hard);
        }
    }

    /// The file now holds a snapshot from the leader: every part restarts after that snapshot.
    fn take_installed(&mut self, installed: Installed) {
        let Installed { from, meta, hard } = installed;
        let (index, term, eid) = (meta.index, meta.term, meta.eid);
        let snapshot = StoredSnapshot { index, term, eid };
        // The disk part first: from here on the old file's requests and failures do not count.
        self.disk.replace(&mut self.cx, snapshot, hard);
        // Only now does a crash lead to the snapshot, so only now may the algorithm see it.
        receiving::show(&mut self.cx, from, &meta);
        self.roster.restart(index, meta.servers);
        self.commits.restart(index, eid);
        self.snapshots.recent.restart(index);
        let timer_ms = meta.election_timer_ms;
        if self.election.timer_ms() != timer_ms {
            self.election.ticker.set_timer(timer_ms, self.cx.now_ms);
            self.cx.put(Output::ElectionTimer(timer_ms));
        }
        // The database is told before the algorithm's next work, whose committed entries follow the
        // snapshot.
        self.cx
            .tell_database(MemberEvent::Replaced { index, term, eid });
        self.work();
        self.cx.node.applied(index);
        self.roster.complete_joining(&mut self.cx);
    }
}
