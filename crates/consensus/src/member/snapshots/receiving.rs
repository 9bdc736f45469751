//! A snapshot on its way from the leader: stored next to the file, then installed, and only then
//! shown to the algorithm.
//!
//! ```text
//! offer --> begin --> chunks: write --> written .. complete --> install --> in place --> algorithm
//!                                                               |- nothing is promised -|
//! ```
//!
//! Invariant: at most one at a time. The stored part survives a lost connection and a change of
//! leadership, if the same snapshot is offered again. Written bytes never exceed requested ones,
//! which never exceed the length of the body.

use bytes::Bytes;
use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::StoreError;
use corvid_rpc::Level;

use crate::member::Output;
use crate::member::context::Context;
use crate::member::disk::records::Records;
use crate::member::roster::Roster;
use crate::message::{PeerMessage, SnapshotMeta};

/// Term and vote.
type Hard = (Term, Option<Sid>);

/// The receiving side of a snapshot transfer.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    incoming: Option<Incoming>,
}

/// The snapshot that is being received.
#[derive(Debug)]
struct Incoming {
    from: Sid,
    meta: SnapshotMeta,
    /// Bytes that were requested to be written. Never decreases: a requested chunk is either
    /// written, or its failure ends the transfer.
    requested: u64,
    /// Bytes written.
    written: u64,
    is_installing: bool,
    /// Term and vote in the new file.
    hard: Hard,
}

/// A snapshot that has replaced the file.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) from: Sid,
    pub(crate) meta: SnapshotMeta,
    /// Term and vote in the new file.
    pub(crate) hard: Hard,
}

impl Receiving {
    /// Handles a snapshot offered by the leader. `is_enough`: it has everything that this member
    /// may have acknowledged. Returns whether the caller should check for completion.
    pub(crate) fn hear_offer(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        from: Sid,
        (term, meta): (Term, SnapshotMeta),
        is_enough: bool,
    ) -> bool {
        if term < cx.node.term() {
            return false;
        }
        // Adopt the leader's term, as with any of its messages.
        let commit = Index(0);
        cx.node.step(from, PeerMessage::Heartbeat { term, commit });
        // If it is not enough, the member's next request tells the leader what is.
        if self.is_installing() || cx.node.leader() != Some(from) || !is_enough {
            return false;
        }
        if has_entry_of(cx, &meta) {
            if self.incoming.take().is_some() {
                cx.put(Output::AbandonSnapshot);
            }
            // The log already has all of it, and the algorithm's answer says so.
            show(cx, from, &meta);
            return false;
        }
        let is_same = |it: &Incoming| {
            (it.meta.index, it.meta.term, it.meta.body_bytes)
                == (meta.index, meta.term, meta.body_bytes)
        };
        // The same snapshot, perhaps from another leader: keep the stored part and continue there.
        if let Some(receiving) = self.incoming.as_mut().filter(|it| is_same(it)) {
            receiving.from = from;
        } else {
            let text = format!(
                "receiving a snapshot of {} bytes from server {}, {}:{}",
                meta.body_bytes,
                roster.name_of(from),
                meta.term,
                meta.index
            );
            cx.log(Level::Info, text);
            self.incoming = Some(Incoming {
                from,
                meta: meta.clone(),
                requested: 0,
                written: 0,
                is_installing: false,
                hard: (Term(0), None),
            });
            cx.put(Output::BeginSnapshot(meta));
        }
        self.tell_progress(cx);
        true
    }

    /// Handles a part of the body.
    pub(crate) fn hear_chunk(
        &mut self,
        cx: &mut Context,
        from: Sid,
        term: Term,
        (index, offset): (Index, u64),
        bytes: Bytes,
    ) {
        let Some(incoming) = &mut self.incoming else {
            return;
        };
        let end = offset.saturating_add(bytes.len() as u64);
        let is_next = incoming.from == from
            && incoming.meta.index == index
            && incoming.requested == offset
            && end <= incoming.meta.body_bytes;
        if !is_next || incoming.is_installing || term != cx.node.term() {
            return;
        }
        incoming.requested = end;
        cx.put(Output::WriteSnapshot {
            index,
            offset,
            bytes,
        });
    }

