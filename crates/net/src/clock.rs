//! The only clock. Pure crates receive the time as a [`Now`] and read no clock.
//!
//! Monotonic milliseconds count from an arbitrary start before this process (the boot of the
//! machine) and are always positive, so 0 can mean "never". Wall time is only for dates in records
//! and logs.

#![allow(unsafe_code)]

use std::time::Duration;

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Monotonic time, ms; for deadlines and intervals.
    pub mono_ms: u64,
    /// The same reading, ns; for durations below a millisecond.
    pub mono_ns: u64,
    /// Wall time, ms since 1970-01-01 UTC; for dates.
    pub wall_ms: i64,
}

impl Now {
    /// Reads both clocks.
    #[must_use]
    pub fn read() -> Now {
        let mono_ns = mono_ns();
        Now {
            mono_ms: (mono_ns / 1_000_000).max(1),
            mono_ns,
            wall_ms: wall_ms(),
        }
    }

    /// The time left until a monotonic deadline; zero once it has passed.
    #[must_use]
    pub fn until(&self, deadline_ms: u64) -> Duration {
        Duration::from_millis(deadline_ms.saturating_sub(self.mono_ms))
    }
}

/// Monotonic time, ms.
#[must_use]
pub fn mono_ms() -> u64 {
    millis(libc::CLOCK_MONOTONIC).max(1) as u64
}

/// Monotonic time, ns; for durations below a millisecond.
#[must_use]
pub fn mono_ns() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).max(1) as u64
}

/// CPU time of the calling thread, ns. A system call: some 15 times as dear as the other clocks.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = read(libc::CLOCK_THREAD_CPUTIME_ID);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

/// Wall time, ms since 1970-01-01 UTC.
#[must_use]
pub fn wall_ms() -> i64 {
    millis(libc::CLOCK_REALTIME)
}

fn millis(clock: libc::clockid_t) -> i64 {
    let time = read(clock);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result; all clocks exist on every Linux, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_does_not_go_back() {
        let first = Now::read();
        let second = Now::read();
        assert!(second.mono_ms >= first.mono_ms && first.wall_ms > 1_600_000_000_000);
        assert_eq!(second.until(second.mono_ms + 5), Duration::from_millis(5));
        assert_eq!(second.until(0), Duration::ZERO);
        assert_eq!(second.mono_ms, second.mono_ns / 1_000_000);
        assert!(thread_cpu_ns() <= thread_cpu_ns());
    }
}
