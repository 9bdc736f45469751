//! The faults and the work of a run: what happens is drawn in each run from those that the run can have.

use corvid_consensus::Input;
use corvid_consensus::member::{Command, CommandToken};

use super::Run;
use crate::cluster::network::Weather;
use crate::dice::Dice;
use crate::server::disk::{Crash, Troubles};

/// Servers that a run has, at most.
const HOSTS_MAX: usize = 9;

/// Which faults a run can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) weather: Weather,
    /// Longest usual time of a disk's task, ms.
    pub(super) disk_ms: usize,
    has_skew: bool,
    has_partitions: bool,
    has_pauses: bool,
    has_crashes: bool,
    has_write_errors: bool,
    has_full_disks: bool,
    has_commands: bool,
    pub(super) has_changes: bool,
    has_compactions: bool,
    has_sync_errors: bool,
    /// In percent of crashes.
    power_losses: usize,
}

impl Faults {
    pub(super) fn draw(dice: &mut Dice) -> Faults {
        let weather = Weather {
            loss: *dice.pick(&[0, 0, 2, 20, 80]),
            doubling: *dice.pick(&[0, 0, 10, 100]),
            delay_ms: *dice.pick(&[0, 1, 5, 40, 150]),
            late: *dice.pick(&[0, 0, 5, 30]),
            is_reordering: dice.chance(30),
            is_silent: dice.chance(40),
        };
        Faults {
            weather,
            disk_ms: *dice.pick(&[0, 2, 10, 60]),
            has_skew: dice.chance(30),
            has_partitions: dice.chance(60),
            has_pauses: dice.chance(40),
            has_crashes: dice.chance(70),
            has_write_errors: dice.chance(20),
            has_full_disks: dice.chance(20),
            has_commands: dice.chance(40),
            has_changes: dice.chance(30),
            has_compactions: dice.chance(60),
            has_sync_errors: dice.chance(20),
            power_losses: *dice.pick(&[0, 50, 100]),
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
    pub(super) fn do_something(&mut self) -> Result<(), String> {
        let host = self.dice.below(self.hosts.len());
        let faults = self.faults;
        match self.dice.below(100) {
            0..55 => {
                let count = *self.dice.pick(&[1, 1, 1, 2, 5]);
                self.submit(host, count)?;
            }
            55..62 if faults.has_partitions => self.partition(),
            62..67 if faults.has_partitions => {
                self.trace.line(format_args!("all directions are open"));
                self.network.mend_all(self.now_ms);
            }
            67..68 if faults.has_partitions => self.flap(host)?,
            68..69 if faults.has_skew => {
                let by_ms = *self.dice.pick(&[500, 10_000, 3_600_000]);
                self.trace
                    .line(format_args!("the clock of host {host} jumps by {by_ms} ms"));
                self.hosts[host].clock.jump(self.now_ms, by_ms);
            }
            67..70 => {
                let other = self.dice.below(self.hosts.len());
                self.network.reset(self.now_ms, host, other);
            }
            70..75 if faults.has_pauses => {
                let for_ms = *self.dice.pick(&[50, 500, 1500, 6000]);
                self.trace
                    .line(format_args!("host {host} pauses for {for_ms} ms"));
                self.summary.pauses += 1;
                self.hosts[host].paused_ms = self.now_ms + for_ms;
            }
            75..80 if faults.has_crashes => {
                let operations = 1 + self.dice.below(12) as u64;
                self.trace.line(format_args!(
                    "host {host} goes down in {operations} operations"
                ));
                self.hosts[host].disk.crash_in(operations);
            }
            80..83 if faults.has_crashes => self.power_cycle(host),
            83..85 if faults.has_crashes => {
                self.trace.line(format_args!("all hosts go down"));
                for host in 0..self.hosts.len() {
                    self.power_cycle(host);
                }
            }
            85..88 => self.trouble(host),
            88..89 if faults.has_compactions => {
                if let Some(life) = &mut self.hosts[host].life {
                    life.wants_snapshot = true;
                }
            }
            89..92 if faults.has_commands => self.command(host)?,
            92..95 if faults.has_changes => self.change_members(host)?,
            _ => self.advance(2000)?,
        }
        Ok(())
    }

    /// A host goes down between two operations.
    pub(super) fn power_cycle(&mut self, host: usize) {
        let life = self.hosts[host].life.as_ref();
        if life.is_some_and(|life| life.ended.is_none()) {
            self.hosts[host].disk.crash();
            self.crashed(host);
        }
    }

    /// The file of a host that is down may rot. Files of a majority do not: nobody could heal them. A removal that is under way may leave fewer
    /// members than there are now.
    pub(super) fn rot(&mut self, host: usize) {
        let members = self.oracle.members();
        let damaged = members
            .iter()
            .filter(|member| self.hosts[**member].is_damaged);
        let leaving = if self.faults.has_changes { 2 } else { 0 };
        let is_possible = members.contains(&host)
            && !self.hosts[host].is_damaged
            && leaving + 2 * (damaged.count() + 1) < members.len();
        let Some(dice) = self.rot.as_mut().filter(|_| is_possible) else {
            return;
        };
        if dice.chance(40) && self.hosts[host].rot(dice) {
            self.trace.line(format_args!(
                "{} the file of host {host} has rotted",
                self.now_ms
            ));
            self.summary.damages += 1;
        }
    }

    /// A connection comes and goes, in one direction or both.
    fn flap(&mut self, one: usize) -> Result<(), String> {
        let other = self.dice.below(self.hosts.len());
        if one == other {
            return Ok(());
        }
        let is_both = self.dice.chance(50);
        let times = 3 + self.dice.below(15);
        self.trace.line(format_args!(
            "{times} interruptions from host {one} to {other}, {is_both} back"
        ));
        for _ in 0..times {
            self.network.cut(one, other);
            if is_both {
                self.network.cut(other, one);
            }
            let for_ms = self.dice.below(400) as u64;
            self.advance(for_ms)?;
            self.network.mend(self.now_ms, one, other);
            self.network.mend(self.now_ms, other, one);
            let for_ms = self.dice.below(1200) as u64;
            self.advance(for_ms)?;
        }
        Ok(())
    }

    fn partition(&mut self) {
        self.summary.partitions += 1;
        let count = self.hosts.len();
        let one = self.dice.below(count);
        let kind = self.dice.below(4);
        for other in 0..count {
            let is_cut = match kind {
                // One host is alone.
                0 => true,
                // Two sides.
                1 => self.dice.chance(50),
                // It hears nobody, or nobody hears it.
                _ => true,
            };
            if other == one || !is_cut {
                continue;
            }
            if kind != 2 {
                self.network.cut(one, other);
            }
            if kind != 3 {
                self.network.cut(other, one);
            }
        }
        self.trace
            .line(format_args!("partition {kind} around host {one}"));
    }

    fn trouble(&mut self, host: usize) {
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
            troubles.capacity = Some(used + self.dice.below(500));
        }
        self.hosts[host].disk.set_troubles(troubles);
    }

    fn command(&mut self, host: usize) -> Result<(), String> {
        let command = match self.dice.below(3) {
            0 => Command::ChangeElectionTimer(*self.dice.pick(&[500, 1000, 1500, 2000])),
            _ => Command::TransferLeadership(None),
        };
        self.order(host, command)
    }

    /// Servers join, leave and are kicked.
    fn change_members(&mut self, host: usize) -> Result<(), String> {
        if self.dice.chance(50) {
            if self.hosts.len() < HOSTS_MAX {
                self.join();
            }
            return Ok(());
        }
        self.summary.removals += 1;
        let kicked = self.dice.below(self.hosts.len());
        let is_alone = self.oracle.members().len() < 2;
        let command = if !is_alone && self.dice.chance(50) {
            Command::Leave
        } else {
            Command::Kick(self.hosts[kicked].identity.address.clone())
        };
        self.order(host, command)
    }

    fn order(&mut self, host: usize, command: Command) -> Result<(), String> {
        let token = CommandToken(self.dice.draw());
        self.trace
            .line(format_args!("{} host {host}: {command:?}", self.now_ms));
        let outputs = self.hosts[host].handle(self.now_ms, vec![Input::Command { token, command }]);
        self.carry_out(host, outputs)?;
        if self.hosts[host].disk.is_down() {
            self.crashed(host);
        }
        Ok(())
    }
}
