//! Relays in a run: their hosts, the network between them and their sources, and their steps.
//!
//! Invariant: a relay reaches its source only over sockets, as any client does. A run does nothing
//! to a relay that it does not do to other servers.

use std::collections::BTreeMap;

use corvid_monitor::SessionId;

use super::faults::FAIR;
use super::relay_summary::RelayTally;
use super::{Choice, ClusterRun};
use crate::server::machine::{Machine, ToClient};
use crate::whole_cluster::doubts::Doubts;
use crate::whole_cluster::host::ClusterHost;
use crate::whole_cluster::location::Location;
use crate::whole_cluster::relay::{RelayHost, RelayStep};
use crate::whole_cluster::server::Server;
use crate::whole_cluster::sockets::Sockets;
use crate::whole_cluster::standalone::StandaloneHost;
use crate::whole_cluster::tenures::Tenures;
use crate::world::clock::Clock;
use crate::world::network::wires::Wires;

/// The relays of a run.
#[derive(Debug)]
pub(super) struct Relays {
    pub(super) hosts: Vec<RelayHost>,
    /// The network between relays and their sources.
    pub(super) wires: Wires,
    /// Sockets of running servers whose clients are relays.
    pub(super) sockets: BTreeMap<Location, Sockets>,
    /// Determines which transactions may be canceled.
    pub(super) doubts: Doubts,
    /// Tracks which session owned a lock at which commits.
    pub(super) tenures: Tenures,
    pub(super) tally: RelayTally,
}

impl Default for Relays {
    fn default() -> Relays {
        Relays {
            hosts: Vec::new(),
            wires: Wires::new(0, FAIR),
            sockets: BTreeMap::new(),
            doubts: Doubts::default(),
            tenures: Tenures::default(),
            tally: RelayTally::default(),
        }
    }
}

/// Returns the shards and databases of a running server.
pub(super) fn machine_at<'m>(
    members: &'m mut [ClusterHost],
    standalone: &'m mut Option<StandaloneHost>,
    relays: &'m mut [RelayHost],
    location: Location,
) -> Option<&'m mut Machine> {
    match location {
        Location::Member(number) => members[number].machine_mut(),
        Location::Standalone => standalone.as_mut()?.machine_mut(),
        Location::Relay(number) => relays[number].machine_mut(),
    }
}

impl ClusterRun {
    /// Adds relays: this many in each level. Each is a relay of all servers in the preceding level,
    /// or of some of them.
    pub(super) fn add_relays(&mut self, levels: &[usize]) {
        self.relays.wires = Wires::new(self.dice.draw(), self.faults.weather);
        let mut sources: Vec<Location> = self.locations().collect();
        for (level, count) in levels.iter().enumerate() {
            let mut locations = Vec::new();
            for _ in 0..*count {
                let number = self.relays.hosts.len();
                let remotes: Vec<String> =
                    sources.iter().map(|location| location.address()).collect();
                let rate = self.faults.hosts.draw_rate(&mut self.dice);
                let clock = Clock::new(0, self.dice.below(1_000_000) as u64, rate);
                let seed = self.dice.draw();
                let host = RelayHost::new(number, level + 1, remotes.join(","), seed, clock);
                self.relays.hosts.push(host);
                locations.push(Location::Relay(number));
            }
            sources = locations;
        }
        self.relays.tally.relays = self.relays.hosts.len() as u64;
    }

    pub(super) fn has_relays(&self) -> bool {
        !self.relays.hosts.is_empty()
    }

    /// Returns the locations of all servers.
    pub(super) fn locations(&self) -> impl Iterator<Item = Location> + use<> {
        let members = (0..self.hosts.len()).map(Location::Member);
        let standalone = self.standalone.iter().map(|_| Location::Standalone);
        let members: Vec<Location> = members.chain(standalone).collect();
        members
            .into_iter()
            .chain((0..self.relays.hosts.len()).map(Location::Relay))
    }

    /// Draws a server; for clients of relays mostly a relay.
    pub(super) fn draw_location(&mut self, is_for_relays: bool) -> Location {
        let members = self.hosts.len();
        if is_for_relays && self.dice.chance(90) {
            return Location::Relay(self.dice.below(self.relays.hosts.len()));
        }
        let number = self.dice.below(members + self.relays.hosts.len());
        match number.checked_sub(members) {
            None => Location::Member(number),
            Some(relay) => Location::Relay(relay),
        }
    }

    pub(super) fn server(&self, location: Location) -> &dyn Server {
        match location {
            Location::Member(number) => &self.hosts[number],
            Location::Standalone => self.standalone.as_ref().expect("there is one"),
            Location::Relay(number) => &self.relays.hosts[number],
        }
    }

    /// Judges the events at a server since the last check.
    pub(super) fn collect_at(&mut self, location: Location) -> Result<(), String> {
        match location {
            Location::Member(number) => self.collect(number),
            Location::Standalone => self.deliver(location),
            Location::Relay(number) => self.collect_relay(number),
        }
    }

