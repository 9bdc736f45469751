//! The types of columns as Python annotations.

use corvid_data::{AtomRef, AtomType, BaseType, ColumnType};
use corvid_json::write;

use super::names::row_alias;

/// Returns the type of a column that is read from a row. A reference may be `None`, because its
/// target may be missing from the replica.
pub(super) fn read(column: &ColumnType) -> String {
    let key = element(&column.key);
    let is_row = column.key.reference.is_some();
    match &column.value {
        Some(value) => format!("_t.Mapping[{key}, {}]", element(value)),
        None if column.max > 1 => format!("_t.AbstractSet[{key}]"),
        None if column.min == 0 || is_row => format!("_t.Optional[{key}]"),
        None => key,
    }
}

/// Returns the type of an argument for a column. A set takes any iterable, and a required reference
/// is never `None`.
pub(super) fn write(column: &ColumnType) -> String {
    let key = element(&column.key);
    match &column.value {
        Some(value) => format!("_t.Mapping[{key}, {}]", element(value)),
        None if column.max > 1 => format!("_t.Iterable[{key}]"),
        None if column.min == 0 => format!("_t.Optional[{key}]"),
        None => key,
    }
}

/// Returns the type of one element, key or value.
pub(super) fn element(base: &BaseType) -> String {
    if let Some(reference) = &base.reference {
        return row_alias(&reference.table_name);
    }
    let listed = base
        .enumeration
        .as_ref()
        .filter(|_| base.atom == AtomType::String);
    if let Some(listed) = listed {
        let values: Vec<String> = listed.keys().filter_map(literal).collect();
        return format!("_t.Literal[{}]", values.join(", "));
    }
    match base.atom {
        AtomType::Integer => "_b.int",
        AtomType::Real => "_b.float",
        AtomType::Boolean => "_b.bool",
        AtomType::String => "_b.str",
        AtomType::Uuid => "_uuid.UUID",
    }
    .to_owned()
}

/// Returns the `Literal` type of some names.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names
        .into_iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    format!("_t.Literal[{}]", quoted.join(", "))
}

/// Writes a string as a Python literal, for which its JSON form is valid.
fn literal(atom: AtomRef<'_>) -> Option<String> {
    let AtomRef::String(text) = atom else {
        return None;
    };
    let mut json = Vec::new();
    write::string(&mut json, text.as_str().as_bytes());
    String::from_utf8(json).ok()
}
