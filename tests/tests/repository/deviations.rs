//! The deviations of docs/reference/compatibility.md are numbered in order, each names a test or
//! the code that shows it, and each number that a row cites exists.
//!
//! Reads the document as text. Each rule is a function from a text to complaints, and is tested
//! with the snippets below.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::documents::has_witness;

const DEVIATIONS: &str = "## Deviations";

#[test]
fn deviations_are_in_order_and_each_has_its_test() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/compatibility.md");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = rows(&text);
    assert!(rows.len() > 90, "only {} deviations were found", rows.len());
    let mut complaints = check_order(&rows);
    complaints.extend(check_witnesses(&rows));
    complaints.extend(check_citations(&text, &rows));
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// A deviation: the position of its section, counted from 1, its number and its whole line.
struct Row<'a> {
    section: u32,
    number: u32,
    line: &'a str,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut section = 0;
    let mut found = Vec::new();
    for line in text.lines().skip_while(|line| *line != DEVIATIONS) {
        if line.starts_with("### ") {
            section += 1;
        }
        let number = line
            .strip_prefix("| ")
            .and_then(|rest| rest.split(' ').next());
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push(Row {
                section,
                number,
                line,
            });
        }
    }
    found
}

/// Checks that the rows of the third section have the numbers 301, 302 and so on, and likewise for
/// the other sections.
fn check_order(rows: &[Row<'_>]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut section = 0;
    let mut expected = 0;
    for row in rows {
        if row.section != section {
            section = row.section;
            expected = section * 100;
        }
        expected += 1;
        if row.number != expected {
            complaints.push(format!(
                "docs/reference/compatibility.md: deviation {} stands where {expected} belongs",
                row.number
            ));
            expected = row.number;
        }
    }
    complaints
}

fn check_witnesses(rows: &[Row<'_>]) -> Vec<String> {
    rows.iter()
        .filter(|row| !has_witness(row.line))
        .map(|row| {
            format!(
                "docs/reference/compatibility.md: deviation {} names no test",
                row.number
            )
        })
        .collect()
}

/// Checks the numbers in parentheses in the second cell of the row of a feature:
/// `better (204, 205)`, `same (501 to 503)`.
fn check_citations(text: &str, rows: &[Row<'_>]) -> Vec<String> {
    let numbers: BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    let features = text
        .lines()
        .take_while(|line| *line != DEVIATIONS)
        .filter(|line| line.starts_with("| "));
    let mut complaints = Vec::new();
    for line in features {
        let status = line.split(" | ").nth(1).unwrap_or_default();
        let lists = status.split('(').skip(1);
        for list in lists.filter_map(|rest| rest.split_once(')')) {
            for number in cited(list.0) {
                if !numbers.contains(&number) {
                    complaints.push(format!(
                        "docs/reference/compatibility.md: no deviation {number}: {line}"
                    ));
                }
            }
        }
    }
    complaints
}

/// Returns the numbers of a list; none if the text is not a list of numbers.
fn cited(list: &str) -> Vec<u32> {
    let words = list.split([' ', ',']).filter(|word| !word.is_empty());
    let numbers: Option<Vec<Option<u32>>> = words
        .map(|word| match word {
            "to" | "and" => Some(None),
            _ => word.parse().ok().map(Some),
        })
        .collect();
    numbers.unwrap_or_default().into_iter().flatten().collect()
}

mod proofs {
    //! Each rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    const TEXT: &str = "| locks | same (101, 102) and (see 9) | `locks/*` |\n## Deviations\n### One\n| | |\n\
                        | 101 | x. `locks/free-lock` |\n| 102 | y. `word` |\n### Two\n| 203 | z. `net: name` |\n";

    #[test]
    fn gaps_and_rows_without_a_test_are_found() {
        let rows = rows(TEXT);
        assert_eq!(
            check_order(&rows),
            ["docs/reference/compatibility.md: deviation 203 stands where 201 belongs"]
        );
        assert_eq!(
            check_witnesses(&rows),
            ["docs/reference/compatibility.md: deviation 102 names no test"]
        );
        assert!(check_citations(TEXT, &rows).is_empty());
        assert_eq!(
            check_citations("| a | same (101 to 104) | |", &rows).len(),
            1
        );
    }
}
