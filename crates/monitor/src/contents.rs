//! First contents of a monitor: everything in view, as the reply to the request that starts it.
//!
//! Short ones are written at once, from the database. Long ones are an order, [`Contents`], that any thread carries out on a
//! snapshot, in pieces, once for all equal requests that come while it is under way or, until the group sees a change, later.
//! Called by groups and by whoever carries orders out; knows no sessions.

use std::sync::Arc as StdArc;

use corvid_data::{Arc, Row, Schema, TableId};
use corvid_engine::{Condition, Database, Snapshot};

use crate::body::Body;
use crate::frame::{Guard, SharedText};
use crate::group::{Encoding, GroupId};
use crate::subscription::{Event, Subscription};
use crate::{encode_v1, encode_v2};

/// Names contents that are being written; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentsId(pub u64);

/// An order: write these contents.
#[derive(Debug)]
pub struct Contents {
    pub(crate) id: ContentsId,
    pub(crate) group: GroupId,
    pub(crate) encoding: Encoding,
    pub(crate) subscription: StdArc<Subscription>,
    pub(crate) snapshot: Snapshot,
}

/// Contents that are written.
#[derive(Debug)]
pub struct Written {
    pub(crate) group: GroupId,
    /// Which.
    pub id: ContentsId,
    /// The text, cut into pieces; `None`: there was no room for it.
    pub text: Option<SharedText>,
}

impl Contents {
    /// Which.
    #[must_use]
    pub fn id(&self) -> ContentsId {
        self.id
    }

    /// Does not carry the order out.
    #[must_use]
    pub fn refuse(self) -> Written {
        Written {
            group: self.group,
            id: self.id,
            text: None,
        }
    }

    /// Carries the order out. O(rows of the tables asked for). `guard` is asked, with the length of the text in bytes, for what must live
    /// as long as it does.
    #[must_use]
    pub fn write(self, guard: impl FnOnce(usize) -> Guard) -> Written {
        let schema: &Arc<Schema> = self.snapshot.schema();
        let mut body = Body::new();
        let rows = |table: TableId, query: &Condition, visit: &mut dyn FnMut(&Row)| {
            let schema = schema.table(table);
            for row in self.snapshot.rows(table) {
                if query.matches_any(schema, row) {
                    visit(row);
                }
            }
        };
        write(&mut body, schema, &self.subscription, self.encoding, rows);
        let pieces = body.finish_pieces();
        let guard = guard(pieces.iter().map(|piece| piece.len()).sum());
        Written {
            group: self.group,
            id: self.id,
            text: Some(SharedText::Guarded(pieces.into(), guard)),
        }
    }
}

/// Writes the present contents as one piece.
pub(crate) fn write_whole(
    schema: &Schema,
    subscription: &Subscription,
    encoding: Encoding,
    database: &Database,
) -> Vec<u8> {
    let mut body = Body::new();
    let rows = |table: TableId, query: &Condition, visit: &mut dyn FnMut(&Row)| {
        database.for_each_matching_any(table, query, &mut |row| visit(row));
    };
    write(&mut body, schema, subscription, encoding, rows);
    body.finish_pieces().concat()
}

fn write(
    body: &mut Body,
    schema: &Schema,
    subscription: &Subscription,
    encoding: Encoding,
    rows: impl Fn(TableId, &Condition, &mut dyn FnMut(&Row)),
) {
    let encode = match encoding {
        Encoding::Rows => encode_v1::initial,
        Encoding::Differences => encode_v2::initial,
    };
    for asked in subscription.tables() {
        let table = schema.table(asked.table);
        if asked.select.has(Event::Initial)
            && let Some(query) = asked.condition.query()
        {
            rows(asked.table, &query, &mut |row| {
                encode(body, table, asked, row);
                body.cut();
            });
            body.end_table();
        }
    }
}

/// How many rows must be looked at to write the contents now; where only some of a table, not counted further than `max`. Columns by
/// which they can be looked up will have an index next time.
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
