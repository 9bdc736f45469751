//! Files that lose promises of their members: disks that lie about syncs, copies that an operator
//! restores, and bits that flip.
//!
//! Invariant: fewer than half of the members lose promises, counted as if a removal in flight were
//! complete; the cluster then cannot lose anything. A loss without damage can be detected by one
//! leader only, the leader that has counted the promise. The run therefore makes sure that this
//! leader exists and the network works, until the leader has told the member or has sent it
//! everything again. docs/internals/cluster.md, "Damage".

use corvid_consensus::member::{Connected, Role, Status};
use corvid_log::DiskFile as _;
use corvid_log::cluster::snapshot_header::locate_body;
use corvid_log::cluster::{Index, Recovered, recover};

use super::ClusterRun;
use super::faults::FAIR;
use crate::server::workload::Txn;
use crate::whole_cluster::host::ClusterHost;
use crate::whole_cluster::opening::NAME;
use crate::whole_cluster::witness::Lasting;
use crate::world::disk::{Crash, Troubles};
use crate::world::host_faults::rot_file;

/// Within this time the network has calmed down and a leader exists, ms.
const LEADER_MS: u64 = 20_000;
/// Number of consecutive checks, 500 ms apart, at which all members follow one leader.
const CALM: usize = 8;
/// Within this time after its start, a member is told that it has lost promises, ms.
const TOLD_MS: u64 = 20_000;

impl ClusterRun {
    /// Whether the cluster can continue without the promises of a member.
    fn may_lose(&mut self, host: usize) -> bool {
        let members = self.members();
        let is_damaged = |member: &&usize| self.hosts[**member].is_damaged();
        let damaged = members.iter().filter(is_damaged).count();
        members.contains(&host)
            && !self.hosts[host].is_damaged()
            && self.faults.hosts.may_lose_another(damaged, members.len())
    }

    /// Lets the file of a stopped host rot, in some cases.
    pub(super) fn rot(&mut self, host: usize) {
        if !self.faults.has_rot || self.dice.chance(60) || !self.may_lose(host) {
            return;
        }
        // The leader refuses a member whose identity has changed; such a member must join anew.
        let ClusterHost { disk, identity, .. } = &self.hosts[host];
        let is_possible = |recovered: &Recovered| {
            recovered.server_id == identity.sid
                && recovered.cluster_id == identity.cid
                && recovered.local_address == identity.address
                && recovered.name == NAME
        };
        if rot_file(disk, &mut self.dice, is_possible) {
            self.trace.line(format_args!(
                "{} the file of host {host} has rotted",
                self.now_ms
            ));
            self.summary.damages += 1;
        }
    }

    /// Flips a bit of the snapshot in the file of a running member, unless a snapshot is being sent
    /// or loaded somewhere, or this process has checked its own. The result of a check stays valid
    /// for some time, so rot after it would go unnoticed.
    pub(super) fn rot_snapshot(&mut self, host: usize) {
        let now_ms = self.now_ms;
        let is_quiet = self.hosts.iter().all(|host| {
            let Some(process) = &host.process else {
                return true;
            };
            let status = process.pump.member.status(host.clock.local(now_ms));
            let mut servers = status.servers.iter();
            !process.is_loading() && servers.all(|server| server.snapshot.is_none())
        });
        let process = self.hosts[host].process.as_ref();
        let may_rot = is_quiet && process.is_some_and(|process| !process.has_checked);
        if !may_rot || !self.may_lose(host) {
            return;
        }
        let disk = &self.hosts[host].disk;
        let file = disk.open();
        let length = file.length().unwrap_or(0);
        if let Ok(Some(body)) = locate_body(&file)
            && body.end() <= length
        {
            let position = body.offset as usize + self.dice.below(body.length as usize);
            disk.flip(position, self.dice.below(8));
            self.trace.line(format_args!(
                "{now_ms} byte {position} of the snapshot of host {host} has rotted"
            ));
            self.summary.damages += 1;
        }
    }

    /// An operator keeps a copy of a member's file.
    pub(super) fn keep_copy(&mut self, host: usize) {
        if !self.hosts[host].disk.is_rotten() {
            let bytes = self.hosts[host].disk.intact_lasting_bytes();
            self.hosts[host].copy = Some(bytes);
        }
    }

    /// A member loses power and returns with less than its leader has counted, because its disk has
    /// lied, or because an operator has restored a copy of its file. The loss must be detected, or
    /// the leader that has counted the entries must send everything again.
    pub(super) fn lie(&mut self, host: usize) -> Result<(), String> {
        if !self.may_lose(host) {
            return Ok(());
        }
        self.trace
            .line(format_args!("{} the network calms down", self.now_ms));
        self.wires.set_weather(FAIR);
        self.wires.mend_all();
        for other in &mut self.hosts {
            other.disk.set_troubles(Troubles::default());
            other.disk.stay_up();
            other.paused_ms = other.paused_ms.min(self.now_ms);
            other.clock.set_rate(self.now_ms, 100);
        }
        let until_ms = self.now_ms + LEADER_MS;
        let mut calm = 0;
        while self.now_ms < until_ms && calm < CALM {
            self.advance(500)?;
            calm = if self.counted(host).is_some() {
                calm + 1
            } else {
                0
            };
        }
        if self.may_lose(host)
            && let Some(counted) = self.counted(host)
            && let Some(less) = self.draw_less(host, counted)
        {
            self.lose_promises(host, counted, less)?;
        }
        self.wires.set_weather(self.faults.weather);
        Ok(())
    }

