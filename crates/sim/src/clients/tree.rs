//! A run with relays: clients, and in place of the two hosts a standalone server or a cluster of
//! one server or three, with relays in front of it ([`Stage`]). Most clients know relays only, some
//! know its servers too.
//!
//! Invariant: the ledger and the witness of a cluster know the same transactions. The witness finds
//! one that is committed twice, committed although its client was told otherwise, or counted in
//! another place than its client was told. With a standalone server, one that was executed twice
//! makes the count differ from the size of the set.

use std::collections::BTreeMap;

use super::ledger::{End, Ledger, News};
use super::run::Summary;
use super::sessions::Sessions;
use super::sim_client::SimClient;
use super::{content, workload};
use crate::server::machine::ToClient;
use crate::whole_cluster::Stage;
use crate::world::dice::Dice;
use crate::world::network::connections::{Caller, ConnId, Connections, To};
use crate::world::trace::Trace;

const CLIENTS: usize = 4;

/// Number of actions by clients, operators and chance in a run.
const ACTIONS: usize = 120;

/// Everything must be well within this time after the last fault, ms.
const BOUND_MS: u64 = 120_000;

/// Maximum number of steps of clients and of the network in one millisecond.
const STEPS_PER_MS_MAX: u64 = 50_000;

/// A part outside the stage that can act.
#[derive(Clone, Copy, Debug)]
enum Actor {
    Client(usize),
    Arrival(ConnId, To),
}

/// The sessions of the clients at one server.
struct Door {
    life: u64,
    sessions: Sessions,
}

struct TreeRun {
    dice: Dice,
    trace: Trace,
    stage: Stage,
    servers: Vec<(usize, String)>,
    doors: BTreeMap<usize, Door>,
    network: Connections,
    clients: Vec<SimClient>,
    ledger: Ledger,
    is_wide: bool,
    /// The current millisecond, and the number of steps in it.
    steps_at: (u64, u64),
    summary: Summary,
}

/// Runs a seed.
///
/// # Errors
/// A description of the failure.
pub(super) fn run(seed: u64, trace: &Trace) -> Result<Summary, String> {
    let mut run = TreeRun::new(seed, trace);
    let outcome = run.run();
    if let Err(problem) = &outcome {
        trace.line(format_args!("PROBLEM: {problem}"));
    }
    let (relays, restarts) = run.stage.tally();
    let summary = Summary {
        hash: trace.hash(),
        committed: run.ledger.count(End::Committed),
        refused: run.ledger.count(End::Refused),
        unknown: run.ledger.count(End::Unknown),
        restarts,
        trees: 1,
        relay_kills: relays.kills,
        relay_breaks: relays.broken_connections,
        ..run.summary
    };
    outcome.map(|()| summary)
}

/// Draws the servers that a client knows, and whether only a leader will do.
fn draw_remote(dice: &mut Dice, servers: &[(usize, String)], relays: usize) -> (String, bool) {
    let (relays, members) = servers.split_at(relays);
    let address = |(_, address): &(usize, String)| address.clone();
    let (known, leader_only): (Vec<String>, bool) = match dice.below(10) {
        0 => (members.iter().map(address).collect(), dice.chance(50)),
        1 | 2 => (servers.iter().map(address).collect(), false),
        3..6 => (vec![address(dice.pick(relays))], false),
        _ => (relays.iter().map(address).collect(), false),
    };
    (known.join(","), leader_only)
}

