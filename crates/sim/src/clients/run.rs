//! One run: clients, two hosts and the network between them under a scheduler that draws which part
//! acts next and which faults happen.

use corvid_service::Now;

use super::host::ServerHost;
use super::ledger::{End, Ledger};
use super::sim_client::{HOSTS, SimClient};
use super::{content, tree, workload};
use crate::server::machine::Choice;
use crate::world::dice::Dice;
use crate::world::network::connections::{Caller, ConnId, Connections, To};
use crate::world::seeds::{Simulation, Tracing};
use crate::world::trace::Trace;

const CLIENTS: usize = 4;

/// Number of actions by clients, operators and chance in a run.
const ACTIONS: usize = 160;

/// One run in this many has relays between clients and servers.
const TREE_EVERY: u64 = 2;

/// Statistics of a run, which show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Hash of the trace.
    pub hash: u64,
    /// Transactions whose clients got a success.
    pub committed: u64,
    /// Transactions whose clients got a failure.
    pub refused: u64,
    /// Transactions with unknown outcome.
    pub unknown: u64,
    /// Connections that were cut.
    pub cuts: u64,
    /// Connections on which nothing arrived for a while, and servers that did nothing for a while.
    pub stalls: u64,
    /// Servers that were killed and restarted.
    pub restarts: u64,
    /// Number of times that the other server took over.
    pub fail_overs: u64,
    /// Conversions that were requested.
    pub conversions: u64,
    /// Conditions that were changed.
    pub conditions: u64,
    /// Fetches that were begun.
    pub fetches: u64,
    /// Runs with relays between clients and servers.
    pub trees: u64,
    /// Transactions whose clients got a success from a relay.
    pub relayed: u64,
    /// Transactions with ids whose outcome no server could find out, in runs with relays.
    pub lost: u64,
    /// Relays that were killed.
    pub relay_kills: u64,
    /// Connections between relays and their sources that broke.
    pub relay_breaks: u64,
}

impl Simulation for Summary {
    const OPTION: &'static str = "--clients ";

    fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
        run(seed, tracing)
    }

    fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash;
        self.committed += other.committed;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.cuts += other.cuts;
        self.stalls += other.stalls;
        self.restarts += other.restarts;
        self.fail_overs += other.fail_overs;
        self.conversions += other.conversions;
        self.conditions += other.conditions;
        self.fetches += other.fetches;
        self.trees += other.trees;
        self.relayed += other.relayed;
        self.lost += other.lost;
        self.relay_kills += other.relay_kills;
        self.relay_breaks += other.relay_breaks;
    }
}

/// A part that can act.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Server(usize, Choice),
    /// A host connects to its source.
    Call(usize),
    Client(usize),
    Arrival(ConnId, To),
}

pub(super) struct ClientRun {
    pub(super) dice: Dice,
    pub(super) trace: Trace,
    pub(super) now_ms: u64,
    pub(super) hosts: [ServerHost; 2],
    /// The host that accepts writes, or is about to.
    pub(super) active: usize,
    /// The token of the role change, while the host that takes over does not have its new role yet.
    handing_over: Option<u64>,
    tokens: u64,
    pub(super) network: Connections,
    pub(super) clients: Vec<SimClient>,
    pub(super) ledger: Ledger,
    is_wide: bool,
    pub(super) summary: Summary,
}

/// Runs a seed: two servers and their clients, or in some runs a cluster with relays.
///
/// # Errors
/// A description of the failure.
pub fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
    let trace = Trace::new(tracing);
    if seed % TREE_EVERY == TREE_EVERY - 1 {
        return tree::run(seed, &trace);
    }
    let mut run = ClientRun::new(seed, &trace)?;
    let outcome = run.run();
    if let Err(problem) = &outcome {
        run.trace.line(format_args!("PROBLEM: {problem}"));
    }
    let summary = Summary {
        hash: run.trace.hash(),
        committed: run.ledger.count(End::Committed),
        refused: run.ledger.count(End::Refused),
        unknown: run.ledger.count(End::Unknown),
        ..run.summary
    };
    outcome.map(|()| summary)
}

