//! Snapshots on their way to peers that need entries from before the log: the body is read from this member's own file, in chunks.
//!
//! The receiver says how much it has; chunks beyond that are bounded. Heartbeats and entries for others go their way meanwhile.

use bytes::Bytes;
use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::StoreError;
use corvid_rpc::Level;

use super::{Member, Output};
use crate::message::{PeerMessage, SnapshotMeta};

/// Chunks that are read or sent and not confirmed.
const WINDOW_CHUNKS: u64 = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Sending {
    index: Index,
    /// The length of the body, once it is known.
    pub(super) body_bytes: Option<u64>,
    /// Confirmed by the receiver.
    pub(super) confirmed: u64,
    /// Read or being read.
    requested: u64,
    /// Given up when there is no progress until then.
    until_ms: u64,
}

impl Member {
    /// The algorithm wants the peer to get the snapshot.
    pub(super) fn begin_sending(&mut self, to: Sid) {
        let (index, term, _) = self.snapshot;
        let text = format!(
            "sending snapshot to server {}, {term}:{index}.",
            self.name_of(to)
        );
        self.log(Level::Info, text);
        let until_ms = self.sending_deadline();
        self.sending.insert(
            to,
            Sending {
                index,
                body_bytes: None,
                confirmed: 0,
                requested: 0,
                until_ms,
            },
        );
        // Says how long the body is.
        self.outputs.push_back(Output::ReadSnapshot {
            to,
            index,
            offset: 0,
            bytes_max: 0,
        });
    }

    fn sending_deadline(&self) -> u64 {
        self.now_ms + 5000 + 4 * self.ticker.timer_ms()
    }

    /// A part of the body has been read.
    pub(super) fn snapshot_read(
        &mut self,
        to: Sid,
        index: Index,
        offset: u64,
        read: Result<(u64, Bytes), StoreError>,
    ) {
        let Some(sending) = self.sending.get_mut(&to) else {
            return;
        };
        if sending.index != index || !self.node.is_leader() {
            return;
        }
        let (body_bytes, bytes) = match read {
            Ok(read) => read,
            Err(error) => {
                self.sending.remove(&to);
                self.node.snapshot_sent(to, false);
                let text = format!(
                    "the snapshot for server {} cannot be read ({}: {})",
                    self.name_of(to),
                    error.details,
                    error.io_error
                );
                return self.log(Level::Warn, text);
            }
        };
        let term = self.node.term();
        if sending.body_bytes.is_none() {
            sending.body_bytes = Some(body_bytes);
            let (index, snapshot_term, eid) = self.snapshot;
            let Some(servers) = self.membership.servers_at(index).cloned() else {
                return;
            };
            let snapshot = SnapshotMeta {
                index,
                term: snapshot_term,
                eid,
                servers,
                election_timer_ms: self.ticker.timer_ms(),
                body_bytes,
            };
            return self.send(to, PeerMessage::SnapshotOffer { term, snapshot });
        }
        if !bytes.is_empty() {
            let message = PeerMessage::SnapshotChunk {
                term,
                index,
                offset,
                bytes,
            };
            self.send(to, message);
        }
    }

    /// The receiver has this much.
    pub(super) fn progress_received(&mut self, from: Sid, term: Term, index: Index, offset: u64) {
        let until_ms = self.sending_deadline();
        if term != self.node.term() || !self.node.is_leader() {
            return;
        }
        let Some(sending) = self.sending.get_mut(&from) else {
            return;
        };
        let Some(body_bytes) = sending.body_bytes else {
            return;
        };
        if sending.index != index || offset > body_bytes {
            return;
        }
        // Less than before: the receiver has begun anew, or asks again for what was lost.
        if offset < sending.confirmed || offset > sending.requested {
            sending.requested = offset;
        }
        sending.confirmed = offset;
        sending.until_ms = until_ms;
        if offset == body_bytes {
            // The answer to the append that follows shows that it is installed.
            return;
        }
        let window_bytes = WINDOW_CHUNKS * self.chunk_bytes as u64;
        while sending.requested < body_bytes && sending.requested < offset + window_bytes {
            let start = sending.requested;
            let bytes_max =
                (self.chunk_bytes).min(usize::try_from(body_bytes - start).unwrap_or(usize::MAX));
            sending.requested += bytes_max as u64;
            self.outputs.push_back(Output::ReadSnapshot {
                to: from,
                index,
                offset: start,
                bytes_max,
            });
        }
    }

    /// The receiver has entries through this one. If the leader knew that before it sent the snapshot, because the receiver has lost them
    /// since, the algorithm does not see that the snapshot has arrived.
    pub(super) fn sending_answered(&mut self, from: Sid, index: Index) {
        let progress = self.node.progress(from);
        let is_waiting = progress.is_some_and(|progress| progress.is_in_snapshot);
        if is_waiting && self.sending.get(&from).is_some_and(|it| it.index <= index) {
            self.sending.remove(&from);
            self.node.snapshot_sent(from, true);
        }
    }

    /// Gives up what makes no progress; the algorithm tries again.
    pub(super) fn sending_time(&mut self) {
        let now_ms = self.now_ms;
        let mut given_up = Vec::new();
        for (sid, sending) in &mut self.sending {
            let progress = self.node.progress(*sid);
            if progress.is_none_or(|progress| !progress.is_in_snapshot) {
                given_up.push((*sid, true));
            } else if sending.until_ms <= now_ms {
                given_up.push((*sid, false));
            }
        }
        for (sid, is_done) in given_up {
            self.sending.remove(&sid);
            if !is_done {
                self.node.snapshot_sent(sid, false);
            }
        }
    }

    /// Chunks to or from this peer may have been lost.
    pub(super) fn sending_interrupted(&mut self, sid: Sid) {
        if self.sending.remove(&sid).is_some() {
            self.node.snapshot_sent(sid, false);
        }
    }

    /// The file has another snapshot: what was under way of the old one is of no use.
    pub(super) fn sendings_restart(&mut self) {
        for sid in std::mem::take(&mut self.sending).into_keys() {
            self.node.snapshot_sent(sid, false);
        }
    }
}
