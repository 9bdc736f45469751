//! Answers that wait for the disk: the queue between execution and release.

use corvid_data::{Arc, Delta};

use crate::message::{Request, Ticket};

/// An executed transaction whose answer may not leave yet.
pub(super) struct Parked {
    /// The record that must be stored first; `None`: only those before it.
    pub(super) ticket: Option<Ticket>,
    /// What it changed.
    pub(super) delta: Option<Arc<Delta>>,
    /// The `result` array as JSON.
    pub(super) result: Vec<u8>,
    /// Whom to answer; kept whole, so that it can be executed again should an earlier record fail to be stored.
    pub(super) origin: Origin,
}

/// Where a transaction came from.
pub(super) enum Origin {
    /// A client.
    Client(Box<Request>),
    /// The server itself, with the `params` text.
    Server(Vec<u8>),
}
