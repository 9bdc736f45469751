//! A snapshot on its way from the leader: stored beside the file, then installed, and only then shown to the algorithm.
//!
//! Invariant: at most one. The stored part survives a lost connection and a change of leadership, if the same snapshot is offered again.

use bytes::Bytes;
use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::StoreError;
use corvid_rpc::Level;

use super::log_file::Mark;
use super::records::Records;
use super::{Member, Output};
use crate::database::MemberEvent;
use crate::message::{PeerMessage, SnapshotMeta};

/// See the module.
#[derive(Debug)]
pub(super) struct Receiving {
    from: Sid,
    meta: SnapshotMeta,
    /// Requested to be written. Never less than before: a chunk that was requested is either written, or ends all of this.
    requested: u64,
    /// Written.
    written: u64,
    is_installing: bool,
    /// Term and vote in the new file.
    hard: (Term, Option<Sid>),
}

impl Member {
    /// The leader offers a snapshot.
    pub(super) fn snapshot_offered(&mut self, from: Sid, term: Term, meta: SnapshotMeta) {
        if term < self.node.term() {
            return;
        }
        // The leader's term is adopted as with any message of it.
        let commit = Index(0);
        self.node
            .step(from, PeerMessage::Heartbeat { term, commit });
        if self.receiving.as_ref().is_some_and(|it| it.is_installing) {
            return;
        }
        if self.node.leader() != Some(from) {
            return;
        }
        if !self.is_enough(&meta) {
            // The leader learns from the next request what is.
            return;
        }
        if self.has_entry_of(&meta) {
            if self.receiving.take().is_some() {
                self.outputs.push_back(Output::AbandonSnapshot);
            }
            // The log has all of that: the algorithm's answer says so.
            return self.show_snapshot(from, &meta);
        }
        let is_same = |it: &Receiving| {
            (it.meta.index, it.meta.term, it.meta.body_bytes)
                == (meta.index, meta.term, meta.body_bytes)
        };
        if let Some(receiving) = self.receiving.as_mut().filter(|it| is_same(it)) {
            receiving.from = from;
        } else {
            self.receiving = Some(Receiving {
                from,
                meta: meta.clone(),
                requested: 0,
                written: 0,
                is_installing: false,
                hard: (Term(0), None),
            });
            let text = format!(
                "receiving a snapshot of {} bytes from server {}, {}:{}",
                meta.body_bytes,
                self.name_of(from),
                meta.term,
                meta.index
            );
            self.log(Level::Info, text);
            self.outputs.push_back(Output::BeginSnapshot(meta));
        }
        self.tell_progress();
        self.install_if_complete();
    }

    fn has_entry_of(&self, meta: &SnapshotMeta) -> bool {
        meta.index <= self.node.commit() || self.node.term_of(meta.index) == Some(meta.term)
    }

    fn show_snapshot(&mut self, from: Sid, meta: &SnapshotMeta) {
        let voters: Vec<Sid> = meta.servers.iter().map(|(sid, _)| sid).collect();
        let term = self.node.term();
        self.node
            .install(from, term, (meta.index, meta.term), &voters);
    }

    fn tell_progress(&mut self) {
        if let Some(receiving) = &self.receiving {
            let message = PeerMessage::SnapshotProgress {
                term: self.node.term(),
                index: receiving.meta.index,
                offset: receiving.written,
            };
            let from = receiving.from;
            self.send(from, message);
        }
    }

    /// A part of the body has arrived.
    pub(super) fn chunk_received(
        &mut self,
        from: Sid,
        term: Term,
        index: Index,
        offset: u64,
        bytes: Bytes,
    ) {
        let Some(receiving) = &mut self.receiving else {
            return;
        };
        let end = offset.saturating_add(bytes.len() as u64);
        let is_next = receiving.from == from
            && receiving.meta.index == index
            && receiving.requested == offset
            && end <= receiving.meta.body_bytes;
        if !is_next || receiving.is_installing || term != self.node.term() {
            return;
        }
        receiving.requested = end;
        self.outputs.push_back(Output::WriteSnapshot {
            index,
            offset,
            bytes,
        });
    }

