//! The connections of one member to the others (docs/spec/distribution.md 1.13), as a pure state
//! machine: addresses become connections, bytes become messages of identified servers, messages
//! become bytes.
//!
//! ```text
//! server or simulator                     Peers                          member
//!    | accept, connected, received, ..  ->  |  Message, PeerUp, PeerDown -> |
//!    | <- Dial, Write, Close, Log           |  <- set_targets, send         |
//! ```
//!
//! The caller executes every output of [`Peers::next_output`] after each call, and sleeps until
//! [`Peers::deadline_ms`]. It hands over bytes that have arrived before it reports a later time. So
//! a process that was stopped reads before it declares its peers dead.
//!
//! Both ends of a connection first send `hello_request`, with their id, their address and their
//! codec. A connection carries messages once the peer's hello has arrived. Two servers usually have
//! two connections, one dialled by each. Messages use the one identified last, because the other
//! may have died unnoticed. An exception protects against impostors: a connection that a process
//! elsewhere may have made (`vouching.rs`) is not used while a better one is alive.
//! [`PeersOutput::PeerUp`] is repeated when messages move to another connection.
//!
//! Invariants: every output about a connection names an open one. A connection belongs to at most
//! one server, fixed by its first message. The memory of a connection is bounded, both before and
//! after its server is known.

mod backlog;
mod connection;
mod long_messages;
mod output;
mod receive;
mod remote;
mod send;
mod settings;
mod unfinished;
mod vouching;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use corvid_log::cluster::ids::nickname;
use corvid_log::cluster::{ELECTION_TIMER_DEFAULT_MS, Sid};
use corvid_rpc::log_event::{End, Level};
use corvid_rpc::session::Action;
use corvid_rpc::wire_log::{Direction, LoggedMessage};

pub use backlog::APPEND_BACKLOG_BYTES_MAX;
pub use connection::IDENTIFICATION_MS;
pub use long_messages::{LONG_BYTES, PART_BYTES};
pub use output::{ConnectionNumber, PeersOutput};
pub use receive::HELLO_BYTES_MAX;
pub use settings::{BacklogLimits, DialTarget, PeersSettings};

use connection::{Connection, Due};
use remote::Remote;

/// Number of unsent messages on a connection from which its limits are checked.
pub const BACKLOG_CHECKED_FROM: usize = 50;
/// Maximum number of accepted connections. One more closes the oldest, preferably one whose server
/// is unknown or not vouched for.
pub const ACCEPTED_MAX: usize = 256;
/// Maximum number of open connections that one server has made. One more closes the oldest. A
/// joining server may have a few, one for each address under which it knows this member.
pub const ACCEPTED_PER_SERVER_MAX: usize = 4;
/// If a connection that lasted at least this long ends, it is redialled at once, ms. Others wait: a
/// peer that keeps accepting and closing would otherwise be dialled without pause.
const LASTING_MS: u64 = 250;
/// Maximum bytes of a text for the log: errors quote messages.
const LOG_BYTES_MAX: usize = 1024;

/// The connections of one member. Times are milliseconds of any monotonic clock.
#[derive(Debug)]
pub struct Peers {
    settings: PeersSettings,
    /// The addresses to stay connected to.
    remotes: BTreeMap<String, Remote>,
    /// Established connections, dialled and accepted.
    connections: BTreeMap<ConnectionNumber, Connection>,
    /// The identified connections of each server; never empty. Connections that are vouched for
    /// follow the others, each kind in the order of identification. Messages use the last one.
    by_server: BTreeMap<Sid, Vec<ConnectionNumber>>,
    last_number: u64,
    last_identified: u64,
    disconnections: u64,
    election_timer_ms: u64,
    limits: BacklogLimits,
    /// Why the last accepted connection was refused. A repetition is logged at debug level.
    accepted_refusal: Option<String>,
    /// Whether messages are shown in the log.
    shows_messages: bool,
    outputs: VecDeque<PeersOutput>,
}

impl Peers {
    /// A member that has no connections yet.
    #[must_use]
    pub fn new(settings: PeersSettings) -> Peers {
        Peers {
            settings,
            remotes: BTreeMap::new(),
            connections: BTreeMap::new(),
            by_server: BTreeMap::new(),
            last_number: 0,
            last_identified: 0,
            disconnections: 0,
            election_timer_ms: ELECTION_TIMER_DEFAULT_MS,
            limits: BacklogLimits::default(),
            accepted_refusal: None,
            shows_messages: false,
            outputs: VecDeque::new(),
        }
    }

