//! The thread of one member (`raft:NAME`): a poll loop over its sockets, its queue and its deadlines, which carries out the outputs of
//! [`Member`] and [`Peers`].
//!
//! One turn: what has arrived on sockets, then messages of other threads, then time; then all outputs, in order; then events to the database,
//! and bytes to the sockets. Bytes are received before time passes, so a process that was stopped hears its peers before it gives them up.
//!
//! Invariant: the thread never syncs a file and never waits for another thread while the member runs, so heartbeats leave on time. Its work
//! for the database is bounded by the budget of an inline execution.

use std::sync::atomic::Ordering;
use std::time::Duration;

use corvid_consensus::member::{Command, CommandToken, Rehearsal};
use corvid_consensus::{
    Input, Member, MemberEvent, MemberRequest, Output, PeerMessage, Peers, PeersOutput,
};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_net::logging::{self, Module};
use corvid_net::{clock, errno};
use corvid_reactor::poll_interval::PollInterval;
use corvid_service::member::file::Consequences;
use corvid_service::member::{Contents, DatabaseQueue};
use corvid_service::message::{Control, DatabaseId, Event, InstalledSnapshot, ToDatabase};

use super::failure::{self, Kind, Moment, Scenario};
use super::file::MemberFile;
use super::handle::{MemberHandle, ToMember};
use super::links::Links;
use super::log_lines;
use super::meter::Meter;
use super::row::RowPacer;
use super::status_text;
use crate::database::handle::DatabaseHandle;
use crate::liveness::Liveness;
use crate::main_handle::{MainHandle, MainMessage};
use crate::remotes::connection::log_level;

/// The token of the command that ends the member; the main thread's tokens are smaller.
const END: CommandToken = CommandToken(u64::MAX);

/// The token of commands that a scenario gives; nobody waits for their outcome.
const TEST: CommandToken = CommandToken(u64::MAX - 1);

/// Between two counts of amounts, ms.
const COUNT_MS: u64 = 1000;

/// The thread waits no longer than this at a time, so that it shows signs of life, ms.
const WAIT_MAX_MS: u64 = 5000;

/// How long the end of the member waits for another leader, ms. The server waits longer for its databases when it exits.
const HAND_OVER_MS_MAX: u64 = 5000;

/// The state of the thread.
pub(crate) struct MemberThread {
    /// The number of its database.
    pub(crate) id: DatabaseId,
    /// The database's name.
    pub(crate) name: String,
    /// The member.
    pub(crate) member: Member,
    /// Its connections, as state machines.
    pub(crate) peers: Peers,
    /// Its sockets.
    pub(crate) links: Links,
    /// Its file.
    pub(crate) file: MemberFile,
    /// Its queue.
    pub(crate) inbox: MemberHandle,
    /// Its database; `None` until the server has joined its cluster and has a snapshot.
    pub(crate) database: Option<DatabaseHandle>,
    /// The main thread.
    pub(crate) main: MainHandle,
    /// The columns of the row in `_Server` that the main thread has not shown yet.
    pub(crate) row: RowPacer,
    /// Its figures.
    pub(crate) meter: Meter,
    /// Its signs of life.
    pub(crate) liveness: Liveness,
    /// Events for the database, in order.
    pub(crate) to_database: DatabaseQueue<Contents>,
    /// When amounts for `memory/show` were counted last, monotonic ms.
    pub(crate) counted_ms: u64,
    /// How it ends.
    pub(crate) ending: Ending,
    /// The failure that is provoked.
    pub(crate) scenario: Scenario,
    /// The kinds of messages of this turn that scenarios tell from others.
    pub(crate) sent_kinds: Vec<Kind>,
}

/// Whether the thread goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It runs.
    #[default]
    Running,
    /// The leadership is being handed over, until this time at the latest, monotonic ms.
    HandingOver(u64),
    /// The file is to be closed now.
    Done,
}

