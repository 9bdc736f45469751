//! The faults and the work of a run. Each run draws events from those that it can have.

use corvid_consensus::Input;
use corvid_consensus::member::{Command, CommandToken};

use super::MemberRun;
use crate::world::dice::Dice;
use crate::world::host_faults::{self, Change, HOSTS_MAX, HostFaults, Partition, rot_file};
use crate::world::network::messages::Weather;

/// The faults that a run can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) weather: Weather,
    pub(super) hosts: HostFaults,
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
        let hosts = HostFaults::draw(dice);
        Faults { weather, hosts }
    }
}

impl MemberRun {
    pub(super) fn do_something(&mut self) -> Result<(), String> {
        let host = self.dice.below(self.hosts.len());
        let faults = self.faults.hosts;
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

    /// Lets the file of a stopped host rot, in some cases.
    pub(super) fn rot(&mut self, host: usize) {
        let members = self.oracle.members();
        let damaged = members
            .iter()
            .filter(|member| self.hosts[**member].is_damaged);
        let damaged = damaged.count();
        let is_possible = members.contains(&host)
            && !self.hosts[host].is_damaged
            && self.faults.hosts.may_lose_another(damaged, members.len());
        let Some(dice) = self.rot.as_mut().filter(|_| is_possible) else {
            return;
        };
        // Bytes rot on the medium. If a power loss tore a rotten record that was never synced, the
        // file would not show whether the record was a promise. The member would refuse to start,
        // and no cluster could heal it.
        if dice.chance(40)
            && self.hosts[host].disk.is_synced()
            && rot_file(&self.hosts[host].disk, dice, |_| true)
        {
            self.hosts[host].is_damaged = true;
            self.trace.line(format_args!(
                "{} the file of host {host} has rotted",
                self.now_ms
            ));
            self.summary.damages += 1;
        }
    }

    /// A connection breaks and returns, in one direction or both.
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
        let partition = Partition::draw(&mut self.dice, self.hosts.len());
        for (from, to) in &partition.cuts {
            self.network.cut(*from, *to);
        }
        self.trace.line(format_args!("{partition}"));
    }

    fn trouble(&mut self, host: usize) {
        let disk = &self.hosts[host].disk;
        let troubles = self.faults.hosts.draw_troubles(&mut self.dice, disk, 500);
        disk.set_troubles(troubles);
    }

    fn command(&mut self, host: usize) -> Result<(), String> {
        let command = host_faults::draw_command(&mut self.dice);
        self.order(host, command)
    }

    /// Servers join, leave and are kicked.
    fn change_members(&mut self, host: usize) -> Result<(), String> {
        let members = self.oracle.members().len();
        let command = match host_faults::draw_change(&mut self.dice, self.hosts.len(), members) {
            Change::Join => {
                if self.hosts.len() < HOSTS_MAX {
                    self.join();
                }
                return Ok(());
            }
            Change::Leave => Command::Leave,
            Change::Kick(kicked) => Command::Kick(self.hosts[kicked].identity.address.clone()),
        };
        self.summary.removals += 1;
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
