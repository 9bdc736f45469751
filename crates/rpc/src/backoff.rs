//! How long to wait before the next attempt to connect (docs/spec/cli.md 5.2).
//!
//! Waits double from the minimum to the maximum. The first attempts over a list of remotes are
//! free, so each remote is tried once before the first wait.

/// The wait after a first failure, and the smallest minimum that can be set, ms.
pub const MIN_MS: u64 = 1000;

/// Default maximum wait, ms.
pub const MAX_MS_DEFAULT: u64 = 8000;

/// The waits of one reconnecting session, ms.
#[derive(Debug, Clone)]
pub struct Backoff {
    min_ms: u64,
    max_ms: u64,
    current_ms: u64,
    /// Attempts left, including this one, that are not followed by a wait.
    free_tries: u32,
}

/// How a failure changed the wait; it decides what is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No wait, or the minimum.
    Short,
    /// The wait doubled.
    Doubled,
    /// The wait has just reached its maximum.
    ReachedLimit,
    /// The wait was at its maximum already.
    AtLimit,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            min_ms: MIN_MS,
            max_ms: MAX_MS_DEFAULT,
            current_ms: 0,
            free_tries: 0,
        }
    }
}

impl Backoff {
    /// The current wait, ms.
    #[must_use]
    pub fn current_ms(&self) -> u64 {
        self.current_ms
    }

    /// Whether the wait has reached its maximum. From then on attempts are not logged.
    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        self.current_ms >= self.max_ms
    }

    /// Sets the limits, ms. The minimum is raised to [`MIN_MS`], and the maximum to the minimum. A
    /// `max_ms` of 0 means the default.
    pub fn set_limits(&mut self, min_ms: u64, max_ms: u64) {
        self.min_ms = min_ms.max(MIN_MS);
        self.max_ms = if max_ms == 0 { MAX_MS_DEFAULT } else { max_ms }.max(self.min_ms);
        self.current_ms = self.current_ms.min(self.max_ms);
    }

    /// Grants this many attempts without a wait between them: the number of remotes. 0 and 1 grant
    /// nothing.
    pub fn set_free_tries(&mut self, free_tries: u32) {
        self.free_tries = free_tries;
    }

    /// Forgets earlier failures.
    pub fn reset(&mut self) {
        self.current_ms = 0;
    }

    /// Records a failed attempt or the end of a connection. `was_good`: the connection lasted at
    /// least as long as the current wait.
    pub fn fail(&mut self, was_good: bool) -> Step {
        if self.free_tries > 1 {
            self.free_tries -= 1;
            self.current_ms = 0;
            Step::Short
        } else if was_good || self.current_ms < self.min_ms {
            self.current_ms = self.min_ms;
            Step::Short
        } else if self.current_ms < self.max_ms.div_ceil(2) {
            self.current_ms *= 2;
            Step::Doubled
        } else {
            let step = if self.is_at_limit() {
                Step::AtLimit
            } else {
                Step::ReachedLimit
            };
            self.current_ms = self.max_ms;
            step
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Step};

    #[test]
    fn waits_double_up_to_the_limit() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..6)
            .map(|_| (backoff.fail(false), backoff.current_ms()))
            .collect();
        let expected = [
            (Step::Short, 1000),
            (Step::Doubled, 2000),
            (Step::Doubled, 4000),
            (Step::ReachedLimit, 8000),
            (Step::AtLimit, 8000),
            (Step::AtLimit, 8000),
        ];
        assert_eq!(waits, expected);
    }

    #[test]
    fn a_good_connection_starts_anew() {
        let mut backoff = Backoff::default();
        backoff.fail(false);
        backoff.fail(false);
        backoff.fail(true);
        assert_eq!(backoff.current_ms(), 1000);
    }

    #[test]
    fn each_remote_is_tried_once_before_the_first_wait() {
        let mut backoff = Backoff::default();
        backoff.set_free_tries(3);
        let waits: Vec<_> = (0..4)
            .map(|_| (backoff.fail(false), backoff.current_ms()).1)
            .collect();
        assert_eq!(waits, [0, 0, 1000, 2000]);
    }

    #[test]
    fn limits_are_raised_and_apply_at_once() {
        let mut backoff = Backoff::default();
        while backoff.fail(false) != Step::AtLimit {}
        backoff.set_limits(1, 500);
        assert_eq!(backoff.current_ms(), 1000);
        backoff.set_limits(3000, 2000);
        assert_eq!(
            (backoff.fail(false), backoff.current_ms()),
            (Step::Short, 3000)
        );
        backoff.set_limits(1000, 0);
        assert_eq!(
            (backoff.fail(false), backoff.current_ms()),
            (Step::Doubled, 6000)
        );
    }
}
