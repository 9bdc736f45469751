//! Answers that wait for the disk: the queue between execution and release.

use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, WireError};
use corvid_engine::LongResult;

use crate::audit::What;
use crate::message::{Request, Ticket};
use crate::reply_memory::Charge;

/// A request that is done with and whose answer may not leave yet.
pub(super) struct Parked {
    /// The record that must be stored first; `None`: only those before it.
    pub(super) ticket: Option<Ticket>,
    /// Length of that record; 0: there is none.
    pub(super) record_bytes: usize,
    /// When it was executed, the `_date` of that record; ms since the Unix epoch.
    pub(super) date_ms: i64,
    /// What it changed.
    pub(super) delta: Option<Arc<Delta>>,
    /// What the audit trail is to be told of a refusal.
    pub(super) refused: Option<Box<What>>,
    /// What to say.
    pub(super) answer: Answer,
    /// Whom to answer; kept whole, so that it can be executed again should an earlier record fail to be stored.
    pub(super) origin: Origin,
}

/// What a parked request is answered with.
pub(super) enum Answer {
    /// The `result` as JSON.
    Result(Vec<u8>),
    /// The same, to be written when it may leave.
    Long(Box<LongResult>, StdArc<Charge>),
    /// The `error`.
    Error(Box<WireError>),
}

impl Answer {
    /// Bytes that wait; of a long result there are none yet.
    pub(super) fn len(&self) -> usize {
        match self {
            Answer::Result(result) => result.len(),
            Answer::Long(..) | Answer::Error(_) => 0,
        }
    }
}

/// Where a transaction came from.
pub(super) enum Origin {
    /// A client.
    Client(Box<Request>),
    /// The server itself, with the `params` text.
    Server(Vec<u8>),
    /// What a backup follows.
    Source,
}
