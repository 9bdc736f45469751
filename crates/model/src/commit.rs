//! The commit of the model: each step of docs/spec/protocol.md 5.12 runs over all rows of the
//! database.

use std::collections::BTreeSet;

use corvid_data::Uuid;

use super::atom::Atom;
use super::datum::Datum;
use super::fault::{Fault, Faults};
use super::schema::{Schema, Table, UNLIMITED};
use super::{Row, Tables};

/// A commit in progress: the rows before the transaction, and the rows after the steps so far.
struct Commit<'c> {
    schema: &'c Schema,
    before: &'c Tables,
    after: &'c mut Tables,
}

/// Runs the commit steps on `after`.
///
/// # Errors
/// All violations of the first step that finds any.
pub(super) fn commit(schema: &Schema, before: &Tables, after: &mut Tables) -> Result<(), Faults> {
    if before == after {
        return Ok(());
    }
    let mut commit = Commit {
        schema,
        before,
        after,
    };
    refuse(commit.dangling_strong())?;
    refuse(commit.referenced_deletions())?;
    commit.collect_garbage();
    refuse(commit.overfull_tables())?;
    // Dropping one weak half of a map pair may have removed the last strong reference to a row, so
    // the two steps alternate until no row is removed.
    loop {
        refuse(commit.drop_weak())?;
        if !commit.collect_garbage() {
            break;
        }
    }
    refuse(commit.equal_keys())
}

fn refuse(faults: Faults) -> Result<(), Faults> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// One reference, with its source column, its target, and whether it is strong.
struct Arrow<'a> {
    column: &'a str,
    table: &'a str,
    uuid: Uuid,
    is_strong: bool,
}

/// Lists the references of a row, one per referring atom.
fn arrows<'a>(table: &'a Table, row: &'a Row) -> Vec<Arrow<'a>> {
    let mut arrows = Vec::new();
    for (name, column) in &table.columns {
        for (is_value, reference) in column.ty.references() {
            for (key, value) in row[name].iter() {
                if let Some(Atom::Uuid(uuid)) = if is_value { value } else { Some(key) } {
                    arrows.push(Arrow {
                        column: name,
                        table: &reference.table,
                        uuid: *uuid,
                        is_strong: reference.is_strong,
                    });
                }
            }
        }
    }
    arrows
}