    /// Sets the addresses to stay connected to from now on. Connections dialled to other addresses
    /// are closed; accepted ones stay.
    pub fn set_targets(&mut self, now_ms: u64, targets: &[DialTarget]) {
        let is_wanted = |address: &str| targets.iter().any(|target| target.address == address);
        let unwanted: Vec<String> = self
            .remotes
            .keys()
            .filter(|address| !is_wanted(address))
            .cloned()
            .collect();
        for address in unwanted {
            self.forget_remote(now_ms, &address);
        }
        for target in targets {
            if target.address == self.settings.address {
                continue;
            }
            match self.remotes.get_mut(&target.address) {
                Some(remote) => remote.sid = target.sid,
                None => {
                    let remote = Remote::new(target.sid, now_ms);
                    self.remotes.insert(target.address.clone(), remote);
                }
            }
            self.check_identity(now_ms, &target.address);
        }
        self.vouch_again();
        self.dial_due(now_ms);
    }

    /// Sets the election timer, ms. A silent connection is probed after this time plus one second.
    pub fn set_election_timer(&mut self, timer_ms: u64) {
        self.election_timer_ms = timer_ms;
        let probe_ms = self.probe_ms();
        for connection in self.connections.values_mut() {
            connection.session.probe().set_interval(probe_ms);
        }
    }

    /// Sets the limits of unsent messages.
    pub fn set_backlog_limits(&mut self, limits: BacklogLimits) {
        self.limits = limits;
    }

    /// Sets whether each message is shown in the log ([`PeersOutput::Traffic`]). While off, a
    /// message costs one comparison.
    pub fn show_messages(&mut self, shows_messages: bool) {
        self.shows_messages = shows_messages;
    }

    /// A server has connected to this member. `name` identifies the connection in the log, for
    /// example `tcp:10.0.0.2:41514`.
    pub fn accepted(&mut self, now_ms: u64, name: &str) -> ConnectionNumber {
        self.limit_accepted(now_ms);
        let number = self.fresh_number();
        let connection = Connection::new(name, None, now_ms, self.probe_ms());
        self.connections.insert(number, connection);
        self.send_hello(number, None);
        number
    }

    /// A dialled connection has been established.
    pub fn connected(&mut self, now_ms: u64, number: ConnectionNumber) {
        let probe_ms = self.probe_ms();
        let found = self
            .remotes
            .iter_mut()
            .find(|(_, remote)| remote.number == Some(number));
        let Some((address, remote)) = found else {
            return;
        };
        if self.connections.contains_key(&number) {
            return;
        }
        let (address, sid) = (address.clone(), remote.sid);
        remote.reconnect.connected(now_ms);
        let connection = Connection::new(&address, Some(address.clone()), now_ms, probe_ms);
        self.connections.insert(number, connection);
        self.log_remote(&address);
        self.send_hello(number, sid);
    }

    /// The socket has accepted this many of the written bytes.
    pub fn written(&mut self, now_ms: u64, number: ConnectionNumber, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.backlog.written(bytes);
        }
        self.send_queued(now_ms, number);
    }

    /// A connection, or an attempt to connect, has ended.
    pub fn closed(&mut self, now_ms: u64, number: ConnectionNumber, end: End) {
        self.forget(now_ms, number, end);
    }

    /// An attempt to connect was refused: no process listens at the address.
    pub fn refused(&mut self, now_ms: u64, number: ConnectionNumber, end: End) {
        let remote = self
            .remotes
            .values_mut()
            .find(|remote| remote.number == Some(number));
        let sid = remote.and_then(|remote| {
            remote.reconnect.backoff().set_free_tries(0);
            remote.sid
        });
        self.forget(now_ms, number, end);
        if let Some(sid) = sid.filter(|sid| !self.by_server.contains_key(sid)) {
            self.outputs.push_back(PeersOutput::PeerRefused(sid));
        }
    }

    /// Time has passed, and all bytes that had arrived were handed over. Called once per turn of
    /// the caller's loop: messages unsent since the previous turn count as backlog.
    pub fn time(&mut self, now_ms: u64) {
        // Most turns find nothing due, and then this allocates nothing.
        let mut due = Vec::new();
        for (number, connection) in &mut self.connections {
            connection.collect_due(now_ms, self.limits, |event| due.push((*number, event)));
        }
        for (number, event) in due {
            self.handle_due(now_ms, number, event);
        }
        self.dial_due(now_ms);
    }

    /// The member has refused a message from this server ([`crate::guard`]): logs the reason and
    /// resets its connections. Connections that are vouched for stay while there are others, which
    /// are likelier to have carried the message.
    pub fn refuse(&mut self, now_ms: u64, from: Sid, reason: &str) {
        for number in self.suspects(from) {
            self.reset(
                now_ms,
                number,
                Level::Warn,
                &format!("refused message of {from}: {reason}"),
            );
        }
    }

    /// The next output, if any.
    pub fn next_output(&mut self) -> Option<PeersOutput> {
        self.outputs.pop_front()
    }

    /// When to call [`Peers::time`] next, ms; `None` if nothing is due before the next event.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        let connections = self.connections.values();
        let probes = connections
            .clone()
            .filter_map(|connection| connection.session.deadline_ms(now_ms));
        let strangers = connections
            .clone()
            .filter_map(Connection::identification_ms);
        let challenged = connections.filter_map(|connection| connection.answer_until_ms);
        let remotes = self.remotes.values();
        let attempts = remotes.filter_map(|remote| remote.reconnect.deadline_ms(now_ms));
        probes
            .chain(strangers)
            .chain(challenged)
            .chain(attempts)
            .min()
    }
}

