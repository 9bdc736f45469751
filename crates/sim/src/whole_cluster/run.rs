//! One run: servers, clients and a network under a scheduler that draws which part acts next and
//! which faults happen.

mod actions;
mod calm;
mod checks;
mod clients;
mod faults;
mod judging;
mod losses;
#[cfg(test)]
mod plays;
mod relay_checks;
mod relay_faults;
mod relay_summary;
mod relays;
mod stage;
mod standalone;
mod summary;

use std::collections::BTreeMap;

use corvid_consensus::member::{Command, CommandToken};
use corvid_data::Uuid;
use corvid_json::Value;
use corvid_log::cluster::{Cid, Sid};

use super::host::ClusterHost;
use super::location::Location;
use super::opening::{self, Identity};
use super::process::Step;
use super::relay::RelayStep;
use super::server::Server;
use super::standalone::StandaloneHost;
use super::witness::Witness;
use crate::server::client::View;
use crate::server::machine;
use crate::server::workload;
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::disk::{Crash, SimDisk};
use crate::world::host_faults;
use crate::world::network::wires::Wires;
use crate::world::seeds;
use crate::world::trace::{Trace, Tracing};

use clients::SimClient;
use faults::Faults;
pub use relay_summary::{RelaySummary, RelayTally};
use relays::Relays;
pub(crate) use stage::Stage;
use stage::ToGuest;
pub use summary::Summary;

/// Number of actions by clients, operators and chance in a run.
const ACTIONS: usize = 60;
/// Maximum number of steps in one millisecond.
const STEPS_PER_MS_MAX: u64 = 50_000;
/// Maximum number of messages and events that wait in one process.
const QUEUED_MAX: usize = 20_000;
/// Maximum number of bytes in flight on all connections.
const WIRE_BYTES_MAX: usize = 1 << 26;

/// A step of the whole simulation.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// A part of a server acts.
    Server(usize, Step),
    /// A part of the standalone server acts.
    Standalone(machine::Choice),
    /// A part of a relay acts.
    Relay(usize, RelayStep),
    /// A shard of a server polls the sockets of relays.
    Sockets(Location),
    /// A shard reads a client's message.
    Send(usize),
    /// A client has read everything.
    Read(usize),
}

struct ClusterRun {
    dice: Dice,
    trace: Trace,
    faults: Faults,
    now_ms: u64,
    wires: Wires,
    hosts: Vec<ClusterHost>,
    /// A standalone server in place of the cluster, if the run has one.
    standalone: Option<StandaloneHost>,
    /// Relays of the cluster, if the run has any.
    relays: Relays,
    clients: Vec<SimClient>,
    /// Messages to sessions that another simulation has opened, if it has any.
    guests: Option<Vec<ToGuest>>,
    view: View,
    witness: Witness,
    next_id: i64,
    next_txn: i64,
    /// Commands in flight, with their hosts.
    commands: BTreeMap<CommandToken, (usize, Command)>,
    next_token: u64,
    /// A conversion is in flight.
    is_converting: bool,
    is_wide: bool,
    /// Clients do not connect to this server.
    avoided: Option<Location>,
    /// The current millisecond, and the number of steps in it.
    steps_at: (u64, u64),
    summary: Summary,
}

/// Runs a seed.
///
/// # Errors
/// A description of the failure.
pub fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
    finish(ClusterRun::new(seed, Trace::new(tracing))).map(|(summary, _)| summary)
}

/// Runs a seed with relays.
///
/// # Errors
/// A description of the failure.
pub fn run_relays(seed: u64, tracing: Tracing) -> Result<RelaySummary, String> {
    let (servers, relays) = finish(ClusterRun::with_relays(seed, Trace::new(tracing)))?;
    Ok(RelaySummary { servers, relays })
}

fn finish(mut run: ClusterRun) -> Result<(Summary, RelayTally), String> {
    let outcome = run.run();
    if let Err(problem) = &outcome {
        run.trace.line(format_args!("PROBLEM: {problem}"));
    }
    run.summary.hash = run.trace.hash();
    run.summary.virtual_ms = run.now_ms;
    run.summary.commits = run.witness.commits();
    run.summary.acknowledged = run.witness.acknowledged_count();
    run.summary.refused = run.witness.failed_count();
    run.summary.repeated = run.witness.repeated;
    run.summary.leaderships = run.witness.leaderships();
    run.summary.broken_connections = run.wires.broken;
    run.relays.tally.broken_connections = run.relays.wires.broken;
    run.relays.tally.asserted = run.relays.tenures.judged;
    outcome.map(|()| (run.summary, run.relays.tally))
}

fn uuid(dice: &mut Dice) -> Uuid {
    let high = u128::from(dice.draw());
    Uuid((high << 64 | u128::from(dice.draw())).to_be_bytes())
}

/// One run in this many has many clients at its relays and members.
const LARGE_EVERY: u64 = 64;
/// Number of clients for each server in such a run.
const MANY_CLIENTS: usize = 200;

