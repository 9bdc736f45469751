//! The handle with which other threads send to the thread of a member.
//!
//! Invariant: messages of one sender arrive in order, and the messages of one batch arrive
//! together. A batch wakes the thread at most once, and only while it sleeps. The queue has no
//! limit of its own: the database's requests are bounded by the limits of its clients, and the disk
//! thread only answers requests.

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
    /// A request from the member's database.
    Request(MemberRequest),
    /// A reply from the member's file.
    Storage(StorageReply),
    /// An operator's command. `MainMessage::MemberAnswered` answers it with this token.
    Command(CommandToken, Command),
    /// Asks for the status, which `MainMessage::MemberStatus` brings with this token.
    Status(CommandToken),
    /// The contents of an installed snapshot that ends with this entry, or why they cannot be
    /// loaded.
    Loaded(Index, Box<Result<Contents, String>>),
    /// Whether the snapshot in the file, which is meant for this peer, has the right hash; or why
    /// it cannot be read.
    SnapshotChecked(Sid, Index, Result<bool, String>),
    /// The disk has written a part of the body that a peer sends, or has failed.
    WrittenBack(ReceptionNumber, Result<(), StoreError>),
    /// The main thread now serves the database of a server that has joined its cluster, with the
    /// contents through this entry.
    Served(Index, Box<DatabaseHandle>),
    /// `cluster/set-backlog-threshold`.
    BacklogLimits(BacklogLimits),
    /// `cluster/failure-test`.
    Fail(Scenario),
    /// Transfer the leadership, close the file, order the database to end, and end.
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

/// Counts for `memory/show`, as the thread last published them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Log entries in memory.
    pub(crate) log: AtomicU64,
    /// Open connections to and from peers.
    pub(crate) connections: AtomicU64,
    /// Unsent bytes of these connections.
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
            // Waking fails only if the thread has ended and closed the eventfd.
            let _ = self.0.waker.wake();
        }
    }

    /// The counts for `memory/show`.
    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Moves all messages into `spare`, which must be empty. The thread counts as awake until
    /// [`MemberHandle::sleep`].
    pub(super) fn take(&self, spare: &mut Vec<ToMember>) {
        self.0.queue.take(spare);
    }

    /// Announces that the thread is about to sleep. Returns false if a message has already arrived.
    pub(super) fn sleep(&self) -> bool {
        self.0.queue.sleep()
    }
}
