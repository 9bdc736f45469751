//! One turn: the work that the algorithm has found is carried out, until there is none.

use corvid_log::cluster::Sid;
use corvid_rpc::Level;

use super::{Member, Output};
use crate::database::{Committed, MemberEvent};
use crate::raft_node::{LogEntry, Outgoing, Work};

impl Member {
    pub(super) fn turn(&mut self) {
        if self.failure.is_none() && !self.has_left {
            self.propose_held();
            self.change_servers();
            self.send_outcomes();
            self.work();
            self.tell_commit();
        }
        self.note_failure();
        self.update_view();
    }

    /// Carries out what the algorithm has found.
    pub(super) fn work(&mut self) {
        while !self.has_left
            && self.failure.is_none()
            && let Some(work) = self.node.ready()
        {
            self.carry_out(work);
            if !self.has_left {
                self.change_servers();
            }
        }
    }

    fn carry_out(&mut self, mut work: Work) {
        let committed = std::mem::take(&mut work.committed);
        self.leadership_began(&work);
        // The database learns that its leadership has ended before it learns of entries that came after.
        self.update_view();
        if !committed.is_empty() {
            self.committed(&committed);
        }
        if self.has_left {
            return;
        }
        let mut requests = Vec::new();
        let stored = self.file.store(work, &self.node, &mut requests);
        self.request(requests);
        self.send_all(stored.messages);
        if let Some(number) = stored.number {
            self.node.stored(number);
        }
    }

    pub(super) fn send_all(&mut self, messages: Vec<(Sid, Outgoing)>) {
        if self.repairing.is_some() {
            // The algorithm knows nothing of the damage, and answers the leader.
            return;
        }
        for (to, message) in messages {
            match message {
                Outgoing::Message(message) => self.send(to, message),
                Outgoing::Snapshot => self.begin_sending(to),
            }
        }
    }

    /// Hands committed entries to the database; lists of servers and timers take effect here.
    fn committed(&mut self, entries: &[LogEntry]) {
        let Some(last) = entries.last() else { return };
        // Own entries are those of a leadership that the database knows of and has not been told the end of.
        let own_term = self.view.announced_term();
        let mut events = Vec::new();
        for entry in entries {
            let commit = entry.body.as_commit();
            self.recent
                .committed(entry.index, commit.as_ref().map(|(eid, _)| *eid));
            if let Some((eid, data)) = commit {
                let index = entry.index;
                self.last_eid = eid;
                events.push(if own_term == Some(entry.term) {
                    Committed::Own { index, eid }
                } else {
                    let result = entry.body.result();
                    Committed::Data {
                        index,
                        eid,
                        data,
                        result: (!result.is_empty()).then(|| result.clone()),
                    }
                });
            } else if !entry.body.is_empty() {
                self.committed_settings(entry);
            }
        }
        let event = MemberEvent::Committed {
            through: last.index,
            term: last.term,
            entries: events,
        };
        self.outputs.push_back(Output::Database(event));
        if !self.has_left {
            self.node.applied(last.index);
        }
    }

    fn committed_settings(&mut self, entry: &LogEntry) {
        let Ok(parsed) = entry.body.parse(entry.term, entry.index) else {
            return self.fail(&format!("the committed entry {} is malformed", entry.index));
        };
        if let Some(timer_ms) = parsed.election_timer_ms {
            self.election_timer_committed(timer_ms);
        }
        if let Some(servers) = parsed.servers {
            self.servers_committed(entry.index, servers);
        }
    }

    fn election_timer_committed(&mut self, timer_ms: u64) {
        let old_ms = self.ticker.timer_ms();
        self.next_timer_ms = None;
        if timer_ms != old_ms {
            self.ticker.set_timer(timer_ms, self.now_ms);
            self.draw_timeout();
            self.outputs.push_back(Output::ElectionTimer(timer_ms));
            self.tell_election_timer();
            let text = format!("Election timer changed from {old_ms} to {timer_ms}");
            self.log(Level::Info, text);
        }
    }

    /// This member leads from the entry that begins its leadership.
    fn leadership_began(&mut self, work: &Work) {
        if !self.node.is_leader() {
            return;
        }
        let term = self.node.term();
        let begins = work.entries.iter().find(|entry| entry.term == term);
        if let Some(LogEntry { index, .. }) = begins {
            self.view.leadership_began(term, *index);
        }
    }
}
