//! What systemd, or another service manager with its protocol (`sd_notify`), is told of this process: that it is ready, reloading, stopping,
//! and alive.
//!
//! Everything here does nothing unless the environment names a socket (`NOTIFY_SOCKET`). Called by main threads only. What is told
//! is lost when the socket is: a manager that does not listen is no reason to fail.
//!
//! Who is the main process: the server, or the supervisor of `--monitor`, which outlives it ([`crate::daemon::Startup::main_pid`]). Since
//! with `--detach` or `--monitor` it is not the process that the manager started which speaks, a unit with either of them needs
//! `NotifyAccess=all`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

use corvid_net::clock;

/// The watchdog of the manager, which wants a sign of life now and then.
#[derive(Debug)]
pub struct Watchdog {
    /// Between two signs of life, ms: half of what the manager waits for one.
    interval_ms: u64,
    next_ms: u64,
}

impl Watchdog {
    /// The watchdog that was asked for, if there is one. Call it before the process forks: the environment says whom it means.
    #[must_use]
    pub fn from_env() -> Option<Watchdog> {
        sd_notify::watchdog_enabled().map(Watchdog::new)
    }

    fn new(patience: Duration) -> Watchdog {
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        Watchdog {
            interval_ms: (patience_ms / 2).max(1),
            next_ms: 0,
        }
    }

    /// For how long the caller may wait before it calls [`Watchdog::run`] again.
    #[must_use]
    pub fn patience(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.next_ms.saturating_sub(now_ms).max(1))
    }

    /// Gives a sign of life when it is time and `is_alive` says that there is life; otherwise the manager does what it was told to do with
    /// a process that hangs. Returns what `is_alive` said, if it was asked.
    pub fn run(&mut self, now_ms: u64, is_alive: impl FnOnce() -> bool) -> Option<bool> {
        if now_ms < self.next_ms {
            return None;
        }
        self.next_ms = now_ms + self.interval_ms;
        let is_alive = is_alive();
        if is_alive {
            tell(&[NotifyState::Watchdog]);
        }
        Some(is_alive)
    }
}

/// Service begins, or goes on after [`reloading`]. `main_pid` is the main process; `status` is for people.
pub fn ready(main_pid: u32, status: &str) {
    tell(&[
        NotifyState::MainPid(main_pid),
        NotifyState::Status(status),
        NotifyState::Ready,
    ]);
}

/// How things stand, on one line, for people.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// What is under way, a start or a reload, takes `time` longer than now at most; to be told again before that is over.
pub fn extend(time: Duration) {
    let time_us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::ExtendTimeoutUsec(time_us)]);
}

/// The configuration is being read again; [`reloaded`] must follow.
pub fn reloading() {
    let now_us = i128::from(clock::mono_ms()) * 1000;
    tell(&[NotifyState::Reloading, NotifyState::MonotonicUsec(now_us)]);
}

/// It has been read, whatever came of it.
pub fn reloaded(status: &str) {
    tell(&[NotifyState::Status(status), NotifyState::Ready]);
}

/// The process is about to end. Told once, however often this is called.
pub fn stopping() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        tell(&[NotifyState::Stopping]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_at_half_of_the_manager_s_patience() {
        let mut watchdog = Watchdog::new(Duration::from_millis(3000));
        assert_eq!(watchdog.run(10_000, || true), Some(true));
        assert_eq!(watchdog.patience(10_100), Duration::from_millis(1400));
        assert_eq!(watchdog.run(11_499, || unreachable!("not asked")), None);
        assert_eq!(watchdog.run(11_500, || false), Some(false));
        assert_eq!(watchdog.run(13_000, || true), Some(true));
        assert_eq!(watchdog.patience(20_000), Duration::from_millis(1), "late");
    }
}