impl ClusterRun {
    fn new(seed: u64, trace: Trace) -> ClusterRun {
        let mut dice = Dice::new(seed);
        let faults = Faults::draw(&mut dice);
        let count = *dice.pick(&[1, 2, 3, 3, 3, 3, 4, 5, 5, 7]);
        let clients = (0..2 + dice.below(5)).map(|_| SimClient::draw(&mut dice));
        let clients = clients.collect();
        ClusterRun::of(dice, faults, count, clients, trace)
    }

    /// Returns a run with three servers, and relays in one level or two.
    fn with_relays(seed: u64, trace: Trace) -> ClusterRun {
        let mut dice = Dice::new(seed);
        let faults = Faults::draw_with_relays(&mut dice);
        let of_relays = (0..2 + dice.below(4)).map(|_| SimClient::draw_of_relays(&mut dice));
        let mut clients: Vec<SimClient> = of_relays.collect();
        clients.extend((0..1 + dice.below(2)).map(|_| SimClient::draw(&mut dice)));
        let levels = *dice.pick(&[[1, 0], [2, 0], [1, 2], [2, 2], [2, 3]]);
        if seed % LARGE_EVERY == LARGE_EVERY - 1 {
            let at_relays = MANY_CLIENTS * levels.iter().sum::<usize>();
            clients.extend((0..at_relays).map(|_| SimClient::draw_of_relays(&mut dice)));
            clients.extend((0..MANY_CLIENTS * 3).map(|_| SimClient::draw(&mut dice)));
        }
        let mut run = ClusterRun::of(dice, faults, 3, clients, trace);
        run.add_relays(&levels);
        run
    }

    /// Returns a run with these faults and this number of servers.
    fn of(
        dice: Dice,
        faults: Faults,
        count: usize,
        clients: Vec<SimClient>,
        trace: Trace,
    ) -> ClusterRun {
        let schema = Value::parse(workload::schema_json(false).as_bytes()).expect("a constant");
        ClusterRun::of_schema(dice, faults, count, clients, trace, &schema)
    }

