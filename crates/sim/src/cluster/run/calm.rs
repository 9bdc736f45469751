//! The end of a run. Faults end, and within a bound of virtual time the cluster has one leader,
//! every session has its outcomes, every member has applied every entry, and each member accepts a
//! transaction.

use super::MemberRun;
use crate::cluster::host::Life;
use crate::strangers::knows_one;
use crate::world::disk::Troubles;
use crate::world::network::messages::Weather;

/// Everything must be well within this time after the last fault, ms.
const BOUND_MS: u64 = 60_000;

impl MemberRun {
    /// Ends all faults.
    fn heal(&mut self) {
        self.trace.line(format_args!("{} faults end", self.now_ms));
        self.set_weather(Weather {
            delay_ms: 2,
            ..Weather::default()
        });
        self.network.mend_all(self.now_ms);
        for host in &mut self.hosts {
            host.disk.set_troubles(Troubles::default());
            host.disk.stay_up();
            host.paused_ms = host.paused_ms.min(self.now_ms);
            host.clock.set_rate(self.now_ms, 100);
            host.start_ms = host.start_ms.map(|_| self.now_ms);
        }
        self.faults.hosts.disk_ms = 2;
    }

    pub(super) fn calm_down(&mut self) -> Result<(), String> {
        self.heal();
        self.wait_until_well("after the faults")?;
        for host in 0..self.hosts.len() {
            self.submit(host, 2)?;
        }
        self.wait_until_well("with new transactions")
    }

    fn wait_until_well(&mut self, when: &str) -> Result<(), String> {
        let until_ms = self.now_ms + BOUND_MS;
        while self.now_ms < until_ms {
            self.advance(100)?;
            if self.problem().is_none() {
                // The state must be stable.
                self.advance(200)?;
                if self.problem().is_none() {
                    return Ok(());
                }
            }
        }
        let problem = self.problem().unwrap_or_default();
        Err(format!("{problem}, {BOUND_MS} ms {when}"))
    }

    /// Ends servers that can never join. A server outside the cluster whose known addresses all
    /// belong to servers that have left is neither admitted nor told so; its operator ends it.
    fn give_up_strangers(&mut self) {
        for number in 0..self.hosts.len() {
            let members = self.oracle.members();
            let is_member = |address: &str| {
                let mut of_members = members.iter().map(|member| &self.hosts[*member].identity);
                of_members.any(|identity| identity.address == address)
            };
            let is_stranger =
                |life: &Life| life.ended.is_none() && !knows_one(&life.member.status(0), is_member);
            let life = self.hosts[number].life.as_ref();
            if !members.contains(&number) && life.is_some_and(is_stranger) {
                for transaction in self.sessions[number].drain(..) {
                    self.oracle.orphaned(transaction);
                }
                if let Some(life) = &mut self.hosts[number].life {
                    life.ended = Some("its operator has given it up".to_owned());
                }
            }
        }
    }

    fn problem(&mut self) -> Option<String> {
        self.give_up_strangers();
        let mut leaders = 0;
        for (number, host) in self.hosts.iter().enumerate() {
            let ended = host.life.as_ref().and_then(|life| life.ended.as_ref());
            if !self.oracle.members().contains(&number) {
                if ended.is_none() {
                    return Some(format!("host {number} is not a member and goes on"));
                }
                continue;
            }
            let Some(life) = &host.life else {
                return Some(format!("host {number} is down"));
            };
            if let Some(why) = &life.ended {
                return Some(format!("host {number} has ended: {why}"));
            }
            leaders += usize::from(life.registers.leads().is_some());
            let open = life.registers.open();
            if open > 0 || !self.sessions[number].is_empty() {
                return Some(format!(
                    "host {number} has {open} open transactions: {:?}",
                    self.sessions[number]
                ));
            }
            let (applied, commit) = (life.registers.applied.index, self.oracle.commit());
            if applied != commit {
                return Some(format!("host {number} has applied {applied} of {commit}"));
            }
            // The last member cannot leave, and reports forever that it is about to.
            let may_leave = self.faults.hosts.has_changes && self.oracle.members().len() == 1;
            let is_true = life.row.as_ref().is_some_and(|row| {
                (row.is_connected || may_leave) && row.is_leader == life.registers.leads().is_some()
            });
            if !is_true {
                return Some(format!("the row of host {number} is {:?}", life.row));
            }
        }
        (leaders != 1).then(|| format!("{leaders} hosts lead"))
    }
}
