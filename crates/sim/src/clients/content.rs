//! The content of a replica, its expected content given a database, and the effect of its tracked
//! changes on the preceding content.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{AtomRef, Datum, TableId, Uuid};
use corvid_engine::Database;
use corvid_idl::{Column, Idl, RowId};

use super::workload::{self, INDEX};

/// Rows by table and UUID. The columns are those of the client's schema.
pub(super) type Contents = BTreeMap<(TableId, Uuid), Vec<Datum>>;

fn is_fetched(idl: &Idl, column: Column) -> bool {
    idl.class().mode(column).is_on_demand
}

/// Returns the content of a replica, without on-demand columns unless `with_fetched`.
pub(super) fn held(idl: &Idl, with_fetched: bool) -> Contents {
    let tables = idl.schema().iter();
    let rows = tables.flat_map(|(table, _)| idl.rows(table));
    rows.map(|row| ((row.table, row.uuid), values(idl, row, with_fetched)))
        .collect()
}

fn values(idl: &Idl, row: RowId, with_fetched: bool) -> Vec<Datum> {
    let columns = idl.schema().table(row.table).iter();
    let value = |id| {
        let column = Column {
            table: row.table,
            id,
        };
        if is_fetched(idl, column) && !with_fetched {
            return Datum::empty();
        }
        idl.read(row, column).unwrap_or(Datum::empty())
    };
    columns.map(|(id, _)| value(id)).collect()
}

/// Returns the expected content of a replica. With a `limit`, the replica subscribes to items up to
/// it.
pub(super) fn expected(idl: &Idl, database: &Database, limit: Option<i64>) -> Contents {
    let mut contents = Contents::new();
    for (served_id, served) in database.schema().iter() {
        let Some(table) = idl.schema().table_id(&served.name) else {
            continue;
        };
        let n = served
            .column_id("n")
            .filter(|_| served.name.as_str() == "Item");
        for row in database.rows(served_id) {
            let number = n.and_then(|n| row.columns[usize::from(n.0)].as_integer());
            if limit.is_some_and(|limit| number.is_some_and(|number| number > limit)) {
                continue;
            }
            let own = idl.schema().table(table).iter();
            let columns = own.map(|(id, column)| {
                let mode = idl.class().mode(Column { table, id });
                match served.column_id(&column.name) {
                    Some(at) if mode.is_monitored || mode.is_on_demand => {
                        row.columns[usize::from(at.0)].clone()
                    }
                    _ => Datum::default_for(&column.column_type),
                }
            });
            contents.insert((table, row.uuid), columns.collect());
        }
    }
    contents
}

/// Describes the first difference between two contents.
pub(super) fn difference(idl: &Idl, held: &Contents, expected: &Contents) -> Option<String> {
    let keys: BTreeSet<_> = held.keys().chain(expected.keys()).collect();
    let differs = keys
        .into_iter()
        .find(|key| held.get(key) != expected.get(key))?;
    let name = &idl.schema().table(differs.0).name;
    let (one, two) = (held.get(differs), expected.get(differs));
    Some(format!("{name} {}: {one:?} instead of {two:?}", differs.1))
}

/// Returns the transactions in the database, by its head; `None` without a head.
pub(super) fn transactions(database: &Database) -> Option<BTreeSet<i64>> {
    let table = database.schema().table_id("Head")?;
    let column = database.schema().table(table).column_id("txns")?;
    let row = database.rows(table).next()?;
    Some(integers(&row.columns[usize::from(column.0)]))
}

/// Returns the transactions in a replica, and their number according to its head.
pub(super) fn shown(idl: &Idl) -> Option<(BTreeSet<i64>, i64)> {
    let head = *workload::rows(idl, "Head").first()?;
    let txns = idl.read(head, workload::column(idl, "Head", "txns"))?;
    let count = idl.read(head, workload::column(idl, "Head", "count"))?;
    Some((integers(&txns), count.as_integer()?))
}

fn integers(datum: &Datum) -> BTreeSet<i64> {
    let atoms = datum.keys().filter_map(|atom| match atom {
        AtomRef::Integer(number) => Some(number),
        _ => None,
    });
    atoms.collect()
}

/// Applies the tracked changes to the preceding content.
///
/// # Errors
/// The changes do not fit the content.
pub(super) fn replay(idl: &Idl, before: &mut Contents) -> Result<(), String> {
    for (table, schema) in idl.schema().iter() {
        for change in idl.changes(table) {
            let key = (table, change.uuid);
            let row = RowId {
                table,
                uuid: change.uuid,
            };
            let is_known = before.contains_key(&key);
            if change.is_deleted {
                before.remove(&key);
                if !is_known && !change.is_new {
                    return Err(format!("{row:?} is deleted, new: {}", change.is_new));
                }
                continue;
            }
            let now = values(idl, row, false);
            if change.is_new {
                before.insert(key, now);
                continue;
            }
            let Some(seen) = before.get_mut(&key) else {
                return Err(format!("{row:?} is changed, and was not there"));
            };
            for id in change.updated() {
                let place = usize::from(id.0);
                if is_fetched(idl, Column { table, id }) {
                    continue;
                }
                if change.old(id) != Some(&seen[place]) {
                    let name = &schema.column(id).name;
                    return Err(format!(
                        "{name} of {row:?} was not what it is said to have been"
                    ));
                }
                seen[place] = now[place].clone();
            }
        }
    }
    Ok(())
}

/// Checks that the index lists the rows in the order of a sorted scan.
pub(super) fn check_index(idl: &Idl) -> Result<(), String> {
    let (n, name) = (
        workload::column(idl, "Item", "n"),
        workload::column(idl, "Item", "name"),
    );
    let index = idl.index(n.table, INDEX).ok_or("the index is not there")?;
    let mut scan: Vec<RowId> = idl.rows(n.table).collect();
    scan.sort_by_key(|row| {
        (
            std::cmp::Reverse(idl.read(*row, n)),
            idl.read(*row, name),
            row.uuid,
        )
    });
    let listed: Vec<RowId> = idl.range_of(index, None, None).collect();
    if listed == scan {
        Ok(())
    } else {
        Err(format!("the index lists {listed:?} instead of {scan:?}"))
    }
}
