//! A schema as a page in Markdown.
//!
//! A function of the schema.

use std::fmt::Write;

use corvid_data::Schema;

use super::describe::{indexes, kind, notes, type_in_words};

/// The page.
pub(super) fn markdown(schema: &Schema) -> String {
    let mut page = format!("# {}\n", schema.name);
    // Writing to a string cannot fail.
    if !schema.version.is_empty() {
        let _ = write!(page, "\nVersion {}.\n", schema.version);
    }
    for table in schema.tables() {
        let _ = write!(page, "\n## {}\n\nRows: {}.", table.name, kind(table));
        let indexes = indexes(table);
        if !indexes.is_empty() {
            let _ = write!(page, " Unique: {indexes}.");
        }
        page.push_str("\n\n| Column | Type | Notes |\n|---|---|---|\n");
        for column in table.columns() {
            let words = type_in_words(&column.column_type).replace('|', "\\|");
            let notes = notes(table, column).join(", ");
            let _ = writeln!(page, "| `{}` | {words} | {notes} |", column.name);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    #[test]
    fn a_schema_becomes_a_page() {
        let text = r#"{"name":"D","version":"1.2.3","tables":{"T":{"isRoot":true,"indexes":[["a"]],"columns":{
            "a":{"type":"string","mutable":false},
            "b":{"type":{"key":{"type":"string","enum":["set",["x","y"]]}}}}}}}"#;
        let schema = Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            markdown(&schema),
            "# D\n\nVersion 1.2.3.\n\n## T\n\nRows: root. Unique: a.\n\n| Column | Type | Notes |\n|---|---|---|\n\
             | `a` | string | not mutable, unique |\n| `b` | x\\|y |  |\n"
        );
    }
}
