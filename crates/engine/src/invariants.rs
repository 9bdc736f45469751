//! Recomputes the invariants of a database from its rows, the slow way. For tests: the work is
//! proportional to the size of the database.

use corvid_data::{AtomRef, Datum, RefType, Row, TableId};

use crate::backrefs::BackRefs;
use crate::database::Database;
use std::collections::BTreeMap;

use crate::hash::{Map, Set};
use crate::own_reference::is_own;
use crate::row_id::RowId;

/// Compares counts of strong references, back references, slots, indexes and atoms with the rows.
///
/// # Errors
/// A description of the first difference.
pub(crate) fn check(database: &Database) -> Result<(), String> {
    let (strong, weak) = references(database)?;
    for (id, schema) in database.schema.iter() {
        let table = &database.tables[usize::from(id.0)];
        let name = &schema.name;
        let mut uuids = Set::with_hasher(database.seed);
        for (slot, row) in table.slots() {
            if table.find(row.uuid) != Some(slot) {
                return Err(format!("{name} row {} is not in its slot", row.uuid));
            }
            if !uuids.insert(row.uuid) {
                return Err(format!("{name} row {} is there twice", row.uuid));
            }
            let expected = strong.get(&RowId::new(id, row.uuid)).copied().unwrap_or(0);
            if table.strong(row.uuid) != expected {
                return Err(format!(
                    "{name} row {} has {expected} strong references, {} counted",
                    row.uuid,
                    table.strong(row.uuid)
                ));
            }
            if expected == 0 && !schema.is_root {
                return Err(format!("{name} row {} is garbage", row.uuid));
            }
        }
        if uuids.len() != table.len() {
            return Err(format!("{name} counts {} rows", table.len()));
        }
        let expected = weak.get(&id).cloned().unwrap_or_default();
        if table.backrefs != expected {
            return Err(format!("{name} has wrong back references"));
        }
        check_indexes(database, id)?;
        table
            .check_column_indexes()
            .map_err(|error| format!("{name}: {error}"))?;
        let atoms: u64 = table.rows().map(|row| row_atoms(row)).sum();
        if atoms != table.atoms() {
            return Err(format!("{name} counts {} atoms", table.atoms()));
        }
    }
    Ok(())
}

fn row_atoms(row: &Row) -> u64 {
    2 + row.columns.iter().map(Datum::atom_count).sum::<u64>()
}

fn check_indexes(database: &Database, id: TableId) -> Result<(), String> {
    let table = &database.tables[usize::from(id.0)];
    let name = &database.schema.table(id).name;
    for index in table.indexes() {
        if index.len() != table.len() {
            return Err(format!("an index of {name} has {} rows", index.len()));
        }
        for (slot, row) in table.slots() {
            let same: Vec<_> = index
                .candidates(index.key(row))
                .filter(|slot| index.same_key(table.at(*slot), row))
                .collect();
            if same != [slot] {
                return Err(format!("{name} row {} is not alone at its key", row.uuid));
            }
        }
    }
    Ok(())
}

type Counts = (Map<RowId, u32>, BTreeMap<TableId, BackRefs>);

/// Every reference of every row, counted at its target.
fn references(database: &Database) -> Result<Counts, String> {
    let (mut strong, mut weak): Counts = (Map::with_hasher(database.seed), BTreeMap::new());
    for (id, schema) in database.schema.iter() {
        for row in database.tables[usize::from(id.0)].rows() {
            let source = RowId::new(id, row.uuid);
            for (column, datum) in schema.columns().iter().zip(&row.columns) {
                let key = column.column_type.key.reference.as_ref();
                let value = column.column_type.value.as_ref();
                let value = value.and_then(|value| value.reference.as_ref());
                for (key_atom, value_atom) in datum {
                    for (reference, atom) in [(key, Some(key_atom)), (value, value_atom)] {
                        let (Some(reference), Some(uuid)) =
                            (reference, atom.and_then(AtomRef::as_uuid))
                        else {
                            continue;
                        };
                        let target = RowId::new(reference.table, uuid);
                        if reference.ref_type == RefType::Strong && is_own(source, uuid) {
                            continue;
                        }
                        if !exists(database, target) {
                            return Err(format!(
                                "{} row {} refers to absent {uuid}",
                                schema.name, row.uuid
                            ));
                        }
                        match reference.ref_type {
                            RefType::Strong => *strong.entry(target).or_default() += 1,
                            RefType::Weak => weak
                                .entry(target.table)
                                .or_default()
                                .adjust(uuid, source, 1),
                        }
                    }
                }
            }
        }
    }
    Ok((strong, weak))
}

fn exists(database: &Database, id: RowId) -> bool {
    database.tables[usize::from(id.table.0)].contains(id.uuid)
}