/// Status for operators.
impl Peers {
    /// The line `Connections:` of `cluster/status`, after its label: `(->0000) <-989f ->989f`.
    #[must_use]
    pub fn connections_text(&self) -> String {
        let dialled = self.remotes.iter().map(|(address, remote)| {
            let connection = remote
                .number
                .and_then(|number| self.connections.get(&number));
            let told = connection.and_then(|connection| connection.address.as_deref());
            let sid = connection
                .and_then(|connection| connection.peer)
                .or(remote.sid);
            let name = nickname(told.unwrap_or(address), sid);
            match connection {
                Some(_) => format!("->{name}"),
                None => format!("(->{name})"),
            }
        });
        let accepted = self
            .connections
            .values()
            .filter(|connection| connection.dialled.is_none());
        let accepted = accepted.map(|connection| {
            let address = connection.address.as_deref().unwrap_or_default();
            format!("<-{}", nickname(address, connection.peer))
        });
        dialled.chain(accepted).collect::<Vec<String>>().join(" ")
    }

    /// Number of established connections that have ended, dialled and accepted.
    #[must_use]
    pub fn disconnections(&self) -> u64 {
        self.disconnections
    }

    /// Number of open connections, for `memory/show`.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Unsent bytes of all connections, for `memory/show`.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        let connections = self.connections.values();
        connections
            .map(|connection| connection.backlog.bytes() + connection.outbound.bytes())
            .sum()
    }

    /// Whether messages to this server can be sent.
    #[must_use]
    pub fn is_up(&self, sid: Sid) -> bool {
        self.by_server.contains_key(&sid)
    }

    /// The member's id.
    #[must_use]
    pub fn sid(&self) -> Sid {
        self.settings.sid
    }
}

/// Opening and closing connections.
impl Peers {
    fn fresh_number(&mut self) -> ConnectionNumber {
        self.last_number += 1;
        ConnectionNumber(self.last_number)
    }

    fn probe_ms(&self) -> u64 {
        self.election_timer_ms.saturating_add(1000)
    }

    /// Begins attempts that are due, and ends those that time out.
    fn dial_due(&mut self, now_ms: u64) {
        use corvid_rpc::reconnect::Action;
        loop {
            let mut remotes = self.remotes.iter_mut();
            let due = remotes.find_map(|(address, remote)| {
                let action = remote.reconnect.handle(now_ms)?;
                Some((address.clone(), remote, action))
            });
            let Some((address, remote, action)) = due else {
                return;
            };
            if action == Action::Connect {
                self.last_number += 1;
                let number = ConnectionNumber(self.last_number);
                remote.reconnect.connecting(now_ms);
                remote.number = Some(number);
                self.log_remote(&address);
                self.outputs
                    .push_back(PeersOutput::Dial { number, address });
            } else if let Some(number) = remote.number {
                self.close(now_ms, number);
            } else {
                remote.reconnect.disconnected(now_ms, End::Local);
            }
        }
    }

    fn handle_due(&mut self, now_ms: u64, number: ConnectionNumber, event: Due) {
        match event {
            Due::Unidentified => self.refuse_silent(now_ms, number),
            Due::Unanswered => {
                let problem = "no answer while another connection claims the server, disconnecting";
                self.reset(now_ms, number, Level::Info, problem);
            }
            Due::Probe(Action::Send(bytes)) => self.write(number, bytes.into()),
            Due::Probe(Action::Close { unanswered_ms }) => {
                let event = corvid_rpc::LogEvent::Unanswered { unanswered_ms };
                self.reset(now_ms, number, event.level(), &event.to_string());
            }
            Due::Backlog(report) => self.handle_backlog(now_ms, number, report),
        }
    }

