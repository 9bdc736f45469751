//! The sockets of a server whose clients are relays: a session for each connection, whose bytes are
//! cut into messages, and the probes of the server.
//!
//! Invariant: nothing is read from a session whose shard has paused it. A session whose other end
//! is silent for two intervals ends.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::ConnectionNumber;
use corvid_json::Assembler;
use corvid_monitor::SessionId;
use corvid_service::Now;

use crate::server::machine::{Machine, ToClient};
use crate::world::network::wires::{Arrival, WireEnd, Wires};

/// The interval of probes, ms.
const PROBE_MS: u64 = 5000;

/// The probe that a server sends.
const PROBE: &[u8] = br#"{"id":"echo","method":"echo","params":[]}"#;

/// The socket of one session.
#[derive(Debug)]
struct Socket {
    session: SessionId,
    assembler: Assembler,
    /// Bytes that have arrived and are not read yet.
    unread: VecDeque<Bytes>,
    is_paused: bool,
    /// Bytes of output that the system has not accepted yet.
    unsent: usize,
    heard_ms: u64,
    is_probed: bool,
}

/// The sockets of one server.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// The number that identifies the sockets in the network.
    host: usize,
    sockets: BTreeMap<ConnectionNumber, Socket>,
    last: u64,
}

impl Sockets {
    pub(super) fn new(host: usize) -> Sockets {
        Sockets {
            host,
            ..Sockets::default()
        }
    }

    /// Whether a turn would do anything now.
    pub(super) fn has_work(&self, local_ms: u64, wires: &Wires) -> bool {
        let is_readable = |socket: &Socket| !socket.is_paused && !socket.unread.is_empty();
        wires.has_arrived(self.host)
            || wires.can_flush(self.host)
            || self.deadline_ms().is_some_and(|at_ms| at_ms <= local_ms)
            || self.sockets.values().any(is_readable)
    }

    /// When a probe is due, by the server's clock, ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let due = self.sockets.values().map(|socket| {
            let intervals = if socket.is_probed { 2 } else { 1 };
            socket.heard_ms + intervals * PROBE_MS
        });
        due.min()
    }

    /// Number of bytes that have arrived and are not read yet.
    pub(super) fn bytes(&self) -> usize {
        let unread = self.sockets.values().flat_map(|socket| &socket.unread);
        unread.map(Bytes::len).sum()
    }

    /// A shard polls its sockets.
    ///
    /// # Errors
    /// The bytes that have arrived do not form a message.
    pub(super) fn turn(
        &mut self,
        now: Now,
        now_ms: u64,
        wires: &mut Wires,
        machine: &mut Machine,
    ) -> Result<(), String> {
        for arrival in wires.take(self.host) {
            self.arrive(now, arrival, wires, machine);
        }
        let numbers: Vec<ConnectionNumber> = self.sockets.keys().copied().collect();
        for number in numbers {
            self.read(number, now, machine)?;
            self.probe(number, now.mono_ms, now_ms, wires, machine);
        }
        self.flush(now_ms, wires, machine);
        Ok(())
    }

    fn arrive(&mut self, now: Now, arrival: Arrival, wires: &mut Wires, machine: &mut Machine) {
        match arrival {
            Arrival::Incoming(end) => {
                self.last += 1;
                let number = ConnectionNumber(self.last);
                if wires.accept(end, number) {
                    let socket = Socket {
                        session: machine.connect(),
                        assembler: Assembler::default(),
                        unread: VecDeque::new(),
                        is_paused: false,
                        unsent: 0,
                        heard_ms: now.mono_ms,
                        is_probed: false,
                    };
                    self.sockets.insert(number, socket);
                }
            }
            Arrival::Bytes(end, bytes) => {
                if let Some(socket) = self.socket(end, wires) {
                    (socket.heard_ms, socket.is_probed) = (now.mono_ms, false);
                    socket.unread.push_back(bytes);
                }
            }
            Arrival::Ended(end, _) => {
                if let Some(number) = wires.number(end)
                    && let Some(socket) = self.sockets.remove(&number)
                {
                    machine.disconnect(socket.session);
                }
                wires.ended(end);
            }
            // A server dials no one.
            Arrival::Connected(_) | Arrival::Refused(..) => {}
        }
    }

    fn socket(&mut self, end: WireEnd, wires: &Wires) -> Option<&mut Socket> {
        self.sockets.get_mut(&wires.number(end)?)
    }

    fn read(
        &mut self,
        number: ConnectionNumber,
        now: Now,
        machine: &mut Machine,
    ) -> Result<(), String> {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(());
        };
        while let Some(bytes) = socket.unread.front_mut().filter(|_| !socket.is_paused) {
            let mut rest = &bytes[..];
            let text = socket.assembler.next(&mut rest);
            let text = text.map_err(|error| error.to_string())?;
            let (text, left) = (text.map(Cow::into_owned), rest.len());
            let _ = bytes.split_to(bytes.len() - left);
            if let Some(text) = text {
                machine.text(now, socket.session, text);
            }
            if bytes.is_empty() {
                socket.unread.pop_front();
            }
        }
        Ok(())
    }

    fn probe(
        &mut self,
        number: ConnectionNumber,
        local_ms: u64,
        now_ms: u64,
        wires: &mut Wires,
        machine: &mut Machine,
    ) {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return;
        };
        let silent_ms = local_ms.saturating_sub(socket.heard_ms);
        if socket.is_probed && silent_ms >= 2 * PROBE_MS {
            machine.disconnect(socket.session);
            wires.close(now_ms, self.host, number);
            self.sockets.remove(&number);
        } else if !socket.is_probed && silent_ms >= PROBE_MS {
            socket.is_probed = true;
            socket.unsent += PROBE.len();
            wires.write(self.host, number, Bytes::from_static(PROBE));
        }
    }

    /// Delivers a message of the server to one of these sessions. Returns the message if it is for
    /// another session.
    pub(super) fn deliver(
        &mut self,
        now_ms: u64,
        wires: &mut Wires,
        machine: &mut Machine,
        session: SessionId,
        message: ToClient,
    ) -> Option<ToClient> {
        let mut sockets = self.sockets.iter_mut();
        let Some((number, socket)) = sockets.find(|(_, socket)| socket.session == session) else {
            return Some(message);
        };
        let number = *number;
        match message {
            ToClient::Message(bytes) => {
                socket.unsent += bytes.len();
                wires.write(self.host, number, bytes.into());
            }
            ToClient::Pause(is_paused) => socket.is_paused = is_paused,
            ToClient::Closed(_) => {
                wires.close(now_ms, self.host, number);
                self.sockets.remove(&number);
                machine.disconnect(session);
            }
        }
        None
    }

    /// The system accepts output, and shards learn which sessions have no output left.
    fn flush(&mut self, now_ms: u64, wires: &mut Wires, machine: &mut Machine) {
        for (number, bytes) in wires.flush(now_ms, self.host) {
            if let Some(socket) = self.sockets.get_mut(&number) {
                socket.unsent -= bytes.min(socket.unsent);
                if socket.unsent == 0 {
                    machine.drained(socket.session);
                }
            }
        }
    }
}
