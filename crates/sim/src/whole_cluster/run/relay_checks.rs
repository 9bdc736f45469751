//! The checks of relays: after each of their steps, and when faults have ended.

use corvid_consensus::member::Role;
use corvid_log::cluster::Index;

use super::{ClusterRun, QUEUED_MAX, WIRE_BYTES_MAX};
use crate::server::workload::Content;
use crate::whole_cluster::host::ClusterHost;
use crate::whole_cluster::location::Location;
use crate::whole_cluster::sockets::Sockets;

/// A relay withholds contents older than its own until its own are 2 s old, by a clock that may run
/// at 140 percent.
const KEPT_BACK_MS: u64 = 1400;

impl ClusterRun {
    /// Judges the events at a relay since the last check.
    pub(super) fn collect_relay(&mut self, number: usize) -> Result<(), String> {
        self.deliver(Location::Relay(number))?;
        self.check_relay(number)
            .map_err(|problem| format!("relay {number}: {problem}"))
    }

    fn check_relay(&mut self, number: usize) -> Result<(), String> {
        let keeps_up = self.source_keeps_up(number);
        let of_older = self.source_went_back(number);
        let host = &mut self.relays.hosts[number];
        let level = host.level;
        let Some(process) = &mut host.process else {
            return Ok(());
        };
        if let Some(line) = &process.machine.refused_entry {
            return Err(line.clone());
        }
        let queued = process.queued();
        if queued > QUEUED_MAX {
            return Err(format!("{queued} messages wait"));
        }
        if process.bytes() > WIRE_BYTES_MAX {
            return Err(format!("{} bytes wait", process.bytes()));
        }
        if let Some(server_id) = process.source.session().server_id().filter(|_| level > 1) {
            self.relays.doubts.source(number, server_id, self.now_ms);
        }
        self.relays.tally.downloads += std::mem::take(&mut process.downloads);
        if std::mem::take(&mut process.has_applied) {
            let content = Content::of(process.machine.service().database());
            if self.standalone.is_none() {
                self.witness.check_prefix(&content)?;
            }
            let (seq, since_ms) = process.shown;
            let is_too_soon = !of_older && self.now_ms < since_ms + KEPT_BACK_MS;
            if content.seq < seq
                && (is_too_soon || keeps_up && process.leaderships == self.witness.leaderships())
            {
                return Err(format!(
                    "it goes back from transaction {seq}, which it has since {since_ms} ms, to {} at {} ms",
                    content.seq, self.now_ms
                ));
            }
            process.went_back += u64::from(content.seq < seq);
            self.relays.tally.went_back += u64::from(content.seq < seq);
            if content.seq != seq {
                process.shown = (content.seq, self.now_ms);
                process.leaderships = self.witness.leaderships();
            }
        }
        let sockets = self.relays.sockets.values().map(Sockets::bytes);
        let bytes = self.relays.wires.bytes() + sockets.sum::<usize>();
        if bytes > WIRE_BYTES_MAX {
            return Err(format!("{bytes} bytes are under way to relays and back"));
        }
        Ok(())
    }

    /// Whether the source of a relay is a member that keeps up. Some members may lag for longer
    /// than relays withhold contents:
    /// - any, while the leadership changes;
    /// - one that has lost its leader since the relay got its contents: it shows that it is
    ///   connected until two elections have passed, and a heartbeat does not show how far the leader is;
    /// - one that has stored nothing of a new leader yet: only then do heartbeats tell of commits.
    ///
    /// A member whose file takes no records shows that it is not connected while it knows of
    /// commits that it lacks.
    fn source_keeps_up(&self, relay: usize) -> bool {
        let Some(Location::Member(number)) = self.source_of(relay) else {
            return false;
        };
        let Some(process) = &self.hosts[number].process else {
            return false;
        };
        let shown = self.relays.hosts[relay].process.as_ref();
        let since_ms = shown.map_or(0, |relay| relay.shown.1);
        if process.leading.has_lost_leader(since_ms) {
            return false;
        }
        let status = process.pump.member.status(0);
        let leads = |host: &ClusterHost| {
            let Some(process) = &host.process else {
                return false;
            };
            let leading = process.pump.member.status(0);
            let mut servers = leading.servers.iter();
            let has_stored = servers
                .find(|server| server.sid == status.sid)
                .is_none_or(|server| server.match_index > Some(Index(0)));
            leading.role == Role::Leader && has_stored
        };
        let leader = self
            .hosts
            .iter()
            .find(|host| Some(host.identity.sid) == status.leader);
        leader.is_some_and(leads)
    }

    /// Whether the source of a relay is a relay that has gone back. Its clients follow it at once,
    /// also those that were of another source before.
    fn source_went_back(&self, relay: usize) -> bool {
        let Some(Location::Relay(source)) = self.source_of(relay) else {
            return false;
        };
        let process = self.relays.hosts[source].process.as_ref();
        process.is_some_and(|process| process.went_back > 0)
    }

    /// Ends the faults of relays.
    pub(super) fn heal_relays(&mut self) {
        let wires = &mut self.relays.wires;
        wires.set_weather(super::faults::FAIR);
        wires.mend_all();
        wires.hurry(self.now_ms);
        for host in &mut self.relays.hosts {
            host.paused_ms = host.paused_ms.min(self.now_ms);
            host.clock.set_rate(self.now_ms, 100);
            host.start_ms = host.start_ms.map(|_| self.now_ms);
        }
    }

    /// Describes a relay that lacks contents of the cluster, or reports that it does.
    pub(super) fn relay_problem(&self) -> Option<String> {
        let mut problems = (0..self.relays.hosts.len()).filter_map(|number| {
            let problem = self.problem_of_relay(number).err()?;
            Some(format!("relay {number} {problem}"))
        });
        problems.next()
    }

    fn problem_of_relay(&self, number: usize) -> Result<(), String> {
        let process = self.relays.hosts[number].process.as_ref();
        let process = process.ok_or("is down")?;
        if !process.machine.is_served() {
            return Err("has no contents".to_owned());
        }
        if !process.source.is_reachable() || !process.machine.shows_connected() {
            return Err("is not connected".to_owned());
        }
        let connection = process.connection();
        let is_live = |it| self.relays.wires.is_live(Location::caller(number), it);
        if !connection.is_some_and(is_live) {
            return Err("has a dead connection".to_owned());
        }
        if !process.is_idle() {
            return Err(format!("waits: {:?}", process.source.counts()));
        }
        let database = process.machine.service().database();
        if self.standalone.is_none() {
            let commit = self.witness.commit();
            self.witness.check_content(commit, database, false)?;
        }
        database.check_invariants()
    }
}
