//! A snapshot sent by a peer: its body is stored next to the database as it arrives, then a new
//! file is built from it.
//!
//! ```text
//! chunks ---> a.db.received [schema,rows]   ReceivedBody::write, in order;
//!                 |                         a repeated or early chunk changes nothing
//!                 | read twice: hash and brackets, then copied  (ReceivedContent, by a Rewriter)
//!                 v
//! a.db.tmp    header with identity and body, records    synced, then renamed to a.db
//!                                                       (docs/internals/storage.md)
//! ```
//!
//! Invariant: until the rename the member's file is untouched, so a crash leaves either the old
//! file or the new one. The received file carries no promise, and a crash may lose it: the peer
//! sends it again. The new file does not copy records appended to the old one in the meantime,
//! because there are none: between handing over `records` and the swap, the member appends nothing.

use std::cell::Cell;
use std::sync::Arc;

use corvid_json::Framer;
use corvid_json::frame::Framed;
use sha1::{Digest, Sha1};

use super::snapshot_header::{MemberIdentity, SnapshotHeader, read_full};
use super::{BodyLocation, SnapshotMeta};
use crate::disk::{Disk, DiskError, DiskFile, Fault, Operation};
use crate::storage::FileContent;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A body that is being received. Dropping it removes its file.
#[derive(Debug)]
pub struct ReceivedBody<D: Disk> {
    disk: Arc<D>,
    file: D::Handle,
    length: u64,
    end: u64,
}

impl<D: Disk> ReceivedBody<D> {
    /// Starts receiving the body of `snapshot`. Drop any earlier body first: this replaces its
    /// file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(disk: &Arc<D>, snapshot: &SnapshotMeta) -> Result<ReceivedBody<D>, DiskError> {
        let file = disk
            .create_received()
            .map_err(|fault| failed(&**disk, Operation::Write, fault))?;
        Ok(ReceivedBody {
            disk: Arc::clone(disk),
            file,
            length: snapshot.body_bytes,
            end: 0,
        })
    }

    /// Stores bytes that belong at `offset`, if the stored ones end there; ignores them otherwise.
    /// Returns where the stored bytes end now.
    ///
    /// # Errors
    /// Writing failed. Drop the value.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<u64, DiskError> {
        // The chunk is a repetition, or follows a lost one.
        if offset != self.end {
            return Ok(self.end);
        }
        let left = usize::try_from(self.length - self.end).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        self.file
            .write_at(&[bytes], offset)
            .map_err(|fault| failed(&*self.disk, Operation::Write, fault))?;
        self.end += bytes.len() as u64;
        assert!(
            self.end <= self.length,
            "a body is as long as its snapshot says"
        );
        Ok(self.end)
    }

    /// Where the stored bytes end, from the start of the body.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether all bytes are stored.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end == self.length
    }

    /// The file, and the body's location in it, for loading the database before the file is
    /// installed.
    #[must_use]
    pub fn file(&self) -> (&D::Handle, BodyLocation) {
        let location = BodyLocation {
            offset: 0,
            length: self.length,
        };
        (&self.file, location)
    }

    /// The content of the new file: a header with this body, then `records`, framed, which include
    /// the member's term or vote.
    ///
    /// # Errors
    /// The process has run out of file descriptors.
    pub fn content(
        &self,
        identity: &MemberIdentity,
        snapshot: &SnapshotMeta,
        records: Vec<u8>,
    ) -> Result<ReceivedContent<D::Handle>, DiskError> {
        assert!(self.is_complete(), "only a whole snapshot is installed");
        let file = self
            .file
            .share()
            .map_err(|fault| failed(&*self.disk, Operation::Replace, fault))?;
        Ok(ReceivedContent {
            header: SnapshotHeader::new(identity, snapshot),
            name: identity.name.clone(),
            shown: received_name(self.disk.shown_name()),
            file,
            length: self.length,
            records,
        })
    }
}

impl<D: Disk> Drop for ReceivedBody<D> {
    fn drop(&mut self) {
        self.disk.remove_received();
    }
}

/// The content of a file that installs a received snapshot.
#[derive(Debug)]
pub struct ReceivedContent<F> {
    header: SnapshotHeader,
    name: String,
    shown: String,
    file: F,
    length: u64,
    records: Vec<u8>,
}

impl<F: DiskFile> ReceivedContent<F> {
    /// Passes the body to `sink` in pieces. If `hash` holds the hash of an earlier pass, this pass
    /// must have the same one.
    fn body(
        &self,
        hash: &Cell<Option<[u8; 20]>>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let failed = |text: &str| DiskError {
            shown: self.shown.clone(),
            operation: Operation::Read,
            fault: Fault {
                code: 0,
                text: text.to_owned(),
            },
        };
        let mut room = vec![0; PIECE_BYTES];
        let mut passed = 0;
        let mut sha1 = Sha1::new();
        let mut framer = Framer::new();
        let mut is_closed = false;
        while passed < self.length {
            let left = usize::try_from(self.length - passed).unwrap_or(PIECE_BYTES);
            let piece = &mut room[..left.min(PIECE_BYTES)];
            let got = read_full(&self.file, piece, passed).map_err(|fault| failed(&fault.text))?;
            if got < piece.len() {
                return Err(failed("End of file"));
            }
            // The body becomes a member of the header's object. Bytes outside of one array would
            // change the members around it.
            let is_first = passed == 0 && piece.first() != Some(&b'[');
            let framed = framer.advance(piece);
            passed += got as u64;
            is_closed = matches!(framed, Ok(Framed::Complete { end, .. }) if end == got && passed == self.length);
            let is_open = matches!(framed, Ok(Framed::Partial { .. }));
            if is_first || !(is_closed || is_open) {
                return Err(failed(
                    "the snapshot that was received is not one JSON array",
                ));
            }
            sha1.update(&*piece);
            sink(piece)?;
        }
        let sha1 = sha1.finalize().into();
        // The header line has the hash of the first pass. If the second pass reads other bytes, the
        // new file would be damaged from its first record on.
        if !is_closed
            || hash
                .replace(Some(sha1))
                .is_some_and(|earlier| earlier != sha1)
        {
            return Err(failed("the snapshot that was received has changed"));
        }
        Ok(())
    }
}

impl<F: DiskFile> FileContent for ReceivedContent<F> {
    fn database(&self) -> &str {
        &self.name
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let hash = Cell::new(None);
        self.header.write(|sink| self.body(&hash, sink), sink)
    }

    fn records(&self) -> &[u8] {
        &self.records
    }
}

/// The name of the received file of the database file `name`.
#[must_use]
pub fn received_name(name: &str) -> String {
    format!("{name}.received")
}

fn failed<D: Disk>(disk: &D, operation: Operation, fault: Fault) -> DiskError {
    let error = DiskError {
        shown: received_name(disk.shown_name()),
        operation,
        fault,
    };
    disk.log_failure(&error);
    error
}
