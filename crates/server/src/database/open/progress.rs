//! What an opening thread and the main thread know of each other: that the work goes on, and whether it is still wanted.
//!
//! Invariant: every piece of a file that is read, searched or copied is noted, so a file system that hangs is told from a long file. What is
//! no longer wanted fails at the next piece; nothing has been written to the database's file by then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_net::clock;

use crate::liveness::Liveness;

/// Of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    liveness: Liveness,
    is_cancelled: Arc<AtomicBool>,
}

impl Progress {
    /// Tells of itself by a liveness; `is_cancelled` ends the work.
    #[must_use]
    pub(crate) fn new(liveness: Liveness, is_cancelled: Arc<AtomicBool>) -> Progress {
        Progress {
            liveness,
            is_cancelled,
        }
    }

    /// A piece is done, and the next one begins.
    ///
    /// # Errors
    /// It is not wanted any more.
    pub(crate) fn advance(&self) -> io::Result<()> {
        self.liveness.busy(clock::mono_ms());
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server exits"));
        }
        Ok(())
    }

    /// For how long the present piece has lasted, ms.
    #[must_use]
    pub(crate) fn busy_ms(&self, now_ms: u64) -> u64 {
        self.liveness.busy_ms(now_ms)
    }
}