    /// Returns the times of events in the network of relays, and of the probes of their sources.
    pub(super) fn relays_next_ms(&self) -> impl Iterator<Item = u64> + '_ {
        let probes = self
            .relays
            .sockets
            .iter()
            .filter_map(|(location, sockets)| {
                let server = self.server(*location);
                let is_running = server.is_running(self.now_ms);
                let deadline_ms = sockets.deadline_ms().filter(|_| is_running)?;
                Some(server.global_ms(deadline_ms))
            });
        self.relays.wires.next_ms().into_iter().chain(probes)
    }

    /// Starts a relay whose start is due. Returns false if no start is due.
    pub(super) fn start_relay(&mut self) -> bool {
        let is_due = |host: &RelayHost| host.start_ms.is_some_and(|at_ms| at_ms <= self.now_ms);
        let Some(number) = self.relays.hosts.iter().position(is_due) else {
            return false;
        };
        self.trace
            .line(format_args!("{} relay {number} starts", self.now_ms));
        self.relays.hosts[number].start(self.now_ms, &self.trace);
        self.relays.wires.join(Location::caller(number));
        self.open_sockets(Location::Relay(number));
        true
    }

    /// Ends the process of a relay. With `tells`, its operating system tells the other ends of its
    /// connections.
    pub(super) fn stop_relay(&mut self, number: usize, tells: bool) {
        self.trace
            .line(format_args!("{} relay {number} is down", self.now_ms));
        let location = Location::Relay(number);
        self.clients_lose(location);
        self.close_sockets(location, tells);
        let wires = &mut self.relays.wires;
        wires.stop(self.now_ms, Location::caller(number), tells);
        self.relays.hosts[number].process = None;
    }

    /// A server begins to listen for relays.
    pub(super) fn open_sockets(&mut self, location: Location) {
        if self.relays.hosts.is_empty() {
            return;
        }
        let sockets = Sockets::new(location.listener());
        self.relays.sockets.insert(location, sockets);
        let wires = &mut self.relays.wires;
        wires.start(location.listener(), &location.address());
    }

    /// A server has ended, and its sockets are closed.
    pub(super) fn close_sockets(&mut self, location: Location, tells: bool) {
        if self.relays.sockets.remove(&location).is_some() {
            let wires = &mut self.relays.wires;
            wires.stop(self.now_ms, location.listener(), tells);
        }
    }

    /// Lists the steps of relays, and of the sockets of their sources, that can be taken now.
    pub(super) fn relay_choices(&self, choices: &mut Vec<Choice>) {
        let wires = &self.relays.wires;
        for (number, host) in self.relays.hosts.iter().enumerate() {
            if let Some(process) = host.running(self.now_ms) {
                let steps = process.steps(host.now(self.now_ms), wires);
                choices.extend(steps.into_iter().map(|step| Choice::Relay(number, step)));
            }
        }
        for (location, sockets) in &self.relays.sockets {
            let server = self.server(*location);
            let local_ms = server.now(self.now_ms).mono_ms;
            if server.is_running(self.now_ms)
                && server.machine().is_some()
                && sockets.has_work(local_ms, wires)
            {
                choices.push(Choice::Sockets(*location));
            }
        }
    }

    pub(super) fn relay_acts(&mut self, number: usize, step: RelayStep) -> Result<(), String> {
        let now = self.relays.hosts[number].now(self.now_ms);
        if let Some(process) = &mut self.relays.hosts[number].process {
            process.act(step, now, self.now_ms, &mut self.relays.wires);
        }
        self.collect_relay(number)
    }

    /// A shard of a server polls the sockets of relays.
    pub(super) fn look_at_sockets(&mut self, location: Location) -> Result<(), String> {
        let now = self.server(location).now(self.now_ms);
        let machine = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            location,
        );
        if let (Some(machine), Some(sockets)) = (machine, self.relays.sockets.get_mut(&location)) {
            sockets
                .turn(now, self.now_ms, &mut self.relays.wires, machine)
                .map_err(|problem| format!("{location}: {problem}"))?;
        }
        self.collect_at(location)
    }

    /// Delivers a message of a server to a relay. Returns the message if it is for another client.
    pub(super) fn deliver_to_relay(
        &mut self,
        location: Location,
        session: SessionId,
        message: ToClient,
    ) -> Option<ToClient> {
        let machine = machine_at(
            &mut self.hosts,
            &mut self.standalone,
            &mut self.relays.hosts,
            location,
        );
        let (Some(machine), Some(sockets)) = (machine, self.relays.sockets.get_mut(&location))
        else {
            return Some(message);
        };
        sockets.deliver(
            self.now_ms,
            &mut self.relays.wires,
            machine,
            session,
            message,
        )
    }
}
