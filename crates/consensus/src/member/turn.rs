//! One turn: executes the work that the algorithm has found, until none is left, and tells others
//! what it has changed.
//!
//! Invariant: committed entries reach the database before the messages of the same work leave. Only
//! messages whose promises the file holds may leave ([`super::disk`]).

use corvid_log::cluster::{Index, Servers, Sid};
use corvid_log::storage::LogPosition;
use corvid_rpc::Level;

use super::commits::catching_up::Standing;
use super::disk::StoredSnapshot;
use super::election::view::Told;
use super::failure::Failure;
use super::{Absence, Member, Output, ServerRow};
use crate::database::MemberEvent;
use crate::message::PeerMessage;
use crate::peers::LONG_BYTES;
use crate::raft_node::{LogEntry, Outgoing, Work};

impl Member {
    pub(super) fn turn(&mut self) {
        if !self.cx.has_failed() && !self.roster.has_left() {
            // Propose before asking for work: proposals, changes of the list and outcomes of this
            // turn then share one write, one sync and one message per peer.
            self.propose();
            self.change_servers();
            self.forwarding.send_outcomes(&mut self.cx);
            self.work();
            // Followers learn of commits last, when the turn has shown whether an append carries
            // the index anyway.
            if self.commits.notice.tell(&mut self.cx) {
                self.work();
            }
        }
        // The note and the views come after all work: they show the state in which the turn ends.
        self.disk.note_failure(&mut self.cx);
        self.update_view();
    }

    /// Proposes what is waiting.
    pub(super) fn propose(&mut self) {
        // The leadership of a removed member is ending, so its proposals could be lost.
        if !self.roster.is_departing() {
            self.commits.propose(&mut self.cx);
        }
    }

    /// Proposes the next change of the list, if one is due and possible.
    fn change_servers(&mut self) {
        if self.leads() {
            let (lease, timer_ms) = (&self.election.lease, self.election.timer_ms());
            let file = &mut self.disk.file;
            self.roster
                .propose_change(&mut self.cx, file, lease, timer_ms);
        }
    }

    /// Executes the work that the algorithm has found.
    pub(super) fn work(&mut self) {
        while !self.roster.has_left()
            && !self.cx.has_failed()
            && let Some(work) = self.cx.node.ready()
        {
            self.carry_out(work);
            if !self.roster.has_left() {
                self.change_servers();
            }
        }
    }

    fn carry_out(&mut self, mut work: Work) {
        let committed = std::mem::take(&mut work.committed);
        self.note_leadership(&work);
        // Tell the database of a lost leadership before entries of the next one. Otherwise it would
        // take the new leader's entries for its own proposals.
        self.update_view();
        if !committed.is_empty() {
            self.commit(&committed);
        }
        // Leaving wrote the last record. A removed member must store, send and promise nothing
        // more.
        if self.roster.has_left() {
            return;
        }
        // Store after committing: a committed list changes which messages of this work may leave at
        // once.
        let stored = self.disk.store(&mut self.cx, work);
        self.send_all(stored.messages);
        if let Some(number) = stored.number {
            self.cx.node.stored(number);
        }
    }

    /// Sends messages of the algorithm that need not wait any longer.
    fn send_all(&mut self, messages: Vec<(Sid, Outgoing)>) {
        if self.disk.is_repairing() {
            // The algorithm knows nothing of the damage and answers the leader. Those answers would
            // promise entries that the file has lost.
            return;
        }
        let (snapshot, timer_ms) = (self.disk.snapshot(), self.election.timer_ms());
        for (to, message) in messages {
            match message {
                Outgoing::Message(message) => {
                    // Extend the peer's lease before the message leaves: it is silent while it
                    // digests the entries.
                    if let Some((through, bytes)) = long_entries(&message) {
                        self.election.lease.send_long(to, through, bytes, timer_ms);
                    }
                    self.cx.send(to, message);
                }
                Outgoing::Snapshot => {
                    let sending = &mut self.snapshots.sending;
                    sending.begin(&mut self.cx, &self.roster, snapshot, timer_ms, to);
                }
            }
        }
    }

