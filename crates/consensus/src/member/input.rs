//! The inputs of a member.

use bytes::Bytes;
use corvid_log::cluster::{Cid, Eid, Index, Sid};
use corvid_log::storage::{StorageReply, StoreError};

use crate::database::MemberRequest;
use crate::message::PeerMessage;

/// An input of a member.
#[derive(Debug)]
pub enum Input {
    /// Time has passed ([`Member::deadline_ms`](super::Member::deadline_ms)).
    Time,
    /// A request of the database.
    Database(MemberRequest),
    /// A message from another member.
    Peer {
        /// The sender, whose identity has been verified.
        from: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// Messages can be sent to this peer now. Repeated when a new connection replaces an old one,
    /// on which messages may have been lost.
    PeerUp(Sid),
    /// Messages can no longer be sent to this peer; those in flight may be lost.
    PeerDown(Sid),
    /// No connection to this peer exists, and its address refuses new ones: its process is gone.
    /// Only a hint: votes do not depend on it.
    PeerRefused(Sid),
    /// A peer has announced the id of the cluster that this server is joining.
    LearnedCluster(Cid),
    /// The answer to requests of [`Output::Store`](super::Output::Store).
    Storage(StorageReply),
    /// A sync of the file has failed, so nothing more can be appended to it. Reported after the
    /// reply with the error.
    FilePoisoned,
    /// Bytes of the file have changed on the disk, while the process still has all of its content
    /// in memory.
    FileDamaged,
    /// The answer to [`Output::ReadSnapshot`](super::Output::ReadSnapshot).
    SnapshotRead {
        /// As requested.
        to: Sid,
        /// As requested.
        index: Index,
        /// As requested.
        offset: u64,
        /// The length of the whole body, and the bytes: as many as requested, fewer only at the end
        /// of the body. An error if the file has another snapshot by now.
        bytes: Result<(u64, Bytes), StoreError>,
    },
    /// The answer to [`Output::WriteSnapshot`](super::Output::WriteSnapshot).
    SnapshotWritten {
        /// As requested.
        index: Index,
        /// Where the written bytes end, or why they were not written; the new file is gone in that
        /// case.
        end: Result<u64, StoreError>,
    },
    /// The answer to [`Output::InstallSnapshot`](super::Output::InstallSnapshot).
    SnapshotInstalled {
        /// As requested.
        index: Index,
        /// Success: the file is in place and survives a crash. Error: the old file is still there.
        outcome: Result<(), StoreError>,
    },
    /// The database has made a snapshot of itself, from which a new file should be written. For
    /// callers that keep the contents themselves, instead of [`MemberRequest::Snapshot`]. The
    /// caller keeps the contents until [`Output::Rewrite`](super::Output::Rewrite) asks to write
    /// them, or until they are rejected.
    SnapshotMade {
        /// The last entry that the snapshot includes: the database has applied this one and none
        /// after it.
        index: Index,
        /// The last entry with data that it includes.
        eid: Eid,
    },
    /// An operator's command.
    Command {
        /// Repeated in [`Output::CommandDone`](super::Output::CommandDone).
        token: CommandToken,
        /// The command.
        command: Command,
    },
}

/// Names a command in flight; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandToken(pub u64);

/// The operators' commands that a member executes (docs/spec/distribution.md 1.5, 1.10 and 1.12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `cluster/change-election-timer`; ms. Text that is not a number counts as 0.
    ChangeElectionTimer(u64),
    /// `cluster/transfer-leadership` to this server (an address or the beginning of an id), or to
    /// any.
    TransferLeadership(Option<String>),
    /// `cluster/leave`.
    Leave,
    /// `cluster/kick`: an exact address or the beginning of an id.
    Kick(String),
    /// `cluster/failure-test`, for the failures that the member itself provokes.
    Rehearse(Rehearsal),
    /// The process is exiting or the database is being removed: transfer the leadership. Done when
    /// another member leads, when no transfer is possible, or after an election timer.
    Shutdown,
}

/// A provoked failure (`cluster/failure-test`, docs/spec/distribution.md 1.12). A new one replaces
/// the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rehearsal {
    /// No failure.
    #[default]
    None,
    /// Extend election timeouts by one election timer, including the current one.
    DelayElections,
    /// Stand for election now, unless this member leads. The previous rehearsal continues.
    ForceElection,
    /// The next time this member, as leader, starts to add a server, it transfers the leadership.
    TransferAfterStartingToAdd,
    /// Transfer the leadership now, if this member leads. The previous rehearsal continues.
    Transfer,
}
