//! Snapshots between members: those being sent, the one being received, and the questions that an
//! installed one raises.
//!
//! | File | Owns |
//! |---|---|
//! | `sending.rs` | snapshots in flight to peers |
//! | `serving.rs` | which snapshot a member with a damaged file gets |
//! | `receiving.rs` | the snapshot in flight from the leader |
//! | `search.rs` | which entries are in the snapshot that was installed |
//! | `recent.rs` | the ids of recent entries, which answer that question |
//!
//! Invariant: a snapshot counts only once the file with it is in place and survives a crash.
//! `serving.rs` begins what `sending.rs` sends, and `search.rs` reads the ids of `recent.rs`;
//! otherwise the files do not know each other. They must not know elections, or of transactions
//! more than ids and outcomes.

pub(crate) mod receiving;
pub(crate) mod recent;
pub(crate) mod search;
pub(crate) mod sending;
pub(crate) mod serving;

use corvid_log::cluster::Index;

use receiving::Receiving;
use recent::Recent;
use search::Search;
use sending::Sending;
use serving::Serving;

/// Everything about snapshots between members.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) sending: Sending,
    pub(crate) serving: Serving,
    pub(crate) receiving: Receiving,
    pub(crate) search: Search,
    pub(crate) recent: Recent,
}

impl Snapshots {
    /// Starts with a file whose snapshot ends with this entry.
    pub(crate) fn new(base: Index) -> Snapshots {
        Snapshots {
            sending: Sending::new(),
            serving: Serving::default(),
            receiving: Receiving::default(),
            search: Search::default(),
            recent: Recent::new(base),
        }
    }
}
