//! The effects of a turn of a member's thread. Connections are wires, other threads are queues of
//! [`super::process`], and every effect that concerns the rules of the cluster is observed.
//! [`MemberPump`] decides what happens, as in the server.
//!
//! Invariant: this module decides nothing, and observing changes nothing. Once the machine is down,
//! no further output is executed.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::member::{CommandToken, Repeated, ServerRow};
use corvid_consensus::{
    ConnectionNumber, Member, MemberEvent, Output, PeerMessage, Peers, PeersOutput,
};
use corvid_log::cluster::{Sid, Term};
use corvid_rpc::Level;
use corvid_service::member::{MemberEffects, MemberPump};
use corvid_service::message::ToDatabase;

use super::process::{Leading, Mail, Observed, ToMain};
use crate::server::machine::Machine;
use crate::world::disk::SimDisk;
use crate::world::member_file::FileThreads;
use crate::world::network::wires::{Arrival, Wires};
use crate::world::trace::Trace;

/// Maximum number of outputs of one turn. A turn with more never comes to rest.
const OUTPUTS_MAX: usize = 100_000;

/// One turn of a member's thread, with all that its effects need.
pub(super) struct Turn<'a> {
    pub(super) host: usize,
    pub(super) sid: Sid,
    /// Global virtual time, ms.
    pub(super) now_ms: u64,
    pub(super) wires: &'a mut Wires,
    pub(super) disk: &'a SimDisk,
    pub(super) trace: &'a Trace,
    pub(super) mail: &'a mut VecDeque<Mail>,
    pub(super) main: &'a mut VecDeque<ToMain>,
    pub(super) machine: &'a mut Option<Machine>,
    pub(super) leading: &'a mut Leading,
    pub(super) row: &'a mut Option<ServerRow>,
    pub(super) is_row_shown: &'a mut bool,
    pub(super) has_left: &'a mut bool,
    pub(super) observed: &'a mut Vec<Observed>,
    /// Number of outputs executed so far.
    pub(super) outputs: usize,
}

impl Turn<'_> {
    /// Whether the turn has come to rest.
    pub(super) fn is_at_rest(&self) -> bool {
        self.outputs <= OUTPUTS_MAX
    }

    fn arrive(&mut self, local_ms: u64, arrival: Arrival, peers: &mut Peers) {
        match arrival {
            Arrival::Incoming(end) => {
                let number = peers.accepted(local_ms, "tcp:10.0.0.9:41514");
                self.wires.accept(end, number);
            }
            Arrival::Connected(number) => peers.connected(local_ms, number),
            Arrival::Bytes(end, bytes) => {
                if let Some(number) = self.wires.number(end) {
                    peers.received(local_ms, number, &bytes);
                }
            }
            Arrival::Ended(end, how) => {
                if let Some(number) = self.wires.number(end) {
                    self.wires.ended(end);
                    peers.closed(local_ms, number, how);
                }
            }
            Arrival::Refused(number, how) => peers.refused(local_ms, number, how),
        }
    }
}

