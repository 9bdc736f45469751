//! The faults of a schema's text, each with its place, and what is likely a mistake in a valid one.
//!
//! Functions of texts. To find all faults, each column and each table is judged alone, with the
//! other tables as mere names; their places are looked up in the text.

use std::fmt;

use corvid_data::{RefType, Schema};
use corvid_json::{Object, Reader, Value};

/// A fault. Displays as `LINE:COLUMN: MESSAGE`, both counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    line: usize,
    column: usize,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// Parses a schema.
///
/// # Errors
/// All faults, at least one, in the order of the text.
pub(super) fn parse(text: &[u8]) -> Result<Schema, Vec<Fault>> {
    let json = Value::parse_text(text).map_err(|error| {
        vec![Fault {
            line: error.line + 1,
            column: error.column + 1,
            message: error.message.clone(),
        }]
    })?;
    let whole = match Schema::from_json(&json) {
        Ok(schema) => return Ok(schema),
        Err(error) => error,
    };
    let mut faults = Vec::new();
    let tables = json.get("tables").and_then(Value::as_object);
    for (name, table) in tables.into_iter().flatten() {
        let before = faults.len();
        let columns = table.get("columns").and_then(Value::as_object);
        for (column, described) in columns.into_iter().flatten() {
            let alone = Object::from([(column.clone(), described.clone())]);
            let only = Object::from([("columns".into(), Value::Object(alone))]);
            if let Some(message) = fault_of(&json, name, Value::Object(only)) {
                let path = [b"tables", name.as_slice(), b"columns", column.as_slice()];
                faults.push(at(text, &path, message));
            }
        }
        if faults.len() == before
            && let Some(message) = fault_of(&json, name, table.clone())
        {
            faults.push(at(text, &[b"tables", name.as_slice()], message));
        }
    }
    if faults.is_empty() {
        faults.push(at(text, &[], whole.details));
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    Err(faults)
}

/// The fault of one table, while the others are without faults.
fn fault_of(schema: &Value, table: &[u8], described: Value) -> Option<String> {
    let names = schema.get("tables")?.as_object()?.keys();
    let stub = || {
        let column = Object::from([("type".into(), Value::string("string"))]);
        let columns = Object::from([("x".into(), Value::Object(column))]);
        Value::Object(Object::from([("columns".into(), Value::Object(columns))]))
    };
    let mut tables: Object = names.map(|name| (name.clone(), stub())).collect();
    tables.insert(table.into(), described);
    let alone = Object::from([
        ("name".into(), Value::string("x")),
        ("tables".into(), Value::Object(tables)),
    ]);
    let error = Schema::from_json(&Value::Object(alone)).err()?;
    Some(error.details)
}

/// A fault at the value that a path of members leads to.
fn at(text: &[u8], path: &[&[u8]], message: String) -> Fault {
    let offset = offset(text, path).unwrap_or(0).min(text.len());
    let before = &text[..offset];
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    Fault {
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: offset - start + 1,
        message,
    }
}

fn offset(text: &[u8], path: &[&[u8]]) -> Option<usize> {
    let mut reader = Reader::new(text);
    let mut rest = path;
    while let Some((wanted, below)) = rest.split_first() {
        reader.begin_object().ok()?;
        loop {
            let name = reader.next_member().ok()??;
            if *name == **wanted {
                break;
            }
            reader.skip().ok()?;
        }
        rest = below;
    }
    reader.peek().ok()?;
    Some(reader.offset())
}

/// Likely mistakes in a valid schema.
pub(super) fn warnings(schema: &Schema) -> Vec<String> {
    let mut warnings = Vec::new();
    if schema.version.is_empty() {
        warnings
            .push("there is no \"version\": tools cannot tell which schema is newer".to_owned());
    }
    let columns = || {
        let tables = schema.tables().iter();
        tables.flat_map(|table| table.columns().iter().map(move |column| (table, column)))
    };
    for (id, table) in schema.iter() {
        let is_kept = |column_type: &corvid_data::ColumnType| {
            let bases = std::iter::once(&column_type.key).chain(&column_type.value);
            let mut references = bases.filter_map(|base| base.reference.as_ref());
            references.any(|it| it.table == id && it.ref_type == RefType::Strong)
        };
        if !table.is_root && !columns().any(|(_, column)| is_kept(&column.column_type)) {
            warnings.push(format!(
                "table {}: its rows vanish at once, because it is not a root table and no column refers to it strongly",
                table.name
            ));
        }
    }
    for (table, column) in columns().filter(|(_, column)| !column.persistent) {
        warnings.push(format!(
            "table {} column {}: it is ephemeral, which clustered databases do not support",
            table.name, column.name
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let faults = parse(text.as_bytes()).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_has_its_place() {
        let text = "{\"name\": \"D\", \"tables\": {\n \"T\": {\"columns\": {\n  \"a\": {\"type\": \"strin\"},\n  \"b\": {\"type\": {\"key\": {\"type\": \"uuid\", \"refTable\": \"Nosuch\"}}},\n  \"c\": {\"type\": \"string\"}}},\n \"U\": {\"columns\": {}}}}";
        let found = faults(text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("3:8: "), "{found:?}");
        assert!(
            found[1].starts_with("4:8: ") && found[1].contains("Nosuch"),
            "{found:?}"
        );
        assert!(found[2].starts_with("6:7: "), "{found:?}");
        assert!(faults("{\"name\": \"D\",\n}")[0].starts_with("2:"));
        assert!(faults("{\"tables\": {}}")[0].starts_with("1:1: "));
        assert!(faults("")[0].starts_with("1:1: "));
    }

    #[test]
    fn tables_that_cannot_keep_rows_are_pointed_out() {
        let text = r#"{"name":"D","version":"1.0.0","tables":{
            "R":{"isRoot":true,"columns":{
                "s":{"type":{"key":{"type":"uuid","refTable":"S"},"min":0,"max":1}},
                "e":{"type":"string","ephemeral":true}}},
            "S":{"columns":{"n":{"type":"string"}}},
            "W":{"columns":{"n":{"type":"string"}}}}}"#;
        let warnings = warnings(&parse(text.as_bytes()).unwrap());
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("table W: "), "{warnings:?}");
        assert!(
            warnings[1].starts_with("table R column e: "),
            "{warnings:?}"
        );
    }
}
