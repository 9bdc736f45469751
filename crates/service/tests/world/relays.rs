//! Relays: worlds in a tree, each relay a client of its source's world, and the bytes between them.
//!
//! World 0 has the source; every other world is a relay of one or several earlier ones.

use std::collections::VecDeque;
use std::sync::Arc;

use corvid_data::{HashSeed, Uuid};
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::log_event::End;
use corvid_service::Model;
use corvid_service::frontend::shard_of;
use corvid_service::member::Contents;
use corvid_service::message::{SessionInfo, ToDatabase, ToShard};
use corvid_service::once::announce;
use corvid_service::relay::{RelayEvent, RelayOptions, RelaySource};
use corvid_service::server_db::{self, ServerRow};
use corvid_session::{Input, Output};

use crate::counter::Counter;
use crate::databases::schema;
use crate::world::{Dice, World};

/// A tree of servers.
pub(crate) struct Tree {
    is_once: bool,
    /// The relays' sessions at their sources; `None`: without a role.
    pub(crate) link_as: Option<fn() -> SessionInfo>,
    pub(crate) worlds: Vec<World>,
    /// The relays of world 1 and later worlds.
    pub(crate) relays: Vec<Relay>,
    /// This world accepts and keeps no connection.
    pub(crate) is_down: Vec<bool>,
    pub(crate) dice: Dice,
}

/// The thread of one relay.
pub(crate) struct Relay {
    pub(crate) machine: RelaySource,
    /// The source's world, and the relay's session there.
    pub(crate) link: Option<(usize, SessionId)>,
    /// The relay wants a connection to this world.
    dialled: Option<usize>,
    /// Messages of the source that have been passed on.
    passed: usize,
    /// Events for a database that is not served yet.
    kept: VecDeque<ToDatabase>,
    is_served: bool,
    /// Log messages.
    pub(crate) log: Vec<String>,
    /// How often full contents arrived.
    pub(crate) downloads: usize,
    /// No messages pass between the relay and its source.
    pub(crate) is_held: bool,
    /// The source closes the connection when it reads a text that contains this.
    pub(crate) refused: Option<&'static str>,
    /// How often the source has done so.
    pub(crate) resets: usize,
    /// The source has done so, and the relay has not noticed yet.
    is_reset: bool,
}

fn server_id(world: u64, is_once: bool) -> Uuid {
    let id = Uuid((u128::from(world) + 1).to_be_bytes());
    if is_once { announce(id) } else { id }
}

fn remote(world: usize) -> String {
    format!("tcp:192.0.2.{world}:6640")
}

/// The list of remotes of a relay of these worlds.
pub(crate) fn remotes(worlds: &[usize]) -> String {
    let remotes: Vec<String> = worlds.iter().map(|world| remote(*world)).collect();
    remotes.join(",")
}

/// The row of a relay in `_Server`.
fn relay_row(is_connected: bool) -> ServerRow {
    ServerRow {
        model: "relay",
        is_connected,
        is_leader: false,
    }
}

impl World {
    /// `_Server`, `B`, and a relay of `A` without contents.
    pub(crate) fn relay(seed: u64, number: u64, server_id: Uuid) -> World {
        let mut world = World::bare(seed, server_id);
        world.uuid_base = number * 1_000_000_000;
        world.serve(schema("B"));
        world.listed.insert("A".to_owned());
        world.publish();
        let row = relay_row(false);
        world.tell_server_db(server_db::insert_without_schema("A", row));
        world.run();
        world
    }

