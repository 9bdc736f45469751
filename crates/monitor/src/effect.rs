//! The visible effect of a condition change: rows that enter the view and rows that leave it
//! (docs/spec/protocol.md 4.8).
//!
//! Cost: the rows that match a clause of only one of the two conditions. The engine finds them
//! through its indexes, and missing indexes are requested for the next time. Clauses of both
//! conditions cost nothing. The update goes out only after every pending update of the session.

use corvid_data::Schema;
use corvid_engine::Database;

use crate::body::Body;
use crate::group::Encoding;
use crate::subscription::{Event, Subscription, TableSubscription};

/// Encodes `<table-updates2>` that lead from the view of `old` to that of `new`, which differ only
/// in conditions; `{}` without a visible effect. Contains neither modifications nor rows that are
/// in both views.
pub(crate) fn encode(
    schema: &Schema,
    database: &mut Database,
    old: &Subscription,
    new: &Subscription,
) -> Vec<u8> {
    let mut body = Body::new();
    for (old, new) in old.tables().iter().zip(new.tables()) {
        assert_eq!(
            old.table, new.table,
            "a change leaves the tables as they are"
        );
        if old.condition != new.condition {
            encode_table(&mut body, schema, database, old, new);
        }
    }
    body.finish()
}

fn encode_table(
    body: &mut Body,
    schema: &Schema,
    database: &mut Database,
    old: &TableSubscription,
    new: &TableSubscription,
) {
    let table = schema.table(new.table);
    if new.select.has(Event::Delete)
        && let Some(query) = old.condition.query_beyond(&new.condition)
    {
        database.want_index(new.table, &query);
        database.for_each_matching_any(new.table, &query, &mut |row| {
            if !new.condition.matches(table, row) {
                Encoding::Differences.delete(body, table, new, row);
            }
        });
    }
    if new.select.has(Event::Insert)
        && let Some(query) = new.condition.query_beyond(&old.condition)
    {
        database.want_index(new.table, &query);
        database.for_each_matching_any(new.table, &query, &mut |row| {
            if !old.condition.matches(table, row) {
                Encoding::Differences.insert(body, table, new, row);
            }
        });
    }
    body.end_table();
}
