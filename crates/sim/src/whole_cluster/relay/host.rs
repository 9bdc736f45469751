//! A host of a relay: a clock of its own, and the server that runs there or is down.
//!
//! Invariant: nothing remains when a life ends.

use corvid_service::Now;

use super::process::RelayProcess;
use crate::server::machine::Machine;
use crate::whole_cluster::server::Server;
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::trace::Trace;

/// A host of a relay.
#[derive(Debug)]
pub(in crate::whole_cluster) struct RelayHost {
    pub(in crate::whole_cluster) number: usize,
    /// Number of relays between this host and the cluster, this one included.
    pub(in crate::whole_cluster) level: usize,
    /// The addresses of the sources.
    pub(in crate::whole_cluster) remotes: String,
    pub(in crate::whole_cluster) clock: Clock,
    pub(in crate::whole_cluster) paused_ms: u64,
    /// When the relay starts again, ms.
    pub(in crate::whole_cluster) start_ms: Option<u64>,
    pub(in crate::whole_cluster) process: Option<RelayProcess>,
    /// Number of processes so far.
    pub(in crate::whole_cluster) lives: u64,
    dice: Dice,
}

impl RelayHost {
    pub(in crate::whole_cluster) fn new(
        number: usize,
        level: usize,
        remotes: String,
        seed: u64,
        clock: Clock,
    ) -> RelayHost {
        RelayHost {
            number,
            level,
            remotes,
            clock,
            paused_ms: 0,
            start_ms: Some(0),
            process: None,
            lives: 0,
            dice: Dice::new(seed),
        }
    }

    /// Starts the relay with empty contents.
    pub(in crate::whole_cluster) fn start(&mut self, now_ms: u64, trace: &Trace) {
        self.start_ms = None;
        self.lives += 1;
        let process = RelayProcess::start(
            self.number,
            &self.remotes,
            self.clock.now(now_ms),
            self.dice.draw(),
            trace,
        );
        self.process = Some(process);
    }

    /// Returns the server if it is up and not paused.
    pub(in crate::whole_cluster) fn running(&self, now_ms: u64) -> Option<&RelayProcess> {
        let process = self.process.as_ref();
        process.filter(|_| self.paused_ms <= now_ms)
    }
}

impl Server for RelayHost {
    fn now(&self, now_ms: u64) -> Now {
        self.clock.now(now_ms)
    }

    fn is_running(&self, now_ms: u64) -> bool {
        self.running(now_ms).is_some()
    }

    fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let Some(process) = &self.process else {
            return self.start_ms;
        };
        if self.paused_ms > now_ms {
            return Some(self.paused_ms);
        }
        let deadline_ms = process.deadline_ms(self.now(now_ms));
        Some(self.clock.global(deadline_ms))
    }

    fn machine(&self) -> Option<&Machine> {
        self.process.as_ref().map(|process| &process.machine)
    }

    fn machine_mut(&mut self) -> Option<&mut Machine> {
        self.process.as_mut().map(|process| &mut process.machine)
    }

    fn global_ms(&self, local_ms: u64) -> u64 {
        self.clock.global(local_ms)
    }

    fn shows_leader(&self) -> bool {
        false
    }
}
