//! The content of a new file: a schema, one record with all rows of a snapshot, and one that names
//! the last commits.
//!
//! Invariant: the snapshot is frozen. The rows stay the same however long writing takes, while the
//! database goes on committing. Made by compaction and conversion; written on a rewrite thread.

use std::sync::Arc;

use corvid_engine::Snapshot;
use corvid_json::{ObjectWriter, write};
use corvid_log::storage::{FileContent, RowProgress};
use corvid_log::{DiskError, Magic, Record, Stamp, write_schema, write_snapshot};

use crate::once::RecordedCommits;

/// Everything that a rewrite thread needs to write a new file.
#[derive(Debug)]
pub struct Content {
    /// The rows.
    pub snapshot: Snapshot,
    /// The last commits in these rows, named by a record of their own.
    pub recorded: RecordedCommits,
    /// `_comment` of the record of the rows.
    pub comment: &'static str,
    /// `_date` of their record, ms since the Unix epoch.
    pub date_ms: i64,
    /// The record is marked as holding column differences; for rows that are all new this changes
    /// nothing.
    pub is_diff: bool,
    /// Whether records appended to the current file meanwhile also belong in the new one. They do
    /// unless the schema changes.
    pub with_tail: bool,
    /// Counts the rows of the snapshot as they are written.
    pub progress: Arc<RowProgress>,
}

impl FileContent for Content {
    fn database(&self) -> &str {
        &self.snapshot.schema().name
    }

    fn with_tail(&self) -> bool {
        self.with_tail
    }

    fn progress(&self) -> Option<Arc<RowProgress>> {
        Some(self.progress.clone())
    }

    fn write_schema(&self, out: &mut Vec<u8>) {
        write_schema(out, self.snapshot.schema());
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let schema = self.snapshot.schema();
        let stamp = Stamp {
            date_ms: self.date_ms,
            comment: self.comment,
            is_diff: self.is_diff,
            with_defaults: false,
        };
        let rows = |table| self.snapshot.rows(table).inspect(|_| self.progress.visit());
        write_snapshot(schema, &stamp, rows, sink)?;
        let Some(comment) = self.recorded.to_comment() else {
            return Ok(());
        };
        let mut out = Vec::new();
        let mut record = Record::begin(&mut out, Magic::Standalone);
        let mut object = ObjectWriter::new(record.body()).string("_comment", comment.as_bytes());
        write::integer(object.member("_date"), self.date_ms);
        object.end();
        record.finish();
        sink(&out)
    }
}
