//! The snapshot in a member's file: parts of it for peers, the check before the first part, and
//! loading.
//!
//! Invariant: a snapshot is sent to a peer only if its hash was verified at most [`CHECKED_MS`]
//! ago, because peers cannot verify it. The handle stays valid when the file is replaced. A request
//! for a snapshot that the file no longer holds is refused.

use bytes::Bytes;
use corvid_consensus::Input;
use corvid_log::cluster::snapshot_header::{locate_body, read_body};
use corvid_log::cluster::{BodyLocation, Eid, Index, Sid};
use corvid_log::disk::Operation;
use corvid_log::storage::StoreError;
use corvid_log::{Disk as _, DiskError, DiskFile as _, Fault};

use super::MemberFile;
use super::effects::{FileEffects, Handle};
use super::refusal::error_of;

/// How long a successful check stays valid, ms: sending a snapshot may take several attempts.
const CHECKED_MS: u64 = 600_000;

/// The snapshot in the current file.
#[derive(Debug)]
pub(super) struct StoredSnapshot<H> {
    /// When its hash was last verified, monotonic ms.
    pub(super) checked_ms: Option<u64>,
    pub(super) index: Index,
    pub(super) body: BodyLocation,
    pub(super) file: H,
}

impl<E: FileEffects> MemberFile<E> {
    /// Starts to verify the snapshot in the file. Returns false if there is nothing to verify or it
    /// was verified recently.
    pub fn check_snapshot(&mut self, now_ms: u64, to: Sid, index: Index) -> bool {
        let is_fresh = |then_ms: u64| now_ms < then_ms + CHECKED_MS;
        let stored = self.stored(index);
        let Some(stored) = stored.filter(|stored| !stored.checked_ms.is_some_and(is_fresh)) else {
            return false;
        };
        let Ok(file) = stored.file.share() else {
            return false;
        };
        self.effects.begin_check(to, index, file)
    }

    /// The snapshot has been verified. Returns the answer for the member, and whether the file is
    /// damaged.
    pub fn snapshot_checked(
        &mut self,
        now_ms: u64,
        to: Sid,
        index: Index,
        outcome: Result<bool, String>,
    ) -> (Input, bool) {
        let is_damaged = outcome == Ok(false);
        let bytes = match outcome {
            Ok(true) => {
                // The file may have been replaced during the check: a result for the old snapshot
                // says nothing about the new one.
                let stored = self.stored.as_mut();
                if let Some(stored) = stored.filter(|stored| stored.index == index) {
                    stored.checked_ms = Some(now_ms);
                }
                self.read_snapshot(index, 0, 0)
            }
            Ok(false) => Err(error_of("the snapshot in the file is damaged")),
            Err(error) => Err(error_of(&error)),
        };
        let input = Input::SnapshotRead {
            to,
            index,
            offset: 0,
            bytes,
        };
        (input, is_damaged)
    }

    /// Reads a part of the body of the snapshot in the file. Returns the length of the whole body
    /// and the part.
    ///
    /// # Errors
    /// The file holds another snapshot by now, or cannot be read.
    pub fn read_snapshot(
        &self,
        index: Index,
        offset: u64,
        bytes_max: usize,
    ) -> Result<(u64, Bytes), StoreError> {
        let stored = self.stored(index).ok_or_else(|| error_of(GONE))?;
        let bytes = read_body(&stored.file, stored.body, offset, bytes_max);
        let bytes = bytes.map_err(|fault| self.failed(fault))?;
        Ok((stored.body.length, Bytes::from(bytes)))
    }

    /// Starts to load the contents of the snapshot in the file.
    pub fn load_snapshot(&mut self, index: Index, eid: Eid) {
        let source = match self.stored(index) {
            None => Err(GONE.to_owned()),
            Some(stored) => match stored.file.share() {
                Ok(file) => Ok((file, stored.body)),
                Err(fault) => Err(fault.text),
            },
        };
        self.effects.begin_load(index, eid, source);
    }

    /// Locates the snapshot in the file that has just been put in place.
    pub(super) fn find_snapshot(&mut self, index: Index) {
        self.stored = self.effects.open_present().and_then(|file| {
            let body = locate_body(&file).ok()??;
            Some(StoredSnapshot {
                checked_ms: None,
                index,
                body,
                file,
            })
        });
    }

    fn stored(&self, index: Index) -> Option<&StoredSnapshot<Handle<E>>> {
        self.stored.as_ref().filter(|stored| stored.index == index)
    }

    fn failed(&self, fault: Fault) -> StoreError {
        StoreError::from(DiskError {
            shown: self.effects.disk().shown_name().to_owned(),
            operation: Operation::Read,
            fault,
        })
    }
}

/// The file has been replaced.
const GONE: &str = "the file has another snapshot by now";
