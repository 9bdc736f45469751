//! Checks that the replica's parts agree with each other: a test aid.
//!
//! Everything that is derived from the rows (look-up by UUID, indexes, reference arcs) is rebuilt
//! from the rows and compared. The check costs as much as loading the contents. It changes nothing
//! and trusts nothing.

use crate::references::Referrers;
use crate::replica::Replica;
use crate::table::Table;

/// Returns the first disagreement. Arcs describe the server's contents, so they are skipped while a
/// transaction is open.
pub(crate) fn check(replica: &Replica, is_txn_open: bool) -> Result<(), String> {
    let mut expected = Referrers::default();
    for ((id, schema), table) in replica.class.schema.iter().zip(&replica.tables) {
        check_table(table).map_err(|problem| format!("table {}: {problem}", schema.name))?;
        for row in table.iter() {
            expected.inserted(id, row, &replica.layout(id).references);
        }
    }
    match replica.referrers() {
        Some(held) if !is_txn_open && *held != expected => {
            Err("arcs and columns of references disagree".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_table(table: &Table) -> Result<(), String> {
    let rows = table.iter().count();
    if rows != table.len() {
        return Err(format!("{rows} rows, {} by UUID", table.len()));
    }
    for row in table.iter() {
        let found = table.get(row.uuid).map(|found| found.uuid);
        if found != Some(row.uuid) {
            return Err(format!("row {} is not found by its UUID", row.uuid));
        }
    }
    for (number, index) in table.indexes.iter().enumerate() {
        let listed: Option<Vec<_>> = index
            .iter(index.start(), None)
            .map(|slot| table.at(slot))
            .collect();
        let Some(listed) = listed else {
            return Err(format!("index {number} lists a row that is gone"));
        };
        if listed.len() != rows {
            return Err(format!(
                "index {number} lists {} rows of {rows}",
                listed.len()
            ));
        }
        let is_sorted = listed.windows(2).all(|pair| {
            let order = index.compare(pair[0], pair[1]);
            order.then(pair[0].uuid.cmp(&pair[1].uuid)).is_lt()
        });
        if !is_sorted {
            return Err(format!("index {number} is out of order"));
        }
        let is_first = |at: usize| at == 0 || !index.compare(listed[at - 1], listed[at]).is_eq();
        let firsts: Vec<_> = (0..listed.len()).filter(|&at| is_first(at)).collect();
        let is_found = |&at: &usize| {
            let found = index.find(table.slots(), &index.key_of(listed[at]));
            found.and_then(|slot| table.at(slot)).map(|row| row.uuid) == Some(listed[at].uuid)
        };
        let has_all = firsts.iter().all(is_found);
        if !has_all || index.key_count().is_some_and(|count| count != firsts.len()) {
            return Err(format!("index {number} does not find its keys"));
        }
    }
    Ok(())
}
