//! Snapshots on their way to peers that need entries from before the log: the body is read from
//! this member's own file, in chunks.
//!
//! The receiver reports how much it has, and the chunks in flight beyond that are bounded.
//! Heartbeats, and entries for other peers, are sent in the meantime.
//!
//! Invariant: at most one per peer, and always the snapshot that the file has now. The algorithm
//! waits for each, so it is told when one has arrived or was abandoned.

use std::collections::BTreeMap;

use bytes::Bytes;
use corvid_log::cluster::{Index, Sid, Term};
use corvid_log::storage::StoreError;
use corvid_rpc::Level;

use crate::member::Output;
use crate::member::context::Context;
use crate::member::disk::StoredSnapshot;
use crate::member::roster::Roster;
use crate::message::{CHUNK_BYTES_MAX, PeerMessage, SnapshotMeta};

/// Maximum number of chunks that are read or sent but not confirmed.
const WINDOW_CHUNKS: u64 = 4;

/// The sending side of snapshot transfers.
#[derive(Debug)]
pub(crate) struct Sending {
    shipments: BTreeMap<Sid, Shipment>,
    chunk_bytes: usize,
}

/// A snapshot on its way to a peer.
#[derive(Debug)]
struct Shipment {
    index: Index,
    /// Length of the body, once known.
    body_bytes: Option<u64>,
    /// Bytes confirmed by the receiver.
    confirmed: u64,
    /// Bytes read or being read.
    requested: u64,
    /// When to abandon the transfer, unless there is progress first.
    until_ms: u64,
}

/// A part of the body that was read from the file.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: Index,
    pub(crate) offset: u64,
    /// The length of the whole body, and the bytes.
    pub(crate) bytes: Result<(u64, Bytes), StoreError>,
}

impl Sending {
    pub(crate) fn new() -> Sending {
        Sending {
            shipments: BTreeMap::new(),
            chunk_bytes: CHUNK_BYTES_MAX,
        }
    }

    /// Sets the size of chunks, at most [`CHUNK_BYTES_MAX`].
    pub(crate) fn set_chunk_bytes(&mut self, bytes: usize) {
        self.chunk_bytes = bytes.clamp(1, CHUNK_BYTES_MAX);
    }

    /// The algorithm wants to send the file's snapshot to a peer.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        snapshot: StoredSnapshot,
        timer_ms: u64,
        to: Sid,
    ) {
        let StoredSnapshot { index, term, .. } = snapshot;
        let text = format!(
            "sending snapshot to server {}, {term}:{index}.",
            roster.name_of(to)
        );
        cx.log(Level::Info, text);
        let shipment = Shipment {
            index,
            body_bytes: None,
            confirmed: 0,
            requested: 0,
            until_ms: deadline_ms(cx, timer_ms),
        };
        self.shipments.insert(to, shipment);
        // An empty read returns the length of the body.
        cx.put(Output::ReadSnapshot {
            to,
            index,
            offset: 0,
            bytes_max: 0,
        });
    }

    /// A part of the body has been read. `meta` yields the snapshot's metadata, without the length
    /// of its body.
    pub(crate) fn hear_file(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        to: Sid,
        part: Part,
        meta: impl FnOnce() -> Option<SnapshotMeta>,
    ) {
        let is_wanted = |it: &&mut Shipment| it.index == part.index && cx.node.is_leader();
        let Some(shipment) = self.shipments.get_mut(&to).filter(is_wanted) else {
            return;
        };
        let (body_bytes, bytes) = match part.bytes {
            Ok(read) => read,
            Err(error) => {
                self.shipments.remove(&to);
                // The algorithm sends this peer nothing until the transfer has ended, so it must
                // learn of the failure.
                cx.node.snapshot_sent(to, false);
                let text = format!(
                    "the snapshot for server {} cannot be read ({}: {})",
                    roster.name_of(to),
                    error.details,
                    error.io_error
                );
                return cx.log(Level::Warn, text);
            }
        };
        let term = cx.node.term();
        // The first read returned no bytes, but the length of the body, which the offer states.
        if shipment.body_bytes.is_none() {
            shipment.body_bytes = Some(body_bytes);
            if let Some(meta) = meta() {
                let snapshot = SnapshotMeta { body_bytes, ..meta };
                cx.send(to, PeerMessage::SnapshotOffer { term, snapshot });
            }
            return;
        }
        if !bytes.is_empty() {
            let message = PeerMessage::SnapshotChunk {
                term,
                index: part.index,
                offset: part.offset,
                bytes,
            };
            cx.send(to, message);
        }
    }

    /// The receiver reports how many bytes it has.
    pub(crate) fn hear_progress(
        &mut self,
        cx: &mut Context,
        timer_ms: u64,
        from: Sid,
        term: Term,
        (index, offset): (Index, u64),
    ) {
        if term != cx.node.term() || !cx.node.is_leader() {
            return;
        }
        let Some(shipment) = self.shipments.get_mut(&from) else {
            return;
        };
        let Some(body_bytes) = shipment.body_bytes else {
            return;
        };
        if shipment.index != index || offset > body_bytes {
            return;
        }
        // Fewer than before: the receiver has started over, or asks again for lost chunks.
        if offset < shipment.confirmed || offset > shipment.requested {
            shipment.requested = offset;
        }
        shipment.confirmed = offset;
        shipment.until_ms = deadline_ms(cx, timer_ms);
        if offset == body_bytes {
            // Everything has arrived. The answer to the next append shows that it is installed.
            return;
        }
        let window_bytes = WINDOW_CHUNKS * self.chunk_bytes as u64;
        while shipment.requested < body_bytes && shipment.requested < offset + window_bytes {
            let start = shipment.requested;
            let bytes_max =
                (self.chunk_bytes).min(usize::try_from(body_bytes - start).unwrap_or(usize::MAX));
            shipment.requested += bytes_max as u64;
            cx.put(Output::ReadSnapshot {
                to: from,
                index,
                offset: start,
                bytes_max,
            });
        }
        assert!(
            shipment.requested <= body_bytes
                && shipment.requested - offset <= window_bytes + self.chunk_bytes as u64,
            "{} of {body_bytes} bytes are requested, {offset} confirmed",
            shipment.requested
        );
    }

    /// The receiver has stored entries up to this one. If it had lost entries that the leader
    /// already counted, the algorithm does not notice by itself that the snapshot has arrived.
    pub(crate) fn hear_stored(&mut self, cx: &mut Context, from: Sid, index: Index) {
        let progress = cx.node.progress(from);
        let is_waiting = progress.is_some_and(|progress| progress.is_in_snapshot);
        if is_waiting
            && self
                .shipments
                .get(&from)
                .is_some_and(|it| it.index <= index)
        {
            self.shipments.remove(&from);
            cx.node.snapshot_sent(from, true);
        }
    }

    /// Abandons transfers without progress; the algorithm tries again.
    pub(crate) fn give_up_late(&mut self, cx: &mut Context) {
        let now_ms = cx.now_ms;
        let mut given_up = Vec::new();
        for (sid, shipment) in &self.shipments {
            let progress = cx.node.progress(*sid);
            if progress.is_none_or(|progress| !progress.is_in_snapshot) {
                given_up.push((*sid, true));
            } else if shipment.until_ms <= now_ms {
                given_up.push((*sid, false));
            }
        }
        for (sid, is_done) in given_up {
            self.shipments.remove(&sid);
            if !is_done {
                cx.node.snapshot_sent(sid, false);
            }
        }
    }

    /// Chunks to or from this peer may have been lost.
    pub(crate) fn interrupt(&mut self, cx: &mut Context, sid: Sid) {
        if self.shipments.remove(&sid).is_some() {
            cx.node.snapshot_sent(sid, false);
        }
    }

    /// The file has another snapshot: parts of the old one are unusable.
    pub(crate) fn restart(&mut self, cx: &mut Context) {
        for sid in std::mem::take(&mut self.shipments).into_keys() {
            cx.node.snapshot_sent(sid, false);
        }
    }

    /// This member no longer leads: the algorithm has forgotten which peers need a snapshot.
    pub(crate) fn clear(&mut self) {
        self.shipments.clear();
    }

    /// This server is no longer a member.
    pub(crate) fn forget_peer(&mut self, sid: Sid) {
        self.shipments.remove(&sid);
    }

    /// Whether a snapshot is being sent to this peer.
    pub(crate) fn is_to(&self, sid: Sid) -> bool {
        self.shipments.contains_key(&sid)
    }

    /// Number of bytes that this peer has confirmed.
    pub(crate) fn confirmed(&self, sid: Sid) -> u64 {
        self.shipments.get(&sid).map_or(0, |it| it.confirmed)
    }

    /// Bytes that this peer has confirmed, and the length of the body.
    pub(crate) fn progress(&self, sid: Sid) -> Option<(u64, u64)> {
        let shipment = self.shipments.get(&sid)?;
        Some((shipment.confirmed, shipment.body_bytes?))
    }
}

