//! The connection of a backup to the server that it follows: made again and again, probed, and read no faster than the database works
//! off what arrives.
//!
//! It carries texts and knows nothing of what they say, but for probes, which it answers at once: the database may have much to do. The
//! conversation is the database's ([`corvid_service::replication`]).

use corvid_json::Pieces;
use corvid_net::clock::Now;
use corvid_net::errno;
use corvid_net::target::{Active, Target};
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_rpc::message::{PROBE, is_probe_id, write_reply};
use corvid_rpc::notice::End;
use corvid_rpc::reconnect::Action;
use corvid_rpc::{Message, Reconnect, backoff};
use corvid_service::message::DatabaseId;
use corvid_service::replication::{REST_MS, SourceId, SourceOrder};

use crate::coverage;
use crate::remotes::options::RemoteOptions;
use crate::remotes::outgoing::{NO_SUCH_METHOD, end_of, log_notices};

/// The probe interval unless one is given, ms: a server that applies much may be silent for a while.
pub(crate) const PROBE_INTERVAL_MS: u64 = 60_000;

/// Nothing is read while more than this has not been worked off, bytes.
const UNTAKEN_BYTES_MAX: usize = 4 << 20;

/// Probes are shorter, bytes.
const PROBE_BYTES_MAX: usize = 4096;

/// One connection.
#[derive(Debug)]
pub(crate) struct Source {
    id: SourceId,
    database: DatabaseId,
    name: String,
    /// `None`: the text is no connection method, and every attempt fails.
    target: Option<Active>,
    options: RemoteOptions,
    reconnect: Reconnect,
    conn: Option<ConnId>,
    /// How many connections have stood.
    connections: u64,
    /// When the next attempt is due after a rest.
    rest_until_ms: Option<u64>,
    /// The last sign of life that the machine was told of.
    heard_ms: u64,
    untaken_bytes: usize,
}

impl Source {
    /// A connection to `name` whose first attempt is due now.
    #[must_use]
    pub(crate) fn new(
        now: Now,
        id: SourceId,
        database: DatabaseId,
        name: String,
        options: RemoteOptions,
    ) -> Source {
        let target = match Target::parse(&name) {
            Ok(Target::Active(active)) => Some(active),
            _ => None,
        };
        let mut source = Source {
            id,
            database,
            name,
            target,
            options: RemoteOptions::default(),
            reconnect: Reconnect::new(),
            conn: None,
            connections: 0,
            rest_until_ms: None,
            heard_ms: 0,
            untaken_bytes: 0,
        };
        source.set_options(options);
        source.reconnect.enable(now.mono_ms);
        source
    }

    /// Takes other options: they hold for the connection in being too.
    pub(crate) fn set_options(&mut self, options: RemoteOptions) {
        let interval_ms = options.probe_interval.unwrap_or(PROBE_INTERVAL_MS);
        self.reconnect.set_probe_interval(interval_ms);
        self.reconnect
            .backoff()
            .set_limits(backoff::MIN_MS, options.max_backoff_ms);
        self.options = options;
    }

    /// Which time of being a backup it is for.
    #[must_use]
    pub(crate) fn id(&self) -> SourceId {
        self.id
    }

    /// The database that it is for.
    #[must_use]
    pub(crate) fn database(&self) -> DatabaseId {
        self.database
    }

