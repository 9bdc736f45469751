//! The connections of one member to the others (docs/spec/distribution.md 1.13), as a pure machine: addresses become connections, bytes
//! become messages of identified servers, messages become bytes.
//!
//! ```text
//! server or simulator                     Peers                          member
//!    | accept, connected, received, ..  ->  |  Message, PeerUp, PeerDown -> |
//!    | <- Dial, Write, Close, Log           |  <- set_targets, send         |
//! ```
//!
//! The caller reports events and time, then takes every output of [`Peers::next_output`] and sleeps until [`Peers::deadline_ms`]. It hands
//! over bytes that have arrived before it reports a later time, so a process that was stopped reads before it gives its peers up.
//!
//! Invariant: every output about a connection names an open one, and each connection has at most one server, fixed by its first message.

use std::collections::VecDeque;

use corvid_log::cluster::Sid;
use corvid_rpc::log_event::End;

use crate::message::PeerMessage;

mod output;
mod settings;

pub use output::{ConnectionNumber, PeersOutput};
pub use settings::{BacklogLimits, DialTarget, PeersSettings};

/// Unsent messages of a connection from which on its limits are checked.
pub const BACKLOG_CHECKED_FROM: usize = 50;

/// The connections of one member. Times are in milliseconds of any clock that does not go back.
#[derive(Debug)]
pub struct Peers {
    settings: PeersSettings,
    next_number: u64,
    outputs: VecDeque<PeersOutput>,
}

impl Peers {
    /// A member without connections.
    #[must_use]
    pub fn new(settings: PeersSettings) -> Peers {
        Peers {
            settings,
            next_number: 1,
            outputs: VecDeque::new(),
        }
    }

    /// The addresses to keep connections to, from now on. Connections to others are closed; accepted ones stay.
    pub fn set_targets(&mut self, _now_ms: u64, _targets: &[DialTarget]) {}

    /// The election timer in force: silent connections are probed after it and a second more.
    pub fn set_election_timer(&mut self, _timer_ms: u64) {}

    /// Limits of unsent messages.
    pub fn set_backlog_limits(&mut self, _limits: BacklogLimits) {}

    /// A server has connected to this member; `name` is the connection's name for the log, for example `tcp:10.0.0.2:41514`.
    pub fn accepted(&mut self, _now_ms: u64, _name: &str) -> ConnectionNumber {
        let number = ConnectionNumber(self.next_number);
        self.next_number += 1;
        number
    }

    /// A dialled connection is established.
    pub fn connected(&mut self, _now_ms: u64, _number: ConnectionNumber) {}

    /// Bytes have arrived.
    pub fn received(&mut self, _now_ms: u64, _number: ConnectionNumber, _bytes: &[u8]) {}

    /// The socket has taken so many bytes of those that were written.
    pub fn written(&mut self, _now_ms: u64, _number: ConnectionNumber, _bytes: usize) {}

    /// A connection, or an attempt, has ended.
    pub fn closed(&mut self, _now_ms: u64, _number: ConnectionNumber, _end: End) {}

    /// Time has passed, and all bytes that had arrived were handed over.
    pub fn time(&mut self, _now_ms: u64) {}

    /// Sends a message to a server, over the first open connection that is known to lead to it. Without one the message is lost.
    pub fn send(&mut self, _now_ms: u64, _to: Sid, _message: &PeerMessage) {}

    /// The member has refused a message of this server ([`crate::guard`]): logs the reason and resets its connections.
    pub fn refuse(&mut self, _now_ms: u64, _from: Sid, _reason: &str) {}

    /// The next effect.
    pub fn next_output(&mut self) -> Option<PeersOutput> {
        self.outputs.pop_front()
    }

    /// When [`Peers::time`] is to be called next; `None` when nothing is due before the next event.
    #[must_use]
    pub fn deadline_ms(&self, _now_ms: u64) -> Option<u64> {
        None
    }

    /// The line `Connections:` of `cluster/status` behind its label: `(->0000) <-989f ->989f`.
    #[must_use]
    pub fn connections_text(&self) -> String {
        String::new()
    }

    /// Established connections that have ended, of both kinds.
    #[must_use]
    pub fn disconnections(&self) -> u64 {
        0
    }

    /// Open connections, for `memory/show`.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        0
    }

    /// Unsent bytes of all connections, for `memory/show`.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        0
    }

    /// The id of the member.
    #[must_use]
    pub fn sid(&self) -> Sid {
        self.settings.sid
    }
}
