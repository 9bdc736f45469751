//! Bodies that are ordered now and written later, by another thread: updates of commits that change
//! many rows.
//!
//! Invariant: the order determines the text. When and where the text is written makes no
//! difference.

use std::fmt::Debug;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Schema};
use corvid_engine::{Resumable, Slice};

use crate::body::Body;
use crate::change_set::ChangeSet;
use crate::frame::Guard;
use crate::group::Encoding;
use crate::subscription::Subscription;

/// A text that may not be written yet.
pub trait DeferredBody: Debug + Send + Sync {
    /// The text in pieces. Writes the missing part first, which takes long.
    fn pieces(&self) -> &[StdArc<[u8]>];

    /// Writes another slice. Returns the approximate number of rows left; 0 means that
    /// [`DeferredBody::pieces`] returns at once.
    fn advance(&self, slice: &mut Slice) -> usize;

    /// Whether [`DeferredBody::pieces`] returns at once.
    fn is_written(&self) -> bool;

    /// Upper bound on the rows to visit to write the text. Cheap.
    fn rows(&self) -> usize;

    /// The value to keep as long as the pieces.
    fn guard(&self) -> Option<Guard> {
        None
    }
}

/// The update of one group for changes of many rows.
#[derive(Debug)]
pub(crate) struct LongUpdate {
    pub(crate) schema: Arc<Schema>,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) encoding: Encoding,
    pub(crate) changes: StdArc<ChangeSet>,
    /// The commit, if there is only one.
    pub(crate) delta: Option<Arc<Delta>>,
    pub(crate) pieces: Resumable<UpdateWriter, Vec<StdArc<[u8]>>>,
}

impl DeferredBody for LongUpdate {
    fn pieces(&self) -> &[StdArc<[u8]>] {
        self.pieces
            .finish(|writer| self.write(writer, &mut Slice::unlimited()))
    }

    fn advance(&self, slice: &mut Slice) -> usize {
        let mut written = 0;
        let is_written = self.pieces.advance(|writer| {
            let pieces = self.write(writer, slice);
            written = writer.rows();
            pieces
        });
        rows_left(is_written, self.changes.len() - written)
    }

    fn is_written(&self) -> bool {
        self.pieces.get().is_some()
    }

    fn rows(&self) -> usize {
        self.changes.len()
    }
}

impl LongUpdate {
    fn write(&self, writer: &mut UpdateWriter, slice: &mut Slice) -> Option<Vec<StdArc<[u8]>>> {
        let form = (&*self.subscription, self.encoding);
        let delta = self.delta.as_deref();
        writer.advance(&self.schema, form, &self.changes, delta, slice)
    }
}

/// An update under construction.
#[derive(Debug)]
pub(crate) struct UpdateWriter {
    body: Body,
    /// Tables of the changes that are finished, and finished entries of the next table.
    tables: usize,
    entries: usize,
    /// Rows written.
    rows: usize,
}

impl Default for UpdateWriter {
    fn default() -> UpdateWriter {
        UpdateWriter {
            body: Body::new(),
            tables: 0,
            entries: 0,
            rows: 0,
        }
    }
}

/// The result of [`DeferredBody::advance`].
pub(crate) fn rows_left(is_written: bool, rows_left: usize) -> usize {
    if is_written { 0 } else { rows_left.max(1) }
}

impl UpdateWriter {
    /// Rows written.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Writes another slice. Returns the text once it is complete. The other arguments are the same
    /// in every call.
    pub(crate) fn advance(
        &mut self,
        schema: &Schema,
        (subscription, encoding): (&Subscription, Encoding),
        changes: &ChangeSet,
        delta: Option<&Delta>,
        slice: &mut Slice,
    ) -> Option<Vec<StdArc<[u8]>>> {
        let body = &mut self.body;
        while let Some(of_table) = changes.tables().get(self.tables) {
            if let Some(asked) = subscription.table(of_table.table) {
                let table = schema.table(of_table.table);
                while let Some(entry) = of_table.entries().get(self.entries) {
                    // A slice ends only between rows. `entries` is the next one, so no row is
                    // skipped or repeated.
                    if slice.is_over() {
                        return None;
                    }
                    let length = body.len();
                    if asked.select.has(entry.event()) {
                        encoding.change(body, table, asked, entry, delta);
                    }
                    slice.spend(1, body.len() - length);
                    body.cut();
                    self.entries += 1;
                    self.rows += 1;
                }
                body.end_table();
            }
            self.tables += 1;
            self.entries = 0;
        }
        let body = std::mem::replace(body, Body::new());
        Some(body.finish_pieces())
    }
}

/// Encodes all selected events of `changes`. `delta` is the only commit in `changes`, if there is
/// only one.
pub(crate) fn encode(
    schema: &Schema,
    subscription: &Subscription,
    encoding: Encoding,
    changes: &ChangeSet,
    delta: Option<&Delta>,
) -> Vec<StdArc<[u8]>> {
    let mut writer = UpdateWriter::default();
    let form = (subscription, encoding);
    loop {
        let slice = &mut Slice::unlimited();
        if let Some(pieces) = writer.advance(schema, form, changes, delta, slice) {
            return pieces;
        }
    }
}
