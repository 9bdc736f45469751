//! Clocks of simulated hosts. Each runs at its own rate, which may change. The cluster simulations
//! use them.

use corvid_service::Now;

/// A monotonic clock with its own rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    anchor_ms: u64,
    anchor_local_ms: u64,
    /// The rate, in percent of the true one.
    rate: u64,
}

impl Clock {
    pub(crate) fn new(now_ms: u64, local_ms: u64, rate: u64) -> Clock {
        Clock {
            anchor_ms: now_ms,
            anchor_local_ms: local_ms,
            rate,
        }
    }

    pub(crate) fn local(self, now_ms: u64) -> u64 {
        self.anchor_local_ms + now_ms.saturating_sub(self.anchor_ms) * self.rate / 100
    }

    /// The time as a server on this host reads it.
    pub(crate) fn now(self, now_ms: u64) -> Now {
        let mono_ms = self.local(now_ms);
        Now {
            mono_ms,
            wall_ms: 1_700_000_000_000 + mono_ms.cast_signed(),
        }
    }

    /// The first moment at which this clock shows `local_ms`.
    pub(crate) fn global(self, local_ms: u64) -> u64 {
        let ahead = local_ms.saturating_sub(self.anchor_local_ms);
        self.anchor_ms
            .saturating_add(ahead.saturating_mul(100).div_ceil(self.rate))
    }

    /// Makes the clock jump ahead, as after a suspended machine resumes.
    pub(crate) fn jump(&mut self, now_ms: u64, by_ms: u64) {
        *self = Clock::new(now_ms, self.local(now_ms) + by_ms, self.rate);
    }

    pub(crate) fn set_rate(&mut self, now_ms: u64, rate: u64) {
        *self = Clock::new(now_ms, self.local(now_ms), rate);
    }
}
