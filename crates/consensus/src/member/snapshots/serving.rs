//! Snapshots for members with damaged files: the leader's side of [`crate::member::disk::repair`].
//!
//! Invariant: the snapshot that is sent has every entry that the damaged member may have
//! acknowledged, because the leader appends entries and compacts its file until one does. The
//! leader itself lacks none of them: a majority without the damaged member elected it.

use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use super::sending::Sending;
use crate::entry::EntryBody;
use crate::member::context::Context;
use crate::member::disk::StoredSnapshot;
use crate::member::roster::Roster;
use crate::member::{Output, Repeated};
use crate::message::PeerMessage;

/// Minimum time between snapshots made for damaged members, ms.
const SNAPSHOT_MS: u64 = 5000;

/// Maximum number of entries without data that are appended per request.
const FILL_MAX: u64 = 1000;

/// The request of a member with a damaged file.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) term: Term,
    /// The last entry that it may have acknowledged.
    pub(crate) last: (Term, Index),
    pub(crate) address: &'a str,
    pub(crate) name: &'a str,
}

/// The snapshot of this member's file, and how far the next one would reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stock {
    pub(crate) snapshot: StoredSnapshot,
    /// The last entry that the database has applied; a new snapshot would end there.
    pub(crate) applied: Index,
    /// Whether a new file is being written.
    pub(crate) is_rewriting: bool,
}

/// Makes and sends snapshots for members with damaged files.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    /// No snapshot is made for a damaged member before this time.
    next_ms: u64,
}

impl Serving {
    /// Handles a request for a snapshot from a member with a damaged file.
    pub(crate) fn serve(
        &mut self,
        cx: &mut Context,
        roster: &Roster,
        sending: &mut Sending,
        stock: Stock,
        from: Sid,
        request: &Request<'_>,
    ) {
        let Request { address, name, .. } = request;
        // The damage may have changed its identity.
        if roster.address(from) != Some(*address) || *name != cx.settings.name {
            let text = format!(
                "a server with a damaged file says that it is {from} at {address} with database {name}, which is not in this cluster"
            );
            return cx.log_repeated(Level::Warn, Repeated::Stranger, text);
        }
        cx.peers.set_damaged(from, true);
        if request.term > cx.node.term() {
            // As with any message of a later term, this leader steps down. The next leader serves
            // the member.
            let (term, commit) = (request.term, Index(0));
            return cx
                .node
                .step(from, PeerMessage::HeartbeatReply { term, commit });
        }
        let snapshot = stock.snapshot;
        if (snapshot.term, snapshot.index) >= request.last {
            let progress = cx.node.progress(from);
            let is_under_way =
                progress.is_some_and(|progress| progress.is_in_snapshot) && sending.is_to(from);
            if !is_under_way {
                cx.node.begin_snapshot(from, snapshot.index);
            }
            return;
        }
        // The file's snapshot is too old, so the part that was sent is unusable.
        sending.interrupt(cx, from);
        fill_log_through(cx, request.last);
        let reached = cx.node.term_of(stock.applied);
        let is_reached = reached.is_some_and(|term| (term, stock.applied) >= request.last);
        if is_reached && self.next_ms <= cx.now_ms && !stock.is_rewriting {
            self.next_ms = cx.now_ms + SNAPSHOT_MS;
            let text = format!(
                "making a snapshot for server {}, whose file is damaged",
                roster.name_of(from)
            );
            cx.log(Level::Info, text);
            cx.put(Output::MakeSnapshot);
        }
    }
}

/// Appends entries without data up to this position. The damaged part of a file may have held more
/// entries of this term than the leader has made, and in an idle cluster they would never come.
fn fill_log_through(cx: &mut Context, (term, index): (Term, Index)) {
    let end = cx.node.last_index();
    if cx.node.term_of(end) == Some(term) && end < index {
        let count = (index.0 - end.0).min(FILL_MAX);
        let empty = std::iter::repeat_with(EntryBody::empty);
        // If the proposal is not accepted now, the next request tries again.
        let _ = cx
            .node
            .propose(empty.take(usize::try_from(count).unwrap_or(1)).collect());
    }
}
