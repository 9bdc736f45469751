//! The checks after every step of a server: the events that it has reported, the disks on which
//! they are durable, and the content of its database.

use corvid_consensus::Finding;
use corvid_consensus::member::{Connected, Role, ServerRow, Status};
use corvid_log::cluster::{Index, Sid, Term};

use super::{ClusterRun, QUEUED_MAX, WIRE_BYTES_MAX};
use crate::whole_cluster::location::Location;
use crate::whole_cluster::process::Observed;
use crate::world::disk::Crash;

impl ClusterRun {
    /// Judges the events at a host since the last check.
    pub(super) fn collect(&mut self, number: usize) -> Result<(), String> {
        self.observe(number)?;
        self.deliver(Location::Member(number))?;
        if let Some(offence) = self.hosts[number].disk.offence() {
            return Err(format!("host {number}: {offence}"));
        }
        if self.hosts[number].disk.is_down() {
            self.crashed(number);
            return Ok(());
        }
        self.check_bounds(number)
    }

    fn observe(&mut self, number: usize) -> Result<(), String> {
        let host = &mut self.hosts[number];
        let local_ms = host.clock.local(self.now_ms);
        let Some(process) = &mut host.process else {
            return Ok(());
        };
        let observed = std::mem::take(&mut process.observed);
        let status = process.pump.member.status(local_ms);
        if status.role == Role::Leader {
            self.witness.leads(number, status.term)?;
        }
        let mut applied = None;
        for event in observed {
            match event {
                Observed::Proposed(eid, data) => self.witness.proposed(eid, data),
                Observed::Committed {
                    through,
                    term,
                    entries,
                } => {
                    let is_new = self.witness.is_new(through);
                    self.witness.committed(number, through, term, &entries)?;
                    if is_new {
                        self.check_durable(number, through, term)?;
                    }
                }
                Observed::Replaced(index) => {
                    self.summary.snapshots += 1;
                    self.relays.doubts.member_ended(self.now_ms);
                    if index > self.witness.commit() {
                        return Err(format!(
                            "host {number} installs a snapshot of {index}, which is not committed"
                        ));
                    }
                }
                Observed::Applied(index) => applied = Some(index),
                Observed::Leads(term) => self.witness.began(number, term, status.applied)?,
                Observed::Found(findings) => {
                    for (eid, finding) in findings {
                        match finding {
                            Finding::Committed => self.witness.found(eid)?,
                            Finding::Absent => {}
                            Finding::Unknown => continue,
                        }
                        self.summary.found += 1;
                    }
                }
                Observed::CommandDone(token, outcome) => {
                    self.trace
                        .line(format_args!("command {}: {outcome:?}", token.0));
                    self.commands.remove(&token);
                }
                Observed::Grown => self.summary.growths += 1,
                Observed::Voted(term, vote) => {
                    let may_not = matches!(
                        status.connected,
                        Connected::Repairing(_) | Connected::Failed(_)
                    );
                    if may_not || self.hosts[number].promised.is_some() {
                        return Err(format!(
                            "host {number} votes for {vote} in term {term}, and is {:?}",
                            status.connected
                        ));
                    }
                    self.witness.votes(number, term, vote)?;
                }
                Observed::Failed(reason) if self.hosts[number].promised.is_some() => {
                    self.trace
                        .line(format_args!("{} host {number}: {reason}", self.now_ms));
                }
                Observed::Failed(reason) => {
                    return Err(format!("host {number} has failed: {reason}"));
                }
                Observed::Refused(from, reason) => {
                    return Err(format!(
                        "host {number} refuses a message of {from}: {reason}"
                    ));
                }
                Observed::LearnedCluster(cid) => self.hosts[number].identity.cid = Some(cid),
                Observed::Left => self.left(number),
                Observed::Shown(row) => self.check_shown(number, &row, &status)?,
            }
        }
        match applied {
            Some(index) => self.check_applied(number, index),
            None => Ok(()),
        }
    }

    /// Checks what `_Server` promises to a client that reads it now and acts on it at once. From
    /// the moment at which a server says that it is connected, it has everything that was committed
    /// before it started, so no old conversion closes the client's session. A server that is alone
    /// in its cluster leads.
    fn check_shown(
        &mut self,
        number: usize,
        row: &ServerRow,
        status: &Status,
    ) -> Result<(), String> {
        // A leader of an earlier term that is cut off cannot know what others have committed since.
        let is_newest = status.term == self.witness.newest_term();
        let Some(process) = &mut self.hosts[number].process else {
            return Ok(());
        };
        let was_connected = std::mem::replace(&mut process.is_shown_connected, row.is_connected);
        if was_connected || !row.is_connected {
            return Ok(());
        }
        if is_newest && status.applied < process.owed {
            return Err(format!(
                "host {number} says that it is connected, has applied {} and lacks entries through {}, which were committed when it started",
                status.applied, process.owed
            ));
        }
        if status.servers.len() == 1 && !row.is_leader {
            return Err(format!(
                "host {number} is alone and says that it is connected before it leads"
            ));
        }
        Ok(())
    }

    /// A server has left its cluster.
    fn left(&mut self, number: usize) {
        self.trace
            .line(format_args!("{} host {number} has left", self.now_ms));
        self.summary.left += 1;
        self.stop(number, Crash::Kill);
        self.hosts[number].ended = Some("it has left its cluster".to_owned());
    }

    /// Checks that a committed entry is durable on the disks of a quorum.
    fn check_durable(&mut self, number: usize, index: Index, term: Term) -> Result<(), String> {
        let mut lasting: Vec<Sid> = Vec::new();
        for host in &mut self.hosts {
            if let Some(file) = host.lasting()
                && file.has(index, term)
            {
                lasting.push(file.sid);
            }
        }
        let Some(file) = self.hosts[number].lasting() else {
            return Err(format!("the file of host {number} would not open"));
        };
        // A new list counts once the leader has applied it, so either of the last two lists may
        // form the quorum.
        let mut lists = file.lists().take(2);
        let is_quorum = lists.any(|list| {
            let count = list.iter().filter(|sid| lasting.contains(sid)).count();
            count > list.len() / 2
        });
        if is_quorum {
            return Ok(());
        }
        Err(format!(
            "host {number} commits {index} of term {term}, which lasts at {lasting:?} only"
        ))
    }

    /// Checks the content of a database that has applied the entries up to `index`.
    fn check_applied(&mut self, number: usize, index: Index) -> Result<(), String> {
        let Some(process) = &mut self.hosts[number].process else {
            return Ok(());
        };
        let may_be_ahead = process.may_be_ahead();
        let Some(machine) = &process.machine else {
            return Ok(());
        };
        self.witness
            .check_content(index, machine.service().database(), may_be_ahead)
            .map_err(|problem| format!("host {number}: {problem}"))
    }

    fn check_bounds(&mut self, number: usize) -> Result<(), String> {
        if let Some(process) = &self.hosts[number].process {
            if let Some(machine) = &process.machine
                && let Some(line) = &machine.refused_entry
            {
                return Err(format!("host {number}: {line}"));
            }
            let queued = process.queued();
            if queued > QUEUED_MAX {
                return Err(format!("{queued} messages wait in host {number}"));
            }
        }
        let bytes = self.wires.bytes();
        if bytes > WIRE_BYTES_MAX {
            return Err(format!("{bytes} bytes are under way"));
        }
        Ok(())
    }
}