impl MemberThread {
    /// Runs until the main thread ends it.
    pub(crate) fn run(mut self) {
        let mut mail = Vec::new();
        let mut interval = PollInterval::new(&format!("raft_{}", self.name));
        while self.ending != Ending::Done {
            let now_ms = clock::mono_ms();
            interval.begin(now_ms);
            self.liveness.busy(now_ms);
            self.links.receive(now_ms, &mut self.peers);
            self.carry_out(now_ms);
            self.inbox.take(&mut mail);
            // Together, so that what they propose is stored and sent together.
            for message in mail.drain(..) {
                self.receive(now_ms, message);
            }
            self.carry_out(now_ms);
            self.peers.time(now_ms);
            let is_news = self.row.time(now_ms);
            self.tell_of_row(is_news);
            if self.database.is_some() && self.file.is_compaction_due(now_ms) {
                self.make_snapshot();
            }
            if self.member.deadline_ms() <= now_ms {
                self.member.handle(now_ms, Input::Time);
            }
            self.carry_out(now_ms);
            if matches!(self.ending, Ending::HandingOver(until_ms) if until_ms <= now_ms) {
                self.ending = Ending::Done;
            }
            self.links.flush(now_ms, &mut self.peers);
            self.sent(now_ms);
            self.carry_out(now_ms);
            // Requests that the database makes meanwhile are in the queue before the thread sleeps.
            self.post_to_database();
            self.meter.publish(now_ms, &self.member, &self.peers);
            if now_ms >= self.counted_ms + COUNT_MS {
                self.count(now_ms);
            }
            self.liveness.idle();
            interval.end();
            if let Err(error) = self.links.wait(self.timeout()) {
                let reason = errno::text(&error);
                logging::err(Module::PollLoop, format_args!("poll: {reason}"));
                break;
            }
        }
        self.end();
    }

    /// Tells the main thread that there is a row to be shown.
    fn tell_of_row(&self, is_news: bool) {
        if is_news {
            self.main.report(MainMessage::MemberRowChanged(self.id));
        }
    }

    /// Counts amounts for `memory/show`.
    fn count(&mut self, now_ms: u64) {
        self.counted_ms = now_ms;
        let status = self.member.status(now_ms);
        let entries = status.log_end.0.saturating_sub(status.log_start.0);
        let counts = self.inbox.counts();
        counts.log.store(entries, Ordering::Relaxed);
        let connections = self.peers.connection_count() as u64;
        counts.connections.store(connections, Ordering::Relaxed);
        let backlog_bytes = self.peers.backlog_bytes();
        counts.backlog_bytes.store(backlog_bytes, Ordering::Relaxed);
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let is_busy = self.links.has_more() || self.ending == Ending::Done;
        if is_busy || !self.inbox.sleep() {
            return Some(Duration::ZERO);
        }
        let now = clock::Now::read();
        let deadlines = [
            Some(self.member.deadline_ms()),
            self.peers.deadline_ms(now.mono_ms),
            self.links.deadline_ms(),
            self.row.deadline_ms(),
            match self.database {
                Some(_) => self.file.deadline_ms(now.mono_ms),
                None => None,
            },
            self.meter.deadline_ms(),
            Some(now.mono_ms + WAIT_MAX_MS),
            match self.ending {
                Ending::HandingOver(until_ms) => Some(until_ms),
                Ending::Running | Ending::Done => None,
            },
        ];
        deadlines
            .into_iter()
            .flatten()
            .min()
            .map(|at_ms| now.until(at_ms))
    }

    /// Has the database handle the events that have occurred, but for those behind a snapshot that is being loaded.
    fn post_to_database(&mut self) {
        let events = self.to_database.ready();
        if let Some(database) = &self.database
            && !events.is_empty()
        {
            database.send_or_execute(events);
        }
    }

    /// Begins to load the database from the snapshot that is in the file now.
    fn load(&mut self, index: Index, term: Term, eid: Eid) {
        self.to_database.begin_load(index, term);
        self.file.load_snapshot(index, eid);
    }

    /// The contents of a snapshot are loaded: the database gets them, or the main thread makes it.
    fn loaded(&mut self, index: Index, contents: Result<Contents, String>) {
        if let Err(error) = &contents {
            let name = &self.name;
            logging::err(
                Module::Raft,
                format_args!(
                    "{name}: the snapshot that the leader sent cannot be loaded ({error}); clients see older contents: check the disk, and \
                     start this server again"
                ),
            );
        }
        let installed = |contents: Contents, term| {
            ToDatabase::Installed(Box::new(InstalledSnapshot {
                database: contents.database,
                index: contents.applied,
                term,
                eid: contents.eid,
            }))
        };
        if let Some(contents) = self.to_database.loaded(index, contents.ok(), installed) {
            let message = MainMessage::MemberJoined(self.id, Box::new(contents));
            self.main.report(message);
        }
    }

