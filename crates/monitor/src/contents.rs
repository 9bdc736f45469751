//! Initial contents of a monitor: everything in view, as the reply to the request that starts it.
//!
//! Short contents are written at once, from the database. Long ones become an order, [`Contents`],
//! which any thread carries out on a snapshot, slice by slice. One order serves all equal requests
//! that arrive until the group sees a change.
//!
//! Invariant: the text depends only on the snapshot and the subscription. Groups and the threads
//! that carry out orders use this file, which knows no sessions.

use std::sync::Arc as StdArc;

use corvid_data::Schema;
use corvid_engine::{Database, Slice, Snapshot};

use crate::body::Body;
use crate::condition::TableCondition;
use crate::frame::{Guard, SharedBody};
use crate::group::{Encoding, GroupId};
use crate::subscription::{Event, Subscription, TableSubscription};

/// The id of contents that are being written. Ids are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentsId(pub u64);

/// An order to write contents, carried out in slices.
#[derive(Debug)]
pub struct Contents {
    id: ContentsId,
    group: GroupId,
    encoding: Encoding,
    subscription: StdArc<Subscription>,
    snapshot: Snapshot,
    body: Body,
    /// Tables of the subscription that are finished, and the next slot of the table after them.
    tables: usize,
    from: usize,
    /// Rows visited.
    rows: usize,
}

/// Contents that have been written.
#[derive(Debug)]
pub struct Written {
    pub(crate) group: GroupId,
    /// The id of their order.
    pub id: ContentsId,
    /// The text, cut into pieces; `None` if there was no room for it.
    pub text: Option<SharedBody>,
}

impl Contents {
    /// Orders the contents of `snapshot`.
    pub(crate) fn new(
        id: ContentsId,
        group: GroupId,
        encoding: Encoding,
        subscription: StdArc<Subscription>,
        snapshot: Snapshot,
    ) -> Contents {
        Contents {
            id,
            group,
            encoding,
            subscription,
            snapshot,
            body: Body::new(),
            tables: 0,
            from: 0,
            rows: 0,
        }
    }

    /// The id of the order.
    #[must_use]
    pub fn id(&self) -> ContentsId {
        self.id
    }

    /// Number of rows still to visit. O(tables of the subscription).
    #[must_use]
    pub fn rows_left(&self) -> usize {
        let asked = self.subscription.tables().iter();
        let rows = asked
            .filter(|asked| is_written(asked))
            .map(|asked| self.snapshot.row_count(asked.table));
        rows.sum::<usize>() - self.rows
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Ends the order without carrying it out.
    #[must_use]
    pub fn refuse(self) -> Written {
        Written {
            group: self.group,
            id: self.id,
            text: None,
        }
    }

    /// Writes another slice. Returns true once everything is written. In total O(rows of the
    /// subscribed tables).
    pub fn advance(&mut self, slice: &mut Slice) -> bool {
        let encoding = self.encoding;
        let body = &mut self.body;
        while let Some(asked) = self.subscription.tables().get(self.tables) {
            if is_written(asked) {
                let table = self.snapshot.schema().table(asked.table);
                let steps = asked.condition.steps();
                for (next, row) in self.snapshot.rows_from(asked.table, self.from) {
                    // A slice ends only between rows. `from` is the next row, so no row is skipped
                    // or repeated.
                    if slice.is_over() {
                        return false;
                    }
                    let length = body.len();
                    if asked.condition.matches(table, row) {
                        encoding.initial(body, table, asked, row);
                    }
                    slice.spend(steps, body.len() - length);
                    body.cut();
                    self.from = next;
                    self.rows += 1;
                }
                body.end_table();
            }
            self.tables += 1;
            self.from = 0;
        }
        true
    }

    /// Carries out the whole order. `guard` gets the length of the text in bytes, and returns a
    /// value that is kept as long as the text.
    #[must_use]
    pub fn write(mut self, guard: impl FnOnce(usize) -> Guard) -> Written {
        while !self.advance(&mut Slice::unlimited()) {}
        let guard = guard(self.bytes());
        self.finish(guard)
    }

    /// The result, once everything is written. `guard` is kept as long as the text.
    #[must_use]
    pub fn finish(self, guard: Guard) -> Written {
        assert_eq!(
            self.tables,
            self.subscription.tables().len(),
            "contents are sent whole"
        );
        Written {
            group: self.group,
            id: self.id,
            text: Some(SharedBody::Guarded(self.body.finish_pieces().into(), guard)),
        }
    }
}

/// Whether the contents include rows of this table.
fn is_written(asked: &TableSubscription) -> bool {
    asked.select.has(Event::Initial) && *asked.condition != TableCondition::Never
}

/// Writes the current contents as one piece.
pub(crate) fn write_whole(
    schema: &Schema,
    subscription: &Subscription,
    encoding: Encoding,
    database: &Database,
) -> Vec<u8> {
    let mut body = Body::new();
    for asked in subscription.tables() {
        let table = schema.table(asked.table);
        if asked.select.has(Event::Initial)
            && let Some(query) = asked.condition.query()
        {
            database.for_each_matching_any(asked.table, &query, &mut |row| {
                encoding.initial(&mut body, table, asked, row);
                body.cut();
            });
            body.end_table();
        }
    }
    body.finish_pieces().concat()
}

/// Number of rows to visit to write the contents now. If a look-up narrows a table's rows, they are
/// counted only up to `max`. Requests an index for columns that would allow a look-up next time.
pub(crate) fn rows_visited(
    subscription: &Subscription,
    database: &mut Database,
    max: usize,
) -> usize {
    let asked = subscription.tables().iter();
    asked
        .filter(|asked| asked.select.has(Event::Initial))
        .filter_map(|asked| Some((asked.table, asked.condition.query()?)))
        .map(|(table, query)| {
            database.want_index(table, &query);
            database.rows_visited(table, &query, max)
        })
        .sum()
}