    /// A part of the body has been written. Returns whether the caller should check for completion.
    pub(crate) fn hear_written(
        &mut self,
        cx: &mut Context,
        index: Index,
        end: Result<u64, StoreError>,
    ) -> bool {
        let incoming = self.incoming.as_mut();
        let Some(incoming) = incoming.filter(|it| it.meta.index == index) else {
            return false;
        };
        match end {
            Ok(end) => {
                assert!(
                    end <= incoming.requested && end <= incoming.meta.body_bytes,
                    "{end} bytes of a snapshot are written, {} requested",
                    incoming.requested
                );
                // Parts are written in order, but an answer may be overtaken by a later one. If it
                // took the mark back, the leader would send again from there, and never a part that
                // this member still asks for.
                incoming.written = incoming.written.max(end);
            }
            Err(error) => {
                self.incoming = None;
                cx.log(
                    Level::Error,
                    format!(
                        "a snapshot from the leader cannot be stored ({}: {}); fetching it again",
                        error.details, error.io_error
                    ),
                );
                return false;
            }
        }
        // Report progress only now: the leader does not resend confirmed bytes.
        self.tell_progress(cx);
        true
    }

    /// If everything is written and the leader that offered it still leads, returns term and vote
    /// for the new file.
    pub(crate) fn complete(&mut self, cx: &mut Context) -> Option<Hard> {
        let incoming = self.incoming.as_ref()?;
        let is_complete = incoming.written == incoming.meta.body_bytes;
        if !is_complete || incoming.is_installing || cx.node.leader() != Some(incoming.from) {
            return None;
        }
        if has_entry_of(cx, &incoming.meta) {
            // The log has caught up in the meantime.
            let Incoming { from, meta, .. } = self.incoming.take()?;
            cx.put(Output::AbandonSnapshot);
            show(cx, from, &meta);
            return None;
        }
        Some((cx.node.term(), cx.node.vote()))
    }

    /// Installs the complete snapshot. Work that the algorithm has found before belongs to the old
    /// file, and was requested from it.
    pub(crate) fn install(&mut self, cx: &mut Context, hard: Hard) {
        let Some(receiving) = &mut self.incoming else {
            return;
        };
        // The new file replaces the old one, so it must be complete.
        assert!(
            receiving.written == receiving.meta.body_bytes,
            "{} of {} bytes of a snapshot are installed",
            receiving.written,
            receiving.meta.body_bytes
        );
        // From here on nothing is promised: a promise would go to the old file, and the new one
        // holds exactly this term and vote.
        receiving.is_installing = true;
        receiving.hard = hard;
        let mut records = Records::default();
        records.state(hard);
        // The algorithm learns of the snapshot only when the file is in place. Until then a crash
        // brings the old file back.
        let snapshot = receiving.meta.clone();
        cx.put(Output::InstallSnapshot {
            snapshot,
            cid: cx.cid,
            records: records.into_text().into(),
        });
    }

    /// The new file is in place, or the installation failed.
    pub(crate) fn hear_installed(
        &mut self,
        cx: &mut Context,
        index: Index,
        outcome: Result<(), StoreError>,
    ) -> Option<Installed> {
        let incoming = self.incoming.take()?;
        if incoming.meta.index != index {
            return None;
        }
        if let Err(error) = outcome {
            cx.log(
                Level::Error,
                format!(
                    "a snapshot from the leader cannot be installed ({}: {}); fetching it again",
                    error.details, error.io_error
                ),
            );
            return None;
        }
        let Incoming {
            from, meta, hard, ..
        } = incoming;
        Some(Installed { from, meta, hard })
    }

    /// The connection to the leader is new, so chunks may have been lost. Those that arrived are
    /// still written.
    pub(crate) fn resume(&self, cx: &mut Context, leader: Sid) {
        if self.incoming.as_ref().is_some_and(|it| it.from == leader) {
            self.tell_progress(cx);
        }
    }

