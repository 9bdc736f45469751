//! The content of a cluster member's new file: a header with the database's snapshot, and the records that the member hands over.
//!
//! Invariant: the snapshot is frozen, as in [`super::Content`]. Records that are appended to the present file meanwhile are not copied: the
//! member hands them over before the swap. Composed of the member's `Rewrite` and the database's snapshot; written on a rewrite thread.

use corvid_engine::Snapshot;
use corvid_log::cluster::{MemberIdentity, SnapshotHeader, SnapshotMeta};
use corvid_log::snapshot::write_rows;
use corvid_log::storage::FileContent;
use corvid_log::{DiskError, Stamp};

/// See the module.
#[derive(Debug)]
pub struct MemberContent {
    /// The schema and the rows after the entry that `meta` names.
    pub snapshot: Snapshot,
    /// The member.
    pub identity: MemberIdentity,
    /// The snapshot's metadata. The length of the body plays no role.
    pub meta: SnapshotMeta,
    /// `_comment` of the rows' transaction.
    pub comment: &'static str,
    /// `_date` of it, ms since the Unix epoch.
    pub date_ms: i64,
    /// Records behind the header, framed: the entries behind the snapshot, one vote or term record, the commit index.
    pub records: Vec<u8>,
}

impl MemberContent {
    /// Passes `[schema,rows]` to `sink`, in pieces.
    fn body(&self, sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>) -> Result<(), DiskError> {
        let schema = self.snapshot.schema();
        let stamp = Stamp {
            date_ms: self.date_ms,
            comment: self.comment,
            is_diff: true,
            with_defaults: false,
        };
        let mut head = vec![b'['];
        schema.to_json().write(&mut head);
        head.push(b',');
        sink(&head)?;
        write_rows(schema, &stamp, &|table| self.snapshot.rows(table), sink)?;
        sink(b"]")
    }
}

impl FileContent for MemberContent {
    fn database(&self) -> &str {
        &self.identity.name
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
