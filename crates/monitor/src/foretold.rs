//! Updates that are written before their commit is stored: composing what a long commit is told as takes as long as writing its record, and
//! each can be done by a thread of its own.
//!
//! Invariant: such a text says what would be composed for members that are to be told of this commit alone, so it makes no difference
//! whether it is used. Nobody is given it before the commit is noted; one whose commit is undone is forgotten. Made by groups, which
//! keep at most one each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc as StdArc, OnceLock};

use corvid_data::{Arc, Delta, HashSeed, Schema};

use crate::group::Encoding;
use crate::late::{self, LateText};
use crate::subscription::Subscription;
use crate::view;

/// What one group is to be told of one commit.
#[derive(Debug)]
pub(crate) struct Foretold {
    pub(crate) schema: Arc<Schema>,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) encoding: Encoding,
    pub(crate) seed: HashSeed,
    pub(crate) delta: Arc<Delta>,
    pub(crate) is_begun: AtomicBool,
    pub(crate) pieces: OnceLock<Vec<StdArc<[u8]>>>,
}

impl Foretold {
    /// Whether this is of that commit.
    pub(crate) fn is_of(&self, delta: &Arc<Delta>) -> bool {
        Arc::ptr_eq(&self.delta, delta)
    }

    /// Whether somebody is writing it, or has: who waits for it waits no longer than writing it would take.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

impl LateText for Foretold {
    fn pieces(&self) -> &[StdArc<[u8]>] {
        self.is_begun.store(true, Ordering::Relaxed);
        self.pieces.get_or_init(|| {
            let commit = std::iter::once(&self.delta);
            let changes = view::of_commits(&self.schema, &self.subscription, commit, self.seed);
            let delta = Some(&*self.delta);
            let (subscription, encoding) = (&self.subscription, self.encoding);
            late::encode(&self.schema, subscription, encoding, &changes, delta).finish_pieces()
        })
    }

    fn is_written(&self) -> bool {
        self.pieces.get().is_some()
    }

    fn rows(&self) -> usize {
        self.delta.changes.len()
    }
}
