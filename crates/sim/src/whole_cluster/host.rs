//! A host: a disk that fails, a clock of its own, and the server that runs there or is down.
//!
//! Invariant: when a life ends, only its disk remains.

use corvid_log::cluster::{Recovered, RecoveredMembership, recover};
use corvid_service::Now;

use super::opening::{self, Identity};
use super::process::{Process, Start};
use super::server::Server;
use super::witness::{Lasting, Witness};
use crate::server::machine::Machine;
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::disk::SimDisk;
use crate::world::trace::Trace;

/// A host of a member of the cluster.
#[derive(Debug)]
pub(super) struct ClusterHost {
    pub(super) identity: Identity,
    pub(super) disk: SimDisk,
    pub(super) clock: Clock,
    pub(super) paused_ms: u64,
    /// When the server starts again, ms.
    pub(super) start_ms: Option<u64>,
    pub(super) process: Option<Process>,
    /// The reason why the server does not start or cannot continue. It stays down for good.
    pub(super) ended: Option<String>,
    dice: Dice,
    /// The state that a power loss would leave, cached with the number of disk operations at which
    /// it was computed.
    lasting: Option<(u64, Lasting)>,
    /// The promises of a member whose file has fewer, because its disk has lied about syncs.
    pub(super) promised: Option<Lasting>,
    /// An earlier copy of the file, for an operator who restores it.
    pub(super) copy: Option<Vec<u8>>,
    /// Number of processes so far.
    pub(super) lives: u64,
}

impl ClusterHost {
    pub(super) fn new(identity: Identity, disk: SimDisk, seed: u64, clock: Clock) -> ClusterHost {
        ClusterHost {
            identity,
            disk,
            clock,
            paused_ms: 0,
            start_ms: Some(0),
            process: None,
            ended: None,
            dice: Dice::new(seed),
            lasting: None,
            promised: None,
            copy: None,
            lives: 0,
        }
    }

    /// Whether the file lacks promises of its member, or would after a restart.
    pub(super) fn is_damaged(&self) -> bool {
        self.promised.is_some() || self.disk.is_rotten()
    }

    /// Returns the server if it is up and not paused.
    pub(super) fn running(&self, now_ms: u64) -> Option<&Process> {
        self.process
            .as_ref()
            .filter(|process| self.paused_ms <= now_ms && !process.has_left)
    }

    /// Starts the server on the content of the disk. A file that has rotted beyond what its cluster
    /// can heal ends the server for good.
    ///
    /// # Errors
    /// The file breaks a rule.
    pub(super) fn start(
        &mut self,
        number: usize,
        now_ms: u64,
        witness: &mut Witness,
        trace: &Trace,
    ) -> Result<(), String> {
        self.start_ms = None;
        self.lives += 1;
        let file = self.disk.open();
        let recovered = match opening::read(&file) {
            Ok(recovered) => recovered,
            Err(refusal) if self.disk.is_rotten() => {
                self.ended = Some(refusal);
                return Ok(());
            }
            Err(refusal) => return Err(refusal),
        };
        if recovered.may_have_forgotten() {
            if !self.disk.is_rotten() {
                return Err(format!(
                    "an intact disk is judged to have lost synced records: {:?}",
                    recovered.damage
                ));
            }
            let obstacle = recovered.damage.as_ref().and_then(|it| it.obstacle);
            if let Some(obstacle) = obstacle {
                self.ended = Some(format!("{obstacle:?}"));
                return Ok(());
            }
            self.check_promises(&recovered)?;
        }
        witness.recovered(number, &recovered)?;
        let contents = opening::load(&file, &recovered, self.dice.draw())?;
        if let Some(contents) = &contents {
            witness.check_content(contents.applied, &contents.database, false)?;
        }
        let process = Process::start(Start {
            host: number,
            disk: self.disk.clone(),
            file,
            recovered,
            contents,
            owed: witness.commit(),
            now: self.clock.now(now_ms),
            seed: self.dice.draw(),
            trace: trace.clone(),
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// Checks that a damaged file proves at least as much as the member has promised.
    fn check_promises(&mut self, recovered: &Recovered) -> Result<(), String> {
        let RecoveredMembership::Damaged(proven) = &recovered.membership else {
            return Ok(());
        };
        let promised = self.lasting().map(Lasting::last).unwrap_or_default();
        if proven.last >= promised {
            return Ok(());
        }
        Err(format!(
            "the damaged file proves entries through {:?}; {promised:?} was synced",
            proven.last
        ))
    }

    /// Returns everything that the member has promised: the file after a power loss in the worst
    /// case, before rot, plus everything that lies have removed from it. Returns `None` if that
    /// file would not open.
    pub(super) fn lasting(&mut self) -> Option<&Lasting> {
        let operations = self.disk.operations();
        let is_known = self.lasting.as_ref().map(|(at, _)| *at) == Some(operations);
        if !is_known || self.promised.is_some() {
            let bytes = self.disk.intact_lasting_bytes();
            let length = bytes.len() as u64;
            let recovered = recover(bytes.as_slice(), length).ok()?;
            let mut lasting = Lasting::of(&recovered);
            match &self.promised {
                Some(promised) if lasting.last() < promised.last() => lasting.add(promised),
                // The same leader has sent the member everything again.
                _ => self.promised = None,
            }
            self.lasting = Some((operations, lasting));
        }
        self.lasting.as_ref().map(|(_, lasting)| lasting)
    }
}

impl Server for ClusterHost {
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
        if process.has_left {
            return None;
        }
        if self.paused_ms > now_ms {
            // Arrivals wait for the end of the pause.
            return Some(self.paused_ms);
        }
        let deadline_ms = process.deadline_ms(self.now(now_ms));
        let next_ms = self.clock.global(deadline_ms);
        if process.pump.file.effects().disk_has_work() {
            return Some(next_ms.min(process.disk_ms));
        }
        Some(next_ms)
    }

    fn machine(&self) -> Option<&Machine> {
        self.process.as_ref()?.machine.as_ref()
    }

    fn machine_mut(&mut self) -> Option<&mut Machine> {
        self.process.as_mut()?.machine.as_mut()
    }

    fn global_ms(&self, local_ms: u64) -> u64 {
        self.clock.global(local_ms)
    }

    fn shows_leader(&self) -> bool {
        let row = self.process.as_ref().and_then(|it| it.row.as_ref());
        row.is_some_and(|row| row.is_leader)
    }
}
