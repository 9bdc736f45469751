//! The turns of a member's thread: in which order arrivals, messages and time reach the member and
//! its connections, and how their outputs are carried out.
//!
//! A turn handles bytes from connections, then messages of other threads, then time; after each of
//! these it carries out all outputs, in order. Then it sends bytes to connections, posts events to
//! the database and shows the row for `_Server`. Bytes are received before time passes, so a
//! process that was suspended hears its peers before it gives up on them.
//!
//! Invariant: the member's outputs are carried out before those of the connections, and an input
//! caused by an output is handled before the next output. The server's thread and the simulator use
//! it and implement [`MemberEffects`]; nothing here knows either.

use corvid_consensus::member::{Command, CommandToken, ServerRow};
use corvid_consensus::{Input, Member, MemberEvent, MemberRequest, Output, Peers, PeersOutput};
use corvid_log::cluster::{Index, Sid};
use corvid_log::storage::{StorageReply, StoreError};

use super::contents::Contents;
use super::database_queue::DatabaseQueue;
use super::effects::MemberEffects;
use super::file::{Consequences, FileEffects, MemberFile, ReceptionNumber};
use crate::message::{Control, InstalledSnapshot, ToDatabase};

/// The token of the command that stops the member; other tokens are smaller.
const END: CommandToken = CommandToken(u64::MAX);

/// How long a stopping member waits for another leader, ms. When the server exits, it waits longer
/// than that for its databases.
const HAND_OVER_MS_MAX: u64 = 5000;

/// A member with its connections and its file, and the state of the thread that runs them.
#[derive(Debug)]
pub struct MemberPump<F: FileEffects> {
    /// The member.
    pub member: Member,
    /// The member's connections, as state machines.
    pub peers: Peers,
    /// The member's file.
    pub file: MemberFile<F>,
    /// Events for the database, in order.
    to_database: DatabaseQueue<Contents>,
    /// The newest row for `_Server`, unless it has been shown.
    row: Option<ServerRow>,
    ending: Ending,
}

/// Whether the thread continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The thread continues.
    Running,
    /// The leadership is being handed over; ends at this time at the latest, monotonic ms.
    HandingOver(u64),
    /// The file should be closed now.
    Done,
}

impl<F: FileEffects> MemberPump<F> {
    /// A member that starts. `has_database`: its database has been loaded.
    #[must_use]
    pub fn new(
        member: Member,
        peers: Peers,
        file: MemberFile<F>,
        has_database: bool,
    ) -> MemberPump<F> {
        MemberPump {
            member,
            peers,
            file,
            to_database: DatabaseQueue::new(has_database),
            row: None,
            ending: Ending::Running,
        }
    }

    /// One turn of the thread. Messages that arrive during the last steps are delivered in the next
    /// turn.
    pub fn turn<E: MemberEffects<Storage = F>>(&mut self, now_ms: u64, effects: &mut E) {
        effects.receive(now_ms, &mut self.peers);
        self.carry_out(now_ms, effects);
        effects.deliver_mail(now_ms, self);
        self.carry_out(now_ms, effects);
        self.peers.time(now_ms);
        if effects.has_database() && self.file.is_compaction_due(now_ms) {
            effects.observe_growth();
            self.make_snapshot();
        }
        if self.member.deadline_ms() <= now_ms {
            self.member.handle(now_ms, Input::Time);
        }
        self.carry_out(now_ms, effects);
        if matches!(self.ending, Ending::HandingOver(until_ms) if until_ms <= now_ms) {
            self.ending = Ending::Done;
        }
        effects.flush(now_ms, &mut self.member, &mut self.peers);
        self.carry_out(now_ms, effects);
        let events = self.to_database.ready();
        if effects.has_database() && !events.is_empty() {
            effects.post(events);
        }
        // The database has the events before the row is shown: a client that reads in the row that
        // this server leads finds a database that knows it.
        if let Some(row) = self.row.take() {
            effects.show_row(now_ms, row);
        }
    }

