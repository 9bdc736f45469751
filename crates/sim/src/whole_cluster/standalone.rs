//! The host of a standalone server, in place of a cluster, as the source of relays: its disk, its
//! clock, and the server that runs there or is down.
//!
//! Invariant: a process that is killed loses nothing that was written, so its next life has every
//! commit that anybody has seen.

use corvid_data::HashSeed;
use corvid_service::Now;

use super::server::Server;
use crate::server::machine::{Choice, Machine, SeededUuids};
use crate::server::opening;
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::disk::{Crash, SimDisk};

/// A host of a standalone server.
pub(super) struct StandaloneHost {
    disk: SimDisk,
    hash_seed: HashSeed,
    pub(super) clock: Clock,
    pub(super) paused_ms: u64,
    /// When the server starts again, ms.
    pub(super) start_ms: Option<u64>,
    /// `None` while the server is down.
    machine: Option<Machine>,
    /// Number of processes so far.
    pub(super) lives: u64,
    dice: Dice,
}

impl StandaloneHost {
    pub(super) fn new(disk: SimDisk, seed: u64, clock: Clock) -> StandaloneHost {
        StandaloneHost {
            disk,
            hash_seed: HashSeed::new(seed),
            clock,
            paused_ms: 0,
            start_ms: Some(0),
            machine: None,
            lives: 0,
            dice: Dice::new(seed),
        }
    }

    /// Starts the server on its file.
    ///
    /// # Errors
    /// The file does not open, or a kill has damaged it.
    pub(super) fn start(&mut self, now_ms: u64) -> Result<(), String> {
        self.start_ms = None;
        self.lives += 1;
        let file = self.disk.open();
        let mut uuids = SeededUuids(Dice::new(self.dice.draw()));
        let opened = opening::open(&file, self.hash_seed, &mut uuids)
            .map_err(|refusal| refusal.to_string())?;
        if let Some(damage) = &opened.damage {
            return Err(format!("a killed server left damage: {damage:?}"));
        }
        let (now, seed) = (self.clock.now(now_ms), self.dice.draw());
        // Without a history, relays have no commit after which a transaction can be looked for.
        self.machine = Some(Machine::start(now, seed, &self.disk, file, opened, true));
        Ok(())
    }

    /// Kills the server.
    pub(super) fn kill(&mut self) {
        self.machine = None;
        self.disk.restart(Crash::Kill);
    }

    /// Returns the steps that the server can take now.
    pub(super) fn choices(&self, now_ms: u64) -> Vec<Choice> {
        let machine = self.machine.as_ref().filter(|_| self.paused_ms <= now_ms);
        let now = self.clock.now(now_ms);
        machine
            .map(|machine| machine.choices(now))
            .unwrap_or_default()
    }

    pub(super) fn act(&mut self, now_ms: u64, choice: Choice) {
        let now = self.clock.now(now_ms);
        let Some(machine) = &mut self.machine else {
            return;
        };
        if let Some(mut rewriter) = machine.act(now, choice, &mut self.dice) {
            let seen = &*machine;
            let outcome = rewriter.run(|| seen.end(), || seen.is_rewrite_wanted());
            machine.written(rewriter, outcome);
        }
    }
}

impl Server for StandaloneHost {
    fn now(&self, now_ms: u64) -> Now {
        self.clock.now(now_ms)
    }

    fn is_running(&self, now_ms: u64) -> bool {
        self.machine.is_some() && self.paused_ms <= now_ms
    }

    fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let Some(machine) = &self.machine else {
            return self.start_ms;
        };
        if self.paused_ms > now_ms {
            return Some(self.paused_ms);
        }
        let deadline_ms = machine.next_deadline_ms(self.now(now_ms))?;
        Some(self.clock.global(deadline_ms))
    }

    fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    fn machine_mut(&mut self) -> Option<&mut Machine> {
        self.machine.as_mut()
    }

    fn global_ms(&self, local_ms: u64) -> u64 {
        self.clock.global(local_ms)
    }

    fn shows_leader(&self) -> bool {
        self.machine.is_some()
    }
}
