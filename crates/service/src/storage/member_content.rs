//! The content of a cluster member's new file: a header with the database's snapshot, and the
//! records that the member supplies.
//!
//! Invariant: the snapshot is frozen, as in [`super::Content`]. Records appended to the current
//! file meanwhile are not copied: the member supplies them before the swap. Made from the member's
//! `Rewrite` and the database's snapshot; written on a rewrite thread.

use std::sync::Arc;

use corvid_engine::Snapshot;
use corvid_log::cluster::{MemberIdentity, SnapshotHeader, SnapshotMeta};
use corvid_log::snapshot::write_rows;
use corvid_log::storage::{FileContent, RowProgress};
use corvid_log::{DiskError, Stamp};

/// Everything that a rewrite thread needs to write a member's new file.
#[derive(Debug)]
pub struct MemberContent {
    /// The schema and the rows after the entry that `meta` names.
    pub snapshot: Snapshot,
    /// The member's ids, name and address.
    pub identity: MemberIdentity,
    /// The snapshot's metadata. Its body length is not used.
    pub meta: SnapshotMeta,
    /// `_comment` of the rows' transaction. It may name the last commits.
    pub comment: String,
    /// `_date` of that transaction, ms since the Unix epoch.
    pub date_ms: i64,
    /// Framed records that follow the header: the entries after the snapshot, one vote or term
    /// record, the commit index.
    pub records: Vec<u8>,
    /// Counts the rows of the snapshot as they are written.
    pub progress: Arc<RowProgress>,
}

impl MemberContent {
    /// Writes `[schema,rows]` to `sink`, in pieces.
    fn body(&self, sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>) -> Result<(), DiskError> {
        let schema = self.snapshot.schema();
        let stamp = Stamp {
            date_ms: self.date_ms,
            comment: &self.comment,
            is_diff: true,
            with_defaults: false,
        };
        let mut head = vec![b'['];
        schema.to_json().write(&mut head);
        head.push(b',');
        sink(&head)?;
        let rows = |table| self.snapshot.rows(table).inspect(|_| self.progress.visit());
        write_rows(schema, &stamp, &rows, sink)?;
        sink(b"]")
    }
}

impl FileContent for MemberContent {
    fn database(&self) -> &str {
        &self.identity.name
    }

    fn progress(&self) -> Option<Arc<RowProgress>> {
        Some(self.progress.clone())
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let header = SnapshotHeader::new(&self.identity, &self.meta);
        header.write(|sink| self.body(sink), sink)
    }

    fn records(&self) -> &[u8] {
        &self.records
    }
}
