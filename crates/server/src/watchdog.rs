//! The main loop's watchdog: notifies the service manager's watchdog while no thread is stuck, and
//! logs stuck threads.
//!
//! The main loop notifies the service manager only while no thread is stuck ([`crate::liveness`]).
//! A process that still listens but no longer serves a database is therefore restarted, if its unit
//! asks for that. Notifications from a timer would prove nothing. Each file that is being opened
//! has a liveness entry, and every piece read counts as progress.

use std::sync::Arc;
use std::time::Duration;

use corvid_shell::service_manager;
use corvid_shell::vlog::{self, Module};

use crate::liveness::{Liveness, LivenessRegistry, STUCK_MS};

/// The state between two passes of the main loop.
#[derive(Debug)]
pub(crate) struct Watchdog {
    service_manager: Option<service_manager::Watchdog>,
    liveness_registry: Arc<LivenessRegistry>,
    /// The main thread's own entry.
    own: Liveness,
    /// The threads that were stuck at the last check.
    stuck: Vec<String>,
    next_check_ms: u64,
    /// When to ask the service manager for more time; `None`: nothing is being opened.
    next_extension_ms: Option<u64>,
}

/// The interval between two checks for stuck threads, ms.
const CHECK_INTERVAL_MS: u64 = 2000;

impl Watchdog {
    /// Adds the main thread's entry. No thread is stuck yet.
    #[must_use]
    pub(crate) fn new(
        service_manager: Option<service_manager::Watchdog>,
        liveness_registry: Arc<LivenessRegistry>,
    ) -> Watchdog {
        let own = liveness_registry.add("main");
        Watchdog {
            service_manager,
            liveness_registry,
            own,
            stuck: Vec::new(),
            next_check_ms: 0,
            next_extension_ms: None,
        }
    }

    /// How long the main loop may wait: `otherwise`, or less if the service manager's watchdog is
    /// due earlier.
    #[must_use]
    pub(crate) fn wait_max(&self, now_ms: u64, otherwise: Duration) -> Duration {
        self.service_manager.as_ref().map_or(otherwise, |watchdog| {
            watchdog.time_left(now_ms).min(otherwise)
        })
    }

    /// Asks the service manager for more time while a start or reload makes progress: [`STUCK_MS`]
    /// at a time, the maximum for one piece of work.
    pub(crate) fn extend(&mut self, now_ms: u64, makes_progress: bool) {
        let due_ms = self.next_extension_ms.filter(|_| makes_progress);
        let is_due = due_ms.is_some_and(|due_ms| now_ms >= due_ms);
        if is_due {
            service_manager::extend(Duration::from_millis(STUCK_MS));
        }
        let next_ms = due_ms
            .filter(|_| !is_due)
            .unwrap_or(now_ms + CHECK_INTERVAL_MS);
        self.next_extension_ms = makes_progress.then_some(next_ms);
    }

    /// Runs once in each pass of the main loop. `status` yields the status line for the service
    /// manager once no thread is stuck any more.
    pub(crate) fn run(&mut self, now_ms: u64, status: impl FnOnce() -> String) {
        self.own.busy(now_ms);
        let liveness_registry = &self.liveness_registry;
        if let Some(watchdog) = &mut self.service_manager {
            watchdog.run(now_ms, || {
                liveness_registry.stuck(now_ms, STUCK_MS).is_empty()
            });
        }
        if now_ms < self.next_check_ms {
            return;
        }
        self.next_check_ms = now_ms + CHECK_INTERVAL_MS;
        let stuck = self.liveness_registry.stuck(now_ms, STUCK_MS);
        for (name, busy_ms) in &stuck {
            if !self.stuck.contains(name) {
                let seconds = busy_ms / 1000;
                let message =
                    format_args!("{name}: stuck: one work item has taken {seconds} seconds");
                vlog::warn(Module::OvsdbServer, message);
            }
        }
        let names: Vec<String> = stuck.into_iter().map(|(name, _)| name).collect();
        if names != self.stuck {
            match names.as_slice() {
                [] => service_manager::status(&status()),
                names => service_manager::status(&format!("stuck: {}", names.join(", "))),
            }
        }
        self.stuck = names;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_start_that_makes_progress_asks_for_more_time() {
        let mut watchdog = Watchdog::new(None, Arc::new(LivenessRegistry::default()));
        let mut due_ms = |now_ms, makes_progress| {
            watchdog.extend(now_ms, makes_progress);
            watchdog.next_extension_ms
        };
        assert_eq!(due_ms(1000, false), None);
        assert_eq!(due_ms(1500, true), Some(3500), "a short one needs no more");
        assert_eq!(due_ms(3000, true), Some(3500));
        assert_eq!(due_ms(3600, true), Some(5600), "more time was asked for");
        assert_eq!(due_ms(4000, false), None, "no progress");
        assert_eq!(due_ms(9000, true), Some(11_000));
    }

    #[test]
    fn stuck_threads_are_reported_until_they_rest() {
        let liveness_registry = Arc::new(LivenessRegistry::default());
        let mut watchdog = Watchdog::new(None, liveness_registry.clone());
        let otherwise = Duration::from_millis(2500);
        assert_eq!(watchdog.wait_max(1, otherwise), otherwise);
        let database = liveness_registry.add("db:D");
        database.busy(1000);
        watchdog.run(1000, || unreachable!("nothing has changed"));
        assert!(watchdog.stuck.is_empty());
        watchdog.run(62_000, || unreachable!("it is stuck"));
        assert_eq!(watchdog.stuck, ["db:D"]);
        database.idle();
        watchdog.run(63_000, || unreachable!("not checked again yet"));
        watchdog.run(64_000, || "serving D".to_owned());
        assert!(watchdog.stuck.is_empty());
    }
}
