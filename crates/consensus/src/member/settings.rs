//! The identity of a member, and its state as its file has it when the member starts.

use corvid_log::cluster::{Cid, Entry, Index, Servers, Sid, Term, Unfit};
use corvid_log::storage::LogPosition;

use crate::message::SnapshotMeta;

/// The identity of a member, and limits. They never change while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The member's id.
    pub sid: Sid,
    /// The name of the database, which is that of its schema.
    pub name: String,
    /// Where the other members reach this one.
    pub address: String,
    /// Entries that stay in memory when a snapshot in the file includes them.
    pub kept: KeptEntries,
}

/// How many entries stay in memory when a snapshot in the file includes them: those before its end, for peers that lack no more than these. A peer
/// that lacks more gets the whole snapshot. The file has the snapshot alone, so nothing is kept when the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptEntries {
    /// At most so many.
    pub count_max: usize,
    /// At most so many bytes of them.
    pub bytes_max: u64,
}

impl KeptEntries {
    /// Those of a second or so of many small commits.
    pub const DEFAULT: KeptEntries = KeptEntries {
        count_max: 65_536,
        bytes_max: 16 * 1024 * 1024,
    };
    /// None.
    pub const NONE: KeptEntries = KeptEntries {
        count_max: 0,
        bytes_max: 0,
    };
}

/// The promises of a member whose file is damaged, beside term and vote.
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
    /// The cluster's id, if it is known.
    pub cid: Option<Cid>,
    /// The servers to ask for admission, while the file is that of a joining server; empty otherwise.
    pub remote_addresses: Vec<String>,
    /// The snapshot in the header; `None` only while joining.
    pub snapshot: Option<SnapshotMeta>,
    /// The highest term in any record; 0 if none has one.
    pub term: Term,
    /// The vote in that term.
    pub vote: Option<Sid>,
    /// The last entry that is known to be committed: the database has been loaded through this one.
    pub commit: Index,
    /// The entries after the snapshot, also those after `commit`.
    pub entries: Vec<Entry>,
    /// The file is damaged: nothing but these promises is known of the log, and the leader must send a snapshot. There is neither a
    /// snapshot nor an entry then.
    pub repair: Option<Repair>,
    /// The member was found to be unfit to take part, and why.
    pub unfit: Option<(Unfit, String)>,
    /// The position of the last request that the file has had; [`LogPosition::OPENING`] when it was just opened.
    pub position: LogPosition,
}
