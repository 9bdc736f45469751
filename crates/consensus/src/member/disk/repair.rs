//! Healing a damaged file. The member asks for a snapshot that reaches the last entry it may have
//! acknowledged. The leader sends one; if its own log is shorter, it first appends entries up to
//! there.
//!
//! ```text
//! damaged file --SnapshotRequest(last entry)--> leader: does its file have such a snapshot?
//!                                                       If not, it rewrites the file.
//!              <--SnapshotOffer, chunks-------- as to any member that is far behind
//! new file (snapshot, term and vote), swapped ---> a member like any other
//! ```
//!
//! Invariant: until the new file is in place, the member sends nothing but requests and progress.
//! It votes for nobody, acknowledges nothing, and does not stand for election. So no election can
//! miss an entry that it acknowledged and lost, and the leader may keep counting that entry.
//! Afterwards its log has everything that was committed with its help, and its file has the term
//! and vote that it had. The damaged file is never written to, so after a crash at any point the
//! repair starts over. docs/internals/cluster.md explains why this is safe.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use crate::member::context::Context;
use crate::message::{PeerMessage, SnapshotMeta};

/// Time between requests, ms.
const RETRY_MS: u64 = 1000;
/// Time without an offer after which the log reports it, ms.
const OFFER_TIMEOUT_MS: u64 = 10_000;
/// Time between such log lines, ms.
const WARN_MS: u64 = 60_000;

/// The repair of this member's damaged file.
#[derive(Debug)]
pub(crate) struct Repair {
    /// The last entry that the member may have acknowledged.
    last: (Term, Index),
    next_ms: u64,
    warn_ms: u64,
}

impl Repair {
    /// `last`: the last entry that the member may have acknowledged.
    pub(crate) fn new(last: (Term, Index), now_ms: u64) -> Repair {
        Repair {
            last,
            next_ms: now_ms,
            warn_ms: now_ms + OFFER_TIMEOUT_MS,
        }
    }

    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Logs the beginning of the repair.
    pub(crate) fn log_begin(&self, cx: &mut Context) {
        let (term, index) = self.last;
        let text = format!(
            "the file of this member is damaged: it does not vote, acknowledge or serve until its leader \
             has sent it a snapshot through entry {term}:{index} or later. This is automatic while a \
             majority of the members is running with intact files"
        );
        cx.log(Level::Warn, text);
    }

    /// Asks for a snapshot at once, because a connection is up.
    pub(crate) fn ask_now(&mut self, cx: &mut Context, is_receiving: bool) {
        self.next_ms = cx.now_ms;
        self.ask(cx, is_receiving);
    }

    /// Asks for a snapshot, if it is time. `is_receiving`: a snapshot is already arriving.
    pub(crate) fn ask(&mut self, cx: &mut Context, is_receiving: bool) {
        let (term, index) = self.last;
        if self.warn_ms <= cx.now_ms && !is_receiving {
            self.warn_ms = cx.now_ms + WARN_MS;
            let text = format!(
                "no leader offers a snapshot for the damaged file of this member, which waits for entry \
                 {term}:{index}: start the other members. If most of their files are damaged too, restore \
                 the database from a backup, or from the best file with \"ovsdb-tool \
                 cluster-to-standalone\", and create a new cluster from it"
            );
            cx.log(Level::Warn, text);
        }
        if self.next_ms > cx.now_ms {
            return;
        }
        self.next_ms = cx.now_ms + RETRY_MS;
        let message = PeerMessage::SnapshotRequest {
            term: cx.node.term(),
            last_index: index,
            last_term: term,
            address: cx.settings.address.clone(),
            name: cx.settings.name.clone(),
        };
        let up: Vec<Sid> = cx.peers.connected().collect();
        for sid in up {
            cx.send(sid, message.clone());
        }
    }

    /// Whether a snapshot has everything that the member may have acknowledged.
    pub(crate) fn is_enough(&self, meta: &SnapshotMeta) -> bool {
        (meta.term, meta.index) >= self.last
    }

    /// The damaged file has been replaced by a snapshot up to this entry.
    pub(crate) fn complete(self, cx: &mut Context, index: Index) {
        let text = format!(
            "a snapshot through entry {index} has replaced the damaged file of this member, which takes part \
             in its cluster again"
        );
        cx.log(Level::Warn, text);
    }
}

/// Whether a member with a damaged file handles this message. It takes no part in the algorithm.
pub(crate) fn concerns_repair(message: &PeerMessage) -> bool {
    matches!(
        message,
        PeerMessage::SnapshotOffer { .. }
            | PeerMessage::SnapshotChunk { .. }
            | PeerMessage::NotMember { .. }
    )
}