    /// Serves a relay with its initial contents, as the main thread does.
    pub(crate) fn serve_relay(&mut self, contents: Contents) {
        let Contents {
            database,
            applied,
            eid,
            ..
        } = contents;
        let schema = database.schema().clone();
        self.listed.remove(&*schema.name);
        self.serve_as(Model::relay(applied, eid), database);
        let relay = self.id("A");
        let mut locks = self.locks.lock().expect("a lock");
        let notified = locks.set_relay(Some(relay), |_| true);
        drop(locks);
        for session in notified {
            let shard = usize::from(shard_of(session));
            let notification = ToShard::LockNotifications(session);
            self.shards[shard].inbox.push_back(notification);
        }
        let epoch = self.epochs.advance();
        self.tell_shards(|| ToShard::DisconnectUnaware(Arc::from("connected to storage"), epoch));
        self.tell_server_db(server_db::update_schema(&schema));
    }

    /// Shows the state of a relay.
    pub(crate) fn show_relay(&mut self, row: ServerRow) {
        self.tell_server_db(server_db::update_row("A", row));
    }
}

impl Tree {
    /// A source, and for each later world the worlds that it may be a relay of. No server executes
    /// ids once.
    pub(crate) fn new(seed: u64, sources: &[&[usize]]) -> Tree {
        Tree::with_ids(seed, sources, false)
    }

    /// Like [`Tree::new`]; with `is_once`, all servers execute ids once.
    pub(crate) fn with_ids(seed: u64, sources: &[&[usize]], is_once: bool) -> Tree {
        let mut tree = Tree {
            is_once,
            link_as: None,
            worlds: vec![World::with_id(seed, server_id(0, is_once))],
            relays: Vec::new(),
            is_down: vec![false],
            dice: Dice::new(seed ^ 0x5555),
        };
        for sources in sources {
            tree.add_relay(seed, sources);
        }
        tree
    }

    /// Adds a relay of some of the existing worlds.
    pub(crate) fn add_relay(&mut self, seed: u64, sources: &[usize]) {
        let number = self.worlds.len() as u64;
        let now_ms = self.now_ms();
        let mut world = World::relay(seed + number, number, server_id(number, self.is_once));
        world.now_ms = now_ms;
        self.worlds.push(world);
        self.is_down.push(false);
        let mut machine = RelaySource::new(RelayOptions {
            database: "A".to_owned(),
            seed: seed + number,
            hash_seed: HashSeed::FIXED,
            uuids: Box::new(Counter((number << 32) + (1 << 31))),
        });
        machine.set_remote(now_ms, &remotes(sources));
        self.relays.push(Relay {
            machine,
            link: None,
            dialled: None,
            passed: 0,
            kept: VecDeque::new(),
            is_served: false,
            log: Vec::new(),
            downloads: 0,
            is_held: false,
            refused: None,
            resets: 0,
            is_reset: false,
        });
        self.carry_out(self.worlds.len() - 1);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.worlds[0].now_ms
    }

    /// The relay of a world.
    pub(crate) fn relay(&mut self, world: usize) -> &mut Relay {
        &mut self.relays[world - 1]
    }

    /// Whether something can happen at a relay's thread now.
    fn has_work(&self, world: usize) -> bool {
        let relay = &self.relays[world - 1];
        if relay.is_held {
            return false;
        }
        let is_due = relay
            .machine
            .poll_timeout(self.now_ms())
            .is_some_and(|at_ms| at_ms <= self.now_ms());
        let has_input = relay.is_reset
            || relay.link.is_some_and(|(source, session)| {
                let client = &self.worlds[source].clients[&session];
                let is_over = client.closed.is_some() || self.is_down[source];
                let has_more = client.received.len() > relay.passed;
                is_over || (has_more && relay.machine.wants_input())
            });
        let has_requests = relay.is_served
            && self.worlds[world]
                .databases
                .values()
                .any(|served| !served.relay_requests.is_empty());
        is_due || has_input || has_requests || relay.dialled.is_some()
    }

