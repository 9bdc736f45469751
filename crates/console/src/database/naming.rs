//! The names of rows as operators use them: the column `name`, else a column that is an index, else
//! a name among the external ids.

use corvid::data::{AtomRef, AtomType, ColumnId, Datum, Schema, TableId, TableSchema, Uuid};
use corvid::{Column, Idl, RowId, Tracked};

use super::cell::cut;

/// Columns that name rows although the schema does not say so.
const KNOWN: [(&str, &str); 8] = [
    ("Chassis", "hostname"),
    ("Controller", "target"),
    ("Manager", "target"),
    ("Flow_Sample_Collector_Set", "id"),
    ("HA_Chassis", "chassis_name"),
    ("MAC_Binding", "logical_port"),
    ("NAT", "external_ip"),
    ("Logical_Router_Static_Route", "ip_prefix"),
];

/// Keys of `external_ids` that hold names, the best first.
const KEYS: [&str; 4] = [
    "name",
    "neutron:port_name",
    "neutron:network_name",
    "neutron:router_name",
];

/// The number of letters of a name that are shown where a page refers to the row.
pub(crate) const NAME_LETTERS_MAX: usize = 80;

/// The number of letters of a UUID that stand for a row without a name.
const UUID_LETTERS: usize = 8;

/// The columns that name the rows of each table.
pub(crate) struct Naming(Vec<Names>);

struct Names {
    column: Option<ColumnId>,
    external_ids: Option<ColumnId>,
}

impl Naming {
    pub(crate) fn new(schema: &Schema) -> Naming {
        let tables = schema.tables().iter();
        Naming(
            tables
                .map(|table| Names {
                    column: naming_column(table),
                    external_ids: table
                        .column_id("external_ids")
                        .filter(|id| table.column(*id).column_type.is_map()),
                })
                .collect(),
        )
    }

    /// The column that names a table's rows.
    pub(crate) fn column(&self, table: TableId) -> Option<ColumnId> {
        self.0[usize::from(table.0)].column
    }

    /// The name of a row, if the replica has it and it has one.
    pub(crate) fn name(&self, idl: &Idl, table: TableId, uuid: Uuid) -> Option<String> {
        let row: RowId = idl.row(table, uuid)?;
        let names = &self.0[usize::from(table.0)];
        if let Some(id) = names.column {
            let value = idl.read(row, Column { table, id })?;
            let mut name = String::new();
            if let Some(first) = value.first() {
                corvid::data::text::write_atom_bare(&mut name, first);
            }
            if !name.is_empty() {
                return Some(name);
            }
        }
        let id = names.external_ids?;
        name_in(&idl.read(row, Column { table, id })?)
    }

    /// Whether a changed row has another name now.
    pub(super) fn is_renamed(&self, idl: &Idl, table: TableId, change: &Tracked) -> bool {
        let names = &self.0[usize::from(table.0)];
        if change.is_new || change.is_deleted {
            return false;
        }
        if names.column.is_some_and(|id| change.is_updated(id)) {
            return true;
        }
        let Some(id) = names.external_ids else {
            return false;
        };
        // They change more often than the name in them, which counts only if there is no other.
        change.old(id).is_some_and(|old| {
            let now = self.name(idl, table, change.uuid);
            let row = idl.row(table, change.uuid);
            let ids = row.and_then(|row| idl.read(row, Column { table, id }));
            let (old, new) = (name_in(old), ids.as_ref().and_then(name_in));
            old != new && (now == new || now.is_none())
        })
    }

    /// The name of a row, or the beginning of its UUID. A long name is cut.
    pub(crate) fn label(&self, idl: &Idl, table: TableId, uuid: Uuid) -> String {
        let name = self.name(idl, table, uuid);
        name.map_or_else(|| short(uuid), |name| cut(&name, NAME_LETTERS_MAX))
    }
}

/// The name in external ids.
fn name_in(ids: &Datum) -> Option<String> {
    let name = KEYS.iter().find_map(|key| {
        let key = corvid::data::Str::new(key);
        let value = ids.get(AtomRef::String(&key));
        value.and_then(|value| value.as_string().map(str::to_owned))
    })?;
    Some(name).filter(|name| !name.is_empty())
}

/// The beginning of a UUID.
pub(crate) fn short(uuid: Uuid) -> String {
    uuid.to_text()[..UUID_LETTERS]
        .iter()
        .map(|&letter| char::from(letter))
        .collect()
}

fn naming_column(table: &TableSchema) -> Option<ColumnId> {
    let is_text = |id: &ColumnId| {
        let column_type = &table.column(*id).column_type;
        let is_one = column_type.is_scalar() || column_type.is_optional_scalar();
        is_one && !column_type.is_map() && column_type.key.atom == AtomType::String
    };
    let named = table.column_id("name").filter(is_text);
    let indexed = || {
        let single = table
            .indexes
            .iter()
            .filter_map(|index| match index.as_slice() {
                [only] if !only.is_standard() => Some(*only),
                _ => None,
            });
        single.filter(is_text).min()
    };
    let known = || {
        let (_, column) = KNOWN
            .iter()
            .find(|(known, _)| *known == table.name.as_str())?;
        table.column_id(column)
    };
    named.or_else(indexed).or_else(known)
}
