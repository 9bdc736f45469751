//! The Rust types of elements, and column types in words.

use std::collections::BTreeMap;

use corvid_data::types::Bounds;
use corvid_data::{AtomRef, AtomType, BaseType, ColumnType, TableId};

use crate::names;

/// The Rust type of a column's elements, of a map's keys, or of a map's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ElementType {
    pub(crate) name: String,
    pub(crate) is_row: bool,
}

impl ElementType {
    /// Returns the type of a function argument that takes such an element.
    pub(crate) fn argument(&self) -> &str {
        if self.is_text() {
            "impl Into<Str>"
        } else {
            &self.name
        }
    }

    /// Returns the code that converts such an argument to an element.
    pub(crate) fn conversion(&self) -> &'static str {
        if self.is_text() { ".into()" } else { "" }
    }

    pub(crate) fn is_text(&self) -> bool {
        self.name == "Str"
    }
}

/// Returns the Rust type of a base type's elements. `enumeration` is the name of the enum if the
/// base type lists its strings.
pub(crate) fn element(
    base: &BaseType,
    enumeration: &str,
    types: &BTreeMap<TableId, String>,
) -> ElementType {
    let plain = |name: &str| ElementType {
        name: name.to_owned(),
        is_row: false,
    };
    let target = base
        .reference
        .as_ref()
        .and_then(|reference| types.get(&reference.table));
    if let Some(target) = target {
        return ElementType {
            name: target.clone(),
            is_row: true,
        };
    }
    match base.atom {
        AtomType::Integer => plain("i64"),
        AtomType::Real => plain("Real"),
        AtomType::Boolean => plain("bool"),
        AtomType::Uuid => plain("Uuid"),
        AtomType::String if variants(base).is_some() => plain(enumeration),
        AtomType::String => plain("Str"),
    }
}

/// Returns the strings that a base type lists, each with the name of its Rust variant. Returns
/// `None` if it lists no strings, or if a variant's name is reserved or used twice.
pub(crate) fn variants(base: &BaseType) -> Option<Vec<(String, String)>> {
    let values = base.enumeration.as_ref()?;
    let mut variants: Vec<(String, String)> = Vec::new();
    for value in values.keys() {
        let AtomRef::String(text) = value else {
            return None;
        };
        let name = names::camel(text);
        let is_taken =
            name == "Other" || name == "Self" || variants.iter().any(|(other, _)| *other == name);
        if is_taken {
            return None;
        }
        variants.push((name, text.to_string()));
    }
    Some(variants)
}

/// Describes a column's type in words, for the generated documentation.
pub(crate) fn in_words(column: &ColumnType) -> String {
    let (one, many) = base_in_words(&column.key);
    match (&column.value, column.min, column.max) {
        (Some(value), ..) => {
            let (_, values) = base_in_words(value);
            format!("a map from {many} to {values}{}", limit(column))
        }
        (None, 0, 1) => format!("{one}, or nothing"),
        (None, 1, 1) => one,
        (None, ..) => format!("a set of {many}{}", limit(column)),
    }
}

fn limit(column: &ColumnType) -> String {
    match (column.min, column.max) {
        (0, ColumnType::UNLIMITED) => String::new(),
        (0, max) => format!(", at most {max}"),
        (min, ColumnType::UNLIMITED) => format!(", at least {min}"),
        (min, max) => format!(", {min} to {max} of them"),
    }
}

/// Describes a base type in words: one value, and several values.
fn base_in_words(base: &BaseType) -> (String, String) {
    if let Some(reference) = &base.reference {
        let name = &reference.table_name;
        return (format!("a row of `{name}`"), format!("rows of `{name}`"));
    }
    if let Some(values) = &base.enumeration {
        let values: Vec<String> = values
            .keys()
            .map(|value| format!("`{}`", text(value)))
            .collect();
        let values = values.join(", ");
        return (format!("one of {values}"), values);
    }
    let (one, many) = match base.atom {
        AtomType::Integer => ("an integer", "integers"),
        AtomType::Real => ("a real", "reals"),
        AtomType::Boolean => ("a boolean", "booleans"),
        AtomType::String => ("a string", "strings"),
        AtomType::Uuid => ("a UUID", "UUIDs"),
    };
    let bounds = match base.bounds {
        Bounds::None => String::new(),
        Bounds::Integer { min, max } => between("", min, i64::MIN, max, i64::MAX),
        Bounds::Real { min, max } => between("", min, f64::MIN, max, f64::MAX),
        Bounds::Length { min, max } => between(" of lengths", min, 0, max, u32::MAX),
    };
    (format!("{one}{bounds}"), format!("{many}{bounds}"))
}

fn text(atom: AtomRef<'_>) -> String {
    match atom {
        AtomRef::String(text) => text.to_string(),
        AtomRef::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Describes bounds in words. A bound that is the type's own limit is left out.
fn between<T: Copy + PartialEq + std::fmt::Display>(
    what: &str,
    min: T,
    least: T,
    max: T,
    most: T,
) -> String {
    match (min == least, max == most) {
        (true, true) => String::new(),
        (false, true) => format!("{what} from {min}"),
        (true, false) => format!("{what} up to {max}"),
        (false, false) => format!("{what} from {min} to {max}"),
    }
}
