//! The effects of a member's thread: its sockets, its queue, its database and the main thread; and
//! the failures that `cluster/failure-test` provokes there.
//!
//! Invariant: apart from the failure scenarios, nothing is decided here. [`MemberPump`] decides,
//! and the simulator runs the same [`MemberPump`].

use bytes::Bytes;
use corvid_consensus::member::{Command, CommandToken, Rehearsal, Repeated, ServerRow};
use corvid_consensus::{ConnectionNumber, Input, Member, Output, PeerMessage, Peers, PeersOutput};
use corvid_log::cluster::Index;
use corvid_net::logging::{self, Module};
use corvid_rpc::Level;
use corvid_service::member::{Contents, MemberEffects, MemberPump};
use corvid_service::message::{DatabaseId, ToDatabase};

use super::failure::{self, Kind, Moment, Scenario};
use super::file::FileThreads;
use super::handle::{MemberHandle, ToMember};
use super::links::Links;
use super::log_lines;
use super::meter::Meter;
use super::row::RowSlot;
use crate::database::handle::DatabaseHandle;
use crate::main_handle::{MainHandle, MainMessage};
use crate::status::MemberStatus;

/// The token of commands that a failure scenario gives. Nobody waits for their outcome.
const TEST: CommandToken = CommandToken(u64::MAX - 1);

/// The effects of one member's thread.
pub(crate) struct ThreadEffects {
    /// The number of the database.
    pub(crate) id: DatabaseId,
    /// The database's name.
    pub(crate) name: String,
    /// The sockets.
    pub(crate) links: Links,
    /// The thread's queue.
    pub(crate) inbox: MemberHandle,
    /// The messages of the current turn; kept to reuse its capacity.
    pub(crate) mail: Vec<ToMember>,
    /// The database; `None` until the server has joined its cluster and has a snapshot.
    pub(crate) database: Option<DatabaseHandle>,
    /// The main thread.
    pub(crate) main: MainHandle,
    /// The columns of the row in `_Server` that the main thread has not shown yet.
    pub(crate) row: RowSlot,
    /// The figures.
    pub(crate) meter: Meter,
    /// The failure scenario in force.
    pub(crate) scenario: Scenario,
    /// The kinds of the messages sent in this turn, as far as scenarios distinguish them.
    pub(crate) sent_kinds: Vec<Kind>,
}

impl MemberEffects for ThreadEffects {
    type Storage = FileThreads;

    fn receive(&mut self, now_ms: u64, peers: &mut Peers) {
        self.links.receive(now_ms, peers);
    }

    fn deliver_mail(&mut self, now_ms: u64, pump: &mut MemberPump<FileThreads>) {
        let mut mail = std::mem::take(&mut self.mail);
        self.inbox.take(&mut mail);
        for message in mail.drain(..) {
            self.deliver(now_ms, message, pump);
        }
        self.mail = mail;
    }

    fn dial(&mut self, now_ms: u64, number: ConnectionNumber, address: &str, peers: &mut Peers) {
        self.links.dial(now_ms, number, address, peers);
    }

    fn write(&mut self, number: ConnectionNumber, bytes: Bytes) {
        self.links.write(number, bytes);
    }

    fn close(&mut self, _: u64, number: ConnectionNumber) {
        self.links.close(number);
    }

    fn flush(&mut self, now_ms: u64, member: &mut Member, peers: &mut Peers) {
        self.links.flush(now_ms, peers);
        self.sent(now_ms, member);
    }

    fn has_database(&self) -> bool {
        self.database.is_some()
    }

    fn post(&mut self, events: &mut Vec<ToDatabase>) {
        if let Some(database) = &self.database {
            database.send_or_execute(events);
        }
    }

    fn show_row(&mut self, _: u64, row: ServerRow) {
        if self.row.set(row) {
            self.main.report(MainMessage::MemberRowChanged(self.id));
        }
    }

    fn answer(&mut self, token: CommandToken, outcome: Result<String, String>) {
        if token != TEST {
            self.main
                .report(MainMessage::MemberAnswered(token.0, outcome));
        }
    }

    fn left(&mut self) {
        self.main.report(MainMessage::MemberLeft(self.id));
    }

    fn failed(&mut self, reason: String) {
        let name = &self.name;
        logging::err(Module::Raft, format_args!("{name}: {reason}"));
    }

    fn log(&mut self, _: u64, level: Level, kind: Option<Repeated>, text: &str) {
        log_lines::log(level, kind, text);
    }

    fn log_traffic(&mut self, text: &str) {
        logging::dbg(Module::Jsonrpc, format_args!("{text}"));
    }

