//! The handle with which other threads send to the thread of a member.
//!
//! Invariant: messages of one sender arrive in order, and those of one batch together. The thread is woken once for a batch, and only while it
//! sleeps. The queue has no limit of its own: the database limits its requests by those of its clients, the disk thread answers requests.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use corvid_consensus::member::{Command, CommandToken};
use corvid_consensus::{BacklogLimits, MemberRequest};
use corvid_log::cluster::{Index, Sid};
use corvid_log::storage::{StorageReply, StoreError};
use corvid_reactor::wake_queue::WakeQueue;
use corvid_service::member::{Contents, ReceptionNumber};

use super::failure::Scenario;
use crate::database::handle::DatabaseHandle;

/// A message to a member's thread.
#[derive(Debug)]
pub(crate) enum ToMember {
    /// From its database.
    Request(MemberRequest),
    /// From its file.
    Storage(StorageReply),
    /// An operator's command; answered by `MainMessage::MemberAnswered` with this token.
    Command(CommandToken, Command),
    /// Answered in the same way with the text of `cluster/status`.
    Status(CommandToken),
    /// The contents of a snapshot that was installed, which ends with this entry, or why they cannot be loaded.
    Loaded(Index, Box<Result<Contents, String>>),
    /// Whether the snapshot in the file, which this peer is to get, has the right hash; or why it cannot be read.
    SnapshotChecked(Sid, Index, Result<bool, String>),
    /// The disk has a part of the body that a peer sends, or has failed.
    WrittenBack(ReceptionNumber, Result<(), StoreError>),
    /// The database of a server that has joined its cluster is served, with the contents after this entry.
    Served(Index, Box<DatabaseHandle>),
    /// `cluster/set-backlog-threshold`.
    BacklogLimits(BacklogLimits),
    /// `cluster/failure-test`.
    Fail(Scenario),
    /// Hand the leadership over, close the file, order the database to end, and end.
    End,
}

/// The handle; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct MemberHandle(Arc<Inbox>);

#[derive(Debug)]
struct Inbox {
    queue: WakeQueue<ToMember>,
    waker: mio::Waker,
    counts: Counts,
}

/// Amounts for `memory/show`, as the thread last counted them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Entries of the log in memory.
    pub(crate) log: AtomicU64,
    /// Open connections to and from peers.
    pub(crate) connections: AtomicU64,
    /// Their unsent bytes.
    pub(crate) backlog_bytes: AtomicU64,
}

impl MemberHandle {
    /// A queue whose consumer is woken by `waker`.
    #[must_use]
    pub(crate) fn new(waker: mio::Waker) -> MemberHandle {
        let queue = WakeQueue::new();
        MemberHandle(Arc::new(Inbox {
            queue,
            waker,
            counts: Counts::default(),
        }))
    }

    /// Sends messages with at most one wake-up.
    pub(crate) fn post(&self, messages: impl IntoIterator<Item = ToMember>) {
        if self.0.queue.extend(messages) {
            // Fails only when the eventfd was closed, because the thread has ended.
            let _ = self.0.waker.wake();
        }
    }

    /// The amounts.
    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Moves all messages into `spare`, which must be empty. The thread counts as awake until [`MemberHandle::sleep`].
    pub(super) fn take(&self, spare: &mut Vec<ToMember>) {
        self.0.queue.take(spare);
    }

    /// Announces that the thread goes to sleep. False when there is a message already.
    pub(super) fn sleep(&self) -> bool {
        self.0.queue.sleep()
    }
}
