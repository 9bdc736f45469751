//! Weak references in the contents of a server.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;
use corvid_model::schema::Schema;

/// Rows as a server selects them, by table.
pub(super) type Contents = BTreeMap<String, Vec<Value>>;

/// Whether a row has a weak reference to a row that `contents` does not have.
pub(super) fn has_dangling(schema: &Schema, contents: &Contents) -> bool {
    let existing: BTreeMap<&str, BTreeSet<String>> = contents
        .iter()
        .map(|(table, rows)| {
            let uuids = rows.iter().filter_map(|row| uuid(row.get("_uuid")?));
            (table.as_str(), uuids.collect())
        })
        .collect();
    let is_missing = |table: &str, atom: &Value| {
        uuid(atom).is_some_and(|uuid| {
            existing
                .get(table)
                .is_none_or(|uuids| !uuids.contains(&uuid))
        })
    };
    contents.iter().any(|(table, rows)| {
        let columns = schema.tables[table].columns.iter();
        let mut weak = columns.flat_map(|(name, column)| {
            let references = column.ty.references();
            let weak = references.filter(|(_, reference)| !reference.is_strong);
            weak.map(move |(is_in_values, reference)| (name, is_in_values, &reference.table))
        });
        weak.any(|(column, is_in_values, target)| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .flat_map(|datum| atoms(datum, is_in_values))
                .any(|atom| is_missing(target, atom))
        })
    })
}

/// The elements of a set, or the keys or the values of a map.
fn atoms(datum: &Value, is_in_values: bool) -> Vec<&Value> {
    let members = datum.as_array().unwrap_or_default();
    let kind = members.first().and_then(Value::as_str);
    let inner = members.get(1).and_then(Value::as_array).unwrap_or_default();
    match kind {
        Some("set") => inner.iter().collect(),
        Some("map") => inner
            .iter()
            .filter_map(|pair| pair.as_array()?.get(usize::from(is_in_values)))
            .collect(),
        _ => vec![datum],
    }
}

fn uuid(atom: &Value) -> Option<String> {
    let [tag, uuid] = atom.as_array()? else {
        return None;
    };
    (tag.as_str() == Some("uuid")).then(|| uuid.as_str().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"name":"W","tables":{
        "A":{"columns":{"to_b":{"type":{"key":{"type":"uuid","refTable":"B","refType":"strong"},
            "value":{"type":"uuid","refTable":"A","refType":"weak"},"min":0,"max":9}}},"isRoot":true},
        "B":{"columns":{}}}}"#;

    fn dangles(rows: &str) -> bool {
        let schema = Schema::read(&Value::parse(SCHEMA.as_bytes()).unwrap());
        let rows = Value::parse(rows.as_bytes()).unwrap();
        let rows = rows.as_array().unwrap().to_vec();
        let contents = [("A".to_owned(), rows), ("B".to_owned(), Vec::new())];
        has_dangling(&schema, &contents.into_iter().collect())
    }

    #[test]
    fn a_missing_target_is_found_in_the_weak_half_of_a_map_only() {
        let row = |target: &str| {
            format!(
                r#"[{{"_uuid":["uuid","1"],"to_b":["map",[[["uuid","2"],["uuid","{target}"]]]]}}]"#
            )
        };
        assert!(!dangles(&row("1")));
        assert!(dangles(&row("2")));
    }
}
