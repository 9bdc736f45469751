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
//! ```text
//!  Input  -->  Member: the route of each input
//!                |      |         |        |           |            |
//!            Election  Disk    Roster  Snapshots  Forwarding     Commits     parts: each owns its fields
//!                \______\_________\________\___________\___________/
//!                       Context: identity, time, algorithm, peers, outputs   -->  Output
//! ```
//!
//! | File | Owns | Does not know |
//! |---|---|---|
//! | `election.rs` | when this member stands for election and for how long it leads, handing over, what others are told of its role | the file, snapshots, transactions |
//! | `disk.rs` | the file: records under way, what is stored, rewriting, repair | who is a member, who leads |
//! | `roster.rs` | lists of members, joining, leaving | snapshots, transactions |
//! | `snapshots.rs` | snapshots sent and received, which entries one contains | elections, transactions |
//! | `forwarding.rs` | transactions that followers send to the leader | the file, snapshots, lists of members |
//! | `commits.rs` | proposals, what is committed and applied, when followers learn of it | the file, lists of members |
//! | `context.rs`, `outbox.rs`, `peers.rs`, `failure.rs` | what every part works with | the parts |
//! | `attention.rs` | members that are silent or stand still | how that is mended |
//! | `turn.rs`, `messages.rs`, `commands.rs` | the route: which parts an input, or work of the algorithm, concerns, in which order | how a part does it |
//! | `input.rs`, `output.rs`, `settings.rs`, `status.rs` | the interface | |
//! | `opened.rs`, `opening.rs` | the file's contents as the member begins with them | |
//! | `remarks.rs`, `report.rs` | lines for the log and the report for operators: they change nothing | |
//!
//! A part changes its own fields and the context. It gets what it needs of another part as an
//! argument, and returns what it has decided where that concerns another one.
//!
//! Invariant: a message leaves only after the records that it promises are stored
//! ([`Input::Storage`]). Called by the server and the simulator. It must not know sockets, files or
//! clocks.

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

/// See the module.
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
    /// An input was handled, and no turn has followed it.
    is_dirty: bool,
}

impl Member {
    /// A member as its file describes it. `seed` decides its election timeouts.
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

    /// Sends snapshots in chunks of so many bytes, at most
    /// [`CHUNK_BYTES_MAX`](crate::message::CHUNK_BYTES_MAX): tests make them small.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        self.snapshots.sending.set_chunk_bytes(bytes);
    }

    /// Handles one input. `now_ms` never decreases; its origin is arbitrary.
    pub fn handle(&mut self, now_ms: u64, input: Input) {
        self.cx.now_ms = self.cx.now_ms.max(now_ms);
        if self.roster.has_left() {
            // It has nothing to hand over any more.
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
            Input::LearnedCluster(cid) => self.cx.cid = self.cx.cid.or(Some(cid)),
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

    /// The next output, to be carried out before the ones after it. `None`: the member waits for
    /// an input.
    pub fn next_output(&mut self) -> Option<Output> {
        if self.cx.outbox.is_empty() && self.is_dirty {
            self.is_dirty = false;
            self.turn();
        }
        self.cx.outbox.take()
    }

    /// When [`Input::Time`] is due, if nothing else comes before.
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

    /// Its role and its term, of [`Member::status`].
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

    /// The new file has reached a stage.
    fn advance_rewrite(
        &mut self,
        number: RewriteNumber,
        outcome: Result<RewriteStage, StoreError>,
    ) {
        // Findings of the algorithm up to now are in the journal before it is taken.
        self.work();
        match self.disk.advance_rewrite(&mut self.cx, number, outcome) {
            Progress::None => {}
            Progress::InPlace(snapshot) => self.take_compaction(snapshot),
            Progress::Lasting { position, token } => {
                // Promises that waited for the swap leave before the database may ask for another
                // one.
                self.release(position);
                self.disk.end_rewrite(&mut self.cx, token);
            }
        }
    }

    /// Installs the snapshot of the leader, if all of it is there.
    fn install_if_complete(&mut self) {
        if let Some(hard) = self.snapshots.receiving.complete(&mut self.cx) {
            // The work that the algorithm has found up to now belongs to the old file.
            self.work();
            self.snapshots.receiving.install(&mut self.cx, hard);
        }
    }

    /// The file is that of a snapshot of the leader now: every part begins anew after that snapshot.
    fn take_installed(&mut self, installed: Installed) {
        let Installed { from, meta, hard } = installed;
        let (index, term, eid) = (meta.index, meta.term, meta.eid);
        let snapshot = StoredSnapshot { index, term, eid };
        self.disk.replace(&mut self.cx, snapshot, hard);
        // The algorithm sees it only now that a crash finds it.
        receiving::show(&mut self.cx, from, &meta);
        self.roster.restart(index, meta.servers);
        self.commits.restart(index, eid);
        self.snapshots.recent.restart(index);
        let timer_ms = meta.election_timer_ms;
        if self.election.timer_ms() != timer_ms {
            self.election.ticker.set_timer(timer_ms, self.cx.now_ms);
            self.cx.put(Output::ElectionTimer(timer_ms));
        }
        self.cx
            .tell_database(MemberEvent::Replaced { index, term, eid });
        self.work();
        self.cx.node.applied(index);
        self.roster.complete_joining(&mut self.cx);
    }
}