impl TreeRun {
    fn new(seed: u64, trace: &Trace) -> TreeRun {
        let mut dice = Dice::new(seed);
        let stage = Stage::new(
            dice.draw(),
            &workload::schema_json(false),
            workload::first_file(false),
            trace,
        );
        let servers = stage.servers();
        let relays = servers.iter().filter(|(it, _)| stage.is_relay(*it)).count();
        let network = Connections::new(dice.draw());
        let clients = (0..CLIENTS).map(|number| {
            SimClient::of(number, &mut dice, stage.now_ms(), trace, |dice| {
                draw_remote(dice, &servers, relays)
            })
        });
        TreeRun {
            clients: clients.collect(),
            dice,
            trace: trace.clone(),
            stage,
            servers,
            doors: BTreeMap::new(),
            network,
            ledger: Ledger::default(),
            is_wide: false,
            steps_at: (0, 0),
            summary: Summary::default(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for client in 0..CLIENTS {
            self.output(client)?;
        }
        self.advance(5000)?;
        for _ in 0..ACTIONS {
            self.do_something()?;
            let for_ms = *self.dice.pick(&[0, 1, 5, 20, 200, 1000]);
            self.advance(for_ms)?;
        }
        self.finish()
    }

    fn do_something(&mut self) -> Result<(), String> {
        let chosen = self.dice.below(CLIENTS);
        let now_ms = self.stage.now_ms();
        let client = &mut self.clients[chosen];
        match self.dice.below(100) {
            0..45 => {
                for _ in 0..*self.dice.pick(&[1, 1, 2, 4]) {
                    client.transact(&mut self.dice, &mut self.ledger)?;
                }
                if self.dice.chance(30) {
                    self.output(chosen)?;
                    return self.interrupt(chosen);
                }
            }
            45..47 => client.give_up(&mut self.dice, &mut self.ledger)?,
            47..50 => {
                self.summary.conditions += 1;
                client.want(now_ms, &mut self.dice);
            }
            50..53 => client.lock(now_ms, &mut self.dice),
            53..56 => {
                self.summary.fetches += 1;
                client.fetch(&mut self.dice);
            }
            56..60 => client.check()?,
            60..63 => client.is_deaf ^= true,
            63..72 => self.cut(),
            72..74 => self.stall(),
            74..76 if self.stage.has_conversions() => self.convert(chosen),
            76..96 => self.stage.do_something()?,
            _ => self.advance(2000)?,
        }
        self.output(chosen)
    }

    /// Something between a client and the cluster fails while its transactions are under way: any
    /// message of theirs is the last one.
    fn interrupt(&mut self, client: usize) -> Result<(), String> {
        for _ in 0..self.dice.below(80) {
            if !self.step()? {
                let now_ms = self.stage.now_ms();
                let next_ms = self.next_ms().unwrap_or(now_ms);
                self.stage.set_now(next_ms.max(now_ms + 1));
            }
        }
        let conn = self.clients[client].conn();
        match conn.filter(|_| self.dice.chance(50)) {
            Some(conn) => {
                self.trace.line(format_args!("{conn:?} is cut"));
                self.summary.cuts += 1;
                self.network.cut(self.stage.now_ms(), conn, 0);
            }
            None => self.stage.strike(),
        }
        Ok(())
    }

    fn cut(&mut self) {
        let ids = self.network.ids();
        if !ids.is_empty() {
            let id = *self.dice.pick(&ids);
            let late_ms = *self.dice.pick(&[0, 0, 500, 60_000]);
            self.trace.line(format_args!("{id:?} is cut"));
            self.summary.cuts += 1;
            self.network.cut(self.stage.now_ms(), id, late_ms);
        }
    }

    fn stall(&mut self) {
        let ids = self.network.ids();
        if !ids.is_empty() {
            let id = *self.dice.pick(&ids);
            let for_ms = *self.dice.pick(&[500, 3000, 20_000]);
            self.trace
                .line(format_args!("{id:?} stalls for {for_ms} ms"));
            self.summary.stalls += 1;
            self.network.stall(self.stage.now_ms(), id, for_ms);
        }
    }

    fn convert(&mut self, chosen: usize) {
        self.is_wide ^= true;
        let params = format!(r#"["A",{}]"#, workload::schema_json(self.is_wide));
        let session = self.clients[chosen].idl.session();
        let asked = session.send_request("convert", params.as_bytes());
        self.trace
            .line(format_args!("convert, wide: {}, {asked:?}", self.is_wide));
        self.summary.conversions += u64::from(asked.is_some());
    }

    /// Executes the requests of a client's library, and tells the witness of its transactions.
    fn output(&mut self, client: usize) -> Result<(), String> {
        let servers = &self.servers;
        let host_of = |remote: &str| {
            let found = servers.iter().find(|(_, address)| address == remote);
            found.map_or(usize::MAX, |(server, _)| *server)
        };
        let now_ms = self.stage.now_ms();
        self.clients[client].output(now_ms, &host_of, &mut self.network)?;
        self.tell(client)
    }

    fn tell(&mut self, client: usize) -> Result<(), String> {
        let conn = self.clients[client].conn();
        let server = conn.and_then(|conn| Some(self.network.get(conn)?.host));
        let is_relayed = server.is_some_and(|server| self.stage.is_relay(server));
        let relays = self.servers.iter();
        let relays = relays.filter(|(server, _)| self.stage.is_relay(*server));
        self.clients[client].may_go_back = is_relayed && relays.count() > 1;
        for news in self.ledger.news() {
            match news {
                News::Sent(number) => self.stage.sent(number),
                News::Ended(number, End::Committed, place) => {
                    self.summary.relayed += u64::from(is_relayed);
                    let place = place.ok_or("a transaction did not count")?;
                    self.stage.committed(number, place)?;
                }
                News::Ended(number, End::Refused, _) => self.stage.refused(number)?,
                News::Ended(number, End::Unknown, _) => self.stage.lost(number),
            }
        }
        let unexplained = std::mem::take(&mut self.clients[client].unexplained);
        self.summary.lost += unexplained.len() as u64;
        match unexplained.first() {
            Some(number) if !self.stage.may_have_forgotten() => Err(format!(
                "transaction {number} is lost, and its outcome can be found out"
            )),
            _ => Ok(()),
        }
    }

    /// Lets this much virtual time pass.
    fn advance(&mut self, for_ms: u64) -> Result<(), String> {
        let until_ms = self.stage.now_ms() + for_ms;
        loop {
            while self.step()? {}
            let now_ms = self.stage.now_ms();
            match self.next_ms() {
                Some(next_ms) if next_ms <= until_ms => {
                    self.stage.set_now(next_ms.max(now_ms + 1));
                }
                _ => break,
            }
        }
        let now_ms = self.stage.now_ms();
        self.stage.set_now(now_ms.max(until_ms));
        Ok(())
    }

    fn next_ms(&self) -> Option<u64> {
        let awake = self.clients.iter().filter(|client| !client.is_deaf);
        let clients = awake.filter_map(SimClient::wake_ms);
        let now_ms = self.stage.now_ms();
        // Parcels that are due wait for their receiver.
        let arrivals = self.network.next_ms_after(now_ms);
        clients.chain(arrivals).chain(self.stage.next_ms()).min()
    }

    fn actors(&self) -> Vec<Actor> {
        let now_ms = self.stage.now_ms();
        let ready = self.network.ready(now_ms);
        let mut actors = Vec::new();
        for (number, client) in self.clients.iter().enumerate() {
            // A client that is awake reads before it checks its clock.
            let conn = client.conn();
            let has_mail = conn.is_some_and(|conn| ready.contains(&(conn, To::Caller)));
            let is_due = client.wake_ms().is_some_and(|at_ms| at_ms <= now_ms);
            if is_due && !has_mail && !client.is_deaf {
                actors.push(Actor::Client(number));
            }
        }
        for (id, to) in ready {
            let is_accepted = self.network.get(id).is_some_and(|conn| match to {
                To::Server => self.accepts(conn.host, id),
                To::Caller => {
                    let client = client_of(conn.caller).map(|number| &self.clients[number]);
                    client.is_some_and(|client| {
                        !client.is_deaf && client.idl.session_state().wants_input()
                    })
                }
            });
            if is_accepted {
                actors.push(Actor::Arrival(id, to));
            }
        }
        actors
    }

    /// Whether a parcel to a server would be accepted now. The kernel accepts connection attempts
    /// while the server is down, and refuses them.
    fn accepts(&self, server: usize, conn: ConnId) -> bool {
        let is_read = |door: &Door| self.stage.is_running(server) && door.sessions.reads(conn);
        self.doors.get(&server).is_none_or(is_read)
    }

    /// Takes one step, of the stage or outside it. Returns false when none is possible now.
    fn step(&mut self) -> Result<bool, String> {
        self.watch_doors();
        let now_ms = self.stage.now_ms();
        let (at_ms, steps) = self.steps_at;
        let actors = self.actors();
        if actors.is_empty() || self.dice.chance(50) {
            if self.stage.step()? {
                self.deliver();
                return Ok(true);
            }
            if actors.is_empty() {
                return Ok(false);
            }
        }
        self.steps_at = (now_ms, if at_ms == now_ms { steps + 1 } else { 0 });
        if steps > STEPS_PER_MS_MAX {
            return Err(format!("clients spin: {actors:?}"));
        }
        match *self.dice.pick(&actors) {
            Actor::Client(client) => self.tick(client)?,
            Actor::Arrival(id, to) => self.arrive(id, to)?,
        }
        self.deliver();
        Ok(true)
    }

    /// Opens and closes the doors of servers that have started and ended.
    fn watch_doors(&mut self) {
        let now_ms = self.stage.now_ms();
        for (server, address) in &self.servers {
            let life = self.stage.life(*server);
            if self.doors.get(server).map(|door| door.life) == life {
                continue;
            }
            if let Some(mut door) = self.doors.remove(server) {
                let is_heard = self.dice.chance(70);
                door.sessions.end(now_ms, &mut self.network, is_heard);
            }
            if let Some(life) = life {
                let sessions = Sessions::new(address.clone(), &self.trace);
                self.doors.insert(*server, Door { life, sessions });
            }
        }
    }

    fn tick(&mut self, client: usize) -> Result<(), String> {
        let now_ms = self.stage.now_ms();
        self.clients[client]
            .expire(now_ms, &mut self.ledger)
            .and_then(|()| self.output(client))
            .map_err(|problem| format!("client {client}: {problem}"))
    }

    fn arrive(&mut self, id: ConnId, to: To) -> Result<(), String> {
        let now_ms = self.stage.now_ms();
        let Some(conn) = self.network.get(id) else {
            return Ok(());
        };
        let (caller, server) = (conn.caller, conn.host);
        let Some(parcel) = self.network.take(id, to) else {
            return Ok(());
        };
        let network = &mut self.network;
        match (to, client_of(caller)) {
            (To::Caller, Some(client)) => self.clients[client]
                .take(now_ms, id, parcel, network, &mut self.ledger)
                .and_then(|()| self.output(client))
                .map_err(|problem| format!("client {client}: {problem}")),
            _ => {
                let now = self.stage.now(server);
                let machine = self.stage.machine(server);
                let is_taken = match (now, machine, self.doors.get_mut(&server)) {
                    (Some(now), Some(machine), Some(door)) => {
                        let sessions = &mut door.sessions;
                        sessions.take(now, now_ms, id, parcel, machine, network)?
                    }
                    _ => false,
                };
                if !is_taken {
                    network.close(now_ms, id, to);
                    return Ok(());
                }
                self.stage.collect(server)
            }
        }
    }

    /// Delivers the messages of servers to clients.
    fn deliver(&mut self) {
        let now_ms = self.stage.now_ms();
        for guest in self.stage.messages() {
            let door = self.doors.get_mut(&guest.server);
            let (Some(door), Some(machine)) = (
                door.filter(|door| door.life == guest.life),
                self.stage.machine(guest.server),
            ) else {
                continue;
            };
            if let (ToClient::Message(bytes), Some(conn)) =
                (&guest.message, door.sessions.conn(guest.session))
                && String::from_utf8_lossy(bytes).contains("\"canceled\"")
            {
                for client in &mut self.clients {
                    client.may_be_canceled |= client.conn() == Some(conn);
                }
            }
            let (sessions, network) = (&mut door.sessions, &mut self.network);
            sessions.deliver(now_ms, guest.session, guest.message, machine, network);
        }
        for (server, door) in &mut self.doors {
            if self.stage.is_running(*server)
                && let Some(machine) = self.stage.machine(*server)
            {
                door.sessions.drain(machine, &self.network);
            }
        }
    }
}

fn client_of(caller: Caller) -> Option<usize> {
    match caller {
        Caller::Client(number) => Some(number),
        Caller::Host(_) => None,
    }
}

/// The end of a run.
impl TreeRun {
    /// Ends all faults, and checks the final state.
    fn finish(&mut self) -> Result<(), String> {
        self.trace.line(format_args!("faults end"));
        self.stage.heal();
        self.network.loosen(self.stage.now_ms());
        for client in &mut self.clients {
            client.is_deaf = false;
        }
        self.wait_until_well("after the faults")?;
        let mut counted = Vec::new();
        for client in 0..CLIENTS {
            self.clients[client].fetch_all()?;
            // Another client may own the lock.
            if self.clients[client]
                .idl
                .session_state()
                .lock_name()
                .is_none()
            {
                counted.extend(self.clients[client].count(&mut self.ledger)?);
            }
            self.output(client)?;
        }
        self.wait_until_well("with new transactions")?;
        for number in counted {
            if !self.ledger.is_committed(number) {
                return Err(format!("transaction {number} fails without a fault"));
            }
        }
        self.check()?;
        self.stage.check_order()
    }

    fn wait_until_well(&mut self, when: &str) -> Result<(), String> {
        let until_ms = self.stage.now_ms() + BOUND_MS;
        while self.stage.now_ms() < until_ms {
            self.end_dead_connections();
            self.advance(100)?;
            if self.problem().is_none() {
                // The state must be stable.
                self.advance(200)?;
                if self.problem().is_none() {
                    return Ok(());
                }
            }
        }
        let problem = self.problem().unwrap_or_default();
        Err(format!("{problem}, {BOUND_MS} ms {when}"))
    }

    /// Ends connections to servers that have forgotten them, for clients that would not detect the
    /// end themselves.
    fn end_dead_connections(&mut self) {
        for id in self.network.ids() {
            let conn = self.network.get(id).filter(|conn| conn.is_accepted);
            let dead = conn.filter(|conn| !self.is_known(conn.host, id));
            let client = dead.and_then(|conn| client_of(conn.caller));
            if client.is_some_and(|client| !self.clients[client].probes) {
                self.network.close(self.stage.now_ms(), id, To::Server);
            }
        }
    }

    /// Whether a server has a session for a connection.
    fn is_known(&self, server: usize, conn: ConnId) -> bool {
        let door = self.doors.get(&server);
        door.is_some_and(|door| door.sessions.of(conn).is_some())
    }

    fn problem(&mut self) -> Option<String> {
        if let Some(problem) = self.stage.problem() {
            return Some(problem);
        }
        for (number, client) in self.clients.iter().enumerate() {
            let id = client.conn();
            let conn = id.and_then(|id| Some((id, self.network.get(id)?.host)));
            if !conn.is_some_and(|(id, server)| self.is_known(server, id)) {
                return Some(format!("client {number} finds no server"));
            }
            if !client.is_content() {
                let state = client.idl.session_state().state();
                return Some(format!("client {number} waits for replies: {state:?}"));
            }
        }
        (!self.network.is_quiet()).then(|| "parcels are under way".to_owned())
    }

    fn check(&mut self) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let problem = |problem: String| format!("client {number}: {problem}");
            let id = client.conn().ok_or("a client is not connected")?;
            let conn = self.network.get(id);
            let server = conn.ok_or("a connection is not there")?.host;
            let database = self.stage.database(server);
            let database = database.ok_or_else(|| problem("its server serves nothing".into()))?;
            let expected = content::expected(&client.idl, database, client.limit());
            let held = content::held(&client.idl, true);
            if let Some(difference) = content::difference(&client.idl, &held, &expected) {
                return Err(problem(difference));
            }
            let session = self.doors[&server].sessions.of(id);
            let machine = self.stage.machine(server);
            let owns = machine
                .zip(session)
                .is_some_and(|(machine, session)| machine.owns(session, workload::LOCK));
            if owns != client.idl.session_state().has_lock() {
                return Err(problem(format!("it owns the lock: {owns}")));
            }
        }
        let reader = &self.clients[0].idl;
        let mut seen = None;
        for (server, address) in &self.servers {
            let database = self
                .stage
                .database(*server)
                .ok_or("a server has no contents")?;
            let contents = content::expected(reader, database, None);
            let first = seen.get_or_insert_with(|| contents.clone());
            if let Some(difference) = content::difference(reader, first, &contents) {
                return Err(format!("{address} differs: {difference}"));
            }
            self.ledger
                .check(&content::transactions(database).unwrap_or_default())?;
        }
        for (number, client) in self.clients.iter_mut().enumerate() {
            let outcome = client.check().and_then(|()| client.check_fetches());
            outcome.map_err(|problem| format!("client {number}: {problem}"))?;
        }
        Ok(())
    }
}