    fn may_send(&mut self, message: &PeerMessage) -> bool {
        if self.scenario != Scenario::Clear {
            if self.scenario == Scenario::NoVoteRequests
                && matches!(message, PeerMessage::Vote { .. })
            {
                return false;
            }
            if let Some(kind) = failure::kind(message) {
                self.scenario.reach(Moment::BeforeSending(kind));
                self.sent_kinds.push(kind);
            }
        }
        self.meter.sent(message);
        true
    }

    fn observe(&mut self, _: u64, output: &Output) {
        match output {
            Output::Database(event) => self.meter.occurred(event),
            Output::InstallSnapshot { .. } => self.scenario.reach(Moment::BeforeInstalling),
            _ => {}
        }
    }

    fn observe_peers(&mut self, _: u64, output: &PeersOutput) {
        if let PeersOutput::Message { message, .. } = output
            && failure::kind(message) == Some(Kind::Entries)
        {
            self.scenario.reach(Moment::AfterReceivingEntries);
        }
    }
}

impl ThreadEffects {
    fn deliver(&mut self, now_ms: u64, message: ToMember, pump: &mut MemberPump<FileThreads>) {
        match message {
            ToMember::Request(request) => {
                self.meter.requested(&request);
                pump.request(now_ms, request);
            }
            ToMember::Storage(reply) => pump.stored(now_ms, reply),
            ToMember::Command(token, command) => pump.command(now_ms, token, command),
            ToMember::Status(token) => {
                let status = MemberStatus {
                    status: pump.member.status(now_ms),
                    connections: pump.peers.connections_text(),
                    disconnections: pump.peers.disconnections(),
                };
                self.main
                    .report(MainMessage::MemberStatus(token.0, Box::new(status)));
            }
            ToMember::SnapshotChecked(to, index, outcome) => {
                pump.snapshot_checked(now_ms, to, index, outcome);
            }
            ToMember::WrittenBack(reception, outcome) => {
                pump.written_back(now_ms, reception, outcome);
            }
            ToMember::Loaded(index, contents) => self.loaded(index, *contents, pump),
            ToMember::Served(index, database) => {
                self.database = Some(*database);
                pump.served(now_ms, index);
            }
            ToMember::BacklogLimits(limits) => pump.peers.set_backlog_limits(limits),
            ToMember::Fail(scenario) => self.engage(now_ms, scenario, &mut pump.member),
            ToMember::End => pump.begin_end(now_ms),
        }
    }

    /// Handles a loaded snapshot: passes the contents to the database, or has the main thread
    /// create the database.
    fn loaded(
        &mut self,
        index: Index,
        contents: Result<Contents, String>,
        pump: &mut MemberPump<FileThreads>,
    ) {
        if let Err(error) = &contents {
            let name = &self.name;
            logging::err(
                Module::Raft,
                format_args!(
                    "{name}: the snapshot that the leader sent cannot be loaded ({error}); clients see older \
                     contents: check the disk and restart this server"
                ),
            );
        }
        if let Some(contents) = pump.loaded(index, contents.ok()) {
            let message = MainMessage::Joined(self.id, Box::new(contents));
            self.main.report(message);
        }
    }

    /// Begins or ends a scenario of `cluster/failure-test`.
    fn engage(&mut self, now_ms: u64, scenario: Scenario, member: &mut Member) {
        let rehearsal = match scenario {
            Scenario::Rehearsal(rehearsal) => rehearsal,
            _ => Rehearsal::None,
        };
        command(now_ms, Command::Rehearse(rehearsal), member);
        self.scenario = scenario.lasting(self.scenario);
        self.links
            .set_stopped(self.scenario == Scenario::StopTraffic);
        if scenario == Scenario::Transfer {
            self.transfer(now_ms, member);
        }
    }

    /// Runs once the messages of this turn have been handed to the connections.
    fn sent(&mut self, now_ms: u64, member: &mut Member) {
        for at in 0..self.sent_kinds.len() {
            let kind = self.sent_kinds[at];
            self.scenario.reach(Moment::AfterSending(kind));
            if self.scenario == Scenario::TransferAfterAppend && kind == Kind::Entries {
                self.transfer(now_ms, member);
            }
        }
        self.sent_kinds.clear();
    }

    /// Transfers the leadership for a scenario, which then ends.
    fn transfer(&mut self, now_ms: u64, member: &mut Member) {
        self.scenario = Scenario::Clear;
        command(now_ms, Command::Rehearse(Rehearsal::Transfer), member);
    }
}

/// Gives the member a scenario's command.
fn command(now_ms: u64, command: Command, member: &mut Member) {
    let token = TEST;
    member.handle(now_ms, Input::Command { token, command });
}
