//! Faults of the hosts of a cluster and of their operators, as both cluster simulations draw them:
//! members alone ([`crate::cluster`]) and whole servers ([`crate::whole_cluster`]).
//!
//! Invariant: this module only draws. The simulations decide how a fault takes effect, and they
//! draw the faults of their networks, which differ.

use corvid_consensus::member::Command;
use corvid_log::cluster::{Recovered, RecoveredMembership, recover};

use crate::world::dice::Dice;
use crate::world::disk::{Crash, SimDisk, Troubles};

/// Maximum number of servers in a run.
pub(crate) const HOSTS_MAX: usize = 9;

/// The faults of hosts that a run can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFaults {
    /// The longest usual time of a disk task, ms.
    pub(crate) disk_ms: usize,
    pub(crate) has_skew: bool,
    pub(crate) has_partitions: bool,
    pub(crate) has_pauses: bool,
    pub(crate) has_crashes: bool,
    has_write_errors: bool,
    has_full_disks: bool,
    pub(crate) has_commands: bool,
    pub(crate) has_changes: bool,
    pub(crate) has_compactions: bool,
    has_sync_errors: bool,
    /// Power losses, in percent of crashes.
    power_losses: usize,
}

/// Directions in which nothing arrives.
#[derive(Debug)]
pub(crate) struct Partition {
    around: usize,
    kind: usize,
    /// Pairs of sending and receiving host.
    pub(crate) cuts: Vec<(usize, usize)>,
}

/// A change of members that an operator requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Join,
    /// The server that receives the command is to leave.
    Leave,
    /// This host's server is to be removed.
    Kick(usize),
}

impl HostFaults {
    pub(crate) fn draw(dice: &mut Dice) -> HostFaults {
        HostFaults {
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

    /// No faults.
    #[cfg(test)]
    pub(crate) const NONE: HostFaults = HostFaults {
        disk_ms: 2,
        has_skew: false,
        has_partitions: false,
        has_pauses: false,
        has_crashes: false,
        has_write_errors: false,
        has_full_disks: false,
        has_commands: false,
        has_changes: false,
        has_compactions: false,
        has_sync_errors: false,
        power_losses: 0,
    };

    /// Draws the rate of a clock, in percent.
    pub(crate) fn draw_rate(&self, dice: &mut Dice) -> u64 {
        if self.has_skew {
            80 + dice.below(60) as u64
        } else {
            100
        }
    }

    pub(crate) fn draw_crash(&self, dice: &mut Dice) -> Crash {
        if dice.chance(self.power_losses) {
            Crash::PowerLoss
        } else {
            Crash::Kill
        }
    }

    /// Draws a disk's failure rates from now on. A full disk has room for less than `room` further
    /// bytes.
    pub(crate) fn draw_troubles(&self, dice: &mut Dice, disk: &SimDisk, room: usize) -> Troubles {
        let mut troubles = Troubles::default();
        if self.has_write_errors && dice.chance(50) {
            troubles.write = *dice.pick(&[5, 30, 100]);
            troubles.cut = troubles.write / 2;
        }
        if self.has_sync_errors && dice.chance(50) {
            troubles.sync = *dice.pick(&[5, 30]);
        }
        if self.has_full_disks && dice.chance(50) {
            troubles.capacity = Some(disk.used() + dice.below(room));
        }
        troubles
    }

    /// Whether one more file may rot, besides this many damaged ones. The files of a majority must
    /// not rot, because nobody could heal them. A removal in progress may leave fewer members than
    /// there are now.
    pub(crate) fn may_lose_another(&self, damaged: usize, members: usize) -> bool {
        let leaving = if self.has_changes { 2 } else { 0 };
        leaving + 2 * (damaged + 1) < members
    }
}

/// Draws how long a host stays down after a crash, ms.
pub(crate) fn draw_down_ms(dice: &mut Dice) -> u64 {
    let down_ms = *dice.pick(&[0, 10, 300, 3000, 8000]);
    dice.below(down_ms + 1) as u64
}

/// Draws an operator's command that does not change the members.
pub(crate) fn draw_command(dice: &mut Dice) -> Command {
    match dice.below(3) {
        0 => Command::ChangeElectionTimer(*dice.pick(&[500, 1000, 1500, 2000])),
        _ => Command::TransferLeadership(None),
    }
}

/// Draws a change of members. The last member does not leave.
pub(crate) fn draw_change(dice: &mut Dice, hosts: usize, members: usize) -> Change {
    if dice.chance(50) {
        return Change::Join;
    }
    let kicked = dice.below(hosts);
    if members > 1 && dice.chance(50) {
        return Change::Leave;
    }
    Change::Kick(kicked)
}

impl Partition {
    pub(crate) fn draw(dice: &mut Dice, hosts: usize) -> Partition {
        let around = dice.below(hosts);
        let kind = dice.below(4);
        let mut cuts = Vec::new();
        for other in 0..hosts {
            // Kinds: the host is cut off (0), is cut off from some others (1), receives nothing
            // (2), or sends nothing that arrives (3).
            let is_cut = kind != 1 || dice.chance(50);
            if other == around || !is_cut {
                continue;
            }
            if kind != 2 {
                cuts.push((around, other));
            }
            if kind != 3 {
                cuts.push((other, around));
            }
        }
        Partition { around, kind, cuts }
    }
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "partition {} around host {}", self.kind, self.around)
    }
}

/// Flips bits of a member's file while no process has it open, such that its cluster can heal the
/// file. Returns false if none of the places that were tried allows that.
pub(crate) fn rot_file(
    disk: &SimDisk,
    dice: &mut Dice,
    is_possible: impl Fn(&Recovered) -> bool,
) -> bool {
    let bytes = disk.bytes();
    for _ in 0..8 {
        let from = dice.below(bytes.len());
        let length = *dice.pick(&[1, 1, 1, 20, 100]);
        let flips: Vec<(usize, usize)> = (from..bytes.len().min(from + length))
            .map(|position| (position, dice.below(8)))
            .collect();
        let mut rotten = bytes.clone();
        for (position, bit) in &flips {
            rotten[*position] ^= 1 << bit;
        }
        let judged = recover(&rotten[..], rotten.len() as u64);
        if judged.is_ok_and(|it| {
            matches!(it.membership, RecoveredMembership::Damaged(_)) && is_possible(&it)
        }) {
            for (position, bit) in flips {
                disk.flip(position, bit);
            }
            return true;
        }
    }
    false
}