    /// Returns the same with a database of this schema.
    fn of_schema(
        mut dice: Dice,
        faults: Faults,
        count: usize,
        clients: Vec<SimClient>,
        trace: Trace,
        schema: &Value,
    ) -> ClusterRun {
        let cid = Cid::new(uuid(&mut dice));
        let identities: Vec<Identity> = (0..count)
            .map(|number| Identity {
                sid: Sid(uuid(&mut dice)),
                address: address(number),
                cid,
            })
            .collect();
        let listed = identities.clone();
        let mut hosts = Vec::new();
        for identity in identities {
            let servers = opening::servers(&listed);
            let file = opening::first_file(&identity, &servers, schema);
            let seed = dice.draw();
            let disk = SimDisk::new(seed, trace.clone(), file);
            disk.keep_history(seeds::policy(seed));
            let rate = faults.hosts.draw_rate(&mut dice);
            let clock = Clock::new(0, dice.below(1_000_000) as u64, rate);
            hosts.push(ClusterHost::new(identity, disk, dice.draw(), clock));
        }
        let summary = Summary {
            servers: count as u64,
            ..Summary::default()
        };
        ClusterRun {
            clients,
            guests: None,
            wires: Wires::new(dice.draw(), faults.weather),
            dice,
            trace,
            faults,
            now_ms: 1,
            hosts,
            standalone: None,
            relays: Relays::default(),
            view: View::new(),
            witness: Witness::new(),
            next_id: 0,
            next_txn: 0,
            commands: BTreeMap::new(),
            next_token: 0,
            is_converting: false,
            is_wide: false,
            avoided: None,
            steps_at: (0, 0),
            summary,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.advance(5000)?;
        for _ in 0..ACTIONS {
            if self.has_relays() && self.dice.chance(40) {
                self.do_something_to_relays()?;
            } else {
                self.do_something()?;
            }
            let for_ms = *self.dice.pick(&[0, 1, 20, 200, 1000]);
            self.advance(for_ms)?;
        }
        self.calm_down()
    }

    /// Lets this much virtual time pass.
    fn advance(&mut self, for_ms: u64) -> Result<(), String> {
        let until_ms = self.now_ms + for_ms;
        loop {
            while self.step()? {}
            match self.next_ms() {
                Some(next_ms) if next_ms <= until_ms => self.now_ms = next_ms.max(self.now_ms + 1),
                _ => break,
            }
        }
        self.now_ms = self.now_ms.max(until_ms);
        Ok(())
    }

    /// Returns the time of the next event, ms.
    fn next_ms(&self) -> Option<u64> {
        let now_ms = self.now_ms;
        let servers = self
            .locations()
            .filter_map(|it| self.server(it).next_ms(now_ms));
        let clients = self.clients.iter().filter_map(SimClient::next_ms);
        let wires = self.wires.next_ms().into_iter();
        let next_ms = servers
            .chain(clients)
            .chain(wires)
            .chain(self.relays_next_ms());
        next_ms.min().map(|next_ms| next_ms.max(now_ms))
    }

    /// Takes one step. Returns false when no step is possible now.
    fn step(&mut self) -> Result<bool, String> {
        let (at_ms, steps) = self.steps_at;
        let is_same = at_ms == self.now_ms;
        self.steps_at = (self.now_ms, if is_same { steps + 1 } else { 0 });
        let mut choices = Vec::new();
        for number in 0..self.hosts.len() {
            if self.hosts[number]
                .start_ms
                .is_some_and(|at| at <= self.now_ms)
            {
                self.start(number)?;
                return Ok(true);
            }
        }
        if self.start_standalone()? || self.start_relay() {
            return Ok(true);
        }
        self.leave_followers()?;
        self.wires.deliver(self.now_ms);
        self.relays.wires.deliver(self.now_ms);
        for (number, host) in self.hosts.iter().enumerate() {
            if let Some(process) = host.running(self.now_ms) {
                let now = host.now(self.now_ms);
                let steps = process.steps(now, self.now_ms, &self.wires);
                choices.extend(steps.into_iter().map(|step| Choice::Server(number, step)));
            }
        }
        self.standalone_choices(&mut choices);
        self.relay_choices(&mut choices);
        self.client_choices(&mut choices);
        if steps > STEPS_PER_MS_MAX {
            return Err(format!("the cluster spins: {choices:?}"));
        }
        if choices.is_empty() {
            return Ok(false);
        }
        if self.dice.chance(3) {
            self.now_ms += 1;
        }
        self.summary.steps += 1;
        match choices[self.dice.below(choices.len())] {
            Choice::Server(number, step) => self.act(number, step)?,
            Choice::Standalone(choice) => self.standalone_acts(choice)?,
            Choice::Relay(number, step) => self.relay_acts(number, step)?,
            Choice::Sockets(location) => self.look_at_sockets(location)?,
            Choice::Send(client) => self.client_sends(client)?,
            Choice::Read(client) => self.client_reads(client)?,
        }
        Ok(true)
    }

    fn act(&mut self, number: usize, step: Step) -> Result<(), String> {
        let host = &mut self.hosts[number];
        let now = host.now(self.now_ms);
        let Some(process) = &mut host.process else {
            return Ok(());
        };
        if step == Step::Disk {
            let took_ms = self.dice.below(self.faults.hosts.disk_ms + 1) as u64;
            process.disk_ms = self.now_ms + took_ms;
        }
        process
            .act(step, now, self.now_ms, &mut self.wires)
            .map_err(|problem| format!("host {number}: {problem}"))?;
        self.collect(number)
    }

    /// Starts the server of a host.
    fn start(&mut self, number: usize) -> Result<(), String> {
        self.trace
            .line(format_args!("{} host {number} starts", self.now_ms));
        let host = &mut self.hosts[number];
        host.start(number, self.now_ms, &mut self.witness, &self.trace)
            .map_err(|problem| format!("host {number}: {problem}"))?;
        let slow_ms = *self.dice.pick(&[0, 0, 20, 2000]);
        if let Some(process) = &mut host.process {
            process.disk_ms = self.now_ms + self.dice.below(slow_ms + 1) as u64;
        }
        let address = host.identity.address.clone();
        self.wires.start(number, &address);
        self.open_sockets(Location::Member(number));
        self.relays.doubts.member_started(self.now_ms);
        self.act(number, Step::Member)
    }

    /// The machine of a host has gone down.
    fn crashed(&mut self, number: usize) {
        let crash = self.faults.hosts.draw_crash(&mut self.dice);
        let down_ms = host_faults::draw_down_ms(&mut self.dice);
        self.stop(number, crash);
        self.rot(number);
        self.hosts[number].start_ms = Some(self.now_ms + down_ms);
    }

    /// Ends the server of a host, by any kind of crash. The server does not restart by itself.
    fn stop(&mut self, number: usize, crash: Crash) {
        self.trace.line(format_args!(
            "{} host {number} is down: {crash:?}",
            self.now_ms
        ));
        self.relays.doubts.member_ended(self.now_ms);
        self.clients_lose(Location::Member(number));
        self.close_sockets(Location::Member(number), crash == Crash::Kill);
        self.commands.retain(|_, (of, _)| *of != number);
        let host = &mut self.hosts[number];
        host.process = None;
        let seen = host.disk.restart(crash);
        self.summary.restarts += 1;
        self.summary.power_losses += u64::from(seen == Crash::PowerLoss);
        self.wires.stop(self.now_ms, number, crash == Crash::Kill);
    }
}

/// Returns the address of a server for other members.
fn address(number: usize) -> String {
    format!("tcp:10.0.0.{}:6641", number + 1)
}
