//! The faults that a run can have, and how they come.

use super::Run;
use crate::dice::Dice;
use crate::server::disk::{Crash, Troubles};
use crate::whole_cluster::wires::Weather;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) weather: Weather,
    /// Longest usual time of a disk's task, ms.
    pub(super) disk_ms: usize,
    /// In percent of crashes.
    power_losses: usize,
    has_skew: bool,
    has_partitions: bool,
    has_pauses: bool,
    has_crashes: bool,
    has_write_errors: bool,
    has_sync_errors: bool,
    has_full_disks: bool,
    pub(super) has_compactions: bool,
    pub(super) has_commands: bool,
    pub(super) has_changes: bool,
    pub(super) has_conversions: bool,
}

/// A network that works.
pub(super) const FAIR: Weather = Weather {
    delay_ms: 2,
    late: 0,
    breaks: 0,
    refusals: 0,
    piece_bytes: 1 << 20,
    buffer_bytes: 1 << 22,
};

impl Faults {
    pub(super) fn draw(dice: &mut Dice) -> Faults {
        let weather = Weather {
            delay_ms: *dice.pick(&[0, 1, 5, 40, 150]),
            late: *dice.pick(&[0, 0, 5, 30]),
            breaks: *dice.pick(&[0, 0, 1, 10]),
            refusals: *dice.pick(&[0, 0, 20]),
            piece_bytes: *dice.pick(&[7, 300, 1 << 20]),
            buffer_bytes: *dice.pick(&[2000, 1 << 16, 1 << 22]),
        };
        Faults {
            weather,
            disk_ms: *dice.pick(&[0, 2, 10, 60]),
            power_losses: *dice.pick(&[0, 50, 100]),
            has_skew: dice.chance(30),
            has_partitions: dice.chance(50),
            has_pauses: dice.chance(40),
            has_crashes: dice.chance(60),
            has_write_errors: dice.chance(20),
            has_sync_errors: dice.chance(20),
            has_full_disks: dice.chance(20),
            has_compactions: dice.chance(60),
            has_commands: dice.chance(40),
            has_changes: dice.chance(40),
            has_conversions: dice.chance(30),
        }
    }

    /// The rate of a clock, in percent.
    pub(super) fn draw_rate(&self, dice: &mut Dice) -> u64 {
        if self.has_skew {
            80 + dice.below(60) as u64
        } else {
            100
        }
    }

    pub(super) fn draw_crash(&self, dice: &mut Dice) -> Crash {
        if dice.chance(self.power_losses) {
            Crash::PowerLoss
        } else {
            Crash::Kill
        }
    }
}

impl Run {
    /// One of the faults that this run can have.
    pub(super) fn trouble(&mut self) -> Result<(), String> {
        let host = self.dice.below(self.hosts.len());
        let faults = self.faults;
        match self.dice.below(30) {
            0..7 if faults.has_partitions => self.partition(),
            7..11 if faults.has_partitions => {
                self.trace.line(format_args!("all directions are open"));
                self.wires.mend_all();
            }
            11..14 => {
                let other = self.dice.below(self.hosts.len());
                self.wires.reset(self.now_ms, host, other);
            }
            14..18 if faults.has_pauses => {
                let for_ms = *self.dice.pick(&[50, 500, 1500, 6000, 20_000]);
                self.trace
                    .line(format_args!("host {host} pauses for {for_ms} ms"));
                self.summary.pauses += 1;
                self.hosts[host].paused_ms = self.now_ms + for_ms;
            }
            18..23 if faults.has_crashes => {
                let operations = 1 + self.dice.below(12) as u64;
                self.trace.line(format_args!(
                    "host {host} goes down in {operations} operations"
                ));
                self.hosts[host].disk.crash_in(operations);
            }
            23..25 if faults.has_crashes => self.power_cycle(host),
            25..26 if faults.has_crashes => {
                self.trace.line(format_args!("all hosts go down"));
                for host in 0..self.hosts.len() {
                    self.power_cycle(host);
                }
            }
            26.. => self.disk_trouble(host),
            _ => self.advance(500)?,
        }
        Ok(())
    }

    /// A host goes down between two operations.
    fn power_cycle(&mut self, host: usize) {
        if self.hosts[host].process.is_some() {
            self.hosts[host].disk.crash();
            self.crashed(host);
        }
    }

    /// Nothing arrives in some directions.
    fn partition(&mut self) {
        self.summary.partitions += 1;
        let count = self.hosts.len();
        let one = self.dice.below(count);
        let kind = self.dice.below(4);
        self.trace
            .line(format_args!("partition {kind} around host {one}"));
        for other in 0..count {
            // Two sides, or one host alone.
            if other == one || kind == 1 && self.dice.chance(50) {
                continue;
            }
            if kind != 2 {
                self.wires.cut(one, other);
            }
            if kind != 3 {
                self.wires.cut(other, one);
            }
        }
    }

    fn disk_trouble(&mut self, host: usize) {
        let faults = self.faults;
        let mut troubles = Troubles::default();
        if faults.has_write_errors && self.dice.chance(50) {
            troubles.write = *self.dice.pick(&[5, 30, 100]);
            troubles.cut = troubles.write / 2;
        }
        if faults.has_sync_errors && self.dice.chance(50) {
            troubles.sync = *self.dice.pick(&[5, 30]);
        }
        if faults.has_full_disks && self.dice.chance(50) {
            let used = self.hosts[host].disk.used();
            troubles.capacity = Some(used + self.dice.below(1000));
        }
        self.hosts[host].disk.set_troubles(troubles);
    }
}
