//! A host: a disk, the server on it if one runs, the sessions of its callers, and the connection to
//! the host that it replicates, if any.
//!
//! The host replaces the threads and sockets of the `server` crate. It splits streams into
//! messages, sends no probes, and reconnects to its source. The kernel outlives the server and
//! refuses callers while the server is down.

use corvid_data::{HashSeed, Uuid};
use corvid_json::{Assembler, Pieces};
use corvid_monitor::SessionId;
use corvid_service::Now;
use corvid_service::replication::{
    Exclusions, Following, REST_MS, Role, SourceEvent, SourceId, SourceOrder,
};

use super::sessions::Sessions;
use crate::server::machine::{Choice, Machine, SeededUuids};
use crate::server::opening;
use crate::world::dice::Dice;
use crate::world::disk::{Crash, SimDisk};
use crate::world::network::connections::{Caller, ConnId, Connections, Parcel, To};
use crate::world::trace::Trace;

/// Delay before a backup reconnects, ms.
const RETRY_MS: u64 = 1000;

/// The connection to the source.
struct Source {
    id: SourceId,
    host: usize,
    conn: Option<ConnId>,
    assembler: Assembler,
    connections: u64,
    retry_ms: u64,
}

pub(super) struct ServerHost {
    number: usize,
    disk: SimDisk,
    hash_seed: HashSeed,
    /// `None` while the server is down.
    machine: Option<Machine>,
    sessions: Sessions,
    source: Option<Source>,
    /// The server does nothing until this time, ms.
    pub(super) frozen_until_ms: u64,
    sources: u64,
    trace: Trace,
}

