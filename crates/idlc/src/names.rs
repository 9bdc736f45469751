//! Turns names in a schema into names in Rust.

use std::collections::BTreeMap;

use corvid_data::{Schema, TableId};

use crate::VOCABULARY;
use crate::error::Error;

/// The keywords of Rust, which no function can have as its name.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The methods that every row type has. A column with such a name gets another method name.
const METHODS: [&str; 9] = [
    "all", "changes", "delete", "get", "id", "insert", "is_there", "of", "uuid",
];

/// The types of the prelude that generated code uses, in addition to its vocabulary.
const TYPES: [&str; 8] = [
    "Box", "Default", "None", "Option", "Result", "Self", "Some", "String",
];

/// Converts a name to camel case: `Logical_Switch` and `logicalSwitch` become `LogicalSwitch`. A
/// part in capitals becomes a word: `ACL` is `Acl`.
pub(crate) fn camel(name: &str) -> String {
    let mut camel = String::new();
    for part in name.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let is_shouted = !part.chars().any(|letter| letter.is_ascii_lowercase());
        let mut letters = part.chars();
        if let Some(first) = letters.next() {
            camel.push(first.to_ascii_uppercase());
            if is_shouted {
                camel.extend(letters.map(|letter| letter.to_ascii_lowercase()));
            } else {
                camel.extend(letters);
            }
        }
    }
    if camel.is_empty() || camel.starts_with(|letter: char| letter.is_ascii_digit()) {
        camel.insert(0, 'V');
    }
    camel
}

/// Converts a name to lower case, with an underscore at its end if it is a keyword.
pub(crate) fn snake(name: &str) -> String {
    let mut snake = name.to_ascii_lowercase();
    if KEYWORDS.contains(&snake.as_str()) {
        snake.push('_');
    }
    snake
}

/// Returns the name of a column's getter, from which its other functions get their names.
pub(crate) fn method(column: &str) -> String {
    let mut name = snake(column);
    if METHODS.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// Returns the name of a column's constant.
pub(crate) fn constant(column: &str) -> String {
    let mut name = column.to_ascii_uppercase();
    if name == "TABLE" {
        name.push('_');
    }
    name
}

/// Returns the name of each table's row type.
pub(crate) fn types_of(schema: &Schema) -> Result<BTreeMap<TableId, String>, Error> {
    let mut types = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for (id, table) in schema.iter() {
        let mut name = camel(&table.name);
        if VOCABULARY.contains(&name.as_str()) || TYPES.contains(&name.as_str()) {
            name.push_str("Row");
        }
        if let Some(other) = taken.insert(name.clone(), table.name.clone()) {
            return Err(Error::Clash(format!("tables {other} and {}", table.name)));
        }
        types.insert(id, name);
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (name, expected) in [
            ("Logical_Switch_Port", "LogicalSwitchPort"),
            ("ACL", "Acl"),
            ("DHCP_Options", "DhcpOptions"),
            ("QoS", "QoS"),
            ("sFlow", "SFlow"),
            ("Open_vSwitch", "OpenVSwitch"),
            ("802.1q", "V8021q"),
            ("", "V"),
        ] {
            assert_eq!(camel(name), expected);
        }
        assert_eq!(
            (method("type"), method("id"), constant("table")),
            ("type_".into(), "id_".into(), "TABLE_".into())
        );
    }
}
