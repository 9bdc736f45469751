//! The figures of one relay: its state and counts, as its thread last published them.
//!
//! The relay's thread writes them after each turn, with a few stores; the pages and `memory/show`
//! read them. Figures read together may come from two turns.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use corvid_net::clock;

/// The figures of one relay.
#[derive(Debug, Default)]
pub(crate) struct RelayFigures {
    stage: AtomicU8,
    /// When the stage began, monotonic ms.
    since_ms: AtomicU64,
    /// Client requests that have not been sent, because the source is disconnected.
    pub(crate) waiting: AtomicU64,
    /// Client requests sent to the source and not answered yet.
    pub(crate) sent: AtomicU64,
    /// Changes, and whole contents, received from the source.
    pub(crate) changes: AtomicU64,
    /// The bytes of these changes that the database has not applied yet.
    pub(crate) unapplied_bytes: AtomicU64,
    /// Bytes received from the source.
    pub(crate) received_bytes: AtomicU64,
    /// Connections to sources that were established.
    pub(crate) connects: AtomicU64,
}

/// The state of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayStage {
    /// No contents have arrived yet.
    Empty,
    /// The relay has its source's contents, and requests can be sent.
    Connected,
    /// The relay has contents, but no connection to its source.
    Lost,
}

impl RelayFigures {
    /// The relay's state.
    #[must_use]
    pub(crate) fn stage(&self) -> RelayStage {
        match self.stage.load(Ordering::Relaxed) {
            0 => RelayStage::Empty,
            1 => RelayStage::Connected,
            _ => RelayStage::Lost,
        }
    }

    /// Milliseconds since the state last changed.
    #[must_use]
    pub(crate) fn stage_ms(&self) -> u64 {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        clock::mono_ms().saturating_sub(since_ms)
    }

    /// Sets the state. Only the relay's thread calls this.
    pub(crate) fn set_stage(&self, now_ms: u64, stage: RelayStage) {
        let is_first = self.since_ms.load(Ordering::Relaxed) == 0;
        if stage != self.stage() || is_first {
            self.stage.store(stage as u8, Ordering::Relaxed);
            self.since_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Why clients should not be sent to this relay; `None`: they may be. A relay that has lost its
    /// source still answers readers.
    #[must_use]
    pub(crate) fn fault(&self) -> Option<String> {
        let is_empty = self.stage() == RelayStage::Empty;
        is_empty.then(|| "this relay has not received its source's contents yet".to_owned())
    }

    /// The state in words, for a check that passes.
    #[must_use]
    pub(crate) fn note(&self) -> Option<String> {
        let seconds = self.stage_ms() / 1000;
        let waiting = self.waiting.load(Ordering::Relaxed);
        Some(match self.stage() {
            RelayStage::Empty => return None,
            RelayStage::Connected => format!("connected to its source for {seconds} s"),
            RelayStage::Lost => {
                format!(
                    "disconnected from its source for {seconds} s; {waiting} requests are queued"
                )
            }
        })
    }
}
