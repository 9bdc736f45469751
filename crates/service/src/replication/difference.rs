//! The difference between this server's rows and the source's contents: computed by a job on a
//! snapshot, and applied as one transaction. So reconnecting costs only what has changed, and the
//! rows are complete at every moment.
//!
//! Invariant: applied to the snapshot, the result yields the source's rows in every table that is
//! not excluded, and no others there.

use std::collections::HashMap;
use std::ops::Range;

use corvid_data::{
    ColumnId, Datum, HashSeed, Recorded, RecordedRow, Row, TableId, TableSchema, Uuid, WireError,
};
use corvid_engine::Snapshot;
use corvid_session::update::Columns;

use super::read::read_contents;
use super::{Encoding, Exclusions};

/// The source's contents.
#[derive(Debug)]
pub struct Contents {
    /// A monitor's reply.
    pub text: Vec<u8>,
    /// The range of its `<table-updates>` or `<table-updates2>`.
    pub range: Range<usize>,
    /// How the rows are encoded.
    pub encoding: Encoding,
    /// Tables that are not replicated.
    pub excluded: Exclusions,
}

/// The transaction that makes `snapshot` equal to `contents`; empty if it is already.
///
/// # Errors
/// The contents do not fit the schema.
pub fn difference(contents: &Contents, snapshot: &Snapshot) -> Result<Recorded, WireError> {
    let (schema, seed) = (snapshot.schema(), snapshot.hash_seed());
    let mut wanted: Vec<HashMap<Uuid, Columns, HashSeed>> = Vec::new();
    wanted.resize_with(schema.tables().len(), || HashMap::with_hasher(seed));
    let text = &contents.text[contents.range.clone()];
    read_contents(
        text,
        schema,
        contents.encoding,
        &mut |table, uuid, columns| {
            wanted[usize::from(table.0)].insert(uuid, columns);
        },
    )?;
    let mut recorded = Recorded::default();
    for ((id, table), mut wanted) in schema.iter().zip(wanted) {
        if contents.excluded.contains(&table.name) {
            continue;
        }
        for row in snapshot.rows(id) {
            match wanted.remove(&row.uuid) {
                None => push(&mut recorded, id, row.uuid, None),
                Some(columns) => {
                    let changed = changed_columns(table, row, columns);
                    if !changed.is_empty() {
                        push(&mut recorded, id, row.uuid, Some(changed));
                    }
                }
            }
        }
        let mut new: Vec<(Uuid, Columns)> = wanted.into_iter().collect();
        // The result must not depend on the order of a hash map.
        new.sort_unstable_by_key(|(uuid, _)| *uuid);
        for (uuid, columns) in new {
            push(&mut recorded, id, uuid, Some(columns));
        }
    }
    Ok(recorded)
}

fn push(recorded: &mut Recorded, table: TableId, uuid: Uuid, columns: Option<Columns>) {
    recorded.rows.push(RecordedRow {
        table,
        uuid,
        columns,
    });
}

/// The columns of `row` that differ from the source's. Columns that the source omits have their
/// defaults.
fn changed_columns(table: &TableSchema, row: &Row, wanted: Columns) -> Columns {
    let mut now: Vec<Option<Datum>> = Vec::new();
    now.resize_with(row.columns.len(), || None);
    for (column, datum) in wanted {
        now[usize::from(column.0)] = Some(datum);
    }
    let columns = (0u16..).map(ColumnId).zip(now).zip(&row.columns);
    let changed = columns.filter_map(|((id, wanted), here)| {
        let wanted = wanted.unwrap_or_else(|| Datum::default_for(&table.column(id).column_type));
        (wanted != *here).then_some((id, wanted))
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::uuid::UuidSource;
    use corvid_data::{Arc, Schema};
    use corvid_engine::Database;
    use corvid_json::Value;

    struct Counter(u128);

    impl UuidSource for Counter {
        fn fresh(&mut self) -> Uuid {
            self.0 += 1;
            Uuid(self.0.to_be_bytes())
        }
    }

    fn database() -> Database {
        let text = r#"{"name":"D","tables":{
            "T":{"columns":{"n":{"type":"integer"},"e":{"type":"integer","ephemeral":true},
                "r":{"type":{"key":{"type":"uuid","refTable":"T"},"min":0}}}},
            "U":{"columns":{"n":{"type":"integer"}}}}}"#;
        let schema = Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap();
        Database::new(Arc::new(schema), HashSeed::FIXED)
    }

    fn uuid(n: u8) -> String {
        format!("00000000-0000-4000-8000-0000000000{n:02x}")
    }

    /// Makes `database` equal to these contents; returns the number of rows in the difference.
    fn bring(database: &mut Database, text: &str, excluded: &str) -> usize {
        let contents = Contents {
            text: text.as_bytes().to_vec(),
            range: 0..text.len(),
            encoding: if text.contains("\"new\"") {
                Encoding::Values
            } else {
                Encoding::Differences
            },
            excluded: Exclusions::of("D", excluded),
        };
        let recorded = difference(&contents, &database.snapshot()).unwrap();
        let touched = recorded.rows.len();
        database
            .apply_recorded(recorded, &mut Counter(1 << 100))
            .unwrap();
        database.check_invariants().unwrap();
        touched
    }

    fn numbers(database: &Database, table: &str) -> Vec<(u8, i64)> {
        let id = database.schema().table_id(table).unwrap();
        let column = database.schema().table(id).column_id("n").unwrap();
        let mut rows: Vec<(u8, i64)> = database
            .rows(id)
            .map(|row| {
                let number = row.columns[usize::from(column.0)].as_integer();
                (row.uuid.0[15], number.unwrap())
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn only_rows_that_differ_are_changed_and_no_others_are_left() {
        let mut database = database();
        let first = format!(
            r#"{{"T":{{"{}":{{"new":{{"n":1,"e":5,"r":["uuid","{}"]}}}},"{}":{{"new":{{"n":2,"e":0,"r":["set",[]]}}}}}}}}"#,
            uuid(1),
            uuid(2),
            uuid(2)
        );
        assert_eq!(bring(&mut database, &first, ""), 2);
        assert_eq!(bring(&mut database, &first, ""), 0, "it is there");
        // The same with defaults omitted: one row changed, one deleted, one new.
        let second = format!(
            r#"{{"T":{{"{}":{{"initial":{{"n":3}}}},"{}":{{"initial":{{"n":2}}}},"{}":{{"initial":{{}}}}}}}}"#,
            uuid(1),
            uuid(2),
            uuid(3)
        );
        assert_eq!(bring(&mut database, &second, ""), 2);
        assert_eq!(numbers(&database, "T"), [(1, 3), (2, 2), (3, 0)]);
        let third = format!(r#"{{"U":{{"{}":{{"initial":{{"n":9}}}}}}}}"#, uuid(4));
        assert_eq!(bring(&mut database, &third, "D:T"), 1);
        assert_eq!(numbers(&database, "T").len(), 3, "it is left alone");
        assert_eq!(bring(&mut database, &third, ""), 3);
        assert_eq!(numbers(&database, "T"), []);
        assert_eq!(numbers(&database, "U"), [(4, 9)]);
    }
}
