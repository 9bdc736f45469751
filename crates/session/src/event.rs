//! Inputs, outputs and events of a client's session.

use corvid_data::{Arc, Uuid};
use corvid_rpc::log_event::End;

use crate::log_message::LogMessage;
use crate::plan::Plan;
use crate::update::TableUpdates;

/// An event of the connection, reported by the driver. After [`Output::Disconnect`] the driver reports nothing about the closed connection.
#[derive(Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// A listener for a passive remote is open.
    Listening,
    /// The connection is established.
    Connected,
    /// Bytes arrived. An empty slice reports an attempt to read that found nothing: the session needs it to detect a silent server.
    Received(&'a [u8]),
    /// Output that had to wait was sent in part: the peer reads, so it is alive. Output that is sent at once is not reported.
    Sent,
    /// The attempt, the connection or the listener ended by itself.
    Disconnected(End),
}

/// An action for the driver. Actions are carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Connect to this remote (or listen, if it is a passive one), then report [`Input::Connected`] (or [`Input::Listening`] first) or
    /// [`Input::Disconnected`].
    Connect {
        /// As it was configured, for example `tcp:10.0.0.1:6642`.
        remote: String,
    },
    /// Close the connection or give up the attempt, and drop what is unsent. It is over as of now; report nothing.
    Disconnect,
    /// Send this over the connection.
    Send(Vec<u8>),
}

/// A request of the user; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The result as JSON.
    Result(Vec<u8>),
    /// The error as JSON.
    Error(Vec<u8>),
    /// The connection ended; it may or may not have been carried out.
    Lost,
}

/// An event for the user of a session. Events come in order.
#[derive(Debug, Clone)]
pub enum Event {
    /// A connection was established.
    Connected,
    /// The connection ended. Outstanding requests are reported as [`Outcome::Lost`] after this.
    Disconnected,
    /// The server has ended the monitor, and the connection stays: the contents are asked for anew. Until they come, no update tells what
    /// the answers to requests depend on.
    MonitorEnded,
    /// The lock is held now.
    Locked,
    /// The server has given a lock that was asked for with a request of the user to this client, or taken it away (`locked`, `stolen`).
    LockNotification {
        /// Name of the lock.
        name: String,
        /// It is this client's now.
        is_locked: bool,
    },
    /// The contents changed.
    Update(Update),
    /// A request was answered.
    Reply {
        /// Which.
        id: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// A message for the log.
    Log(LogMessage),
}

/// A change of contents, complete in itself.
#[derive(Debug, Clone)]
pub struct Update {
    /// The present contents are to be dropped first.
    pub clear: bool,
    /// This update answers the monitor request and completes the contents. The first update of every connection does.
    pub is_reply: bool,
    /// The monitored tables and columns; the same object until the next reply.
    pub plan: Arc<Plan>,
    /// The changes.
    pub updates: TableUpdates,
    /// The last transaction that the contents include after this update; zero when unknown.
    pub last_id: Uuid,
    /// The length of the server's message.
    pub bytes: usize,
}