    /// Sends the messages that waited for records up to this position, which are stored now.
    pub(super) fn release(&mut self, position: LogPosition) {
        if let Some(messages) = self.disk.answer(&mut self.cx, position) {
            self.send_all(messages);
            // The messages belong to what is stored. Only then request what was left out during
            // trouble.
            self.disk.catch_up(&mut self.cx);
        }
    }

    /// Notes the entry that begins this member's leadership, if it is in this work.
    fn note_leadership(&mut self, work: &Work) {
        if !self.cx.node.is_leader() {
            return;
        }
        let term = self.cx.node.term();
        let begins = work.entries.iter().find(|entry| entry.term == term);
        if let Some(LogEntry { index, .. }) = begins {
            self.election.view.begin_leadership(term, *index);
        }
    }

    /// Hands committed entries to the database. Lists of servers and timers take effect here.
    fn commit(&mut self, entries: &[LogEntry]) {
        let Some(last) = entries.last() else { return };
        // Entries of this term are the database's own proposals: it was told of this leadership and
        // not yet of its end.
        let own_term = self.election.view.told_term();
        let mut events = Vec::new();
        for entry in entries {
            let commit = self.commits.commit(entry, own_term);
            let eid = commit.is_some().then(|| self.commits.last_eid());
            self.snapshots.recent.push(entry.index, eid);
            if let Some(commit) = commit {
                events.push(commit);
            } else if !entry.body.is_empty() {
                self.commit_settings(entry);
            }
        }
        self.cx.tell_database(MemberEvent::Committed {
            through: last.index,
            term: last.term,
            entries: events,
        });
        if !self.roster.has_left() {
            self.cx.node.applied(last.index);
        }
    }

    fn commit_settings(&mut self, entry: &LogEntry) {
        let Ok(parsed) = entry.body.parse(entry.term, entry.index) else {
            let reason = format!("the committed entry {} is malformed", entry.index);
            return self.cx.fail(Failure::other(&reason));
        };
        if let Some(timer_ms) = parsed.election_timer_ms {
            self.commit_election_timer(timer_ms);
        }
        if let Some(servers) = parsed.servers {
            self.commit_servers(entry.index, servers);
        }
    }

    fn commit_election_timer(&mut self, timer_ms: u64) {
        let old_ms = self.election.timer_ms();
        self.commits.forget_proposed_timer();
        if timer_ms != old_ms {
            self.election.ticker.set_timer(timer_ms, self.cx.now_ms);
            self.election.draw_timeout(&mut self.cx);
            self.cx.put(Output::ElectionTimer(timer_ms));
            let timer_ms = self.election.timer_ms();
            self.election.view.tell_timer(&mut self.cx, timer_ms);
            let text = format!("Election timer changed from {old_ms} to {timer_ms}");
            self.cx.log(Level::Info, text);
        }
    }

    fn commit_servers(&mut self, index: Index, servers: Servers) {
        let eid = self.commits.last_eid();
        let file = &mut self.disk.file;
        let list = (index, servers);
        let outcome = self.roster.commit(&mut self.cx, file, list, eid);
        if outcome.must_leave {
            return self.leave();
        }
        if outcome.adds_own {
            self.commits.catching_up.note_list(index);
        }
        for sid in outcome.gone {
            self.snapshots.sending.forget_peer(sid);
        }
    }

    /// This server is no longer a member.
    pub(super) fn leave(&mut self) {
        if self.roster.has_left() {
            return;
        }
        self.roster.leave(&mut self.cx, &mut self.disk.file);
        self.update_view();
        self.cx.put(Output::Left);
    }

    /// The file now has another snapshot, made by the database itself.
    pub(super) fn take_compaction(&mut self, snapshot: StoredSnapshot) {
        let StoredSnapshot { index, term, .. } = snapshot;
        self.cx.node.set_snapshot(index, term);
        let kept = self.cx.settings.kept;
        self.cx
            .node
            .compact(index.min(self.commits.applied()), kept);
        self.roster.compact(index);
        self.snapshots.sending.restart(&mut self.cx);
    }

    /// Whether this member's database has been told that it leads.
    pub(super) fn leads(&self) -> bool {
        self.election.announced_term(&self.cx).is_some()
    }

