//! The faults that a run can have, and how they occur.

use super::ClusterRun;
use crate::world::dice::Dice;
use crate::world::host_faults::{HostFaults, Partition};
use crate::world::network::wires::Weather;

/// A day and an hour, after which every file with a new entry is rewritten, ms.
const DAY_MS: u64 = 25 * 3600 * 1000;

/// The faults that a run can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) weather: Weather,
    pub(super) hosts: HostFaults,
    pub(super) has_conversions: bool,
    /// Files of stopped members rot, and so do snapshots in files of running members.
    pub(super) has_rot: bool,
    /// Disks lie about a sync.
    has_lies: bool,
    /// Days pass.
    has_days: bool,
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
    /// No faults.
    #[cfg(test)]
    pub(super) const NONE: Faults = Faults {
        weather: FAIR,
        hosts: HostFaults::NONE,
        has_conversions: false,
        has_rot: false,
        has_lies: false,
        has_days: false,
    };

    /// Draws the faults of a cluster with relays: its members stay the same, and lose none of their
    /// promises.
    pub(super) fn draw_with_relays(dice: &mut Dice) -> Faults {
        let mut faults = Faults::draw(dice);
        faults.hosts.has_changes = false;
        (faults.has_rot, faults.has_lies, faults.has_days) = (false, false, false);
        faults
    }

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
            hosts: HostFaults::draw(dice),
            has_conversions: dice.chance(30),
            has_rot: dice.chance(25),
            has_lies: dice.chance(25),
            has_days: dice.chance(25),
        }
    }
}

impl ClusterRun {
    /// Causes one of the faults that this run can have.
    pub(super) fn trouble(&mut self) -> Result<(), String> {
        let host = self.dice.below(self.hosts.len());
        let faults = self.faults.hosts;
        match self.dice.below(36) {
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
            26..30 => self.disk_trouble(host),
            30 if self.faults.has_rot => self.rot_snapshot(host),
            31 if self.faults.has_lies && self.dice.chance(60) => self.keep_copy(host),
            31..34 if self.faults.has_lies => self.lie(host)?,
            34..36 if self.faults.has_days => self.pass_a_day(host),
            _ => self.advance(500)?,
        }
        Ok(())
    }

    /// A host goes down between two operations.
    pub(super) fn power_cycle(&mut self, host: usize) {
        if self.hosts[host].process.is_some() {
            self.hosts[host].disk.crash();
            self.crashed(host);
        }
    }

    /// Nothing arrives in some directions.
    fn partition(&mut self) {
        self.summary.partitions += 1;
        let partition = Partition::draw(&mut self.dice, self.hosts.len());
        for (from, to) in &partition.cuts {
            self.wires.cut(*from, *to);
        }
        self.trace.line(format_args!("{partition}"));
    }

    fn disk_trouble(&mut self, host: usize) {
        let disk = &self.hosts[host].disk;
        let troubles = self.faults.hosts.draw_troubles(&mut self.dice, disk, 1000);
        disk.set_troubles(troubles);
    }

    /// A day passes, for all hosts or for one that was suspended.
    fn pass_a_day(&mut self, host: usize) {
        let is_for_all = self.dice.chance(70);
        self.trace.line(format_args!(
            "a day passes at host {host}, all: {is_for_all}"
        ));
        for (number, other) in self.hosts.iter_mut().enumerate() {
            if is_for_all || number == host {
                other.clock.jump(self.now_ms, DAY_MS);
            }
        }
    }
}
