//! Healing a damaged file: the member asks for a snapshot that reaches the last entry that it may
//! have acknowledged; the leader sends one, after it has appended entries up to there, if it has
//! fewer.
//!
//! ```text
//! damaged file --SnapshotRequest(last entry)--> leader: has its file such a snapshot? else it is written again
//!              <--SnapshotOffer, chunks-------- as to any member that is far behind
//! new file (snapshot, term and vote), swapped ---> a member like any other
//! ```
//!
//! Invariant: until the new file is in place the member sends nothing but requests and progress: it
//! votes for nobody, acknowledges nothing, and stands for no election. So no election can miss an
//! entry that it acknowledged and lost, and the leader may go on counting it; afterwards its log
//! has everything that was committed with its help, and its file the term and vote that it had. A
//! crash at any point begins again with the damaged file, which is not written to. Why this is
//! safe: docs/internals/cluster.md.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use crate::member::context::Context;
use crate::message::{PeerMessage, SnapshotMeta};

/// Time between requests, ms.
const RETRY_MS: u64 = 1000;
/// Time without an offer after which the log says so, ms.
const OFFER_TIMEOUT_MS: u64 = 10_000;
/// Time between such lines, ms.
const WARN_MS: u64 = 60_000;

/// The file of this member is damaged.
#[derive(Debug)]
pub(crate) struct Repair {
    /// The last entry that it may have acknowledged.
    last: (Term, Index),
    next_ms: u64,
    warn_ms: u64,
}

impl Repair {
    /// `last`: the last entry that this member may have acknowledged.
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

    /// The first line about it.
    pub(crate) fn log_begin(&self, cx: &mut Context) {
        let (term, index) = self.last;
        let text = format!(
            "the file of this member is damaged: it does not vote, acknowledge or serve until its leader has sent it a snapshot through \
             entry {term}:{index} or later. That happens by itself while a majority of the members runs with intact files"
        );
        cx.log(Level::Warn, text);
    }

    /// Asks for a snapshot at once: a connection is there.
    pub(crate) fn ask_now(&mut self, cx: &mut Context, is_receiving: bool) {
        self.next_ms = cx.now_ms;
        self.ask(cx, is_receiving);
    }

    /// Asks for a snapshot, if it is time. `is_receiving`: one is on its way.
    pub(crate) fn ask(&mut self, cx: &mut Context, is_receiving: bool) {
        let (term, index) = self.last;
        if self.warn_ms <= cx.now_ms && !is_receiving {
            self.warn_ms = cx.now_ms + WARN_MS;
            let text = format!(
                "no leader offers a snapshot for the damaged file of this member, which waits for entry {term}:{index}: start the other \
                 members. If most of their files are damaged too, restore the database from a backup, or from the best file with \
                 \"ovsdb-tool cluster-to-standalone\", and make a new cluster of it"
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

    /// Whether a snapshot has everything that this member may have acknowledged.
    pub(crate) fn is_enough(&self, meta: &SnapshotMeta) -> bool {
        (meta.term, meta.index) >= self.last
    }

    /// The damaged file is replaced by a snapshot through this entry.
    pub(crate) fn complete(self, cx: &mut Context, index: Index) {
        let text = format!(
            "the damaged file of this member is replaced by a snapshot through entry {index}: it takes part in its cluster again"
        );
        cx.log(Level::Warn, text);
    }
}

/// Whether a member whose file is damaged handles this message: it takes no part in the algorithm.
pub(crate) fn concerns_repair(message: &PeerMessage) -> bool {
    matches!(
        message,
        PeerMessage::SnapshotOffer { .. }
            | PeerMessage::SnapshotChunk { .. }
            | PeerMessage::NotMember { .. }
    )
}
