//! The effects of a member's file: its disk, and the threads that write, check and load it. The
//! server implements them with threads, the simulator with queues that it serves in random order.

use std::sync::Arc;

use corvid_log::Disk;
use corvid_log::cluster::{BodyLocation, Eid, Index, Sid};
use corvid_log::storage::{StorageReply, StorageRequest};

use super::reception::BodyPart;

/// An open file on the disk of these effects.
pub type Handle<E> = <<E as FileEffects>::Disk as Disk>::Handle;

/// The disk and the threads of a member's file.
pub trait FileEffects {
    /// The type of disk that holds the file.
    type Disk: Disk + 'static;

    /// The directory entry of the file.
    fn disk(&self) -> &Arc<Self::Disk>;

    /// Executes requests in order, or hands them to threads. Returns the replies of those that are
    /// complete; the others arrive as messages to the owner.
    fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply>;

    /// The owner is about to handle this reply.
    fn observe_reply(&mut self, reply: &StorageReply);

    /// Whether appends fail until a new file is in place.
    fn is_poisoned(&self) -> bool;

    /// Opens the file that is in place now; `None` if it cannot be opened.
    fn open_present(&self) -> Option<Handle<Self>>;

    /// Starts a thread that checks the hash of the snapshot in `file`. The outcome is a message to
    /// the owner: [`super::MemberFile::snapshot_checked`]. Returns false if no thread can be
    /// started.
    fn begin_check(&mut self, to: Sid, index: Index, file: Handle<Self>) -> bool;

    /// Starts a thread that loads the snapshot through entry `index`, whose id is `eid`. The
    /// contents, or the reason of a failure, are a message to the owner. A `source` that is an
    /// error is reported the same way.
    fn begin_load(
        &mut self,
        index: Index,
        eid: Eid,
        source: Result<(Handle<Self>, BodyLocation), String>,
    );

    /// Starts a thread that hands a part of a received body to the disk
    /// ([`corvid_log::DiskFile::write_back`]). The outcome is a message to the owner:
    /// [`super::MemberFile::written_back`]. Returns false if no thread can be started.
    fn begin_write_back(&mut self, part: BodyPart<Handle<Self>>) -> bool;

    /// A random number: it spreads the compactions of different databases over time.
    fn draw(&mut self) -> u64;

    /// The date of a new file's rows, ms since the Unix epoch.
    fn date_ms(&self) -> i64;
}
