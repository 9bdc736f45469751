//! What goes into a client session and what comes out of it.

use corvid_data::Arc;
use corvid_rpc::log_event::End;

use crate::log_message::LogMessage;
use crate::plan::Plan;
use crate::update::TableUpdates;

/// What a driver reports. After [`Output::Disconnect`] nothing is reported of the connection that was closed.
#[derive(Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Tick,
    /// A listener for a passive remote is open.
    Listening,
    /// The connection is established.
    Connected,
    /// Bytes arrived. None, when reading was tried in vain: it lets silence be judged.
    Received(&'a [u8]),
    /// Some of the output that had to wait went out: the peer takes it, so it lives. What goes out at once is not reported.
    Sent,
    /// The attempt, the connection or the listener ended by itself.
    Disconnected(End),
}

/// What a driver is to do, in this order.
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

/// What the user of a session learns, in this order.
#[derive(Debug, Clone)]
pub enum Event {
    /// A connection was established.
    Connected,
    /// It ended. What is outstanding is reported as [`Outcome::Lost`] after this.
    Disconnected,
    /// The lock is held now.
    Locked,
    /// The contents changed.
    Update(Update),
    /// A request was answered.
    Reply {
        /// Which.
        id: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// Something for the log.
    Log(LogMessage),
}

/// A change of contents, complete in itself.
#[derive(Debug, Clone)]
pub struct Update {
    /// Whatever is held is to be dropped first.
    pub clear: bool,
    /// It answers the monitor request, so the contents are complete with it. The first one of every connection is.
    pub is_reply: bool,
    /// What is monitored; the same object until the next reply.
    pub plan: Arc<Plan>,
    /// The changes.
    pub updates: TableUpdates,
}
