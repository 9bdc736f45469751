//! The connection of a backup to its source: probed, and read no faster than the database applies
//! the input.
//!
//! Runs on shard 0. [`ActiveConnection`] connects; this file adds flow control, pauses and
//! connection numbers. It forwards messages without interpreting them, except for probes, which it
//! answers at once because the database may be busy. The database conducts the conversation
//! ([`corvid_service::replication`]).

use corvid_json::Pieces;
use corvid_net::clock::Now;
use corvid_reactor::shard::{CloseReason, ConnId, Io};
use corvid_rpc::Message;
use corvid_rpc::session::Received;
use corvid_service::message::DatabaseId;
use corvid_service::replication::{REST_MS, SourceId, SourceOrder};

use super::connection::ActiveConnection;
use super::options::RemoteOptions;
use crate::shard::wire_log;

/// The default probe interval, ms: a source that applies a large change may be silent for a while.
const PROBE_INTERVAL_MS: u64 = 60_000;

/// Reading pauses while the database has more than this to apply, bytes.
const UNAPPLIED_BYTES_MAX: usize = 4 << 20;

/// The maximum size of a probe, bytes.
const PROBE_BYTES_MAX: usize = 4096;

/// The connection of one backup to its source.
#[derive(Debug)]
pub(crate) struct SourceConnection {
    id: SourceId,
    database: DatabaseId,
    connection: ActiveConnection,
    /// The number of connections established so far.
    connections: u64,
    /// When the next attempt is due after a pause, monotonic ms.
    paused_until_ms: Option<u64>,
    /// The time of the newest input reported to the state machine, monotonic ms.
    heard_ms: u64,
    unapplied_bytes: usize,
}

impl SourceConnection {
    /// A connection to `name` whose first attempt is due at once.
    #[must_use]
    pub(crate) fn new(
        now: Now,
        id: SourceId,
        database: DatabaseId,
        name: String,
        options: RemoteOptions,
    ) -> SourceConnection {
        let interval_ms = probe_interval_ms(&options);
        SourceConnection {
            id,
            database,
            // The source sends all its contents as one message, so its messages are not limited.
            connection: ActiveConnection::new(now, name, options, interval_ms).trusted(),
            connections: 0,
            paused_until_ms: None,
            heard_ms: 0,
            unapplied_bytes: 0,
        }
    }

    /// Changes the options, also for an open connection.
    pub(crate) fn set_options(&mut self, options: RemoteOptions) {
        let interval_ms = probe_interval_ms(&options);
        self.connection.set_options(options, interval_ms);
    }

    /// The number of this connection and its successors. A database gets a new number each time it
    /// becomes a backup.
    #[must_use]
    pub(crate) fn id(&self) -> SourceId {
        self.id
    }

    /// The database that is the backup.
    #[must_use]
    pub(crate) fn database(&self) -> DatabaseId {
        self.database
    }

    /// The open connection, or the attempt in progress.
    #[must_use]
    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.connection.conn()
    }

    /// When [`SourceConnection::run`] is due, monotonic ms; in the past if it is late.
    #[must_use]
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.paused_until_ms
            .or_else(|| self.connection.deadline_ms())
    }

    /// Connects, disconnects or probes, if any of these is due.
    pub(crate) fn run(&mut self, now: Now, io: &mut Io) {
        if self
            .paused_until_ms
            .take_if(|until_ms| now.mono_ms >= *until_ms)
            .is_some()
        {
            self.connection.reconnect().enable(now.mono_ms);
        }
        self.pass_on_activity(now, io);
        self.connection.run(now, io);
    }

    /// Reports the time of the newest input to the state machine. While reading is paused nothing
    /// can arrive, so silence does not count.
    fn pass_on_activity(&mut self, now: Now, io: &Io) {
        let Some(conn) = self.conn() else { return };
        self.connection.reconnect().receive_attempted(now.mono_ms);
        let heard_ms = if self.is_full() {
            Some(now.mono_ms)
        } else {
            io.received_ms(conn)
        };
        if let Some(heard_ms) = heard_ms.filter(|heard_ms| *heard_ms > self.heard_ms) {
            self.heard_ms = heard_ms;
            self.connection.reconnect().activity(heard_ms);
        }
    }

    /// Closes the connection.
    pub(crate) fn close(&self, io: &mut Io) {
        self.connection.close(io);
    }

    /// Records that the connection is open. Returns the connection's number.
    pub(crate) fn opened(&mut self, now: Now) -> u64 {
        self.connections += 1;
        self.unapplied_bytes = 0;
        self.heard_ms = now.mono_ms;
        self.connection.opened(now);
        self.connections
    }

    /// Handles a message. Returns it, unless it is a probe or the reply to a probe.
    pub(crate) fn frame(&mut self, conn: ConnId, frame: Pieces, io: &mut Io) -> Option<Pieces> {
        if frame.len() <= PROBE_BYTES_MAX
            && let Ok(message) = Message::parse(frame.first())
        {
            match Received::of(message) {
                Received::Echo(reply) => {
                    wire_log::sent_text(io, conn, &reply);
                    io.send(conn, reply);
                    return None;
                }
                Received::ProbeReply => return None,
                Received::Message(_) => {}
            }
        }
        self.unapplied_bytes += frame.len();
        if self.is_full() {
            io.pause_reading(conn);
        }
        Some(frame)
    }

    fn is_full(&self) -> bool {
        self.unapplied_bytes > UNAPPLIED_BYTES_MAX
    }

    /// Records that the connection or the attempt has ended.
    pub(crate) fn closed(&mut self, now: Now, reason: &CloseReason) {
        self.unapplied_bytes = 0;
        self.connection.closed(now, reason, false);
    }

    /// Carries out an order of the database, unless the order is for an earlier connection.
    pub(crate) fn order(&mut self, now: Now, connection: u64, order: SourceOrder, io: &mut Io) {
        if connection != self.connections {
            return;
        }
        match (order, self.conn()) {
            (SourceOrder::Send(text), Some(conn)) => {
                wire_log::sent_text(io, conn, &text);
                io.send(conn, text);
            }
            (SourceOrder::Consumed(bytes), conn) => {
                let was_full = self.is_full();
                self.unapplied_bytes = self.unapplied_bytes.saturating_sub(bytes);
                if let (true, false, Some(conn)) = (was_full, self.is_full(), conn) {
                    io.resume_reading(conn);
                }
            }
            (SourceOrder::Reconnect, _) => {
                self.connection.reconnect().force();
                self.run(now, io);
            }
            (SourceOrder::Rest, _) => {
                self.connection.reconnect().disable(now.mono_ms);
                self.close(io);
                self.paused_until_ms = Some(now.mono_ms + REST_MS);
            }
            (SourceOrder::Send(_), None) => {}
        }
    }
}

fn probe_interval_ms(options: &RemoteOptions) -> u64 {
    options.probe_interval.unwrap_or(PROBE_INTERVAL_MS)
}
