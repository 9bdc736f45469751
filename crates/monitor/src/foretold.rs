//! Updates that are written before their commit is stored: composing what a long commit is told as takes as long as writing its record, and
//! each can be done by a thread of its own.
//!
//! Invariant: such a text says what would be composed for members that are to be told of this commit alone, so it makes no difference
//! whether it is used. Nobody is given it before the commit is noted; one whose commit is undone is forgotten. Made by groups, which
//! keep at most one each.

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_data::{Arc, Delta, HashSeed, Schema};
use corvid_engine::{Resumable, Slice};

use crate::change_set::ChangeSet;
use crate::group::Encoding;
use crate::late::{self, LateText, UpdateWriter};
use crate::subscription::Subscription;
use crate::view;

/// Steps that it takes to look at a change.
const LOOK_STEPS: u64 = 8;

/// What one group is to be told of one commit.
#[derive(Debug)]
pub(crate) struct Foretold {
    pub(crate) schema: Arc<Schema>,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) encoding: Encoding,
    pub(crate) delta: Arc<Delta>,
    is_begun: AtomicBool,
    pieces: Resumable<Writer, Vec<StdArc<[u8]>>>,
}

/// Such a text in the making.
#[derive(Debug)]
struct Writer {
    changes: ChangeSet,
    /// Changes of the commit that were looked at.
    looked_at: usize,
    writer: UpdateWriter,
}

impl Foretold {
    /// Nothing is written yet.
    pub(crate) fn new(
        schema: Arc<Schema>,
        subscription: StdArc<Subscription>,
        encoding: Encoding,
        delta: Arc<Delta>,
        seed: HashSeed,
    ) -> Foretold {
        Foretold {
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

    /// Whether this is of that commit.
    pub(crate) fn is_of(&self, delta: &Arc<Delta>) -> bool {
        Arc::ptr_eq(&self.delta, delta)
    }

    /// Whether some of it is written: finishing it takes no longer than writing it anew.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

impl LateText for Foretold {
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
        late::rows_left(is_written, left)
    }

    fn is_written(&self) -> bool {
        self.pieces.get().is_some()
    }

    fn rows(&self) -> usize {
        self.delta.changes.len()
    }
}

impl Writer {
    /// Goes on for a slice; returns the text when it is whole.
    fn advance(&mut self, text: &Foretold, slice: &mut Slice) -> Option<Vec<StdArc<[u8]>>> {
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