    /// A part of the body is written.
    pub(super) fn snapshot_written(&mut self, index: Index, end: Result<u64, StoreError>) {
        let Some(receiving) = &mut self.receiving else {
            return;
        };
        if receiving.meta.index != index {
            return;
        }
        match end {
            Ok(end) => receiving.written = end,
            Err(error) => {
                self.receiving = None;
                self.log(
                    Level::Error,
                    format!(
                        "a snapshot of the leader cannot be stored ({}: {}); it is fetched again",
                        error.details, error.io_error
                    ),
                );
                return;
            }
        }
        self.tell_progress();
        self.install_if_complete();
    }

    /// Nothing is promised from here until the new file is in place: messages of the algorithm are dropped, and no time passes for it.
    pub(super) fn is_installing(&self) -> bool {
        self.receiving.as_ref().is_some_and(|it| it.is_installing)
    }

    fn install_if_complete(&mut self) {
        let hard = (self.node.term(), self.node.vote());
        let leader = self.node.leader();
        let Some(receiving) = &mut self.receiving else {
            return;
        };
        let is_complete = receiving.written == receiving.meta.body_bytes;
        if !is_complete || receiving.is_installing || leader != Some(receiving.from) {
            return;
        }
        let (from, meta) = (receiving.from, receiving.meta.clone());
        if self.has_entry_of(&meta) {
            self.receiving = None;
            self.outputs.push_back(Output::AbandonSnapshot);
            return self.show_snapshot(from, &meta);
        }
        // The work that the algorithm has found up to now belongs to the old file.
        self.work();
        let Some(receiving) = &mut self.receiving else {
            return;
        };
        receiving.is_installing = true;
        receiving.hard = hard;
        let mut records = Records::default();
        records.state(hard);
        let snapshot = receiving.meta.clone();
        self.outputs.push_back(Output::InstallSnapshot {
            snapshot,
            cid: self.cid,
            records: records.into_bytes(),
        });
    }

    /// The new file is in place, or not.
    pub(super) fn snapshot_installed(&mut self, index: Index, outcome: Result<(), StoreError>) {
        let Some(receiving) = self.receiving.take() else {
            return;
        };
        if receiving.meta.index != index {
            return;
        }
        if let Err(error) = outcome {
            return self.log(
                Level::Error,
                format!(
                    "a snapshot of the leader cannot be installed ({}: {}); it is fetched again",
                    error.details, error.io_error
                ),
            );
        }
        let Receiving {
            from, meta, hard, ..
        } = receiving;
        if let Some(rewriting) = self.file.rewriting.take() {
            // It may have begun during the installation. Nobody would end it, and the next one waits for its end.
            self.give_up_rewrite(&rewriting);
        }
        self.repaired(meta.index);
        // The log in memory has no entry of the snapshot's term there, so the library drops it.
        self.file.restart(Mark {
            hard,
            last: meta.index,
            commit: meta.index,
        });
        self.show_snapshot(from, &meta);
        self.membership.restart(meta.index, meta.servers.clone());
        self.snapshot = (meta.index, meta.term, meta.eid);
        self.last_eid = meta.eid;
        self.recent.restart(meta.index);
        if self.ticker.timer_ms() != meta.election_timer_ms {
            self.ticker.set_timer(meta.election_timer_ms, self.now_ms);
            self.outputs
                .push_back(Output::ElectionTimer(meta.election_timer_ms));
        }
        self.outputs
            .push_back(Output::Database(MemberEvent::Replaced {
                index: meta.index,
                term: meta.term,
                eid: meta.eid,
            }));
        self.work();
        self.node.applied(meta.index);
        if self.membership.contains(self.settings.sid) {
            self.joined();
        }
    }

    /// Stored bytes of the snapshot that is on its way, and all of them.
    pub(super) fn received(&self) -> Option<(u64, u64)> {
        let receiving = self.receiving.as_ref()?;
        Some((receiving.written, receiving.meta.body_bytes))
    }

    /// The connection to the leader is new: chunks may have been lost on the way. Those that have come are still written.
    pub(super) fn receiving_resumed(&mut self, sid: Sid) {
        let receiving = self.receiving.as_ref();
        if receiving.is_some_and(|receiving| receiving.from == sid) {
            self.tell_progress();
        }
    }
}