/// Returns the host at each address, with this active host.
pub(super) fn pair(active: usize) -> impl Fn(&str) -> usize {
    move |remote| {
        let own = HOSTS.iter().position(|name| *name == remote);
        own.unwrap_or(active)
    }
}

impl ClientRun {
    fn new(seed: u64, trace: &Trace) -> Result<ClientRun, String> {
        let mut dice = Dice::new(seed);
        let mut host =
            |number| ServerHost::new(number, dice.draw(), trace, workload::first_file(true));
        let hosts = [host(0), host(1)];
        let network = Connections::new(dice.draw());
        let mut run = ClientRun {
            dice,
            trace: trace.clone(),
            now_ms: 1000,
            hosts,
            active: 0,
            handing_over: None,
            tokens: 0,
            network,
            clients: Vec::new(),
            ledger: Ledger::default(),
            is_wide: true,
            summary: Summary::default(),
        };
        run.start(0)?;
        run.start(1)?;
        for number in 0..CLIENTS {
            let mut client = SimClient::new(number, &mut run.dice, run.now_ms, trace);
            client.output(run.now_ms, &pair(run.active), &mut run.network)?;
            run.clients.push(client);
        }
        Ok(run)
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..ACTIONS {
            self.do_something()?;
            let steps = self.dice.below(16);
            self.advance(steps)?;
        }
        self.run_until_idle()
    }