    /// Makes room for one more accepted connection.
    fn limit_accepted(&mut self, now_ms: u64) {
        let accepted = || {
            self.connections
                .iter()
                .filter(|(_, connection)| connection.dialled.is_none())
        };
        if accepted().count() < ACCEPTED_MAX {
            return;
        }
        let accepted = accepted().map(|(number, connection)| (*number, connection));
        if let Some(number) = vouching::least(accepted) {
            self.reset(
                now_ms,
                number,
                Level::Warn,
                "too many connections, closing the oldest",
            );
        }
    }

    /// Logs why a connection is closed, and closes it.
    fn reset(&mut self, now_ms: u64, number: ConnectionNumber, level: Level, problem: &str) {
        if let Some(connection) = self.connections.get(&number) {
            let text = format!("{}: {problem}", connection.name);
            self.log(level, text);
            self.close(now_ms, number);
        }
    }

    fn close(&mut self, now_ms: u64, number: ConnectionNumber) {
        self.outputs.push_back(PeersOutput::Close { number });
        self.forget(now_ms, number, End::Local);
    }

    /// Forgets an address with its connection or attempt.
    fn forget_remote(&mut self, now_ms: u64, address: &str) {
        let Some(remote) = self.remotes.get(address) else {
            return;
        };
        if let Some(number) = remote.number {
            if self.connections.contains_key(&number) {
                let problem = "the address is not that of a member any more, closing";
                self.reset(now_ms, number, Level::Info, problem);
            } else {
                self.outputs.push_back(PeersOutput::Close { number });
            }
        }
        self.remotes.remove(address);
    }

    /// Forgets a connection or an attempt that has ended.
    fn forget(&mut self, now_ms: u64, number: ConnectionNumber, end: End) {
        let connection = self.connections.remove(&number);
        let is_local = end == End::Local;
        self.disconnections += u64::from(connection.is_some());
        let remote = self
            .remotes
            .iter_mut()
            .find(|(_, remote)| remote.number == Some(number));
        if let Some((address, remote)) = remote {
            remote.number = None;
            remote.reconnect.disconnected(now_ms, end);
            let address = address.clone();
            self.log_remote(&address);
        } else if let Some(connection) = &connection {
            // As with accepted clients, an orderly end is not news.
            let event = corvid_rpc::LogEvent::Dropped(end);
            let level = match event.level() {
                Level::Info => Level::Debug,
                level => level,
            };
            self.log(level, format!("{}: {event}", connection.name));
        }
        if let Some(connection) = connection
            && let Some(sid) = connection.peer
        {
            self.forget_identity(sid, number);
            if !is_local && now_ms >= connection.since_ms + LASTING_MS {
                self.redial(now_ms, sid);
            }
        }
    }

    /// The other side has ended a lasting connection of this server. Elections depend on whether
    /// the server is reachable again at once or its process is gone ([`PeersOutput::PeerRefused`]),
    /// so its address is dialled without a wait. If that connection ends too, it is dialled once
    /// more: a process that is exiting may still accept one.
    fn redial(&mut self, now_ms: u64, sid: Sid) {
        for remote in self.remotes.values_mut() {
            if remote.sid == Some(sid) && remote.number.is_none() {
                remote.reconnect.disable(now_ms);
                remote.reconnect.enable(now_ms);
                remote.reconnect.backoff().set_free_tries(2);
            }
        }
        self.dial_due(now_ms);
    }

    /// Removes a connection from a server's list.
    fn forget_identity(&mut self, sid: Sid, number: ConnectionNumber) {
        let Some(numbers) = self.by_server.get_mut(&sid) else {
            return;
        };
        let was_used = numbers.last() == Some(&number);
        numbers.retain(|other| *other != number);
        if numbers.is_empty() {
            self.by_server.remove(&sid);
            self.outputs.push_back(PeersOutput::PeerDown(sid));
        } else if was_used {
            self.outputs.push_back(PeersOutput::PeerUp(sid));
        }
    }

    /// Logs the events of a remote.
    fn log_remote(&mut self, address: &str) {
        let Some(remote) = self.remotes.get_mut(address) else {
            return;
        };
        for event in remote.reconnect.take_log_events() {
            self.log(event.level(), format!("{address}: {event}"));
        }
    }

    /// Shows a message in the log, if messages are shown.
    fn show_message(&mut self, number: ConnectionNumber, direction: Direction, text: &[u8]) {
        if self.shows_messages
            && let Some(Connection { name, .. }) = self.connections.get(&number)
        {
            let message = LoggedMessage::new(direction, text);
            let text = format!("{name}: {message}");
            self.outputs.push_back(PeersOutput::Traffic { text });
        }
    }

    fn log(&mut self, level: Level, mut text: String) {
        if text.len() > LOG_BYTES_MAX {
            let end = (0..=LOG_BYTES_MAX)
                .rev()
                .find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            text.push_str("...");
        }
        self.outputs.push_back(PeersOutput::Log { level, text });
    }
}
