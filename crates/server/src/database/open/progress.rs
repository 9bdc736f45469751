//! Progress and cancellation of an opening, shared by its thread and the main thread.
//!
//! Invariant: every piece of a file that is read, searched or copied is recorded, so the watchdog
//! can distinguish a file system that hangs from a long file. A cancelled opening fails at the next
//! piece and has written nothing to the database's file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_net::clock;

use crate::liveness::Liveness;

/// The progress of opening one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    liveness: Liveness,
    is_cancelled: Arc<AtomicBool>,
}

impl Progress {
    /// Progress that is recorded in `liveness`. Setting `is_cancelled` cancels the work.
    #[must_use]
    pub(crate) fn new(liveness: Liveness, is_cancelled: Arc<AtomicBool>) -> Progress {
        Progress {
            liveness,
            is_cancelled,
        }
    }

    /// Records that a piece is done and the next one begins.
    ///
    /// # Errors
    /// The opening is cancelled.
    pub(crate) fn advance(&self) -> io::Result<()> {
        self.liveness.busy(clock::mono_ms());
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server exits"));
        }
        Ok(())
    }

    /// Milliseconds since the current piece began.
    #[must_use]
    pub(crate) fn busy_ms(&self, now_ms: u64) -> u64 {
        self.liveness.busy_ms(now_ms)
    }
}
