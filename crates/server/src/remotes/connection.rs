//! A connection that the server opens itself and reopens whenever it ends: connecting, backing off,
//! probing, logging.
//!
//! Both kinds of connections that the server opens are built on it: remotes that the server
//! connects to ([`super::outgoing`]), and the connection of a backup to its source
//! ([`super::source`]). [`Reconnect`] decides when to connect and knows no sockets; this file
//! carries that out on a shard. It does not know what is sent or received, except for its own
//! probes.

use corvid_net::clock::Now;
use corvid_net::errno;
use corvid_net::logging::{self, Module};
use corvid_net::target::{Active, Target};
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_rpc::log_event::{End, Level};
use corvid_rpc::message::PROBE;
use corvid_rpc::reconnect::Action;
use corvid_rpc::{Reconnect, backoff};

use super::options::RemoteOptions;
use crate::coverage;
use crate::shard::wire_log;

/// The error of every attempt if the remote's text does not name a connection method.
const NO_SUCH_METHOD: &str = "Address family not supported by protocol";

/// The error with which a connection ends if the peer violates the protocol.
const PROTOCOL_ERROR: &str = "Protocol error";

/// A connection that is reopened whenever it ends.
#[derive(Debug)]
pub(crate) struct ActiveConnection {
    name: String,
    /// `None`: the text is not a connection method, and every attempt fails.
    target: Option<Active>,
    options: RemoteOptions,
    reconnect: Reconnect,
    conn: Option<ConnId>,
    /// The peer is trusted: its messages count against no limit.
    is_trusted: bool,
}

impl ActiveConnection {
    /// A connection to `name`. The first attempt is due at once. `probe_interval_ms`: 0 for no
    /// probes.
    pub(super) fn new(
        now: Now,
        name: String,
        options: RemoteOptions,
        probe_interval_ms: u64,
    ) -> ActiveConnection {
        let target = match Target::parse(&name) {
            Ok(Target::Active(active)) => Some(active),
            _ => None,
        };
        let mut reconnect = Reconnect::new();
        reconnect.enable(now.mono_ms);
        let mut connection = ActiveConnection {
            name,
            target,
            options: RemoteOptions::default(),
            reconnect,
            conn: None,
            is_trusted: false,
        };
        connection.set_options(options, probe_interval_ms);
        connection
    }

    /// Lifts the limit on the peer's messages, from the next connection on.
    pub(super) fn trusted(mut self) -> ActiveConnection {
        self.is_trusted = true;
        self
    }

    /// Changes the options, also for an open connection.
    pub(super) fn set_options(&mut self, options: RemoteOptions, probe_interval_ms: u64) {
        self.reconnect.set_probe_interval(probe_interval_ms);
        self.reconnect
            .backoff()
            .set_limits(backoff::MIN_MS, options.max_backoff_ms);
        self.options = options;
    }

    /// The text that names the peer.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn options(&self) -> &RemoteOptions {
        &self.options
    }

    /// The open connection, or the attempt in progress.
    pub(super) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// The state machine: to read its state, and to enable, disable or force it.
    pub(super) fn reconnect(&mut self) -> &mut Reconnect {
        &mut self.reconnect
    }

    /// When [`ActiveConnection::run`] is due, monotonic ms, in the past if it is late; `None`: not
    /// before the next event.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        // A probe is due after an interval of silence. Whether bytes have arrived since is checked
        // when the probe is due.
        self.reconnect.deadline_ms(0)
    }

    /// Connects, disconnects or probes, if any of these is due.
    pub(super) fn run(&mut self, now: Now, io: &mut Io) {
        match self.reconnect.handle(now.mono_ms) {
            Some(Action::Connect) => self.connect(now, io),
            Some(Action::Disconnect) => self.close(io),
            Some(Action::Probe) => {
                if let Some(conn) = self.conn {
                    wire_log::sent_text(io, conn, PROBE);
                    io.send(conn, PROBE.to_vec());
                }
            }
            None => {}
        }
        self.log();
    }

    fn connect(&mut self, now: Now, io: &mut Io) {
        coverage::RECONNECT_ATTEMPT.bump();
        self.reconnect.connecting(now.mono_ms);
        let attempt = match &self.target {
            Some(target) => io
                .connect(target, &self.name, self.options.dscp)
                .map_err(|error| errno::text(&error)),
            None => Err(NO_SUCH_METHOD.to_owned()),
        };
        match attempt {
            Ok(conn) => {
                if self.is_trusted {
                    io.trust(conn);
                }
                self.conn = Some(conn);
            }
            Err(text) => self.reconnect.disconnected(now.mono_ms, End::Failed(text)),
        }
    }

    /// Closes the connection, or abandons the attempt.
    pub(super) fn close(&self, io: &mut Io) {
        if let Some(conn) = self.conn {
            io.close(conn);
        }
    }

    /// Records that the attempt has succeeded.
    pub(super) fn opened(&mut self, now: Now) {
        coverage::RECONNECT_CONNECTED.bump();
        self.reconnect.connected(now.mono_ms);
        self.log();
    }

    /// Records that the connection or the attempt has ended. `is_refused`: the server closed it
    /// because the peer violated the protocol.
    pub(super) fn closed(&mut self, now: Now, reason: &CloseReason, is_refused: bool) {
        self.conn = None;
        let end = match reason {
            _ if is_refused => End::Failed(PROTOCOL_ERROR.to_owned()),
            CloseReason::EndOfFile => End::Closed,
            CloseReason::Failed(code) | CloseReason::ConnectFailed(code) => {
                End::Failed(errno::text_of(*code))
            }
            CloseReason::BadFraming => End::Failed(PROTOCOL_ERROR.to_owned()),
            _ => End::Local,
        };
        self.reconnect.disconnected(now.mono_ms, end);
        self.log();
    }

    /// Logs the state machine's events.
    fn log(&mut self) {
        for notice in self.reconnect.take_log_events() {
            let (level, name) = (log_level(notice.level()), &self.name);
            logging::log(Module::Reconnect, level, format_args!("{name}: {notice}"));
        }
    }
}

/// The logger's level for a message of a pure crate.
pub(crate) fn log_level(level: Level) -> logging::Level {
    match level {
        Level::Debug => logging::Level::Debug,
        Level::Info => logging::Level::Info,
        Level::Warn => logging::Level::Warn,
        Level::Error => logging::Level::Error,
    }
}
