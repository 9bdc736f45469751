//! Texts that are ordered now and written later, by somebody who has the time: updates of commits that change many rows.
//!
//! Invariant: what a text says was settled when it was ordered; when it is written, and where, makes no difference.

use std::fmt::Debug;
use std::sync::{Arc as StdArc, OnceLock};

use corvid_data::{Arc, Delta, Schema};

use crate::body::Body;
use crate::change_set::ChangeSet;
use crate::frame::Guard;
use crate::group::Encoding;
use crate::subscription::Subscription;
use crate::{encode_v1, encode_v2};

/// A text that may not be written yet.
pub trait LateText: Debug + Send + Sync {
    /// The text in pieces. The first call writes it, which takes long; others wait for it meanwhile.
    fn pieces(&self) -> &[StdArc<[u8]>];

    /// Whether [`LateText::pieces`] returns at once.
    fn is_written(&self) -> bool;

    /// How many rows are looked at to write it, at most; takes no time.
    fn rows(&self) -> usize;

    /// What must live as long as the pieces do.
    fn guard(&self) -> Option<Guard> {
        None
    }
}

/// Changes of many rows, as one group is told of them.
#[derive(Debug)]
pub(crate) struct LongUpdate {
    pub(crate) schema: Arc<Schema>,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) encoding: Encoding,
    pub(crate) changes: StdArc<ChangeSet>,
    /// The commit, if they are of one alone.
    pub(crate) delta: Option<Arc<Delta>>,
    pub(crate) pieces: OnceLock<Vec<StdArc<[u8]>>>,
}

impl LateText for LongUpdate {
    fn pieces(&self) -> &[StdArc<[u8]>] {
        self.pieces.get_or_init(|| {
            let (subscription, changes) = (&self.subscription, &self.changes);
            let delta = self.delta.as_deref();
            encode(&self.schema, subscription, self.encoding, changes, delta).finish_pieces()
        })
    }

    fn is_written(&self) -> bool {
        self.pieces.get().is_some()
    }

    fn rows(&self) -> usize {
        self.changes.len()
    }
}

/// All events of `changes` that are asked for. `delta`: the only commit in `changes`, if it is one.
pub(crate) fn encode(
    schema: &Schema,
    subscription: &Subscription,
    encoding: Encoding,
    changes: &ChangeSet,
    delta: Option<&Delta>,
) -> Body {
    let mut body = Body::new();
    let encode = match encoding {
        Encoding::Rows => encode_v1::change,
        Encoding::Differences => encode_v2::change,
    };
    for of_table in changes.tables() {
        if let Some(asked) = subscription.table(of_table.table) {
            let table = schema.table(of_table.table);
            let entries = of_table.entries().iter();
            for entry in entries.filter(|entry| asked.select.has(entry.event())) {
                encode(&mut body, table, asked, entry, delta);
                body.cut();
            }
            body.end_table();
        }
    }
    body
}
