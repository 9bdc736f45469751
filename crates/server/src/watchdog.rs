//! Whether the server gets on, as the main thread tells it: to the service manager's watchdog, and to the log.
//!
//! The watchdog gets its sign of life from the main loop, and only while nobody is stuck ([`crate::liveness`]): so a process that listens but
//! no longer serves a database is started again where the unit asks for that. A timer alone would prove nothing. While the first files are
//! opened, each of them counts as one that may be stuck: every piece that is read is progress.

use std::sync::Arc;
use std::time::Duration;

use corvid_shell::service_manager::{self, Watchdog};
use corvid_shell::vlog::{self, Module};

use crate::liveness::{Heartbeat, Heartbeats, STUCK_MS};

/// What the main loop does for it.
#[derive(Debug)]
pub(crate) struct Vigil {
    watchdog: Option<Watchdog>,
    heartbeats: Arc<Heartbeats>,
    /// The main thread's own.
    own: Heartbeat,
    /// Who was stuck when somebody was looked for last.
    stuck: Vec<String>,
    next_look_ms: u64,
    /// While more time may have to be asked for.
    next_extension_ms: Option<u64>,
}

/// Between two looks, ms.
const LOOK_MS: u64 = 2000;

impl Vigil {
    /// Begins with nobody stuck.
    #[must_use]
    pub(crate) fn new(watchdog: Option<Watchdog>, heartbeats: Arc<Heartbeats>) -> Vigil {
        let own = heartbeats.add("main");
        Vigil {
            watchdog,
            heartbeats,
            own,
            stuck: Vec::new(),
            next_look_ms: 0,
            next_extension_ms: None,
        }
    }

    /// For how long the main loop may wait, of `otherwise`.
    #[must_use]
    pub(crate) fn patience(&self, now_ms: u64, otherwise: Duration) -> Duration {
        self.watchdog.as_ref().map_or(otherwise, |watchdog| {
            watchdog.patience(now_ms).min(otherwise)
        })
    }

    /// Asks the service manager for more time while a start or a reload `gets_on`: each time for as long as one piece of work may take.
    pub(crate) fn extend(&mut self, now_ms: u64, gets_on: bool) {
        let due_ms = self.next_extension_ms.filter(|_| gets_on);
        let is_due = due_ms.is_some_and(|due_ms| now_ms >= due_ms);
        if is_due {
            service_manager::extend(Duration::from_millis(STUCK_MS));
        }
        let next_ms = due_ms.filter(|_| !is_due).unwrap_or(now_ms + LOOK_MS);
        self.next_extension_ms = gets_on.then_some(next_ms);
    }

    /// One pass of the main loop. `status` says how things stand when nobody is stuck.
    pub(crate) fn run(&mut self, now_ms: u64, status: impl FnOnce() -> String) {
        self.own.work(now_ms);
        let heartbeats = &self.heartbeats;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.run(now_ms, || heartbeats.stuck(now_ms, STUCK_MS).is_empty());
        }
        if now_ms < self.next_look_ms {
            return;
        }
        self.next_look_ms = now_ms + LOOK_MS;
        let stuck = self.heartbeats.stuck(now_ms, STUCK_MS);
        for (name, busy_ms) in &stuck {
            if !self.stuck.contains(name) {
                let seconds = busy_ms / 1000;
                let message =
                    format_args!("{name}: stuck, at one piece of work for {seconds} seconds");
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
    fn more_time_is_asked_for_while_a_long_start_gets_on() {
        let mut vigil = Vigil::new(None, Arc::new(Heartbeats::default()));
        let mut due_ms = |now_ms, gets_on| {
            vigil.extend(now_ms, gets_on);
            vigil.next_extension_ms
        };
        assert_eq!(due_ms(1000, false), None);
        assert_eq!(due_ms(1500, true), Some(3500), "a short one needs no more");
        assert_eq!(due_ms(3000, true), Some(3500));
        assert_eq!(due_ms(3600, true), Some(5600), "asked for");
        assert_eq!(due_ms(4000, false), None, "nothing gets on");
        assert_eq!(due_ms(9000, true), Some(11_000));
    }

    #[test]
    fn the_main_loop_wakes_for_the_watchdog_and_remembers_who_is_stuck() {
        let heartbeats = Arc::new(Heartbeats::default());
        let mut vigil = Vigil::new(None, heartbeats.clone());
        let otherwise = Duration::from_millis(2500);
        assert_eq!(vigil.patience(1, otherwise), otherwise);
        let database = heartbeats.add("db:D");
        database.work(1000);
        vigil.run(1000, || unreachable!("nothing has changed"));
        assert!(vigil.stuck.is_empty());
        vigil.run(62_000, || unreachable!("it is stuck"));
        assert_eq!(vigil.stuck, ["db:D"]);
        database.rest();
        vigil.run(63_000, || unreachable!("not looked again yet"));
        vigil.run(64_000, || "serving D".to_owned());
        assert!(vigil.stuck.is_empty());
    }
}