    /// The connection, or the attempt, in being.
    #[must_use]
    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// When [`Source::run`] is due; in the past when it is late.
    #[must_use]
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        // An interval of silence is not put off until somebody has looked at what has arrived, since `run` itself says that the shard has.
        self.rest_until_ms.or_else(|| self.reconnect.deadline_ms(0))
    }

    /// Does what is due.
    pub(crate) fn run(&mut self, now: Now, io: &mut Io) {
        if self
            .rest_until_ms
            .take_if(|until_ms| now.mono_ms >= *until_ms)
            .is_some()
        {
            self.reconnect.enable(now.mono_ms);
        }
        self.listen_for_life(now, io);
        match self.reconnect.handle(now.mono_ms) {
            Some(Action::Connect) => self.connect(now, io),
            Some(Action::Disconnect) => self.close(io),
            Some(Action::Probe) => {
                if let Some(conn) = self.conn {
                    io.send(conn, PROBE.to_vec());
                }
            }
            None => {}
        }
        log_notices(&mut self.reconnect, &self.name);
    }

    /// Who does not read does not hear: then silence means nothing.
    fn listen_for_life(&mut self, now: Now, io: &Io) {
        let Some(conn) = self.conn else { return };
        self.reconnect.receive_attempted(now.mono_ms);
        let heard_ms = if self.is_full() {
            Some(now.mono_ms)
        } else {
            io.received_ms(conn)
        };
        if let Some(heard_ms) = heard_ms.filter(|heard_ms| *heard_ms > self.heard_ms) {
            self.heard_ms = heard_ms;
            self.reconnect.activity(heard_ms);
        }
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
                // All its contents are one text.
                io.trust(conn);
                self.conn = Some(conn);
            }
            Err(text) => self.reconnect.disconnected(now.mono_ms, End::Failed(text)),
        }
    }

    /// Drops the connection.
    pub(crate) fn close(&self, io: &mut Io) {
        if let Some(conn) = self.conn {
            io.close(conn);
        }
    }

    /// The connection stands; returns its number.
    pub(crate) fn opened(&mut self, now: Now) -> u64 {
        self.connections += 1;
        self.untaken_bytes = 0;
        self.heard_ms = now.mono_ms;
        coverage::RECONNECT_CONNECTED.bump();
        self.reconnect.connected(now.mono_ms);
        log_notices(&mut self.reconnect, &self.name);
        self.connections
    }

    /// A text has arrived; it comes back unless it was a probe or the answer to one.
    pub(crate) fn frame(&mut self, conn: ConnId, text: Pieces, io: &mut Io) -> Option<Pieces> {
        if text.len() <= PROBE_BYTES_MAX {
            match Message::parse(text.first()) {
                Ok(Message::Request { method, params, id }) if &*method == b"echo" => {
                    let mut reply = Vec::new();
                    write_reply(&mut reply, id, params);
                    io.send(conn, reply);
                    return None;
                }
                Ok(Message::Reply { id, .. }) if is_probe_id(id) => return None,
                _ => {}
            }
        }
        self.untaken_bytes += text.len();
        if self.is_full() {
            io.pause_reading(conn);
        }
        Some(text)
    }

    fn is_full(&self) -> bool {
        self.untaken_bytes > UNTAKEN_BYTES_MAX
    }

    /// The connection, or the attempt, has ended.
    pub(crate) fn closed(&mut self, now: Now, reason: &CloseReason) {
        self.conn = None;
        self.untaken_bytes = 0;
        let end = end_of(reason);
        self.reconnect.disconnected(now.mono_ms, end);
        log_notices(&mut self.reconnect, &self.name);
    }

    /// Does what the database orders, unless it is meant for an earlier connection.
    pub(crate) fn order(&mut self, now: Now, connection: u64, order: SourceOrder, io: &mut Io) {
        if connection != self.connections {
            return;
        }
        match (order, self.conn) {
            (SourceOrder::Send(text), Some(conn)) => io.send(conn, text),
            (SourceOrder::Taken(bytes), conn) => {
                let was_full = self.is_full();
                self.untaken_bytes = self.untaken_bytes.saturating_sub(bytes);
                if let (true, false, Some(conn)) = (was_full, self.is_full(), conn) {
                    io.resume_reading(conn);
                }
            }
            (SourceOrder::Reconnect, _) => {
                self.reconnect.force();
                self.run(now, io);
            }
            (SourceOrder::Rest, _) => {
                self.reconnect.disable(now.mono_ms);
                self.close(io);
                self.rest_until_ms = Some(now.mono_ms + REST_MS);
            }
            (SourceOrder::Send(_), None) => {}
        }
    }
}
