//! The effects of a member's file: its disk, and the threads that write, check and load it. The server has them with threads, the simulator with
//! queues whose order is drawn.

use std::sync::Arc;

use corvid_log::Disk;
use corvid_log::cluster::{BodyLocation, Eid, Index, Sid};
use corvid_log::storage::{StorageReply, StorageRequest};

use super::reception::BodyPart;

/// An open file of a disk.
pub type Handle<E> = <<E as FileEffects>::Disk as Disk>::Handle;

/// See the module.
pub trait FileEffects {
    /// The disk that the file is on.
    type Disk: Disk + 'static;

    /// The directory entry of the file.
    fn disk(&self) -> &Arc<Self::Disk>;

    /// Carries out requests, or leaves them to threads, in order. Returns the replies of those that are complete; the others are messages to the
    /// owner.
    fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply>;

    /// The owner handles this reply next.
    fn observe_reply(&mut self, reply: &StorageReply);

    /// Whether nothing can be appended before a new file is in place.
    fn is_poisoned(&self) -> bool;

    /// Opens the file that is in place now; `None`: it cannot be opened.
    fn open_present(&self) -> Option<Handle<Self>>;

    /// Begins to check, on a thread of its own, whether the snapshot in `file` has the right hash. The outcome is a message to the owner:
    /// [`super::MemberFile::snapshot_checked`]. False: no thread can be had.
    fn begin_check(&mut self, to: Sid, index: Index, file: Handle<Self>) -> bool;

    /// Begins to load the snapshot through entry `index`, whose id is `eid`, on a thread of its own. The contents are a message to the owner, and so
    /// is the failure if there is no source: its reason stands in its place.
    fn begin_load(
        &mut self,
        index: Index,
        eid: Eid,
        source: Result<(Handle<Self>, BodyLocation), String>,
    );

    /// Begins to hand a part of a received body to the disk ([`corvid_log::DiskFile::write_back`]), on a thread of its own. The outcome is a message to the owner:
    /// [`super::MemberFile::written_back`]. False: no thread can be had.
    fn begin_write_back(&mut self, part: BodyPart<Handle<Self>>) -> bool;

    /// A random number: databases must not all be compacted at once.
    fn draw(&mut self) -> u64;

    /// The date of a new file's rows, ms since the Unix epoch.
    fn date_ms(&self) -> i64;
}