    /// Tells the database, the connections and `_Server` what has changed.
    pub(super) fn update_view(&mut self) {
        self.update_role();
        self.tell_database();
        self.roster.update_targets(&mut self.cx);
        self.update_row();
    }

    fn update_role(&mut self) {
        let Some(change) = self.election.view.compare(&self.cx) else {
            return;
        };
        if change.is_leadership_lost {
            self.end_leadership();
        }
        if change.is_new_term {
            // Followers may not have received these outcomes: keep them for those that ask.
            for (id, outcome) in self.forwarding.restart(change.term) {
                self.snapshots.recent.keep_outcome(id, outcome);
            }
            self.cx.peers.forget_votes();
        }
        self.election.adopt(&mut self.cx, &self.roster, change);
    }

    /// This member no longer leads.
    fn end_leadership(&mut self) {
        self.commits.forget_proposals();
        self.snapshots.sending.clear();
        self.roster.forget_joiners(&mut self.cx);
        self.roster
            .forget_removals(&mut self.cx, &mut self.disk.file);
        let (ticker, now_ms) = (&mut self.election.ticker, self.cx.now_ms);
        self.roster.delay_leaving(|| {
            let delay_ms = ticker.timer_ms() / 10;
            now_ms + delay_ms + ticker.random(delay_ms)
        });
    }

    fn tell_database(&mut self) {
        let is_empty = self.roster.is_joining() || self.disk.is_repairing();
        if is_empty && !self.disk.has_snapshot() {
            return;
        }
        let (applied, timer_ms) = (self.commits.applied(), self.election.timer_ms());
        let view = &mut self.election.view;
        match view.tell_database(&mut self.cx, applied, timer_ms) {
            Some(Told::Leads(_)) => self.execute_forwards(),
            Some(Told::Follows(..)) => self.forwarding.resend(&mut self.cx, timer_ms),
            None => {}
        }
    }

    /// Passes followers' transactions to the database, once it leads.
    pub(super) fn execute_forwards(&mut self) {
        if let Some(term) = self.election.announced_term(&self.cx) {
            self.forwarding.execute(&mut self.cx, term);
        }
    }

    fn update_row(&mut self) {
        let applied = self.commits.applied();
        let absence = self.absence();
        let is_member = absence.is_none() && !self.roster.is_leaving() && !self.roster.has_left();
        let view = &self.election.view;
        // A member that cannot store anything stays behind until its disk recovers. Its clients are
        // better served elsewhere.
        let is_stuck = self.disk.is_in_trouble()
            && !self.cx.node.is_leader()
            && view.leader_commit() > applied;
        let is_in_touch = is_member && view.is_near();
        let is_leader = self.election.announced_term(&self.cx).is_some();
        let standing = Standing {
            is_in_touch,
            leads: is_leader,
            is_alone: self.roster.count() == 1,
        };
        let has_caught_up = self.commits.catching_up.look(standing, applied);
        let row = ServerRow {
            is_connected: is_in_touch && has_caught_up && !is_stuck,
            is_leader,
            cid: self.cx.cid,
            sid: self.cx.own(),
            absence,
        };
        self.election.view.show_row(&mut self.cx, row);
    }

    /// Why the database has no contents; `None` if it has, or is about to have them.
    fn absence(&self) -> Option<Absence> {
        if self.cx.has_failed() {
            Some(Absence::Failed)
        } else if self.roster.is_joining() {
            Some(Absence::Joining)
        } else if self.disk.is_repairing() {
            Some(Absence::Damaged)
        } else {
            None
        }
    }
}

/// The last index and the bytes of an append that makes a long message, whose receiver is silent
/// while it reads.
fn long_entries(message: &PeerMessage) -> Option<(Index, u64)> {
    let PeerMessage::Append {
        prev_index,
        entries,
        ..
    } = message
    else {
        return None;
    };
    let bytes = entries.iter().map(|(_, body)| body.text().len());
    let bytes = bytes.sum::<usize>();
    let through = Index(prev_index.0 + entries.len() as u64);
    (bytes > LONG_BYTES).then_some((through, bytes as u64))
}