    /// Whether an installation is in progress. Until the new file is in place nothing is promised:
    /// messages of the algorithm are dropped, and no time passes for it.
    pub(crate) fn is_installing(&self) -> bool {
        self.incoming.as_ref().is_some_and(|it| it.is_installing)
    }

    /// Whether a snapshot is being received.
    pub(crate) fn is_receiving(&self) -> bool {
        self.incoming.is_some()
    }

    /// Stored bytes of the snapshot that is being received, and its length.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        let incoming = self.incoming.as_ref()?;
        Some((incoming.written, incoming.meta.body_bytes))
    }

    fn tell_progress(&self, cx: &mut Context) {
        if let Some(incoming) = &self.incoming {
            let message = PeerMessage::SnapshotProgress {
                term: cx.node.term(),
                index: incoming.meta.index,
                offset: incoming.written,
            };
            cx.send(incoming.from, message);
        }
    }
}

/// Shows the algorithm a snapshot whose content the file has, as a snapshot or as entries.
pub(crate) fn show(cx: &mut Context, from: Sid, meta: &SnapshotMeta) {
    let voters: Vec<Sid> = meta.servers.iter().map(|(sid, _)| sid).collect();
    let term = cx.node.term();
    cx.node
        .install(from, term, (meta.index, meta.term), &voters);
}

fn has_entry_of(cx: &Context, meta: &SnapshotMeta) -> bool {
    meta.index <= cx.node.commit() || cx.node.term_of(meta.index) == Some(meta.term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, sid};
    use corvid_data::Uuid;
    use corvid_log::cluster::Eid;

    fn meta(body_bytes: u64) -> SnapshotMeta {
        SnapshotMeta {
            index: Index(40),
            term: Term(2),
            eid: Eid(Uuid([4; 16])),
            servers: fixture::list(&[1]),
            election_timer_ms: 1000,
            body_bytes,
        }
    }

    #[test]
    fn a_snapshot_is_complete_when_all_of_it_is_written_and_its_sender_leads() {
        let mut cx = fixture::follower();
        let roster = Roster::new(None, Vec::new(), None, 0);
        let mut receiving = Receiving::default();
        let offer = |receiving: &mut Receiving, cx: &mut Context, is_enough| {
            receiving.hear_offer(cx, &roster, sid(2), (Term(3), meta(20)), is_enough)
        };
        assert!(!offer(&mut receiving, &mut cx, false), "it lacks something");
        assert!(!receiving.is_receiving());
        assert!(offer(&mut receiving, &mut cx, true));
        assert!(receiving.complete(&mut cx).is_none());
        let chunk = Bytes::from_static(b"0123456789");
        for (from, offset) in [(2, 0), (2, 0), (3, 10), (2, 20), (2, 10)] {
            let at = (Index(40), offset);
            receiving.hear_chunk(&mut cx, sid(from), Term(3), at, chunk.clone());
        }
        let written = std::iter::from_fn(|| cx.outbox.take()).filter_map(|output| match output {
            Output::WriteSnapshot { offset, .. } => Some(offset),
            _ => None,
        });
        assert_eq!(written.collect::<Vec<_>>(), [0, 10], "each once, in order");
        assert!(receiving.hear_written(&mut cx, Index(40), Ok(10)));
        assert!(receiving.complete(&mut cx).is_none());
        assert!(receiving.hear_written(&mut cx, Index(40), Ok(20)));
        // An answer that was overtaken takes nothing back.
        assert!(receiving.hear_written(&mut cx, Index(40), Ok(10)));
        let hard = receiving.complete(&mut cx).expect("all of it");
        assert_eq!(hard.0, Term(3));
        receiving.install(&mut cx, hard);
        assert!(receiving.is_installing() && receiving.complete(&mut cx).is_none());
        let installed = receiving.hear_installed(&mut cx, Index(40), Ok(()));
        assert!(installed.is_some_and(|it| it.hard == hard && it.from == sid(2)));
        assert!(!receiving.is_receiving());
    }
}
