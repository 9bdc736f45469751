//! A standalone server as the source of relays: its steps and its faults.
//!
//! Invariant: the witness knows nothing of such a run, which has no entries. The caller of the
//! stage judges its contents.

use super::{Choice, ClusterRun};
use crate::server::machine;
use crate::whole_cluster::location::Location;
use crate::whole_cluster::server::Server as _;
use crate::whole_cluster::standalone::StandaloneHost;
use crate::world::clock::Clock;
use crate::world::disk::SimDisk;
use crate::world::host_faults;
use crate::world::seeds;

impl ClusterRun {
    /// Adds a standalone server with this file.
    pub(super) fn add_standalone(&mut self, file: Vec<u8>) {
        let seed = self.dice.draw();
        let disk = SimDisk::new(seed, self.trace.clone(), file);
        disk.keep_history(seeds::policy(seed));
        let rate = self.faults.hosts.draw_rate(&mut self.dice);
        let clock = Clock::new(0, self.dice.below(1_000_000) as u64, rate);
        let host = StandaloneHost::new(disk, self.dice.draw(), clock);
        self.standalone = Some(host);
    }

    /// Starts the standalone server if its start is due. Returns false if it is not.
    pub(super) fn start_standalone(&mut self) -> Result<bool, String> {
        let now_ms = self.now_ms;
        let standalone = self.standalone.as_mut();
        let is_due =
            |host: &&mut StandaloneHost| host.start_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let Some(host) = standalone.filter(is_due) else {
            return Ok(false);
        };
        self.trace.line(format_args!("{now_ms} the source starts"));
        host.start(now_ms)?;
        self.open_sockets(Location::Standalone);
        Ok(true)
    }

    pub(super) fn standalone_choices(&self, choices: &mut Vec<Choice>) {
        if let Some(host) = &self.standalone {
            let steps = host.choices(self.now_ms).into_iter();
            choices.extend(steps.map(Choice::Standalone));
        }
    }

    pub(super) fn standalone_acts(&mut self, choice: machine::Choice) -> Result<(), String> {
        if let Some(host) = &mut self.standalone {
            host.act(self.now_ms, choice);
        }
        self.deliver(Location::Standalone)
    }

    /// The standalone server is killed, and starts again later.
    pub(super) fn kill_standalone(&mut self) {
        let down_ms = host_faults::draw_down_ms(&mut self.dice);
        let Some(host) = self.standalone.as_mut() else {
            return;
        };
        if host.machine().is_some() {
            self.trace
                .line(format_args!("{} the source is down", self.now_ms));
            host.kill();
            host.start_ms = Some(self.now_ms + down_ms);
            self.summary.restarts += 1;
            self.close_sockets(Location::Standalone, true);
        }
    }

    /// Causes a fault of the standalone server, or has its file compacted.
    pub(super) fn do_something_to_standalone(&mut self) {
        let faults = self.faults.hosts;
        let for_ms = *self.dice.pick(&[50, 500, 1500, 6000, 20_000]);
        let kind = self.dice.below(3);
        let Some(host) = self.standalone.as_mut() else {
            return;
        };
        match kind {
            0 if faults.has_crashes => self.kill_standalone(),
            1 if faults.has_pauses => {
                self.trace
                    .line(format_args!("the source pauses for {for_ms} ms"));
                self.summary.pauses += 1;
                host.paused_ms = self.now_ms + for_ms;
            }
            _ => {
                if let Some(machine) = host.machine_mut() {
                    machine.compact(0);
                }
            }
        }
    }

    /// Ends the faults of the standalone server.
    pub(super) fn heal_standalone(&mut self) {
        if let Some(host) = &mut self.standalone {
            host.paused_ms = host.paused_ms.min(self.now_ms);
            host.clock.set_rate(self.now_ms, 100);
            host.start_ms = host.start_ms.map(|_| self.now_ms);
        }
    }
}
