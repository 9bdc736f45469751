//! One server of the tree: the real shards and databases ([`Machine`]), and for a relay also the
//! real machine of its source ([`RelaySource`]).
//!
//! Invariant: a node completes everything that an input makes possible before it gets the next
//! input. Called by [`super`], which owns time and the wires.

use std::collections::VecDeque;

use corvid_data::HashSeed;
use corvid_data::Schema;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_service::Now;
use corvid_service::message::{SourceRequest, ToDatabase};
use corvid_service::relay::{RelayEvent, RelayOptions, RelaySource};
use corvid_session::{Input, Output};

use crate::server::machine::{Choice, Machine, SeededUuids, ToClient};
use crate::server::opening;
use crate::world::dice::Dice;
use crate::world::disk::SimDisk;
use crate::world::trace::{Trace, Tracing};

/// The name of the database.
const NAME: &str = "Bench";

/// The schema of the benchmark `relay-fan-out`.
const SCHEMA: &str = r#"{"name":"Bench","version":"1.0.0","tables":{"Item":{"columns":{
"name":{"type":"string"},"number":{"type":"integer"},"up":{"type":{"key":"boolean","min":0,"max":1}},
"addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
"options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},"indexes":[["name"]],"isRoot":true}}}"#;

/// The servers' clocks at the start, ms.
const START_MS: u64 = 1000;

/// An output of a node.
pub(super) enum Sent {
    /// Bytes to a session.
    Client(SessionId, Vec<u8>),
    /// A dial from a relay to its source.
    Dial,
    /// Bytes to the source.
    Source(Vec<u8>),
}

/// The relay part of a node.
struct Relay {
    source: RelaySource,
    /// Events that wait until the database is served.
    events: Vec<ToDatabase>,
    is_served: bool,
}

/// One server of the tree.
pub(super) struct Node {
    pub(super) machine: Machine,
    relay: Option<Relay>,
    dice: Dice,
}

/// Returns the time as the node reads it.
fn now(now_ns: u64) -> Now {
    let mono_ms = START_MS + now_ns / 1_000_000;
    Now {
        mono_ms,
        wall_ms: 1_700_000_000_000 + mono_ms.cast_signed(),
    }
}

/// Draws a seed with which the machine has the server's own limits of rows and atoms, and not the
/// small limits of other simulations.
fn plain_seed(dice: &mut Dice) -> u64 {
    dice.draw() % 1_000_000 * 12 + 7
}

impl Node {
    /// Returns the source: a standalone server with an empty file.
    pub(super) fn source(seed: u64) -> Result<Node, String> {
        let mut dice = Dice::new(seed);
        let schema = Value::parse(SCHEMA.as_bytes()).map_err(|error| error.to_string())?;
        let schema = Schema::from_json(&schema).map_err(|error| error.to_string())?;
        let mut file = Vec::new();
        corvid_log::write_schema(&mut file, &schema);
        let disk = SimDisk::new(dice.draw(), Trace::new(Tracing::None), file);
        let handle = disk.open();
        let mut uuids = SeededUuids(Dice::new(dice.draw()));
        let opened = opening::open(&handle, HashSeed::new(seed), &mut uuids);
        let opened = opened.map_err(|refusal| refusal.to_string())?;
        let machine = Machine::start(now(0), plain_seed(&mut dice), &disk, handle, opened, true);
        Ok(Node {
            machine,
            relay: None,
            dice,
        })
    }

    /// Returns a relay that has not reached its source.
    pub(super) fn relay(seed: u64) -> Node {
        let mut dice = Dice::new(seed);
        let disk = SimDisk::new(dice.draw(), Trace::new(Tracing::None), Vec::new());
        let machine = Machine::start_relay(now(0), plain_seed(&mut dice), &disk, NAME);
        let mut source = RelaySource::new(RelayOptions {
            database: NAME.to_owned(),
            seed: dice.draw(),
            hash_seed: HashSeed::new(dice.draw()),
            uuids: Box::new(SeededUuids(Dice::new(dice.draw()))),
        });
        // The study has no failures, so no node probes.
        source.set_probe_interval(0);
        source.set_remote(now(0).mono_ms, "tcp:10.0.0.1:6640");
        Node {
            machine,
            relay: Some(Relay {
                source,
                events: Vec::new(),
                is_served: false,
            }),
            dice,
        }
    }