impl Commit<'_> {
    /// Step 2: every strong reference needs a row that exists, or existed before the transaction.
    fn dangling_strong(&self) -> Faults {
        let mut faults = Faults::new();
        for (name, rows) in &*self.after {
            for (uuid, row) in rows {
                for arrow in arrows(&self.schema.tables[name], row) {
                    // A reference with the UUID of its own row passes, even if it refers to another
                    // table.
                    let is_self = arrow.uuid == *uuid;
                    let exists = self.before[arrow.table].contains_key(&arrow.uuid)
                        || self.after[arrow.table].contains_key(&arrow.uuid);
                    if arrow.is_strong && !is_self && !exists {
                        faults.push(Fault::new(
                            "referential integrity violation",
                            format!(
                                "Table {name} column {} row {uuid} references nonexistent row {} in table {}.",
                                arrow.column, arrow.uuid, arrow.table
                            ),
                        ));
                    }
                }
            }
        }
        faults
    }

    /// Counts the strong references to a row from other rows.
    fn strong_count(&self, table: &str, uuid: Uuid) -> usize {
        let mut count = 0;
        for (name, rows) in &*self.after {
            for (source, row) in rows {
                let is_self = *source == uuid;
                let arrows = arrows(&self.schema.tables[name], row);
                let points = |arrow: &&Arrow<'_>| {
                    arrow.is_strong && arrow.table == table && arrow.uuid == uuid
                };
                count += if is_self {
                    0
                } else {
                    arrows.iter().filter(points).count()
                };
            }
        }
        count
    }

    /// Step 3: no other row may hold a strong reference to a deleted row.
    fn referenced_deletions(&self) -> Faults {
        let mut faults = Faults::new();
        for (name, rows) in self.before {
            for uuid in rows
                .keys()
                .filter(|uuid| !self.after[name].contains_key(uuid))
            {
                let count = self.strong_count(name, *uuid);
                if count > 0 {
                    faults.push(Fault::new(
                        "referential integrity violation",
                        format!("cannot delete {name} row {uuid} because of {count} remaining reference(s)"),
                    ));
                }
            }
        }
        faults
    }

    /// Step 4: removes the non-root rows to which no other row holds a strong reference. Returns
    /// whether it removed any row.
    fn collect_garbage(&mut self) -> bool {
        let mut has_changed = false;
        loop {
            // One pass collects the targets of all strong references between different rows.
            let mut held = BTreeSet::new();
            for (name, rows) in &*self.after {
                for (uuid, row) in rows {
                    for arrow in arrows(&self.schema.tables[name], row) {
                        if arrow.is_strong && arrow.uuid != *uuid {
                            held.insert((arrow.table.to_owned(), arrow.uuid));
                        }
                    }
                }
            }
            let mut has_gone = false;
            for (name, rows) in &mut *self.after {
                if !self.schema.tables[name].is_root {
                    let count = rows.len();
                    rows.retain(|uuid, _| held.contains(&(name.clone(), *uuid)));
                    has_gone |= rows.len() < count;
                }
            }
            if !has_gone {
                return has_changed;
            }
            has_changed = true;
        }
    }

    /// Step 5: no table may exceed its `maxRows`.
    fn overfull_tables(&self) -> Faults {
        let mut faults = Faults::new();
        for (name, rows) in &*self.after {
            let (count, max) = (rows.len() as u64, self.schema.tables[name].max_rows);
            if count > max && max != UNLIMITED {
                faults.push(Fault::constraint(format!(
                    "transaction causes \"{name}\" table to contain {count} rows, greater than the schema-defined limit of {max} row(s)"
                )));
            }
        }
        faults
    }

    /// Step 6: drops weak references to rows that do not exist. A column that drops below its
    /// minimum is a violation.
    fn drop_weak(&mut self) -> Faults {
        let mut faults = Faults::new();
        let existing = self.after.clone();
        for (name, rows) in &mut *self.after {
            for (column, schema) in &self.schema.tables[name].columns {
                let dangles = |is_value: bool, table: &str, key: &Atom, value: Option<&Atom>| {
                    let atom = if is_value { value } else { Some(key) };
                    matches!(atom, Some(Atom::Uuid(uuid)) if !existing[table].contains_key(uuid))
                };
                let stays = |key: &Atom, value: Option<&Atom>| {
                    let mut weak = schema
                        .ty
                        .references()
                        .filter(|(_, reference)| !reference.is_strong);
                    !weak.any(|(is_value, reference)| {
                        dangles(is_value, &reference.table, key, value)
                    })
                };
                for (uuid, row) in &mut *rows {
                    let kept = row[column].filtered(stays);
                    let lost = row[column].filtered(|key, value| !stays(key, value));
                    if lost.is_empty() {
                        continue;
                    }
                    if (kept.len() as u64) < schema.ty.min {
                        let is_new = !self.before[name].contains_key(uuid);
                        faults.push(emptied(name, column, *uuid, is_new, &lost));
                    }
                    row.insert(column.clone(), kept);
                }
            }
        }
        faults
    }

    /// Step 7: no two rows may have equal index values. If their other contents are equal as well,
    /// the message may name either row first.
    fn equal_keys(&self) -> Faults {
        let mut faults = Faults::new();
        for (name, rows) in &*self.after {
            let table = &self.schema.tables[name];
            for index in &table.indexes {
                for first in rows.values() {
                    for second in rows.values() {
                        let is_equal = index.iter().all(|column| first[column] == second[column]);
                        let is_before = content(table, first) < content(table, second);
                        if is_equal && first["_uuid"] != second["_uuid"] && !is_before {
                            faults.push(self.equal_key(name, index, first, second));
                        }
                    }
                }
            }
        }
        faults
    }

    fn equal_key(&self, name: &str, index: &[String], first: &Row, second: &Row) -> Fault {
        let table = &self.schema.tables[name];
        let values = |row: &Row| {
            let text = |column: &String| row[column].to_text(&table.ty(column).expect("a column"));
            english(&index.iter().map(text).collect::<Vec<_>>())
        };
        let history = |row: &Row| {
            let Some(Atom::Uuid(uuid)) = row["_uuid"].keys().next() else {
                unreachable!("an identity is a uuid");
            };
            match self.before[name].get(uuid) {
                None => "was inserted by this transaction".to_owned(),
                Some(old) if old == row => {
                    "existed in the database before this transaction and was not modified by the transaction".to_owned()
                }
                Some(old) if index.iter().all(|column| old[column] == row[column]) => {
                    "existed in the database before this transaction, which modified some of the row's columns but not any columns in this index".to_owned()
                }
                Some(old) => format!("had the following index values before the transaction: {}", values(old)),
            }
        };
        let columns: Vec<String> = index.iter().map(|column| format!("\"{column}\"")).collect();
        let noun = if columns.len() == 1 {
            "column"
        } else {
            "columns"
        };
        let identity = |row: &Row| row["_uuid"].keys().next().expect("an identity").to_text();
        Fault::constraint(format!(
            "Transaction causes multiple rows in \"{name}\" table to have identical values ({}) for index on {noun} {}.  First row, with UUID {}, {}.  Second row, with UUID {}, {}.",
            values(first),
            english(&columns),
            identity(first),
            history(first),
            identity(second),
            history(second),
        ))
    }
}

/// Returns the sort key of a row: its columns by name, without those that hold UUIDs. Of two rows
/// with equal index values, the message names the greater one first.
fn content<'r>(table: &Table, row: &'r Row) -> Vec<&'r Datum> {
    let is_uuid = |base: &super::schema::Base| base.kind == super::atom::Kind::Uuid;
    let columns = table.columns.iter();
    let columns = columns.filter(|(_, column)| {
        !is_uuid(&column.ty.key) && !column.ty.value.as_ref().is_some_and(is_uuid)
    });
    columns.map(|(name, _)| &row[name]).collect()
}

fn emptied(table: &str, column: &str, uuid: Uuid, is_new: bool, lost: &Datum) -> Fault {
    let zero = Atom::Uuid(Uuid::ZERO);
    let has_zero = lost
        .iter()
        .any(|(key, value)| *key == zero || value == Some(&zero));
    let inserted = if is_new {
        "(inserted within this transaction) "
    } else {
        ""
    };
    Fault::constraint(if is_new && has_zero {
        format!(
            "Weak reference column \"{column}\" in \"{table}\" row {uuid} {inserted}contained all-zeros UUID (probably as the default value for this column) but deleting this value caused a constraint volation because this column is not allowed to be empty."
        )
    } else {
        format!(
            "Deletion of {} weak reference(s) to deleted (or never-existing) rows from column \"{column}\" in \"{table}\" row {uuid} {inserted}caused this column to become empty, but constraints on this column disallow an empty column.",
            lost.len()
        )
    })
}

/// Joins items as English does: `A`; `A and B`; `A, B, and C`.
fn english(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [head @ .., last] => format!("{}, and {last}", head.join(", ")),
    }
}