impl MemberEffects for Turn<'_> {
    type Storage = FileThreads;

    fn receive(&mut self, local_ms: u64, peers: &mut Peers) {
        for arrival in self.wires.take(self.host) {
            self.arrive(local_ms, arrival, peers);
        }
    }

    fn deliver_mail(&mut self, local_ms: u64, pump: &mut MemberPump<FileThreads>) {
        for mail in std::mem::take(self.mail) {
            match mail {
                Mail::Request(request) => pump.request(local_ms, request),
                Mail::Storage(reply) => pump.stored(local_ms, reply),
                Mail::Command(token, command) => pump.command(local_ms, token, command),
                Mail::SnapshotChecked(to, index, outcome) => {
                    pump.snapshot_checked(local_ms, to, index, outcome);
                }
                Mail::WrittenBack(reception, outcome) => {
                    pump.written_back(local_ms, reception, outcome);
                }
                Mail::Loaded(index, contents) => {
                    let first = pump.loaded(index, Some(contents));
                    self.main.extend(first.map(ToMain::Joined));
                }
                Mail::Served(index) => pump.served(local_ms, index),
            }
        }
    }

    fn dial(&mut self, _: u64, number: ConnectionNumber, address: &str, _: &mut Peers) {
        self.wires.dial(self.now_ms, self.host, number, address);
    }

    fn write(&mut self, number: ConnectionNumber, bytes: Bytes) {
        self.wires.write(self.host, number, bytes);
    }

    fn close(&mut self, _: u64, number: ConnectionNumber) {
        self.wires.close(self.now_ms, self.host, number);
    }

    fn flush(&mut self, local_ms: u64, _: &mut Member, peers: &mut Peers) {
        for (number, bytes) in self.wires.flush(self.now_ms, self.host) {
            peers.written(local_ms, number, bytes);
        }
    }

    fn has_database(&self) -> bool {
        self.machine.is_some()
    }

    fn post(&mut self, events: &mut Vec<ToDatabase>) {
        let Some(machine) = self.machine else {
            return;
        };
        for event in events.drain(..) {
            match &event {
                ToDatabase::Member(MemberEvent::Leads { .. }) => self.leading.begins(),
                ToDatabase::Member(MemberEvent::Follows { leader, .. }) => {
                    self.leading.ends();
                    let is_shown = self.row.as_ref().is_some_and(|row| row.is_connected);
                    if leader.is_none() && is_shown {
                        self.leading.loses_leader(self.now_ms);
                    }
                }
                _ => {}
            }
            machine.member(event);
        }
    }

    fn show_row(&mut self, _: u64, row: ServerRow) {
        if !row.is_connected {
            self.leading.shows_loss();
        }
        *self.row = Some(row);
        if std::mem::replace(self.is_row_shown, false) {
            self.main.push_back(ToMain::RowChanged);
        }
    }

    fn answer(&mut self, token: CommandToken, outcome: Result<String, String>) {
        self.observed.push(Observed::CommandDone(token, outcome));
    }

    fn left(&mut self) {
        *self.has_left = true;
        self.observed.push(Observed::Left);
    }

    fn failed(&mut self, reason: String) {
        self.observed.push(Observed::Failed(reason));
    }

    fn log(&mut self, local_ms: u64, level: Level, _: Option<Repeated>, text: &str) {
        let host = self.host;
        self.trace
            .line(format_args!("{local_ms} host {host}: {level:?}: {text}"));
    }

    fn goes_on(&mut self) -> bool {
        self.outputs += 1;
        self.is_at_rest() && !self.disk.is_down()
    }

    fn observe(&mut self, local_ms: u64, output: &Output) {
        let host = self.host;
        if !matches!(output, Output::Store(_)) {
            self.trace
                .detail(|| format!("{local_ms} member {host} -> {output:?}"));
        }
        let observed = match output {
            Output::Send { to, message } => {
                let vote = vote(self.sid, *to, message);
                vote.map(|(term, vote)| Observed::Voted(term, vote))
            }
            Output::Database(MemberEvent::Replaced { index, .. }) => {
                Some(Observed::Replaced(*index))
            }
            Output::Database(MemberEvent::Committed {
                through,
                term,
                entries,
            }) => Some(Observed::Committed {
                through: *through,
                term: *term,
                entries: entries.clone(),
            }),
            Output::Database(MemberEvent::Leads { term }) => Some(Observed::Leads(*term)),
            Output::Database(MemberEvent::Found { findings, .. }) => {
                Some(Observed::Found(findings.clone()))
            }
            Output::Refuse { from, reason } => Some(Observed::Refused(*from, reason.clone())),
            _ => None,
        };
        self.observed.extend(observed);
    }

    fn observe_peers(&mut self, local_ms: u64, output: &PeersOutput) {
        let host = self.host;
        if !matches!(output, PeersOutput::Write { .. }) {
            self.trace
                .detail(|| format!("{local_ms} peers {host} -> {output:?}"));
        }
        if let PeersOutput::LearnedCluster(cid) = output {
            self.observed.push(Observed::LearnedCluster(*cid));
        }
    }

    fn observe_growth(&mut self) {
        self.observed.push(Observed::Grown);
    }
}

/// Returns the vote in a message: its term, and the server that gets it.
fn vote(own: Sid, to: Sid, message: &PeerMessage) -> Option<(Term, Sid)> {
    match message {
        PeerMessage::VoteReply {
            term,
            is_prevote: false,
            is_granted: true,
            ..
        } => Some((*term, to)),
        PeerMessage::Vote {
            term,
            is_prevote: false,
            ..
        } => Some((*term, own)),
        _ => None,
    }
}