    /// Whether the node serves everything that its source has. A source is always ready.
    pub(super) fn is_ready(&self) -> bool {
        let relay = self.relay.as_ref();
        relay.is_none_or(|relay| relay.is_served && relay.source.is_reachable())
    }

    /// Returns the time at which the node acts even if nothing arrives, ns.
    pub(super) fn due_ns(&self, now_ns: u64) -> Option<u64> {
        let due_ms = self.machine.next_deadline_ms(now(now_ns))?;
        Some((due_ms.saturating_sub(START_MS) * 1_000_000).max(now_ns))
    }

    /// Handles a client's message.
    pub(super) fn text(&mut self, now_ns: u64, session: SessionId, text: Vec<u8>) {
        self.machine.text(now(now_ns), session, text);
    }

    /// Handles an event of the connection to the source.
    pub(super) fn source_event(&mut self, now_ns: u64, input: Input<'_>) {
        if let Some(relay) = &mut self.relay {
            relay.source.handle(now(now_ns).mono_ms, input);
        }
    }

    /// Takes all possible steps. Returns the outputs, in the order in which the parts of the server
    /// hand them out.
    pub(super) fn drain(&mut self, now_ns: u64) -> Result<Vec<Sent>, String> {
        let mut sent = Vec::new();
        loop {
            let has_relayed = self.relay_turn(now_ns, &mut sent);
            let choices = self.machine.choices(now(now_ns)).into_iter();
            let mut choices =
                choices.filter(|it| !matches!(it, Choice::Inline(_) | Choice::Rewrite));
            let choice = choices.next();
            if let Some(choice) = choice {
                self.machine.act(now(now_ns), choice, &mut self.dice);
            }
            for (session, message) in std::mem::take(&mut self.machine.to_clients) {
                match message {
                    ToClient::Message(bytes) => {
                        sent.push(Sent::Client(session, bytes));
                        self.machine.drained(session);
                    }
                    ToClient::Pause(_) => {}
                    ToClient::Closed(why) => return Err(format!("a session ended: {why:?}")),
                }
            }
            if choice.is_none() && !has_relayed {
                return Ok(sent);
            }
        }
    }

    /// Runs a turn of the relay's thread and of the main thread. Returns whether anything happened.
    fn relay_turn(&mut self, now_ns: u64, sent: &mut Vec<Sent>) -> bool {
        let Some(relay) = &mut self.relay else {
            return false;
        };
        let at = now(now_ns);
        let mut has_happened = false;
        let requests: VecDeque<SourceRequest> = self.machine.to_relay.drain(..).collect();
        for request in requests {
            relay.source.request(at.mono_ms, request);
            has_happened = true;
        }
        while let Some(output) = relay.source.poll_output() {
            has_happened = true;
            match output {
                Output::Connect { .. } => sent.push(Sent::Dial),
                Output::Send(bytes) => sent.push(Sent::Source(bytes)),
                Output::Disconnect => {}
            }
        }
        while let Some(event) = relay.source.poll_event() {
            has_happened = true;
            match event {
                RelayEvent::Contents(contents) => {
                    self.machine.serve_relay(at, *contents);
                    relay.is_served = true;
                }
                RelayEvent::Database(event) => relay.events.push(event),
                RelayEvent::Row(row) => self.machine.show_relay(NAME, row),
                RelayEvent::Log(_) => {}
            }
        }
        if relay.is_served {
            for event in relay.events.drain(..) {
                self.machine.member(event);
            }
        }
        has_happened
    }
}
