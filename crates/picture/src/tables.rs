//! Rows of a database as a picture needs them: by table and UUID, with the cells that the caller
//! has.
//!
//! The caller fills it from a replica or from results of `select`, and keeps it up to date row by
//! row. A cell that was never set is empty, so pictures may be drawn from a part of the columns.
//! Nothing here knows a schema: names of columns are resolved as they come.

use std::collections::BTreeMap;

use corvid_data::{Atom, AtomRef, Datum, DatumBuilder, Real, Str, Uuid};
use corvid_json::Value;

/// The tables of one database.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: BTreeMap<String, Table>,
}

/// One table.
#[derive(Clone, Debug, Default)]
struct Table {
    columns: Vec<String>,
    rows: BTreeMap<Uuid, Vec<Datum>>,
    /// The number of rows that the server has, if the caller did not fetch them.
    count: Option<usize>,
}

/// One row, with access by the names of columns.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// `_uuid`
    pub uuid: Uuid,
    columns: &'a [String],
    cells: &'a [Datum],
}

impl Tables {
    /// No tables.
    #[must_use]
    pub fn new() -> Tables {
        Tables::default()
    }

    /// Adds a row, or sets the given cells of a row that is there. Other cells stay.
    pub fn set<'c>(
        &mut self,
        table: &str,
        uuid: Uuid,
        cells: impl IntoIterator<Item = (&'c str, Datum)>,
    ) {
        let table = match self.tables.get_mut(table) {
            Some(table) => table,
            None => self.tables.entry(table.to_owned()).or_default(),
        };
        let row = table.rows.entry(uuid).or_default();
        for (column, datum) in cells {
            let index = match table.columns.iter().position(|known| known == column) {
                Some(index) => index,
                None => {
                    table.columns.push(column.to_owned());
                    table.columns.len() - 1
                }
            };
            if row.len() <= index {
                row.resize(index + 1, Datum::empty());
            }
            row[index] = datum;
        }
    }

    /// Removes a row. It need not be there.
    pub fn remove(&mut self, table: &str, uuid: Uuid) {
        if let Some(table) = self.tables.get_mut(table) {
            table.rows.remove(&uuid);
        }
    }

    /// Tells how many rows a table has whose rows are not here.
    pub fn set_count(&mut self, table: &str, count: usize) {
        self.tables.entry(table.to_owned()).or_default().count = Some(count);
    }

    /// Adds one row as a result of `select` has it: an object of columns, with `_uuid`. Returns
    /// whether that was there; cells that are not OVSDB values are left out.
    pub fn set_json(&mut self, table: &str, row: &Value) -> bool {
        let Some(members) = row.as_object() else {
            return false;
        };
        let Some(uuid) = row.get("_uuid").and_then(datum).and_then(|id| id.as_uuid()) else {
            return false;
        };
        let cells = members.iter().filter_map(|(name, value)| {
            let name = std::str::from_utf8(name).ok()?;
            if name.starts_with('_') {
                return None;
            }
            Some((name, datum(value)?))
        });
        self.set(table, uuid, cells);
        true
    }

    /// The number of rows of a table: as told by [`Tables::set_count`], else as they are here.
    #[must_use]
    pub fn count(&self, table: &str) -> usize {
        self.tables
            .get(table)
            .map_or(0, |table| table.count.unwrap_or(table.rows.len()))
    }

    /// The rows of a table, by UUID.
    pub fn rows<'a>(&'a self, table: &str) -> impl Iterator<Item = Cells<'a>> + use<'a> {
        self.tables.get(table).into_iter().flat_map(|table| {
            table.rows.iter().map(|(uuid, cells)| Cells {
                uuid: *uuid,
                columns: &table.columns,
                cells,
            })
        })
    }

    /// One row.
    #[must_use]
    pub fn row(&self, table: &str, uuid: Uuid) -> Option<Cells<'_>> {
        let table = self.tables.get(table)?;
        table.rows.get(&uuid).map(|cells| Cells {
            uuid,
            columns: &table.columns,
            cells,
        })
    }
}