impl ServerHost {
    pub(super) fn new(number: usize, seed: u64, trace: &Trace, file: Vec<u8>) -> ServerHost {
        ServerHost {
            number,
            disk: SimDisk::new(seed, trace.clone(), file),
            hash_seed: HashSeed::new(seed),
            machine: None,
            sessions: Sessions::new(format!("host {number}"), trace),
            source: None,
            frozen_until_ms: 0,
            sources: 0,
            trace: trace.clone(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    pub(super) fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    fn is_frozen(&self, now_ms: u64) -> bool {
        now_ms < self.frozen_until_ms
    }

    /// Returns the session of a connection.
    pub(super) fn session_of(&self, conn: ConnId) -> Option<SessionId> {
        self.sessions.of(conn)
    }

    /// Starts the server on its file, as a backup of another host or as the active server.
    pub(super) fn start(
        &mut self,
        now: Now,
        dice: &mut Dice,
        follows: Option<usize>,
    ) -> Result<(), String> {
        let file = self.disk.open();
        let mut uuids = SeededUuids(Dice::new(dice.draw()));
        let opened = opening::open(&file, self.hash_seed, &mut uuids)
            .map_err(|refusal| refusal.to_string())?;
        if let Some(damage) = &opened.damage {
            return Err(format!("a killed server left damage: {damage:?}"));
        }
        let history = dice.chance(70);
        let machine = Machine::start(now, dice.draw(), &self.disk, file, opened, history);
        self.machine = Some(machine);
        if follows.is_some() {
            self.follow(now.mono_ms, follows, 0);
        }
        Ok(())
    }

    /// Makes the server a backup of another host, or active.
    pub(super) fn follow(&mut self, now_ms: u64, follows: Option<usize>, token: u64) {
        self.source = None;
        let role = match follows {
            None => Role::Active,
            Some(host) => {
                self.sources += 1;
                let id = SourceId(self.sources);
                self.source = Some(Source {
                    id,
                    host,
                    conn: None,
                    assembler: Assembler::default(),
                    connections: 0,
                    retry_ms: now_ms,
                });
                Role::Backup(Box::new(Following {
                    id,
                    excluded: Exclusions::default(),
                    server_id: Uuid([self.number as u8 + 1; 16]),
                }))
            }
        };
        if let Some(machine) = &mut self.machine {
            machine.set_role(role, token);
        }
    }

    /// Ends the server at once. With `is_heard`, its callers are told that their connections have
    /// ended. Otherwise they learn it when they next send.
    pub(super) fn kill(&mut self, now_ms: u64, network: &mut Connections, is_heard: bool) {
        self.machine = None;
        self.disk.restart(Crash::Kill);
        self.sessions.end(now_ms, network, is_heard);
        if let Some(conn) = self.source.take().and_then(|source| source.conn) {
            network.close(now_ms, conn, To::Caller);
        }
    }

    /// Returns the bytes of the host's file.
    pub(super) fn file(&self) -> Vec<u8> {
        self.disk.bytes()
    }

    /// Replaces the file while the server is down.
    pub(super) fn replace_file(&mut self, seed: u64, file: Vec<u8>) {
        self.disk = SimDisk::new(seed, self.trace.clone(), file);
    }

    pub(super) fn compact(&mut self, token: u64) {
        if let Some(machine) = &mut self.machine {
            machine.compact(token);
        }
    }

    /// Returns all steps that the server can take now.
    pub(super) fn choices(&self, now: Now) -> Vec<Choice> {
        let machine = self.machine.as_ref();
        let awake = machine.filter(|_| !self.is_frozen(now.mono_ms));
        awake
            .map(|machine| machine.choices(now))
            .unwrap_or_default()
    }

    /// Whether the server should connect to its source now.
    pub(super) fn is_call_due(&self, now_ms: u64) -> bool {
        let source = self.source.as_ref();
        self.is_up()
            && !self.is_frozen(now_ms)
            && source.is_some_and(|source| source.conn.is_none() && source.retry_ms <= now_ms)
    }

    pub(super) fn call(&mut self, now_ms: u64, network: &mut Connections) {
        if let Some(source) = &mut self.source {
            source.retry_ms = now_ms + RETRY_MS;
            source.assembler = Assembler::default();
            source.conn = Some(network.dial(now_ms, Caller::Host(self.number), source.host));
        }
    }

    /// Returns the next time at which something happens without input, ms.
    pub(super) fn next_ms(&self, now: Now) -> Option<u64> {
        let machine = self.machine.as_ref()?;
        let source = self.source.as_ref().filter(|source| source.conn.is_none());
        let due = [
            machine.next_deadline_ms(now),
            source.map(|source| source.retry_ms),
        ];
        let due = due.into_iter().flatten().min()?;
        Some(due.max(self.frozen_until_ms))
    }

    /// Whether a parcel of a connection to this host would be accepted now. The kernel accepts
    /// connection attempts while the server is down, and refuses them.
    pub(super) fn accepts(&self, now_ms: u64, conn: ConnId) -> bool {
        !self.is_up() || (!self.is_frozen(now_ms) && self.sessions.reads(conn))
    }

    pub(super) fn act(&mut self, now: Now, choice: Choice, dice: &mut Dice) {
        let Some(machine) = &mut self.machine else {
            return;
        };
        if let Some(mut rewriter) = machine.act(now, choice, dice) {
            let seen = &*machine;
            let outcome = rewriter.run(|| seen.end(), || seen.is_rewrite_wanted());
            machine.written(rewriter, outcome);
        }
    }

    /// Accepts a parcel from a caller. Returns false if the connection is unknown.
    pub(super) fn take(
        &mut self,
        now: Now,
        conn: ConnId,
        parcel: Parcel,
        network: &mut Connections,
    ) -> Result<bool, String> {
        let Some(machine) = &mut self.machine else {
            return Ok(false);
        };
        let sessions = &mut self.sessions;
        sessions.take(now, now.mono_ms, conn, parcel, machine, network)
    }

    /// Accepts a parcel from the source. Returns false if the server no longer replicates that
    /// host.
    pub(super) fn take_from_source(
        &mut self,
        conn: ConnId,
        parcel: Parcel,
        network: &mut Connections,
    ) -> Result<bool, String> {
        let source = self
            .source
            .as_mut()
            .filter(|source| source.conn == Some(conn));
        let (Some(source), Some(machine)) = (source, &mut self.machine) else {
            return Ok(false);
        };
        match parcel {
            Parcel::Open => {
                source.connections += 1;
                machine.source(source.id, SourceEvent::Connected(source.connections));
            }
            Parcel::Bytes(bytes) => {
                for text in source.assembler.texts(&bytes) {
                    let text = text.map_err(|error| error.to_string())?.into_owned();
                    machine.source(source.id, SourceEvent::Message(Pieces::from(text)));
                }
            }
            Parcel::End => {
                source.conn = None;
                machine.source(source.id, SourceEvent::Disconnected);
                network.vanish(conn, To::Caller);
            }
        }
        Ok(true)
    }

    /// Sends the server's outputs. Returns the tokens of the roles that it has assumed.
    pub(super) fn collect(&mut self, now: Now, network: &mut Connections) -> Vec<u64> {
        let Some(machine) = &mut self.machine else {
            return Vec::new();
        };
        for (id, message) in std::mem::take(&mut machine.to_clients) {
            let sessions = &mut self.sessions;
            sessions.deliver(now.mono_ms, id, message, machine, network);
        }
        self.sessions.drain(machine, network);
        for (id, connection, order) in std::mem::take(&mut machine.to_source) {
            let source = self.source.as_mut().filter(|source| source.id == id);
            let Some(source) = source.filter(|source| source.connections == connection) else {
                continue;
            };
            let Some(conn) = source.conn else { continue };
            let rest_ms = match order {
                SourceOrder::Send(text) => {
                    network.send(now.mono_ms, conn, To::Server, Parcel::Bytes(text));
                    continue;
                }
                SourceOrder::Consumed(_) => continue,
                SourceOrder::Reconnect => 0,
                SourceOrder::Rest => REST_MS,
            };
            network.close(now.mono_ms, conn, To::Caller);
            source.conn = None;
            source.retry_ms = now.mono_ms + rest_ms;
            machine.source(id, SourceEvent::Disconnected);
        }
        std::mem::take(&mut machine.roles_taken)
    }

    /// Whether the server is connected to its source, or has none.
    pub(super) fn is_following(&self) -> bool {
        self.source
            .as_ref()
            .is_none_or(|source| source.conn.is_some() && source.connections > 0)
    }
}