/// When a transfer that makes progress now is abandoned, if it makes none later.
fn deadline_ms(cx: &Context, timer_ms: u64) -> u64 {
    cx.now_ms + 5000 + 4 * timer_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture::{self, sid};
    use corvid_data::Uuid;
    use corvid_log::cluster::Eid;

    const SNAPSHOT: StoredSnapshot = StoredSnapshot {
        index: Index(8),
        term: Term(2),
        eid: Eid(Uuid([8; 16])),
    };

    /// Offsets of the parts that are to be read.
    fn take_reads(cx: &mut Context) -> Vec<u64> {
        let outputs = std::iter::from_fn(|| cx.outbox.take());
        let reads = outputs.filter_map(|output| match output {
            Output::ReadSnapshot { offset, .. } => Some(offset),
            _ => None,
        });
        reads.collect()
    }

    #[test]
    fn no_more_than_a_window_is_read_ahead_of_the_receiver() {
        let mut cx = fixture::leader();
        let roster = Roster::new(None, Vec::new(), None, 0);
        let mut sending = Sending::new();
        sending.set_chunk_bytes(10);
        sending.begin(&mut cx, &roster, SNAPSHOT, 1000, sid(2));
        assert_eq!(take_reads(&mut cx), [0], "it asks for the length");
        let part = Part {
            index: Index(8),
            offset: 0,
            bytes: Ok((95, Bytes::new())),
        };
        sending.hear_file(&mut cx, &roster, sid(2), part, || None);
        let term = cx.node.term();
        let mut hear = |cx: &mut Context, offset| {
            let at = (Index(8), offset);
            sending.hear_progress(cx, 1000, sid(2), term, at);
            take_reads(cx)
        };
        assert_eq!(hear(&mut cx, 0), [0, 10, 20, 30]);
        assert_eq!(hear(&mut cx, 10), [40]);
        assert_eq!(hear(&mut cx, 40), [50, 60, 70]);
        assert_eq!(hear(&mut cx, 20), [20, 30, 40, 50], "it asks again");
        assert_eq!(hear(&mut cx, 60), [60, 70, 80, 90]);
        assert!(hear(&mut cx, 96).is_empty(), "past the end");
        assert!(hear(&mut cx, 95).is_empty());
        assert_eq!(sending.progress(sid(2)), Some((95, 95)));
    }
}
