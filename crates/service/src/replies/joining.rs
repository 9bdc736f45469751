//! The reply to a new monitor, between its request and its release: the initial contents, or the
//! job that writes them.
//!
//! Invariant: the monitor has joined, so it gets no update before this reply and every later change
//! after it.

use std::sync::Arc;

use corvid_monitor::{ContentsId, MonitorResult, ResultHead};

use super::Answer;

/// A monitor that has joined, and whose reply has not left.
#[derive(Debug)]
pub(crate) struct Joining {
    /// Canonical JSON of its id.
    pub(crate) id: Arc<[u8]>,
    /// Its initial contents.
    pub(crate) contents: Contents,
}

/// The initial contents of a monitor.
#[derive(Debug)]
pub(crate) enum Contents {
    /// All of them.
    Written(MonitorResult),
    /// A job is writing them.
    Awaited(ContentsId, ResultHead),
}

impl Joining {
    /// Bytes of contents that this entry keeps in memory.
    pub(super) fn len(&self) -> usize {
        match &self.contents {
            Contents::Written(result) => result.whole_len(),
            Contents::Awaited(..) => 0,
        }
    }

    /// The answer for contents that are written already.
    pub(crate) fn written(id: Arc<[u8]>, result: MonitorResult) -> Answer {
        let contents = Contents::Written(result);
        Answer::Joined(Box::new(Joining { id, contents }))
    }
}
