//! The actions of clients and operators in a run.

use corvid_consensus::member::{Command, CommandToken};
use corvid_log::cluster::Sid;

use super::{ClusterRun, address, uuid};
use crate::server::workload::Txn;
use crate::whole_cluster::host::ClusterHost;
use crate::whole_cluster::opening::{self, Identity};
use crate::world::clock::Clock;
use crate::world::disk::SimDisk;
use crate::world::host_faults::{self, Change, HOSTS_MAX};
use crate::world::seeds;

impl ClusterRun {
    pub(super) fn do_something(&mut self) -> Result<(), String> {
        let client = self.dice.below(self.clients.len());
        let host = self.dice.below(self.hosts.len());
        let faults = self.faults.hosts;
        match self.dice.below(100) {
            0..50 => {
                let count = *self.dice.pick(&[1, 1, 1, 2, 5]);
                for _ in 0..count {
                    let mut txn = Txn::draw(self.next_txn, &mut self.dice);
                    self.draw_assertion(client, &mut txn);
                    self.transact(client, &txn);
                }
            }
            50..53 => self.lock(client),
            53..57 => self.disconnect(client)?,
            57..60 => {
                let is_stalled = self.dice.chance(50);
                self.stall(client, is_stalled);
            }
            60..62 if self.faults.has_conversions => self.convert(client),
            62..66 if faults.has_compactions => self.compact(host),
            66..69 if faults.has_commands => {
                let command = host_faults::draw_command(&mut self.dice);
                self.order(host, command);
            }
            69..72 if faults.has_changes => self.change_members(host),
            72..96 => self.trouble()?,
            _ => self.advance(2000)?,
        }
        Ok(())
    }

    /// The operator compacts a server's file.
    pub(super) fn compact(&mut self, host: usize) {
        self.next_token += 1;
        let token = self.next_token;
        let process = self.hosts[host].process.as_mut();
        if let Some(machine) = process.and_then(|process| process.machine.as_mut()) {
            self.trace
                .line(format_args!("{} host {host} compacts", self.now_ms));
            machine.compact(token);
        }
    }

    /// The operator gives a command to a member.
    pub(super) fn order(&mut self, host: usize, command: Command) {
        self.next_token += 1;
        let token = CommandToken(self.next_token);
        if let Some(process) = &mut self.hosts[host].process {
            self.trace.line(format_args!(
                "{} host {host}: command {}: {command:?}",
                self.now_ms, token.0
            ));
            process.command(token, command.clone());
            self.commands.insert(token, (host, command));
        }
    }

    /// Servers join, leave and are kicked.
    fn change_members(&mut self, host: usize) {
        let members = self.members().len();
        let command = match host_faults::draw_change(&mut self.dice, self.hosts.len(), members) {
            Change::Join => {
                if self.hosts.len() < HOSTS_MAX {
                    self.join();
                }
                return;
            }
            Change::Leave => Command::Leave,
            Change::Kick(kicked) => Command::Kick(self.hosts[kicked].identity.address.clone()),
        };
        self.summary.removals += 1;
        self.order(host, command);
    }

    /// Returns the hosts of the members, by the newest member list in any host's durable file.
    pub(super) fn members(&mut self) -> Vec<usize> {
        let mut newest = (0, Vec::new());
        for host in &mut self.hosts {
            if let Some(lasting) = host.lasting()
                && let Some((index, list)) = lasting.newest_list()
                && index.0 >= newest.0
            {
                newest = (index.0, list.iter().copied().collect::<Vec<Sid>>());
            }
        }
        let is_member = |host: &usize| newest.1.contains(&self.hosts[*host].identity.sid);
        (0..self.hosts.len()).filter(is_member).collect()
    }

    /// A new server is to join the cluster.
    pub(super) fn join(&mut self) -> usize {
        let number = self.hosts.len();
        let mut remotes: Vec<String> = Vec::new();
        for member in self.members() {
            if remotes.is_empty() || self.dice.chance(50) {
                remotes.push(self.hosts[member].identity.address.clone());
            }
        }
        let cid = self.hosts[0].identity.cid;
        let identity = Identity {
            sid: Sid(uuid(&mut self.dice)),
            address: address(number),
            cid: cid.filter(|_| self.dice.chance(50)),
        };
        self.trace.line(format_args!(
            "{} host {number} joins through {remotes:?}",
            self.now_ms
        ));
        self.summary.joins += 1;
        let file = opening::joining_file(&identity, remotes);
        let seed = self.dice.draw();
        let disk = SimDisk::new(seed, self.trace.clone(), file);
        disk.keep_history(seeds::policy(seed));
        let rate = self.faults.hosts.draw_rate(&mut self.dice);
        let clock = Clock::new(self.now_ms, self.dice.below(1_000_000) as u64, rate);
        let mut host = ClusterHost::new(identity, disk, self.dice.draw(), clock);
        host.start_ms = Some(self.now_ms);
        self.hosts.push(host);
        number
    }
}