    pub(super) fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 1_700_000_000_000 + self.now_ms as i64,
        }
    }

    fn do_something(&mut self) -> Result<(), String> {
        let chosen = self.dice.below(CLIENTS);
        let now_ms = self.now_ms;
        match self.dice.below(100) {
            0..40 => self.clients[chosen].transact(&mut self.dice, &mut self.ledger)?,
            40..43 => self.clients[chosen].give_up(&mut self.dice, &mut self.ledger)?,
            43..48 => {
                self.summary.conditions += 1;
                self.clients[chosen].want(now_ms, &mut self.dice);
            }
            48..51 => self.clients[chosen].lock(now_ms, &mut self.dice),
            51..56 => {
                self.summary.fetches += 1;
                self.clients[chosen].fetch(&mut self.dice);
            }
            56..60 => self.clients[chosen].check()?,
            60..64 => self.clients[chosen].is_deaf ^= true,
            64..70 => self.cut(),
            70..73 => self.stall(),
            73..76 => self.restart()?,
            76..78 => self.fail_over()?,
            78..80 => self.convert(chosen),
            80..82 => {
                let host = self.dice.below(2);
                self.hosts[host].compact(0);
            }
            82..84 => self.run_until_idle()?,
            84..87 => self.now_ms += self.dice.below(3000) as u64,
            _ => self.advance(60)?,
        }
        let host_of = pair(self.active);
        self.clients[chosen].output(now_ms, &host_of, &mut self.network)
    }

    fn cut(&mut self) {
        let ids = self.network.ids();
        if !ids.is_empty() {
            let id = *self.dice.pick(&ids);
            let late_ms = if self.dice.chance(50) { 0 } else { 60_000 };
            self.trace.line(format_args!("{id:?} is cut"));
            self.summary.cuts += 1;
            self.network.cut(self.now_ms, id, late_ms);
        }
    }

    fn stall(&mut self) {
        self.summary.stalls += 1;
        let for_ms = *self.dice.pick(&[500, 3000, 20_000, 100_000]);
        let ids = self.network.ids();
        if ids.is_empty() || self.dice.chance(40) {
            let host = self.dice.below(2);
            self.trace
                .line(format_args!("host {host} freezes for {for_ms} ms"));
            self.hosts[host].frozen_until_ms = self.now_ms + for_ms;
        } else {
            let id = *self.dice.pick(&ids);
            self.trace
                .line(format_args!("{id:?} stalls for {for_ms} ms"));
            self.network.stall(self.now_ms, id, for_ms);
        }
    }

    /// Kills a server, or starts a server that is down.
    fn restart(&mut self) -> Result<(), String> {
        let host = self.dice.below(2);
        if !self.hosts[host].is_up() {
            return self.start(host);
        }
        self.kill(host);
        if self.dice.chance(60) {
            self.start(host)?;
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, host: usize) {
        let is_heard = self.dice.chance(70);
        self.trace
            .line(format_args!("host {host} is killed, heard: {is_heard}"));
        self.summary.restarts += 1;
        self.hosts[host].kill(self.now_ms, &mut self.network, is_heard);
    }

    pub(super) fn start(&mut self, host: usize) -> Result<(), String> {
        let follows = (host != self.active).then_some(self.active);
        self.trace
            .line(format_args!("host {host} starts, follows {follows:?}"));
        let now = self.now();
        let outcome = self.hosts[host].start(now, &mut self.dice, follows);
        outcome.map_err(|problem| format!("host {host}: {problem}"))?;
        if follows.is_none() && self.handing_over.take().is_some() {
            self.taken_over(host);
        }
        Ok(())
    }

    /// Lets the other host take over. The active host is killed, or becomes the other's backup.
    fn fail_over(&mut self) -> Result<(), String> {
        let (from, to) = (self.active, 1 - self.active);
        if self.handing_over.is_some() || !self.hosts[to].is_up() {
            return Ok(());
        }
        self.trace.line(format_args!("host {to} takes over"));
        self.summary.fail_overs += 1;
        self.active = to;
        if self.dice.chance(50) {
            if self.hosts[from].is_up() {
                self.kill(from);
            }
        } else {
            self.hosts[from].follow(self.now_ms, Some(to), 0);
        }
        self.tokens += 1;
        self.handing_over = Some(self.tokens);
        self.hosts[to].follow(self.now_ms, None, self.tokens);
        // The address moves: connections to the old host end, and the servers are not notified.
        for id in self.network.ids() {
            let conn = self.network.get(id);
            let is_other =
                conn.is_some_and(|conn| conn.host == from && conn.caller != Caller::Host(to));
            if is_other && self.dice.chance(70) {
                self.network.cut(self.now_ms, id, 60_000);
            }
        }
        Ok(())
    }

    fn convert(&mut self, chosen: usize) {
        self.is_wide ^= true;
        let params = format!(r#"["A",{}]"#, workload::schema_json(self.is_wide));
        let asked = self.clients[chosen]
            .idl
            .session()
            .send_request("convert", params.as_bytes());
        self.trace
            .line(format_args!("convert, wide: {}, {asked:?}", self.is_wide));
        self.summary.conversions += u64::from(asked.is_some());
    }

    /// Takes up to this many steps.
    pub(super) fn advance(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            if !self.step()? {
                self.wait();
            }
        }
        Ok(())
    }

    pub(super) fn actors(&self) -> Vec<Actor> {
        let now = self.now();
        let mut actors = Vec::new();
        for (number, host) in self.hosts.iter().enumerate() {
            actors.extend(
                host.choices(now)
                    .into_iter()
                    .map(|choice| Actor::Server(number, choice)),
            );
            if host.is_call_due(self.now_ms) {
                actors.push(Actor::Call(number));
            }
        }
        let ready = self.network.ready(self.now_ms);
        for (number, client) in self.clients.iter().enumerate() {
            // A client that is awake reads before it checks its clock.
            let conn = client.conn();
            let has_mail = conn.is_some_and(|conn| ready.contains(&(conn, To::Caller)));
            let is_due = client.wake_ms().is_some_and(|at_ms| at_ms <= self.now_ms);
            if is_due && !has_mail && !client.is_deaf {
                actors.push(Actor::Client(number));
            }
        }
        for (id, to) in ready {
            let is_accepted = self
                .network
                .get(id)
                .is_some_and(|conn| match (to, conn.caller) {
                    (To::Server, _) => self.hosts[conn.host].accepts(self.now_ms, id),
                    (To::Caller, Caller::Client(client)) => {
                        let client = &self.clients[client];
                        !client.is_deaf && client.idl.session_state().wants_input()
                    }
                    (To::Caller, Caller::Host(_)) => true,
                });
            if is_accepted {
                actors.push(Actor::Arrival(id, to));
            }
        }
        actors
    }

    /// Takes one step. Returns false when no step is possible now.
    pub(super) fn step(&mut self) -> Result<bool, String> {
        let actors = self.actors();
        if actors.is_empty() {
            return Ok(false);
        }
        let actor = *self.dice.pick(&actors);
        if self.dice.chance(10) {
            self.now_ms += 1;
        }
        let now = self.now();
        match actor {
            Actor::Server(host, choice) => self.hosts[host].act(now, choice, &mut self.dice),
            Actor::Call(host) => self.hosts[host].call(self.now_ms, &mut self.network),
            Actor::Client(client) => self.clients[client]
                .tick(
                    self.now_ms,
                    &pair(self.active),
                    &mut self.network,
                    &mut self.ledger,
                )
                .map_err(|problem| format!("client {client}: {problem}"))?,
            Actor::Arrival(id, to) => self.arrive(id, to)?,
        }
        for host in 0..self.hosts.len() {
            let roles = self.hosts[host].collect(now, &mut self.network);
            if self
                .handing_over
                .is_some_and(|token| roles.contains(&token))
            {
                self.handing_over = None;
                self.taken_over(host);
            }
        }
        Ok(true)
    }

    /// Notes that a host begins to accept writes. Transactions that it lacks at this moment are
    /// lost.
    fn taken_over(&mut self, host: usize) {
        let machine = self.hosts[host].machine();
        let held = machine.and_then(|machine| content::transactions(machine.service().database()));
        self.trace
            .line(format_args!("host {host} has taken over with {held:?}"));
        self.ledger.taken_over(&held.unwrap_or_default());
    }

    fn arrive(&mut self, id: ConnId, to: To) -> Result<(), String> {
        let now = self.now();
        let Some(conn) = self.network.get(id) else {
            return Ok(());
        };
        let (caller, host) = (conn.caller, conn.host);
        let Some(parcel) = self.network.take(id, to) else {
            return Ok(());
        };
        let network = &mut self.network;
        let is_taken = match (to, caller) {
            (To::Server, _) => self.hosts[host].take(now, id, parcel, network)?,
            (To::Caller, Caller::Host(number)) => {
                self.hosts[number].take_from_source(id, parcel, network)?
            }
            (To::Caller, Caller::Client(number)) => {
                let client = &mut self.clients[number];
                client
                    .take(self.now_ms, id, parcel, network, &mut self.ledger)
                    .and_then(|()| client.output(self.now_ms, &pair(self.active), network))
                    .map_err(|problem| format!("client {number}: {problem}"))?;
                true
            }
        };
        if !is_taken {
            self.network.close(self.now_ms, id, to);
        }
        Ok(())
    }

    /// Lets time pass until a step is possible.
    pub(super) fn wait(&mut self) {
        let now = self.now();
        let hosts = self.hosts.iter().filter_map(|host| host.next_ms(now));
        let clients = self.clients.iter().filter_map(SimClient::wake_ms);
        let all = hosts.chain(clients).chain(self.network.next_ms());
        let frozen = self.hosts.iter().map(|host| host.frozen_until_ms);
        let next_ms = all.chain(frozen).filter(|at_ms| *at_ms > self.now_ms).min();
        self.now_ms = next_ms.unwrap_or(self.now_ms + 1000);
    }

    /// Whether the host that takes over has its new role.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handing_over.is_none()
    }
}