    /// Whether the file should be closed now.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ending == Ending::Done
    }

    /// When the next turn is due without an arrival, monotonic ms. `has_database`: as for the turn.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64, has_database: bool) -> u64 {
        let peers = self.peers.deadline_ms(now_ms);
        let file = self.file.deadline_ms(now_ms).filter(|_| has_database);
        let ending = match self.ending {
            Ending::HandingOver(until_ms) => Some(until_ms),
            Ending::Running | Ending::Done => None,
        };
        let others = [peers, file, ending].into_iter().flatten();
        others.fold(self.member.deadline_ms(), u64::min)
    }

    /// Whether there are events that the database may have now.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.to_database.is_ready()
    }

    /// Whether a snapshot is being loaded.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.to_database.is_loading()
    }

    /// The number of events for the database, including those queued after snapshots.
    #[must_use]
    pub fn queued_events(&self) -> usize {
        self.to_database.queued()
    }

    /// Handles a request of the database.
    pub fn request(&mut self, now_ms: u64, request: MemberRequest) {
        let MemberRequest::Snapshot {
            token,
            index,
            eid,
            snapshot,
            commits,
        } = request
        else {
            self.member.handle(now_ms, Input::Database(request));
            return;
        };
        // The file keeps the snapshot; the member decides whether to write it.
        match self.file.keep_snapshot(token, snapshot, commits) {
            Ok(()) => self
                .member
                .handle(now_ms, Input::SnapshotMade { index, eid }),
            Err(event) => self.to_database.push(ToDatabase::Member(event)),
        }
    }

    /// Handles a reply of the file's threads.
    pub fn stored(&mut self, now_ms: u64, reply: StorageReply) {
        let consequences = self.file.receive(now_ms, reply);
        self.carry_on(now_ms, consequences);
    }

    /// Starts an operator's command; [`MemberEffects::answer`] gets its outcome.
    pub fn command(&mut self, now_ms: u64, token: CommandToken, command: Command) {
        self.member
            .handle(now_ms, Input::Command { token, command });
    }

    /// The snapshot in the file, which this peer will get, has been checked: whether its hash is
    /// right, or why it cannot be read.
    pub fn snapshot_checked(
        &mut self,
        now_ms: u64,
        to: Sid,
        index: Index,
        outcome: Result<bool, String>,
    ) {
        let (input, is_damaged) = self.file.snapshot_checked(now_ms, to, index, outcome);
        if is_damaged {
            self.member.handle(now_ms, Input::FileDamaged);
        }
        self.member.handle(now_ms, input);
    }

    /// The disk has a part of the body that a peer is sending, or has failed.
    pub fn written_back(
        &mut self,
        now_ms: u64,
        reception: ReceptionNumber,
        outcome: Result<(), StoreError>,
    ) {
        if let Some(input) = self.file.written_back(reception, outcome) {
            self.member.handle(now_ms, input);
        }
    }

    /// The contents of a snapshot have been loaded, or cannot be (`None`). Returns the contents if
    /// the database must be made from them.
    pub fn loaded(&mut self, index: Index, contents: Option<Contents>) -> Option<Contents> {
        self.to_database.loaded(index, contents, |contents, term| {
            ToDatabase::Installed(Box::new(InstalledSnapshot {
                database: contents.database,
                index: contents.applied,
                term,
                eid: contents.eid,
                recorded: contents.recorded,
            }))
        })
    }

    /// The database of a server that has joined its cluster is served, with the contents after this
    /// entry.
    pub fn served(&mut self, now_ms: u64, index: Index) {
        let applied = MemberRequest::Applied(index);
        self.member.handle(now_ms, Input::Database(applied));
    }

    /// Starts to stop the member: it hands its leadership over first.
    pub fn begin_end(&mut self, now_ms: u64) {
        if self.ending == Ending::Running {
            self.ending = Ending::HandingOver(now_ms + HAND_OVER_MS_MAX);
            self.command(now_ms, END, Command::Shutdown);
        }
    }

    /// Stops the member. Returns the file, to be closed first, and then the last events for the
    /// database.
    pub fn end(mut self, now_ms: u64) -> (F, Vec<ToDatabase>) {
        // The removal waits for pending commits, and those that no majority has stored would delay
        // it forever. So the database first learns that it does not lead.
        let (term, leader) = (self.member.status(now_ms).term, None);
        let follows = ToDatabase::Member(MemberEvent::Follows { term, leader });
        // A snapshot that is still loading, and the events after it, need not be kept: both are in
        // the file.
        let mut events = std::mem::take(self.to_database.ready());
        events.extend([follows, ToDatabase::Control(Control::Remove)]);
        (self.file.into_effects(), events)
    }

    /// Makes the database take a snapshot for a new file.
    fn make_snapshot(&mut self) {
        let compact = ToDatabase::Control(Control::Compact(None));
        self.to_database.push(compact);
    }

    /// Passes on the consequences of a storage reply.
    fn carry_on(&mut self, now_ms: u64, consequences: Consequences) {
        for input in consequences.inputs {
            self.member.handle(now_ms, input);
        }
        if let Some(event) = consequences.event {
            self.to_database.push(ToDatabase::Member(event));
        }
    }

    /// Carries out the outputs of both machines until there are none. The member's come first, and
    /// an input that an output causes is handled before the next output.
    fn carry_out<E: MemberEffects<Storage = F>>(&mut self, now_ms: u64, effects: &mut E) {
        while effects.goes_on() {
            if let Some(output) = self.member.next_output() {
                effects.observe(now_ms, &output);
                self.carry_out_of_member(now_ms, output, effects);
            } else if let Some(output) = self.peers.next_output() {
                effects.observe_peers(now_ms, &output);
                self.carry_out_of_peers(now_ms, output, effects);
            } else {
                return;
            }
        }
    }

    fn carry_out_of_member<E: MemberEffects<Storage = F>>(
        &mut self,
        now_ms: u64,
        output: Output,
        effects: &mut E,
    ) {
        match output {
            Output::Store(requests) => {
                for reply in self.file.store(requests) {
                    self.stored(now_ms, reply);
                }
            }
            Output::Send { to, message } => {
                if effects.may_send(&message) {
                    self.peers.send(now_ms, to, &message);
                }
            }
            Output::Database(MemberEvent::Replaced { index, term, eid }) => {
                // The place in the queue comes first: later events of the member wait there for the
                // contents.
                self.to_database.begin_load(index, term);
                self.file.load_snapshot(index, eid);
            }
            Output::Database(event) => self.to_database.push(ToDatabase::Member(event)),
            Output::Dial(targets) => self.peers.set_targets(now_ms, &targets),
            Output::Refuse { from, reason } => self.peers.refuse(now_ms, from, &reason),
            Output::ElectionTimer(timer_ms) => self.peers.set_election_timer(timer_ms),
            Output::Row(row) => self.row = Some(row),
            Output::CommandDone(END, _) => self.ending = Ending::Done,
            Output::CommandDone(token, outcome) => effects.answer(token, outcome),
            Output::Log(level, kind, text) => effects.log(now_ms, level, kind, &text),
            Output::ReadSnapshot {
                to,
                index,
                offset,
                bytes_max,
            } => {
                // The first request of a transfer asks for no bytes, only for the length. It is
                // answered once the snapshot has been checked.
                if bytes_max == 0 && self.file.check_snapshot(now_ms, to, index) {
                    return;
                }
                let bytes = self.file.read_snapshot(index, offset, bytes_max);
                let input = Input::SnapshotRead {
                    to,
                    index,
                    offset,
                    bytes,
                };
                self.member.handle(now_ms, input);
            }
            Output::BeginSnapshot(meta) => self.file.begin_snapshot(meta),
            Output::WriteSnapshot {
                index,
                offset,
                bytes,
            } => {
                if let Some(input) = self.file.write_snapshot(index, offset, &bytes) {
                    self.member.handle(now_ms, input);
                }
            }
            Output::AbandonSnapshot => self.file.abandon_snapshot(),
            Output::InstallSnapshot {
                snapshot,
                cid,
                records,
            } => {
                let consequences = self.file.install_snapshot(now_ms, snapshot, cid, records);
                self.carry_on(now_ms, consequences);
            }
            Output::MakeSnapshot => self.make_snapshot(),
            Output::Rewrite(rewrite) => {
                for reply in self.file.rewrite(*rewrite) {
                    self.stored(now_ms, reply);
                }
            }
            Output::RejectSnapshot(reason) => {
                if let Some(compacted) = self.file.reject_snapshot(reason) {
                    self.to_database.push(ToDatabase::Member(compacted));
                }
            }
            Output::Left => effects.left(),
            Output::Failed(reason) => effects.failed(reason),
        }
    }

    fn carry_out_of_peers<E: MemberEffects<Storage = F>>(
        &mut self,
        now_ms: u64,
        output: PeersOutput,
        effects: &mut E,
    ) {
        match output {
            PeersOutput::Dial { number, address } => {
                effects.dial(now_ms, number, &address, &mut self.peers);
            }
            PeersOutput::Write { number, bytes } => effects.write(number, bytes),
            PeersOutput::Close { number } => effects.close(now_ms, number),
            PeersOutput::PeerUp(sid) => self.member.handle(now_ms, Input::PeerUp(sid)),
            PeersOutput::PeerDown(sid) => self.member.handle(now_ms, Input::PeerDown(sid)),
            PeersOutput::PeerRefused(sid) => self.member.handle(now_ms, Input::PeerRefused(sid)),
            PeersOutput::Message { from, message } => {
                self.member.handle(now_ms, Input::Peer { from, message });
            }
            PeersOutput::LearnedCluster(cid) => {
                self.member.handle(now_ms, Input::LearnedCluster(cid));
            }
            PeersOutput::Traffic { text } => effects.log_traffic(&text),
            PeersOutput::Log { level, text } => effects.log(now_ms, level, None, &text),
        }
    }
}
