//! Databases without an interpretation of their own.

use corvid_data::Schema;
use corvid_json::Value;
use corvid_picture::{Picture, Tables, Texts, View, interpretations};

use crate::graphs::{edges, fact, named};

const SCHEMA: &[u8] = br#"{
  "name": "Library", "version": "1.0.0",
  "tables": {
    "Shelf": {"isRoot": true, "columns": {
      "books": {"type": {"key": {"type": "uuid", "refTable": "Book"}, "min": 0, "max": "unlimited"}},
      "newest": {"type": {"key": {"type": "uuid", "refTable": "Book", "refType": "weak"}, "min": 0, "max": 1}}}},
    "Book": {"columns": {
      "author": {"type": {"key": {"type": "uuid", "refTable": "Author", "refType": "weak"}, "min": 0, "max": 1}}}},
    "Author": {"isRoot": true, "columns": {"name": {"type": "string"}}}
  }
}"#;

#[test]
fn tables_are_cards_with_counts_and_references_are_edges() {
    assert!(interpretations::of("Library").is_none());
    let json = Value::parse(SCHEMA).expect("JSON");
    let schema = Schema::from_json(&json).expect("a schema");
    let mut tables = Tables::new();
    tables.set_count("Book", 1_000_000);
    tables.set_count("Shelf", 1);
    let graph = interpretations::any::read(&schema, &tables);
    assert_eq!(
        edges(&graph),
        ["Book weak Author: author", "Shelf reference Book: books +1"]
    );
    assert_eq!(named(&graph, "Book").detail, "1000000 rows");
    assert_eq!(named(&graph, "Shelf").detail, "1 row");
    assert_eq!(named(&graph, "Author").detail, "0 rows");
    assert!(fact(named(&graph, "Book"), "rows").contains("removed"));
    let svg = Picture::new(&graph, &View::default(), None).svg(&graph, &Texts::new("Library"));
    assert_eq!(
        svg.matches("marker-end").count(),
        2,
        "references point down"
    );
}
