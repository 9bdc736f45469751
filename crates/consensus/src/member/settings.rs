//! A member's identity, and its state as its file holds it at the start.

use corvid_log::cluster::{Cid, Entry, Index, Servers, Sid, Term, Unfit};
use corvid_log::storage::LogPosition;

use crate::message::SnapshotMeta;

/// The identity of a member, and limits. Constant while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The member's id.
    pub sid: Sid,
    /// The name of the database and of its schema.
    pub name: String,
    /// The address at which other members reach this one.
    pub address: String,
    /// Entries that stay in memory although the file's snapshot includes them.
    pub kept: KeptEntries,
}

/// Limits on the entries that stay in memory although the file's snapshot includes them: the last
/// ones before the snapshot's end, for peers that lack no more than these. A peer that lacks more
/// gets the whole snapshot. The file has only the snapshot, so the entries are gone when the
/// process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptEntries {
    /// Maximum number of entries.
    pub count_max: usize,
    /// Maximum bytes of entries.
    pub bytes_max: u64,
}

impl KeptEntries {
    /// About one second of many small commits.
    pub const DEFAULT: KeptEntries = KeptEntries {
        count_max: 65_536,
        bytes_max: 16 * 1024 * 1024,
    };
    /// Keep no entries.
    pub const NONE: KeptEntries = KeptEntries {
        count_max: 0,
        bytes_max: 0,
    };
}

/// The promises of a member whose file is damaged, besides term and vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The members of the cluster, this one included.
    pub servers: Servers,
    /// Term and position of the last entry that the member may have acknowledged.
    pub last: (Term, Index),
    /// The election timer, ms.
    pub election_timer_ms: u64,
}

/// The contents of a member's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The cluster's id, if known.
    pub cid: Option<Cid>,
    /// While joining, the servers to ask for admission; empty otherwise.
    pub remote_addresses: Vec<String>,
    /// The snapshot in the header; `None` only while joining.
    pub snapshot: Option<SnapshotMeta>,
    /// The highest term in any record; 0 if none has one.
    pub term: Term,
    /// The vote in that term.
    pub vote: Option<Sid>,
    /// The last entry known to be committed: the database has been loaded up to it.
    pub commit: Index,
    /// The entries after the snapshot, including those after `commit`.
    pub entries: Vec<Entry>,
    /// Set if the file is damaged: only these promises are known of the log, and the leader must
    /// send a snapshot. There is neither a snapshot nor an entry then.
    pub repair: Option<Repair>,
    /// Set if the member was found unfit to take part: how, and the details.
    pub unfit: Option<(Unfit, String)>,
    /// The position of the last request that the file has received; [`LogPosition::OPENING`] if it
    /// was just opened.
    pub position: LogPosition,
}
