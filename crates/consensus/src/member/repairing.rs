//! Healing a damaged file: the member asks for a snapshot that reaches the last entry that it may have acknowledged; the leader sends one,
//! after it has appended entries up to there, if it has fewer.
//!
//! ```text
//! damaged file --SnapshotRequest(last entry)--> leader: has its file such a snapshot? else it is written again
//!              <--SnapshotOffer, chunks-------- as to any member that is far behind
//! new file (snapshot, term and vote), swapped ---> a member like any other
//! ```
//!
//! Invariant: until the new file is in place the member sends nothing but requests and progress: it votes for nobody, acknowledges nothing,
//! and stands for no election. So no election can miss an entry that it acknowledged and lost, and the leader may go on counting it; afterwards
//! its log has everything that was committed with its help, and its file the term and vote that it had. A crash at any point begins again
//! with the damaged file, which is not written to. Why this is safe: docs/design/cluster.md.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use super::{Member, Output, Repeated};
use crate::entry::EntryBody;
use crate::message::{PeerMessage, SnapshotMeta};

/// Time between requests, ms.
const RETRY_MS: u64 = 1000;
/// Time without an offer after which the log says so, ms.
const OFFER_TIMEOUT_MS: u64 = 10_000;
/// Time between such lines, ms.
const WARN_MS: u64 = 60_000;
/// Time between snapshots that are made for damaged members, ms.
const SNAPSHOT_MS: u64 = 5000;

/// Entries without data that are appended at one request.
const FILL_MAX: u64 = 1000;

/// The file of this member is damaged.
#[derive(Debug)]
pub(super) struct Repairing {
    /// The last entry that it may have acknowledged.
    pub(super) last: (Term, Index),
    pub(super) next_ms: u64,
    warn_ms: u64,
}

impl Repairing {
    pub(super) fn new(last: (Term, Index), now_ms: u64) -> Repairing {
        Repairing {
            last,
            next_ms: now_ms,
            warn_ms: now_ms + OFFER_TIMEOUT_MS,
        }
    }
}

impl Member {
    /// The first line about it.
    pub(super) fn repair_began(&mut self) {
        if let Some(Repairing {
            last: (term, index),
            ..
        }) = self.repairing
        {
            let text = format!(
                "the file of this member is damaged: it does not vote, acknowledge or serve until its leader has sent it a snapshot through \
                 entry {term}:{index} or later. That happens by itself while a majority of the members runs with intact files"
            );
            self.log(Level::Warn, text);
        }
    }

    /// Asks for a snapshot, if it is time.
    pub(super) fn repairing_time(&mut self) {
        let Some(repairing) = &mut self.repairing else {
            return;
        };
        let (term, index) = repairing.last;
        let is_late = repairing.warn_ms <= self.now_ms && self.receiving.is_none();
        if is_late {
            repairing.warn_ms = self.now_ms + WARN_MS;
        }
        let is_due = repairing.next_ms <= self.now_ms;
        if is_due {
            repairing.next_ms = self.now_ms + RETRY_MS;
        }
        if is_late {
            let text = format!(
                "no leader offers a snapshot for the damaged file of this member, which waits for entry {term}:{index}: start the other \
                 members. If most of their files are damaged too, restore the database from a backup, or from the best file with \
                 \"ovsdb-tool cluster-to-standalone\", and make a new cluster of it"
            );
            self.log(Level::Warn, text);
        }
        if is_due {
            let message = PeerMessage::SnapshotRequest {
                term: self.node.term(),
                last_index: index,
                last_term: term,
                address: self.settings.address.clone(),
                name: self.settings.name.clone(),
            };
            let peers = self.peers.iter().filter(|(_, peer)| peer.is_up);
            let up: Vec<Sid> = peers.map(|(sid, _)| *sid).collect();
            for sid in up {
                self.send(sid, message.clone());
            }
        }
    }

    /// Whether a message is for a member whose file is damaged: it takes no part in the algorithm.
    pub(super) fn is_heeded(&self, message: &PeerMessage) -> bool {
        self.repairing.is_none()
            || matches!(
                message,
                PeerMessage::SnapshotOffer { .. }
                    | PeerMessage::SnapshotChunk { .. }
                    | PeerMessage::NotMember { .. }
            )
    }

    /// Whether a snapshot has everything that this member may have acknowledged.
    pub(super) fn is_enough(&self, meta: &SnapshotMeta) -> bool {
        let repairing = self.repairing.as_ref();
        repairing.is_none_or(|repairing| (meta.term, meta.index) >= repairing.last)
    }

    /// The damaged file is replaced.
    pub(super) fn repaired(&mut self, index: Index) {
        if self.repairing.take().is_some() {
            let text = format!(
                "the damaged file of this member is replaced by a snapshot through entry {index}: it takes part in its cluster again"
            );
            self.log(Level::Warn, text);
        }
    }

    /// A member with a damaged file asks for a snapshot.
    pub(super) fn snapshot_requested(
        &mut self,
        from: Sid,
        term: Term,
        last: (Term, Index),
        address: &str,
        name: &str,
    ) {
        // A follower that knows of a removal tells too: the leader may be a server that this one has never heard of.
        if self.tell_not_member(from) || self.announced_term().is_none() {
            return;
        }
        // Damage may have changed its identity.
        if self.membership.address(from) != Some(address) || name != self.settings.name {
            let text = format!(
                "a server with a damaged file says that it is {from} at {address} with database {name}, which is not in this cluster"
            );
            return self.log_repeated(Level::Warn, Repeated::Stranger, text);
        }
        self.peers.entry(from).or_default().is_damaged = true;
        if term > self.node.term() {
            // As with any message of a later term: its promises hold for the next leader only.
            let commit = Index(0);
            return self
                .node
                .step(from, PeerMessage::HeartbeatReply { term, commit });
        }
        let (index, snapshot_term, _) = self.snapshot;
        let progress = self.node.progress(from);
        if (snapshot_term, index) >= last {
            let is_under_way = progress.is_some_and(|progress| progress.is_in_snapshot)
                && self.sending.contains_key(&from);
            if !is_under_way {
                self.node.begin_snapshot(from, index);
            }
            return;
        }
        // The snapshot in the file is too old: the part that was sent is of no use.
        self.sending_interrupted(from);
        self.fill_log_through(last);
        let reached = self.node.term_of(self.applied);
        let is_reached = reached.is_some_and(|term| (term, self.applied) >= last);
        if is_reached && self.next_snapshot_ms <= self.now_ms && self.file.rewriting.is_none() {
            self.next_snapshot_ms = self.now_ms + SNAPSHOT_MS;
            let text = format!(
                "making a snapshot for server {}, whose file is damaged",
                self.name_of(from)
            );
            self.log(Level::Info, text);
            self.outputs.push_back(Output::MakeSnapshot);
        }
    }
    /// The end of a damaged file may have room for more entries of this term than the leader has made. In an idle cluster they would never
    /// come, so it appends that many without data.
    fn fill_log_through(&mut self, (term, index): (Term, Index)) {
        let end = self.node.last_index();
        if self.node.term_of(end) == Some(term) && end < index {
            let count = (index.0 - end.0).min(FILL_MAX);
            let empty = std::iter::repeat_with(EntryBody::empty);
            // If it is not accepted now, the next request tries again.
            let _ = self
                .node
                .propose(empty.take(usize::try_from(count).unwrap_or(1)).collect());
        }
    }
}