    /// A turn of a relay's thread.
    pub(crate) fn turn(&mut self, world: usize) {
        let now_ms = self.now_ms();
        if self.relay(world).is_served {
            let requests = std::mem::take(&mut self.worlds[world].served("A").relay_requests);
            for request in requests {
                self.relay(world).machine.request(now_ms, request);
            }
        }
        if let Some(source) = self.relay(world).dialled.take() {
            if self.is_down[source] {
                let end = End::Failed("Connection refused".to_owned());
                self.relay(world)
                    .machine
                    .handle(now_ms, Input::Disconnected(end));
            } else {
                let session = match self.link_as {
                    Some(info) => self.worlds[source].connect_as(info()),
                    None => self.worlds[source].connect(),
                };
                let relay = self.relay(world);
                relay.link = Some((source, session));
                relay.passed = 0;
                relay.machine.handle(now_ms, Input::Connected);
            }
        }
        self.receive(world);
        self.relay(world).machine.handle(now_ms, Input::Tick);
        self.carry_out(world);
    }

    /// One message of the source arrives, or the end of the connection.
    fn receive(&mut self, world: usize) {
        let now_ms = self.now_ms();
        let Some((source, session)) = self.relay(world).link else {
            return;
        };
        if std::mem::take(&mut self.relay(world).is_reset) {
            self.close(world);
            let end = End::Failed("Connection reset by peer".to_owned());
            let relay = self.relay(world);
            relay.resets += 1;
            return relay.machine.handle(now_ms, Input::Disconnected(end));
        }
        let passed = self.relay(world).passed;
        let client = &self.worlds[source].clients[&session];
        let is_over = self.is_down[source];
        match client.received.get(passed).map(Value::to_bytes) {
            Some(text) if !is_over => {
                let relay = self.relay(world);
                if relay.machine.wants_input() {
                    relay.passed += 1;
                    relay.machine.handle(now_ms, Input::Received(&text));
                }
            }
            _ if is_over || client.closed.is_some() => {
                self.close(world);
                self.relay(world)
                    .machine
                    .handle(now_ms, Input::Disconnected(End::Closed));
            }
            _ => {}
        }
    }

    /// The connection of a relay has ended; messages in flight are lost.
    fn close(&mut self, world: usize) {
        self.relay(world).is_reset = false;
        if let Some((source, session)) = self.relay(world).link.take()
            && !self.worlds[source].clients[&session].is_gone
        {
            self.worlds[source].disconnect(session);
        }
    }

    /// Cuts the connection of a relay.
    pub(crate) fn cut(&mut self, world: usize) {
        if self.relay(world).link.is_none() {
            return;
        }
        let now_ms = self.now_ms();
        self.close(world);
        self.relay(world)
            .machine
            .handle(now_ms, Input::Disconnected(End::Closed));
        self.carry_out(world);
    }

    fn carry_out(&mut self, world: usize) {
        while let Some(output) = self.relay(world).machine.poll_output() {
            match output {
                Output::Connect { remote: wanted } => {
                    let source = (0..world).find(|source| remote(*source) == wanted);
                    self.relay(world).dialled = Some(source.expect("an earlier world"));
                }
                Output::Disconnect => {
                    self.relay(world).dialled = None;
                    self.close(world);
                }
                Output::Send(text) => {
                    let text = String::from_utf8(text).expect("text");
                    let relay = self.relay(world);
                    let is_refused = relay.refused.is_some_and(|part| text.contains(part));
                    relay.is_reset |= is_refused && relay.link.is_some();
                    if relay.is_reset {
                        continue;
                    }
                    if let Some((source, session)) = self.relay(world).link
                        && !self.worlds[source].clients[&session].is_gone
                    {
                        self.worlds[source].send(session, &text);
                    }
                }
            }
        }
        while let Some(event) = self.relay(world).machine.poll_event() {
            match event {
                RelayEvent::Contents(contents) => {
                    self.relay(world).downloads += 1;
                    self.worlds[world].serve_relay(*contents);
                    self.relay(world).is_served = true;
                    for event in std::mem::take(&mut self.relay(world).kept) {
                        self.post(world, event);
                    }
                }
                RelayEvent::Database(event) => {
                    let is_download = matches!(event, ToDatabase::Installed(_));
                    self.relay(world).downloads += usize::from(is_download);
                    if self.relay(world).is_served {
                        self.post(world, event);
                    } else {
                        self.relay(world).kept.push_back(event);
                    }
                }
                RelayEvent::Row(row) => self.worlds[world].show_relay(row),
                RelayEvent::Log(message) => {
                    let line = format!("{:?} {message}", message.level());
                    self.relay(world).log.push(line);
                }
            }
        }
    }

