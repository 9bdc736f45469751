//! The end of a run. Faults end, and within a bound of virtual time the cluster has one leader,
//! every client has its replies, every database has applied every entry, `_Server` says so, and
//! each server accepts a transaction.

use corvid_consensus::member::{Command, Role};

use super::ClusterRun;
use super::faults::FAIR;
use crate::world::disk::{Crash, Troubles};

use crate::server::workload::Txn;
use crate::strangers::knows_one;
use crate::whole_cluster::host::ClusterHost;

/// Everything must be well within this time after the last fault, ms.
const BOUND_MS: u64 = 60_000;

impl ClusterRun {
    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        self.trace.line(format_args!("{} faults end", self.now_ms));
        self.wires.set_weather(FAIR);
        self.wires.mend_all();
        self.wires.hurry(self.now_ms);
        self.faults.hosts.disk_ms = 2;
        for host in &mut self.hosts {
            host.disk.set_troubles(Troubles::default());
            host.disk.stay_up();
            host.paused_ms = host.paused_ms.min(self.now_ms);
            host.clock.set_rate(self.now_ms, 100);
            host.start_ms = host.start_ms.map(|_| self.now_ms);
        }
        self.heal_relays();
        for client in 0..self.clients.len() {
            self.stall(client, false);
        }
    }

    pub(super) fn calm_down(&mut self) -> Result<(), String> {
        self.heal();
        self.wait_until_well("after the faults")?;
        let mut numbers = Vec::new();
        for client in 0..self.clients.len() {
            let txn = Txn::plain(self.next_txn);
            if self.transact(client, &txn) {
                numbers.push(txn.number);
            }
        }
        self.wait_until_well("with new transactions")?;
        for number in numbers {
            if !self.witness.is_acknowledged(number) {
                return Err(format!("transaction {number} is refused without a fault"));
            }
        }
        self.witness.check_order()
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
        let members = self.members();
        for number in 0..self.hosts.len() {
            let host = &self.hosts[number];
            let Some(process) = host.process.as_ref().filter(|_| !members.contains(&number)) else {
                continue;
            };
            let status = process.pump.member.status(host.clock.local(self.now_ms));
            let is_member = |address: &str| {
                let mut of_members = members.iter().map(|member| &self.hosts[*member].identity);
                of_members.any(|identity| identity.address == address)
            };
            if !knows_one(&status, is_member) {
                self.stop(number, Crash::Kill);
                self.hosts[number].ended = Some("its operator has given it up".to_owned());
            }
        }
    }

    /// An operator removes a member that will not return.
    fn kick(&mut self, number: usize) {
        let command = Command::Kick(self.hosts[number].identity.address.clone());
        let is_leader = |host: &ClusterHost| {
            let process = host.running(self.now_ms);
            process.is_some_and(|process| process.pump.member.status(0).role == Role::Leader)
        };
        let is_asked = self.commands.values().any(|(_, asked)| *asked == command);
        if let Some(leader) = self.hosts.iter().position(is_leader).filter(|_| !is_asked) {
            self.order(leader, command);
        }
    }

    pub(super) fn problem(&mut self) -> Option<String> {
        self.give_up_strangers();
        let mut leaders = 0;
        let members = self.members();
        // Before anything else: while such a member counts, another one may be unable to leave.
        for number in &members {
            if let Some(why) = self.hosts[*number].ended.clone() {
                self.kick(*number);
                return Some(format!("host {number} is a member and has ended: {why}"));
            }
        }
        for number in 0..self.hosts.len() {
            if !members.contains(&number) {
                if self.hosts[number].ended.is_none() {
                    return Some(format!("host {number} is not a member and goes on"));
                }
                continue;
            }
            match self.problem_of(number) {
                Ok(is_leader) => leaders += usize::from(is_leader),
                Err(problem) => return Some(format!("host {number} {problem}")),
            }
        }
        if leaders != 1 {
            return Some(format!("{leaders} servers lead"));
        }
        if let Some(problem) = self.relay_problem() {
            return Some(problem);
        }
        for (number, client) in self.clients.iter().enumerate() {
            let Some(session) = client.session() else {
                return Some(format!("client {number} finds no server"));
            };
            if !session.is_content() {
                let open = session.open_requests();
                return Some(format!("client {number} waits for replies: {open:?}"));
            }
        }
        self.check_clients().err()
    }

    /// Returns whether the server of a host leads, or the problem that it still has.
    fn problem_of(&self, number: usize) -> Result<bool, String> {
        let host = &self.hosts[number];
        let process = host.process.as_ref().ok_or("is down")?;
        if process.is_loading() {
            return Err("loads a snapshot".to_owned());
        }
        let machine = process.machine.as_ref().ok_or("has not joined")?;
        let status = process.pump.member.status(host.clock.local(self.now_ms));
        let commit = self.witness.commit();
        if status.applied != commit {
            return Err(format!("has applied {} of {commit}", status.applied));
        }
        self.witness
            .check_content(commit, machine.service().database(), false)?;
        machine.service().database().check_invariants()?;
        let row = process.row.as_ref().ok_or("has no row")?;
        // The last member cannot leave, and reports forever that it is about to.
        let may_leave = self.faults.hosts.has_changes && status.servers.len() == 1;
        let is_true = row.is_connected || may_leave;
        if !is_true {
            return Err(format!("has the row {row:?}"));
        }
        machine.check_row(row, commit)?;
        Ok(row.is_leader)
    }
}