    /// Returns the last entry that the leader knows this member to have stored. Returns `None`
    /// unless the leader, this member and most others run, and all running members follow the
    /// leader.
    pub(super) fn counted(&self, host: usize) -> Option<Index> {
        let sid = self.hosts[host].identity.sid;
        let running = self.hosts.iter();
        let running: Vec<Status> = running
            .filter_map(|it| {
                let process = it.running(self.now_ms)?;
                Some(process.pump.member.status(it.clock.local(self.now_ms)))
            })
            .collect();
        let leader = running.iter().find(|status| status.role == Role::Leader)?;
        let is_listed = |status: &&Status| leader.servers.iter().any(|it| it.sid == status.sid);
        let follows = |status: &Status| {
            let is_member = status.connected == Connected::Member;
            is_member && (status.leader, status.term) == (Some(leader.sid), leader.term)
        };
        let members: Vec<&Status> = running.iter().filter(is_listed).collect();
        let others = members.iter().filter(|status| status.sid != sid).count();
        let is_calm = leader.sid != sid
            && members.iter().all(|status| follows(status))
            && members.iter().any(|status| status.sid == sid)
            && others > leader.servers.len() / 2;
        let server = leader.servers.iter().find(|server| server.sid == sid)?;
        server.match_index.filter(|_| is_calm)
    }

    /// Returns a prefix of a member's file, or a copy, that ends before this entry. Its member list
    /// contains the leader, because a member does not believe a server that is not in its list.
    fn draw_less(&mut self, host: usize, counted: Index) -> Option<Vec<u8>> {
        let process = self.hosts[host].process.as_ref()?;
        let leader = process.pump.member.status(0).leader?;
        let is_less = |bytes: &[u8]| {
            let recovered = recover(bytes, bytes.len() as u64);
            recovered.is_ok_and(|it| {
                let lasting = Lasting::of(&it);
                !it.may_have_forgotten()
                    && it.joined().is_some()
                    && lasting.last().1 < counted
                    && lasting.lists().all(|list| list.contains(&leader))
            })
        };
        let copy = self.hosts[host].copy.clone();
        let copy = copy.filter(|bytes| self.dice.chance(50) && is_less(bytes));
        if copy.is_some() {
            return copy;
        }
        let whole = self.hosts[host].disk.intact_lasting_bytes();
        let cuts = (0..20).map(|_| &whole[..self.dice.below(whole.len())]);
        let mut cuts = cuts.filter(|bytes| is_less(bytes));
        cuts.next().map(<[u8]>::to_vec)
    }

    /// A member loses power and returns with this file, which lacks entries that its leader has
    /// counted.
    ///
    /// # Errors
    /// The loss is not detected.
    pub(super) fn lose_promises(
        &mut self,
        host: usize,
        counted: Index,
        less: Vec<u8>,
    ) -> Result<(), String> {
        let Some(promised) = self.hosts[host].lasting().cloned() else {
            return Ok(());
        };
        self.hosts[host].disk.crash();
        self.stop(host, Crash::PowerLoss);
        self.trace.line(format_args!(
            "{} the file of host {host} has {} bytes left",
            self.now_ms,
            less.len()
        ));
        self.hosts[host].promised = Some(promised);
        self.hosts[host].disk.put_back(less);
        for client in 0..self.clients.len() {
            let txn = Txn::draw(self.next_txn, &mut self.dice);
            self.transact(client, &txn);
        }
        let down_ms = *self.dice.pick(&[0, 200, 5000]);
        self.advance(down_ms)?;
        self.hosts[host].start_ms = Some(self.now_ms);
        let until_ms = self.now_ms + TOLD_MS;
        while !self.is_found_out(host) {
            self.hosts[host].lasting();
            if self.hosts[host].promised.is_none() {
                self.summary.refilled += 1;
                return Ok(());
            }
            if self.now_ms >= until_ms {
                return Err(format!(
                    "host {host} had stored entries through {counted} and is not found out"
                ));
            }
            self.advance(100)?;
        }
        // From here on, the member must not serve anyone.
        self.advance(2000)?;
        if let Some(process) = &self.hosts[host].process {
            let row = process.row.as_ref();
            if row.is_none_or(|row| row.is_connected || row.is_leader) {
                return Err(format!("host {host} is found out and has the row {row:?}"));
            }
            self.stop(host, Crash::Kill);
            self.hosts[host].ended = Some("its operator has given it up".to_owned());
        }
        self.summary.found_out += 1;
        Ok(())
    }

    fn is_found_out(&self, host: usize) -> bool {
        let host = &self.hosts[host];
        let Some(process) = &host.process else {
            return host.ended.is_some();
        };
        let status = process.pump.member.status(host.clock.local(self.now_ms));
        matches!(status.connected, Connected::Failed(_))
    }
}