    fn receive(&mut self, now_ms: u64, message: ToMember) {
        match message {
            ToMember::Request(MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
            }) => match self.file.keep_snapshot(token, snapshot) {
                Ok(()) => self
                    .member
                    .handle(now_ms, Input::SnapshotMade { index, eid }),
                Err(event) => self.to_database.push(ToDatabase::Member(event)),
            },
            ToMember::Request(request) => {
                self.meter.requested(&request);
                self.member.handle(now_ms, Input::Database(request));
            }
            ToMember::Storage(reply) => {
                let consequences = self.file.receive(now_ms, reply);
                self.carry_on(now_ms, consequences);
            }
            ToMember::Command(token, command) => {
                self.member
                    .handle(now_ms, Input::Command { token, command });
            }
            ToMember::Status(token) => {
                let status = self.member.status(now_ms);
                let connections = self.peers.connections_text();
                let text = status_text::render(&status, &connections, self.peers.disconnections());
                self.main
                    .report(MainMessage::MemberAnswered(token.0, Ok(text)));
            }
            ToMember::SnapshotChecked(to, index, outcome) => {
                let (input, is_damaged) = self.file.snapshot_checked(now_ms, to, index, outcome);
                if is_damaged {
                    self.member.handle(now_ms, Input::FileDamaged);
                }
                self.member.handle(now_ms, input);
            }
            ToMember::Loaded(index, contents) => self.loaded(index, *contents),
            ToMember::Served(index, database) => {
                self.database = Some(*database);
                let applied = MemberRequest::Applied(index);
                self.member.handle(now_ms, Input::Database(applied));
            }
            ToMember::BacklogLimits(limits) => self.peers.set_backlog_limits(limits),
            ToMember::Fail(scenario) => self.engage(now_ms, scenario),
            ToMember::End => {
                if self.ending == Ending::Running {
                    self.ending = Ending::HandingOver(now_ms + HAND_OVER_MS_MAX);
                    let (token, command) = (END, Command::Shutdown);
                    self.member
                        .handle(now_ms, Input::Command { token, command });
                }
            }
        }
    }

    /// Has the database make a snapshot for a new file.
    fn make_snapshot(&mut self) {
        let compact = ToDatabase::Control(Control::Compact(None));
        self.to_database.push(compact);
    }

    /// Passes on what a reply of the file leads to.
    fn carry_on(&mut self, now_ms: u64, consequences: Consequences) {
        for input in consequences.inputs {
            self.member.handle(now_ms, input);
        }
        if let Some(event) = consequences.event {
            self.to_database.push(ToDatabase::Member(event));
        }
    }

    /// Begins or ends a scenario of `cluster/failure-test`.
    fn engage(&mut self, now_ms: u64, scenario: Scenario) {
        let rehearsal = match scenario {
            Scenario::Rehearsal(rehearsal) => rehearsal,
            _ => Rehearsal::None,
        };
        let (token, command) = (TEST, Command::Rehearse(rehearsal));
        self.member
            .handle(now_ms, Input::Command { token, command });
        self.scenario = scenario.lasting(self.scenario);
        self.links
            .set_stopped(self.scenario == Scenario::StopTraffic);
        if scenario == Scenario::Transfer {
            self.transfer(now_ms);
        }
    }

    /// The messages of this turn have been handed to the connections.
    fn sent(&mut self, now_ms: u64) {
        for at in 0..self.sent_kinds.len() {
            let kind = self.sent_kinds[at];
            self.scenario.reach(Moment::AfterSending(kind));
            if self.scenario == Scenario::TransferAfterAppend && kind == Kind::Entries {
                self.transfer(now_ms);
            }
        }
        self.sent_kinds.clear();
    }

    /// Hands the leadership over for a scenario, which ends.
    fn transfer(&mut self, now_ms: u64) {
        self.scenario = Scenario::Clear;
        let (token, command) = (TEST, Command::TransferLeadership(None));
        self.member
            .handle(now_ms, Input::Command { token, command });
    }

    /// Carries out the outputs of both machines until there are none.
    fn carry_out(&mut self, now_ms: u64) {
        loop {
            if let Some(output) = self.member.next_output() {
                self.carry_out_of_member(now_ms, output);
            } else if let Some(output) = self.peers.next_output() {
                self.carry_out_of_peers(now_ms, output);
            } else {
                return;
            }
        }
    }

    fn carry_out_of_member(&mut self, now_ms: u64, output: Output) {
        match output {
            Output::Store(requests) => {
                for reply in self.file.store(requests) {
                    let consequences = self.file.receive(now_ms, reply);
                    self.carry_on(now_ms, consequences);
                }
            }
            Output::Send { message, .. }
                if self.scenario == Scenario::NoVoteRequests
                    && matches!(message, PeerMessage::Vote { .. }) => {}
            Output::Send { to, message } => {
                if self.scenario != Scenario::Clear
                    && let Some(kind) = failure::kind(&message)
                {
                    self.scenario.reach(Moment::BeforeSending(kind));
                    self.sent_kinds.push(kind);
                }
                self.meter.sent(&message);
                self.peers.send(now_ms, to, &message);
            }
            Output::Database(MemberEvent::Replaced { index, term, eid }) => {
                self.load(index, term, eid);
            }
            Output::Database(event) => {
                self.meter.occurred(&event);
                self.to_database.push(ToDatabase::Member(event));
            }
            Output::Dial(targets) => self.peers.set_targets(now_ms, &targets),
            Output::Refuse { from, reason } => self.peers.refuse(now_ms, from, &reason),
            Output::ElectionTimer(timer_ms) => self.peers.set_election_timer(timer_ms),
            Output::Row(row) => {
                let is_news = self.row.changed(now_ms, row);
                self.tell_of_row(is_news);
            }
            Output::CommandDone(END, _) => self.ending = Ending::Done,
            Output::CommandDone(TEST, _) => {}
            Output::CommandDone(token, outcome) => {
                self.main
                    .report(MainMessage::MemberAnswered(token.0, outcome));
            }
            Output::Log(level, kind, text) => log_lines::log(level, kind, &text),
            Output::ReadSnapshot {
                to,
                index,
                offset,
                bytes_max,
            } => {
                // The first request asks for no bytes, but how many there are.
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
                let end = self.file.write_snapshot(index, offset, &bytes);
                self.member
                    .handle(now_ms, Input::SnapshotWritten { index, end });
            }
            Output::AbandonSnapshot => self.file.abandon_snapshot(),
            Output::InstallSnapshot {
                snapshot,
                cid,
                records,
            } => {
                self.scenario.reach(Moment::BeforeInstalling);
                let consequences = self.file.install_snapshot(now_ms, snapshot, cid, records);
                self.carry_on(now_ms, consequences);
            }
            Output::MakeSnapshot => self.make_snapshot(),
            Output::Rewrite(rewrite) => {
                for reply in self.file.rewrite(*rewrite) {
                    let consequences = self.file.receive(now_ms, reply);
                    self.carry_on(now_ms, consequences);
                }
            }
            Output::RejectSnapshot => {
                let status = self.member.status(now_ms);
                let compacted = self.file.reject_snapshot(&status.connected);
                if let Some(compacted) = compacted {
                    self.to_database.push(ToDatabase::Member(compacted));
                }
            }
            Output::Left => self.main.report(MainMessage::MemberLeft(self.id)),
            Output::Failed(reason) => {
                let name = &self.name;
                logging::err(Module::Raft, format_args!("{name}: {reason}"));
            }
        }
    }

    fn carry_out_of_peers(&mut self, now_ms: u64, output: PeersOutput) {
        match output {
            PeersOutput::Dial { number, address } => {
                self.links.dial(now_ms, number, &address, &mut self.peers);
            }
            PeersOutput::Write { number, bytes } => self.links.write(number, bytes),
            PeersOutput::Close { number } => self.links.close(number),
            PeersOutput::PeerUp(sid) => self.member.handle(now_ms, Input::PeerUp(sid)),
            PeersOutput::PeerDown(sid) => self.member.handle(now_ms, Input::PeerDown(sid)),
            PeersOutput::PeerRefused(sid) => self.member.handle(now_ms, Input::PeerRefused(sid)),
            PeersOutput::Message { from, message } => {
                if failure::kind(&message) == Some(Kind::Entries) {
                    self.scenario.reach(Moment::AfterReceivingEntries);
                }
                self.member.handle(now_ms, Input::Peer { from, message });
            }
            PeersOutput::LearnedCluster(cid) => {
                self.member.handle(now_ms, Input::LearnedCluster(cid));
            }
            PeersOutput::Log { level, text } => {
                logging::log(Module::Raft, log_level(level), format_args!("{text}"));
            }
        }
    }

    /// Sends what is queued, closes the file, and lets the database end.
    fn end(mut self) {
        self.links.flush(clock::mono_ms(), &mut self.peers);
        // Before anybody learns that the database is removed, and may add it again: the file's next member listens on the same address.
        drop(self.links);
        self.file.into_effects().close();
        let term = self.member.status(clock::mono_ms()).term;
        match self.database {
            Some(database) => {
                // Commits that no majority has stored would hold the removal up for ever.
                let leader = None;
                let follows = ToDatabase::Member(MemberEvent::Follows { term, leader });
                self.to_database.ready().push(follows);
                // A snapshot that is still being loaded, and what is behind it, is in the file.
                let events = self.to_database.ready();
                events.push(ToDatabase::Control(Control::Remove));
                database.send_or_execute(events);
            }
            None => self.main.post([Event::Removed(self.id)]),
        }
    }
}
