//! Updates that are composed before their commit is stored. Composing the update of a long commit
//! takes as long as writing its record, and two threads can do both at once.
//!
//! Invariant: the text equals the update for members that get this commit alone, so using it makes
//! no visible difference. It is sent only after the commit is stored, and dropped if the commit is
//! undone. Groups create precomputed updates, and keep at most one each.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Delta, HashSeed, Schema};
use corvid_engine::{Resumable, Slice};

use crate::change_set::ChangeSet;
use crate::deferred_body::{self, DeferredBody, UpdateWriter};
use crate::group::Encoding;
use crate::subscription::Subscription;
use crate::view;

/// Steps for visiting one change.
const LOOK_STEPS: u64 = 8;

/// The update of one group for one commit.
#[derive(Debug)]
pub(crate) struct PrecomputedUpdate {
    pub(crate) schema: Arc<Schema>,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) encoding: Encoding,
    pub(crate) delta: Arc<Delta>,
    is_begun: AtomicBool,
    pieces: Resumable<Writer, Vec<StdArc<[u8]>>>,
}

/// The update under construction.
#[derive(Debug)]
struct Writer {
    changes: ChangeSet,
    /// Changes of the commit that were visited.
    looked_at: usize,
    writer: UpdateWriter,
}

impl PrecomputedUpdate {
    /// An update in which nothing is written yet.
    pub(crate) fn new(
        schema: Arc<Schema>,
        subscription: StdArc<Subscription>,
        encoding: Encoding,
        delta: Arc<Delta>,
        seed: HashSeed,
    ) -> PrecomputedUpdate {
        PrecomputedUpdate {
            schema,
            subscription,
            encoding,
            delta,
            is_begun: AtomicBool::new(false),
            pieces: Resumable::new(Writer {
                changes: ChangeSet::new(seed),
                looked_at: 0,
                writer: UpdateWriter::default(),
            }),
        }
    }

    /// Whether this is the update of `delta`.
    pub(crate) fn is_of(&self, delta: &Arc<Delta>) -> bool {
        Arc::ptr_eq(&self.delta, delta)
    }

    /// Whether writing has begun. If so, finishing the update takes no longer than writing it anew.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

impl DeferredBody for PrecomputedUpdate {
    fn pieces(&self) -> &[StdArc<[u8]>] {
        self.is_begun.store(true, Ordering::Relaxed);
        self.pieces
            .finish(|writer| writer.advance(self, &mut Slice::unlimited()))
    }

    fn advance(&self, slice: &mut Slice) -> usize {
        self.is_begun.store(true, Ordering::Relaxed);
        let mut left = 0;
        let is_written = self.pieces.advance(|writer| {
            let pieces = writer.advance(self, slice);
            left = self.delta.changes.len() - writer.looked_at;
            left += writer.changes.len() - writer.writer.rows();
            pieces
        });
        deferred_body::rows_left(is_written, left)
    }

    fn is_written(&self) -> bool {
        self.pieces.get().is_some()
    }

    fn rows(&self) -> usize {
        self.delta.changes.len()
    }
}

impl Writer {
    /// Writes another slice. Returns the text once it is complete.
    fn advance(
        &mut self,
        text: &PrecomputedUpdate,
        slice: &mut Slice,
    ) -> Option<Vec<StdArc<[u8]>>> {
        let (schema, subscription) = (&text.schema, &text.subscription);
        while self.looked_at < text.delta.changes.len() {
            if slice.is_over() {
                return None;
            }
            let change = (self.looked_at, &*text.delta);
            view::add_change(schema, subscription, change, &mut self.changes);
            self.looked_at += 1;
            slice.spend(LOOK_STEPS, 0);
        }
        let (changes, delta) = (&self.changes, Some(&*text.delta));
        let form = (&**subscription, text.encoding);
        self.writer.advance(schema, form, changes, delta, slice)
    }
}
