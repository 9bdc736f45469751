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
    /// From the database.
    Database(MemberRequest),
    /// From another member.
    Peer {
        /// The sender, whose identity has been checked.
        from: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// Messages can be sent to this peer now. Repeated when a new connection replaces an old one, on which messages may have been lost.
    PeerUp(Sid),
    /// Messages cannot be sent to this peer any more; those under way may be lost.
    PeerDown(Sid),
    /// There is no connection with this peer, and its address refuses new ones: its process is gone. Only a hint: votes do not depend on it.
    PeerRefused(Sid),
    /// A peer has told the id of the cluster that this server is joining.
    LearnedCluster(Cid),
    /// The answer to requests of [`Output::Store`](super::Output::Store).
    Storage(StorageReply),
    /// A sync of the file has failed, so nothing can be appended to it any more; reported after the reply with the error.
    FilePoisoned,
    /// Bytes of the file were found to have changed, while the process knows everything that it should hold.
    FileDamaged,
    /// The answer to [`Output::ReadSnapshot`](super::Output::ReadSnapshot).
    SnapshotRead {
        /// As requested.
        to: Sid,
        /// As requested.
        index: Index,
        /// As requested.
        offset: u64,
        /// The length of the whole body, and the bytes: as many as requested, fewer only at the end of the body. An error when the file has
        /// another snapshot by now.
        bytes: Result<(u64, Bytes), StoreError>,
    },
    /// The answer to [`Output::WriteSnapshot`](super::Output::WriteSnapshot).
    SnapshotWritten {
        /// As requested.
        index: Index,
        /// Where the written bytes end, or why they were not written; the new file is gone then.
        end: Result<u64, StoreError>,
    },
    /// The answer to [`Output::InstallSnapshot`](super::Output::InstallSnapshot).
    SnapshotInstalled {
        /// As requested.
        index: Index,
        /// The file is in place and stays after a crash, or the old file is still there.
        outcome: Result<(), StoreError>,
    },
    /// [`MemberRequest::Snapshot`] for callers that keep the contents themselves: the database has made a snapshot of itself, of which a new file is to be written. The caller keeps the contents until
    /// [`Output::Rewrite`](super::Output::Rewrite) asks to write them, or says that they are not wanted.
    SnapshotMade {
        /// The last entry that it includes: the database has applied this one and none after it.
        index: Index,
        /// The last entry with data that it includes.
        eid: Eid,
    },
    /// An operator's command.
    Command {
        /// To be repeated in [`Output::CommandDone`](super::Output::CommandDone).
        token: CommandToken,
        /// The command.
        command: Command,
    },
}

/// Names a command that is under way; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandToken(pub u64);

/// The commands of operators that a member carries out (docs/spec/distribution.md 1.5, 1.10 and 1.12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `cluster/change-election-timer`; ms. Text that is no number counts as 0.
    ChangeElectionTimer(u64),
    /// `cluster/transfer-leadership`: to this server (an address or the beginning of an id), or to any.
    TransferLeadership(Option<String>),
    /// `cluster/leave`.
    Leave,
    /// `cluster/kick`: an exact address or the beginning of an id.
    Kick(String),
    /// `cluster/failure-test`, as far as the member decides what happens.
    Rehearse(Rehearsal),
    /// The process exits or the database is removed: hand the leadership over. Done when another member leads, when that is hopeless, or
    /// after an election timer.
    Shutdown,
}

/// A failure that is provoked (`cluster/failure-test`, docs/spec/distribution.md 1.12). A new one ends the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rehearsal {
    /// None.
    #[default]
    None,
    /// Election timeouts are longer by an election timer, that under way included.
    DelayElections,
    /// Stand for election now, unless this member leads. The one before goes on.
    ForceElection,
    /// The next time that this member, as leader, begins to add a server, it hands the leadership over.
    TransferAfterStartingToAdd,
    /// Hand the leadership over now, if this member leads. The one before goes on.
    Transfer,
}
