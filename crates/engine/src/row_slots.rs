//! The slots of a database's rows, so that another database can hold the same rows in the same
//! slots.
//!
//! Results list rows in the order of their slots, and the slot of the next row depends on those
//! that were freed. So a recording of a database begins with the slots of its rows
//! ([`Database::row_slots`]), and a replay restores them ([`Database::restore`]).
//!
//! Invariant: a restored database answers every transaction as the original does. Both functions
//! visit all rows; they are not called for every commit.

use corvid_data::{
    Arc, ColumnId, Datum, HashSeed, Recorded, RecordedRow, Row, Schema, Uuid, UuidSource, WireError,
};

use crate::Database;
use crate::page::{PAGE_SLOTS, Page, Slot};
use crate::table::Table;

/// The slots of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSlots {
    /// Slots of the rows, in the order of [`Database::rows`].
    pub rows: Vec<u32>,
    /// Free slots. The last one is used next.
    pub free: Vec<u32>,
}

/// A source of versions that returns the ones that rows already have, in order.
struct Versions(std::vec::IntoIter<Uuid>);

impl UuidSource for Versions {
    fn fresh(&mut self) -> Uuid {
        self.0.next().unwrap_or(Uuid::ZERO)
    }
}

impl Database {
    /// The slots of the rows, table by table.
    #[must_use]
    pub fn row_slots(&self) -> Vec<RowSlots> {
        let number = |slot: Slot| u32::try_from(slot.number()).unwrap_or(u32::MAX);
        let of_table = |table: &Table| RowSlots {
            rows: table.slots().map(|(slot, _)| number(slot)).collect(),
            free: table.free().iter().map(|slot| number(*slot)).collect(),
        };
        self.tables.iter().map(of_table).collect()
    }

    /// A database of this schema with these rows, table by table, each in its slot.
    ///
    /// # Errors
    /// The rows do not fit the schema, or the slots do not fit the rows.
    pub fn restore(
        schema: Arc<Schema>,
        seed: HashSeed,
        rows: Vec<Vec<Row>>,
        slots: &[RowSlots],
    ) -> Result<Database, WireError> {
        let mismatch = || WireError::new(corvid_data::Tag::SyntaxError, "rows and places differ");
        let mut database = Database::new(schema, seed);
        if rows.len() != database.tables.len() || slots.len() != rows.len() {
            return Err(mismatch());
        }
        let mut versions = Vec::new();
        let mut recorded = Recorded::default();
        for ((id, rows), slots) in (0_u16..).zip(rows).zip(slots) {
            let table = &mut database.tables[usize::from(id)];
            if rows.len() != slots.rows.len() || !table.assign_slots(slots) {
                return Err(mismatch());
            }
            for row in rows {
                versions.push(row.version);
                let columns = Vec::from(row.columns);
                let columns: Vec<(ColumnId, Datum)> =
                    (0_u16..).map(ColumnId).zip(columns).collect();
                recorded.rows.push(RecordedRow {
                    table: corvid_data::TableId(id),
                    uuid: row.uuid,
                    columns: Some(columns),
                });
            }
        }
        // An ordinary commit builds the indexes, counts and back references. It takes the slots in
        // the order in which `assign_slots` listed them.
        database.apply_recorded(recorded, &mut Versions(versions.into_iter()))?;
        for (table, slots) in database.tables.iter_mut().zip(slots) {
            // The rows are in place. From now on new rows take the slots that they would take in
            // the original.
            table.set_free(slots);
        }
        Ok(database)
    }
}

impl Table {
    /// Gives an empty table the pages for these slots, whose rows are inserted next, in order.
    /// Returns false if a slot occurs twice.
    fn assign_slots(&mut self, slots: &RowSlots) -> bool {
        let all = || {
            slots
                .rows
                .iter()
                .chain(&slots.free)
                .map(|slot| *slot as usize)
        };
        let count = all().count();
        let mut is_used = vec![false; count];
        for slot in all() {
            match is_used.get_mut(slot) {
                Some(is_used) if !*is_used => *is_used = true,
                _ => return false,
            }
        }
        if !count.is_multiple_of(PAGE_SLOTS) {
            return false;
        }
        let pages = (0..count / PAGE_SLOTS).map(|_| Arc::new(Page::empty()));
        // Slots are taken from the end of this list, so the slot of the first row is the last one
        // here.
        let free = slots
            .rows
            .iter()
            .rev()
            .map(|slot| Slot::new(*slot as usize));
        self.set_pages(pages.collect(), free.collect());
        true
    }

    fn set_free(&mut self, slots: &RowSlots) {
        let free = slots.free.iter().map(|slot| Slot::new(*slot as usize));
        self.replace_free(free.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_database_has_the_same_rows_in_the_same_slots() {
        let json = corvid_json::Value::parse(
            br#"{"name":"D","version":"1.0.0","tables":{"T":{"isRoot":true,"columns":{"n":{"type":"integer"}}}}}"#,
        );
        let schema = Arc::new(Schema::from_json(&json.unwrap()).unwrap());
        let mut database = Database::new(schema.clone(), HashSeed::FIXED);
        let mut next = 0;
        let recorded = |range: std::ops::Range<u8>, is_there: bool| Recorded {
            rows: range
                .map(|number| RecordedRow {
                    table: corvid_data::TableId(0),
                    uuid: Uuid([number + 1; 16]),
                    columns: is_there.then(Vec::new),
                })
                .collect(),
            ..Recorded::default()
        };
        struct Counter<'c>(&'c mut u64);
        impl UuidSource for Counter<'_> {
            fn fresh(&mut self) -> Uuid {
                *self.0 += 1;
                Uuid(u128::from(*self.0).to_be_bytes())
            }
        }
        let mut replay = |database: &mut Database, recorded| {
            database
                .apply_recorded(recorded, &mut Counter(&mut next))
                .unwrap();
        };
        replay(&mut database, recorded(0..20, true));
        replay(&mut database, recorded(3..7, false));
        replay(&mut database, recorded(30..32, true));
        let all = |database: &Database| -> Vec<Row> {
            let rows = database.rows(corvid_data::TableId(0));
            rows.map(|row| Row::clone(row)).collect()
        };
        let slots = database.row_slots();
        let mut restored = Database::restore(
            schema.clone(),
            HashSeed::FIXED,
            vec![all(&database)],
            &slots,
        )
        .unwrap();
        restored.check_invariants().unwrap();
        assert_eq!(restored.row_slots(), slots);
        assert_eq!(all(&database), all(&restored), "versions too");
        for database in [&mut database, &mut restored] {
            replay(database, recorded(60..70, true));
        }
        let uuids =
            |database: &Database| all(database).iter().map(|row| row.uuid).collect::<Vec<_>>();
        assert_eq!(uuids(&database), uuids(&restored));
        let mut broken = slots.clone();
        broken[0].free[0] = broken[0].rows[0];
        assert!(Database::restore(schema, HashSeed::FIXED, vec![all(&restored)], &broken).is_err());
    }
}
