//! Inputs, outputs and events of a client's session.

use corvid_data::{Arc, Uuid};
use corvid_rpc::log_event::End;

use crate::log_message::LogMessage;
use crate::plan::Plan;
use crate::update::TableUpdates;

/// An input of the session, reported by the driver. After [`Output::Disconnect`] the driver reports
/// nothing about the closed connection.
#[derive(Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// The listener of a passive remote is open.
    Listening,
    /// The connection is established.
    Connected,
    /// Bytes have arrived. An empty slice reports an attempt to read that found nothing, which the
    /// session needs to detect a silent server.
    Received(&'a [u8]),
    /// Output that had to wait was sent in part: the peer is reading, so it is alive. Output sent
    /// at once is not reported.
    Sent,
    /// The attempt, the connection or the listener has ended, not at the session's request.
    Disconnected(End),
}

/// An action for the driver, which carries out actions in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Connect to this remote, or listen if it is passive. Then report [`Input::Connected`] (after
    /// [`Input::Listening`] if passive) or [`Input::Disconnected`].
    Connect {
        /// The remote as configured, for example `tcp:10.0.0.1:6642`.
        remote: String,
    },
    /// Close the connection or abandon the attempt, and drop unsent output. The session counts it
    /// as ended; report nothing about it.
    Disconnect,
    /// Send this over the connection.
    Send(Vec<u8>),
}

/// Identifies a request of the user; ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The result as JSON.
    Result(Vec<u8>),
    /// The error as JSON.
    Error(Vec<u8>),
    /// The connection ended, and no server could tell the outcome; the request may have been
    /// executed or not.
    Lost,
}

/// An event for the user of a session; events are in order.
#[derive(Debug, Clone)]
pub enum Event {
    /// A connection was established.
    Connected,
    /// The connection has ended. Requests in flight are then reported as [`Outcome::Lost`], except
    /// transactions that the session sends again.
    Disconnected,
    /// The server has ended the monitor but the connection stays: the contents are requested again.
    /// Until they arrive, the changes on which the answers to requests depend are not reported.
    MonitorEnded,
    /// The session's lock is owned now.
    Locked,
    /// The server has granted a lock that the user requested by a request of its own (`locked`), or
    /// has taken it away (`stolen`).
    LockNotification {
        /// Name of the lock.
        name: String,
        /// Whether this client owns the lock now.
        is_locked: bool,
    },
    /// The contents changed.
    Update(Update),
    /// A request was answered.
    Reply {
        /// The request.
        id: RequestId,
        /// The outcome of the request.
        outcome: Outcome,
    },
    /// A message for the log.
    Log(LogMessage),
}

/// A change of the contents, complete in itself.
#[derive(Debug, Clone)]
pub struct Update {
    /// Drop the present contents first.
    pub clear: bool,
    /// The update answers the monitor request and completes the contents, like the first update of
    /// every connection.
    pub is_reply: bool,
    /// The monitored tables and columns; the same object until the next reply.
    pub plan: Arc<Plan>,
    /// The changes.
    pub updates: TableUpdates,
    /// The last transaction that the contents include after this update; zero if unknown.
    pub last_id: Uuid,
    /// Length of the server's message, bytes.
    pub bytes: usize,
}