impl<'a> Cells<'a> {
    /// A cell, if it was set.
    #[must_use]
    pub fn cell(&self, column: &str) -> Option<&'a Datum> {
        let index = self.columns.iter().position(|known| known == column)?;
        self.cells.get(index)
    }

    /// The first string of a cell; empty without one.
    #[must_use]
    pub fn text(&self, column: &str) -> &'a str {
        self.texts(column).next().unwrap_or_default()
    }

    /// The strings of a set.
    pub fn texts(&self, column: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.cell(column)
            .into_iter()
            .flat_map(Datum::keys)
            .filter_map(|atom| match atom {
                AtomRef::String(text) => Some(text.as_str()),
                _ => None,
            })
    }

    /// The UUIDs of a set.
    pub fn references(&self, column: &str) -> impl Iterator<Item = Uuid> + use<'a> {
        self.cell(column)
            .into_iter()
            .flat_map(Datum::keys)
            .filter_map(AtomRef::as_uuid)
    }

    /// The pairs of a map.
    pub fn pairs(
        &self,
        column: &str,
    ) -> impl Iterator<Item = (AtomRef<'a>, AtomRef<'a>)> + use<'a> {
        self.cell(column)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key, value?)))
    }

    /// The value of a map of strings under a key.
    #[must_use]
    pub fn entry(&self, column: &str, key: &str) -> Option<&'a str> {
        self.pairs(column).find_map(|(found, value)| {
            if found.as_string() != Some(key) {
                return None;
            }
            match value {
                AtomRef::String(text) => Some(text.as_str()),
                _ => None,
            }
        })
    }

    /// The boolean of a cell, if it has one.
    #[must_use]
    pub fn boolean(&self, column: &str) -> Option<bool> {
        self.cell(column)?.first()?.as_boolean()
    }

    /// The integer of a cell, if it has one.
    #[must_use]
    pub fn integer(&self, column: &str) -> Option<i64> {
        self.cell(column)?.first()?.as_integer()
    }

    /// The number of elements of a cell.
    #[must_use]
    pub fn len(&self, column: &str) -> usize {
        self.cell(column).map_or(0, Datum::len)
    }
}

/// An atom as a person reads it.
#[must_use]
pub(crate) fn shown(atom: AtomRef<'_>) -> String {
    match atom {
        AtomRef::Integer(integer) => integer.to_string(),
        AtomRef::Real(real) => real.get().to_string(),
        AtomRef::Boolean(boolean) => boolean.to_string(),
        AtomRef::String(text) => text.as_str().to_owned(),
        AtomRef::Uuid(uuid) => uuid.to_string(),
    }
}

/// A datum in the notation of RFC 7047, whose type is taken from the value itself.
fn datum(value: &Value) -> Option<Datum> {
    if let Some([Value::String(kind), Value::Array(elements)]) = value.as_array() {
        let mut datum = DatumBuilder::new();
        let is_map = match kind.as_slice() {
            b"set" => false,
            b"map" => true,
            _ => return None,
        };
        // One type for all elements: the builder's condition.
        let mut types = None;
        for element in elements {
            let (key, value) = match element.as_array() {
                Some([key, value]) if is_map => (atom(key)?, Some(atom(value)?)),
                _ if !is_map => (atom(element)?, None),
                _ => return None,
            };
            let own = (
                key.as_ref().atom_type(),
                value
                    .as_ref()
                    .map(|value: &Atom| value.as_ref().atom_type()),
            );
            if *types.get_or_insert(own) != own {
                return None;
            }
            datum.push(key, value);
        }
        return datum.finish().ok();
    }
    atom(value).map(Datum::one)
}

fn atom(value: &Value) -> Option<Atom> {
    Some(match value {
        Value::Bool(boolean) => Atom::Boolean(*boolean),
        Value::Integer(integer) => Atom::Integer(*integer),
        Value::Real(real) => Atom::Real(Real::new(*real)?),
        Value::String(_) => Atom::String(Str::new(value.as_str()?)),
        Value::Array(pair) => match pair.as_slice() {
            [kind, id] if matches!(kind.as_str(), Some("uuid" | "named-uuid")) => {
                Atom::Uuid(Uuid::parse(id.as_str()?.as_bytes())?)
            }
            _ => return None,
        },
        Value::Null | Value::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_select_become_cells() {
        let row = Value::parse(
            br#"{"_uuid": ["uuid", "00000000-0000-4000-8000-000000000001"], "name": "web",
                "up": ["set", []], "ports": ["set", [["uuid", "00000000-0000-4000-8000-000000000002"]]],
                "options": ["map", [["a", "b"]]], "odd": ["set", [1, "x"]]}"#,
        )
        .unwrap();
        let mut tables = Tables::new();
        assert!(tables.set_json("T", &row));
        assert!(!tables.set_json("T", &Value::Null));
        let row = tables.rows("T").next().unwrap();
        assert_eq!(row.text("name"), "web");
        assert_eq!(row.boolean("up"), None);
        assert_eq!(row.references("ports").count(), 1);
        assert_eq!(row.entry("options", "a"), Some("b"));
        assert!(row.cell("odd").is_none());
    }
}
