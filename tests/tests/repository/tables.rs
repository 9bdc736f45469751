//! The rows of a table in a document have as many cells as its head. A forge, and the site of the
//! documents, drop the cells of a row that has more.
//!
//! Reads documents as text. The rule is a function from a text to complaints, and is tested with
//! the snippets below.

use std::fs;

use super::citations::outside_fences;
use super::links::documents;

#[test]
fn rows_have_as_many_cells_as_their_head() {
    let mut complaints = Vec::new();
    for document in documents() {
        let shown = document.display();
        let text = fs::read_to_string(&document).unwrap_or_else(|error| panic!("{shown}: {error}"));
        complaints.extend(check(&text).iter().map(|row| format!("{shown}: {row}")));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns the rows that have more or fewer cells than the head of their table.
fn check(text: &str) -> Vec<&str> {
    let mut wrong = Vec::new();
    let mut head = None;
    for line in outside_fences(text) {
        if !line.starts_with('|') {
            head = None;
            continue;
        }
        let count = cells(line);
        if count != *head.get_or_insert(count) {
            wrong.push(line);
        }
    }
    wrong
}

/// Returns the number of cells in a row. Code divides cells too, unless its bar is escaped.
fn cells(row: &str) -> usize {
    let row = row.trim_end().replace("\\|", "");
    let row = row.strip_prefix('|').unwrap_or(&row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').count()
}

mod proofs {
    use super::*;

    #[test]
    fn rows_with_other_cells_are_found() {
        let good = "| a | b |\n|---|---|\n| `c\\|d` | |\n\n| e |\n|---|\n```\n| f | g |\n```\n";
        assert!(check(good).is_empty(), "{:?}", check(good));
        for bad in ["| `c|d` | |", "| c |"] {
            let text = format!("| a | b |\n|---|---|\n{bad}\n");
            assert_eq!(check(&text), [bad]);
        }
    }
}
