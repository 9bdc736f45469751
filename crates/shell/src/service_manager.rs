//! Notifications to systemd, or to another service manager with its protocol (`sd_notify`): ready,
//! reloading, stopping, alive.
//!
//! Nothing is sent unless the environment names a socket (`NOTIFY_SOCKET`). Only main threads call
//! this module. A failure to send is ignored.
//!
//! The main process is the server, or the supervisor of `--monitor`, which outlives the server
//! ([`crate::daemon::Startup::main_pid`]). With `--detach` or `--monitor`, the process that sends
//! notifications is not the one that the manager started, so such a unit needs `NotifyAccess=all`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

use corvid_net::clock;

/// The manager's watchdog, which expects periodic notifications.
#[derive(Debug)]
pub struct Watchdog {
    /// The interval between two notifications, ms: half of the manager's limit.
    interval_ms: u64,
    next_ms: u64,
}

impl Watchdog {
    /// The watchdog that the environment requests, if any. Must be called before the process forks:
    /// the environment names the process.
    #[must_use]
    pub fn from_env() -> Option<Watchdog> {
        sd_notify::watchdog_enabled().map(Watchdog::new)
    }

    fn new(limit: Duration) -> Watchdog {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Watchdog {
            interval_ms: (limit_ms / 2).max(1),
            next_ms: 0,
        }
    }

    /// How long the caller may wait before it calls [`Watchdog::run`] again.
    #[must_use]
    pub fn time_left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.next_ms.saturating_sub(now_ms).max(1))
    }

    /// Notifies the manager if that is due and `is_alive` returns true; without notifications the
    /// manager treats the process as hung. Returns the value of `is_alive`, if it was called.
    pub fn run(&mut self, now_ms: u64, is_alive: impl FnOnce() -> bool) -> Option<bool> {
        if now_ms < self.next_ms {
            return None;
        }
        self.next_ms = now_ms + self.interval_ms;
        let is_alive = is_alive();
        if is_alive {
            notify(&[NotifyState::Watchdog]);
        }
        Some(is_alive)
    }
}

/// Reports that the server is ready, for the first time or after [`reloading`]. `main_pid` is the
/// main process; `status` is for people.
pub fn ready(main_pid: u32, status: &str) {
    notify(&[
        NotifyState::MainPid(main_pid),
        NotifyState::Status(status),
        NotifyState::Ready,
    ]);
}

/// Reports the status on one line, for people.
pub fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// Reports that the current start or reload takes at most `time` longer; call again before that
/// time has passed.
pub fn extend(time: Duration) {
    let time_us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    notify(&[NotifyState::ExtendTimeoutUsec(time_us)]);
}

/// Reports that the configuration is being reread; [`reloaded`] must follow.
pub fn reloading() {
    let now_us = i128::from(clock::mono_ms()) * 1000;
    notify(&[NotifyState::Reloading, NotifyState::MonotonicUsec(now_us)]);
}

/// Reports that the configuration has been reread, with or without success.
pub fn reloaded(status: &str) {
    notify(&[NotifyState::Status(status), NotifyState::Ready]);
}

/// Reports that the process is about to end. Only the first call sends it.
pub fn stopping() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        notify(&[NotifyState::Stopping]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_notifies_at_half_of_its_interval() {
        let mut watchdog = Watchdog::new(Duration::from_millis(3000));
        assert_eq!(watchdog.run(10_000, || true), Some(true));
        assert_eq!(watchdog.time_left(10_100), Duration::from_millis(1400));
        assert_eq!(watchdog.run(11_499, || unreachable!("not asked")), None);
        assert_eq!(watchdog.run(11_500, || false), Some(false));
        assert_eq!(watchdog.run(13_000, || true), Some(true));
        assert_eq!(watchdog.time_left(20_000), Duration::from_millis(1), "late");
    }
}
