//! A host: a disk that fails, a clock of its own, and the server that runs there, or is down.
//!
//! Invariant: a life leaves behind its disk, and nothing else.

use corvid_log::cluster::recover;
use corvid_service::Now;

use super::opening::{self, Identity};
use super::process::{Process, Start};
use super::witness::{Lasting, Witness};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::server::disk::SimDisk;
use crate::server::trace::Trace;

/// See the module.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) identity: Identity,
    pub(super) disk: SimDisk,
    pub(super) clock: Clock,
    pub(super) paused_ms: u64,
    /// When it starts again.
    pub(super) start_ms: Option<u64>,
    pub(super) process: Option<Process>,
    /// Why its server does not start, or cannot go on: for good.
    pub(super) ended: Option<String>,
    dice: Dice,
    /// The state of its disk after so many operations.
    lasting: Option<(u64, Lasting)>,
}

impl Host {
    pub(super) fn new(identity: Identity, disk: SimDisk, seed: u64, clock: Clock) -> Host {
        Host {
            identity,
            disk,
            clock,
            paused_ms: 0,
            start_ms: Some(0),
            process: None,
            ended: None,
            dice: Dice::new(seed),
            lasting: None,
        }
    }

    /// The time as this host's server reads it.
    pub(super) fn now(&self, now_ms: u64) -> Now {
        let local_ms = self.clock.local(now_ms);
        Now {
            mono_ms: local_ms,
            wall_ms: 1_700_000_000_000 + local_ms as i64,
        }
    }

    /// The server that is up and not paused.
    pub(super) fn running(&self, now_ms: u64) -> Option<&Process> {
        self.process
            .as_ref()
            .filter(|process| self.paused_ms <= now_ms && !process.has_left)
    }

    /// Starts the server on what the disk holds.
    ///
    /// # Errors
    /// Its file breaks a rule.
    pub(super) fn start(
        &mut self,
        number: usize,
        now_ms: u64,
        witness: &mut Witness,
        trace: &Trace,
    ) -> Result<(), String> {
        self.start_ms = None;
        let file = self.disk.open();
        let recovered = opening::read(&file)?;
        if recovered.may_have_forgotten() {
            return Err(format!(
                "an intact disk is judged to have lost synced records: {:?}",
                recovered.damage
            ));
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
            now: self.now(now_ms),
            seed: self.dice.draw(),
            trace: trace.clone(),
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// The file as a power loss would leave it, in the worst case; `None` when the file would not open.
    pub(super) fn lasting(&mut self) -> Option<&Lasting> {
        let operations = self.disk.operations();
        if self
            .lasting
            .as_ref()
            .is_none_or(|(at, _)| *at != operations)
        {
            let bytes = self.disk.lasting_bytes();
            let length = bytes.len() as u64;
            let recovered = recover(bytes.as_slice(), length).ok()?;
            self.lasting = Some((operations, Lasting::of(&recovered)));
        }
        self.lasting.as_ref().map(|(_, lasting)| lasting)
    }
}
