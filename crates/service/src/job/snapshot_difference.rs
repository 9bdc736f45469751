//! The difference between two snapshots of one schema, as a transaction. A job ([`crate::job`]),
//! because the time is proportional to the number of rows.
//!
//! Invariant: applied to the first snapshot, the result yields the rows of the second. Its order
//! depends only on the two snapshots.

use std::collections::HashMap;

use corvid_data::{Arc, Recorded, RecordedRow, Row, Uuid};
use corvid_engine::Snapshot;

/// The rows that differ, as a transaction from `from` to `to`, which have the same schema.
pub(super) fn difference(from: &Snapshot, to: &Snapshot) -> Recorded {
    let mut recorded = Recorded {
        is_diff: false,
        ..Recorded::default()
    };
    for (table, described) in from.schema().iter() {
        let mut present: HashMap<Uuid, &Arc<Row>, _> = HashMap::with_hasher(from.hash_seed());
        present.extend(from.rows(table).map(|row| (row.uuid, row)));
        for row in to.rows(table) {
            let known = present.remove(&row.uuid);
            if known.is_some_and(|known| known.columns == row.columns) {
                continue;
            }
            let columns = described.iter().zip(&row.columns);
            let columns = columns.map(|((column, _), datum)| (column, datum.clone()));
            recorded.rows.push(RecordedRow {
                table,
                uuid: row.uuid,
                columns: Some(columns.collect()),
            });
        }
        let mut gone: Vec<Uuid> = present.into_keys().collect();
        gone.sort_unstable();
        let gone = gone.into_iter().map(|uuid| RecordedRow {
            table,
            uuid,
            columns: None,
        });
        recorded.rows.extend(gone);
    }
    recorded
}