    /// Posts an event to a relay's database.
    pub(crate) fn post(&mut self, world: usize, event: ToDatabase) {
        let id = self.worlds[world].id("A");
        self.worlds[world].post(id, event);
    }

    /// Whether such a message of its source is on its way to a relay.
    pub(crate) fn has_unread(&self, world: usize, is_meant: impl Fn(&Value) -> bool) -> bool {
        let relay = &self.relays[world - 1];
        relay.link.is_some_and(|(source, session)| {
            let received = &self.worlds[source].clients[&session].received;
            received[relay.passed..].iter().any(is_meant)
        })
    }

    /// One drawn event; returns false if none can happen.
    pub(crate) fn step(&mut self) -> bool {
        let first = self.dice.below(self.worlds.len());
        for offset in 0..self.worlds.len() {
            let world = (first + offset) % self.worlds.len();
            let is_relays_turn = world > 0 && self.has_work(world);
            if is_relays_turn && self.dice.below(2) == 0 {
                self.turn(world);
                return true;
            }
            if self.worlds[world].step() {
                return true;
            }
            if is_relays_turn {
                self.turn(world);
                return true;
            }
        }
        false
    }

    /// Runs until nothing can happen at this time.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Lets time pass, in steps so small that deadlines are met.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.run();
        let end_ms = self.now_ms() + ms;
        while self.now_ms() < end_ms {
            let piece_ms = (end_ms - self.now_ms()).min(500);
            for world in &mut self.worlds {
                world.wait(piece_ms);
            }
            self.run();
        }
    }

    /// A tree whose relays have their contents.
    pub(crate) fn started(seed: u64, sources: &[&[usize]]) -> Tree {
        Tree::started_with_ids(seed, sources, false)
    }

    /// Like [`Tree::started`]; with `is_once`, all servers execute ids once.
    pub(crate) fn started_with_ids(seed: u64, sources: &[&[usize]], is_once: bool) -> Tree {
        let mut tree = Tree::with_ids(seed, sources, is_once);
        tree.wait(20_000);
        for world in 1..tree.worlds.len() {
            assert!(tree.relay(world).is_served, "world {world}, seed {seed}");
        }
        tree
    }

    /// A client writes at the source.
    pub(crate) fn write(&mut self, operations: &str) {
        self.write_at(0, operations);
    }

    /// A client of a world writes, and disconnects when nothing is left to do. Returns its reply.
    pub(crate) fn write_at(&mut self, world: usize, operations: &str) -> String {
        let client = self.worlds[world].connect();
        self.worlds[world].transact(client, "1", "A", operations);
        self.run();
        let text = self.worlds[world].take(client);
        self.worlds[world].disconnect(client);
        self.run();
        text
    }

    /// Every relay has the source's contents.
    pub(crate) fn check_equal(&mut self) {
        let source = self.worlds[0].contents("A");
        for world in 1..self.worlds.len() {
            assert_eq!(self.worlds[world].contents("A"), source, "world {world}");
        }
    }

    /// No session leaves anything behind.
    pub(crate) fn check_idle(mut self) {
        self.run();
        for world in (1..self.worlds.len()).rev() {
            self.relay(world).is_held = true;
            self.cut(world);
            let clients: Vec<SessionId> = self.worlds[world].clients.keys().copied().collect();
            for client in clients {
                if !self.worlds[world].clients[&client].is_gone {
                    self.worlds[world].disconnect(client);
                }
            }
            self.run();
            self.worlds[world].check_idle();
        }
        self.worlds[0].check_idle();
    }
}
