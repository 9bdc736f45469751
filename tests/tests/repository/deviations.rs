//! The deviations of docs/reference/compatibility.md are numbered in order, each names a test or
//! the code that shows it, and each number that a row cites exists.
//!
//! Reads the document as text. Each rule is a function from a text to complaints, and is tested
//! with the snippets below.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::documents::has_witness;

const DEVIATIONS: &str = "docs/reference/deviations.md";
const FEATURES: &str = "docs/reference/compatibility.md";

#[test]
fn deviations_are_in_order_and_each_has_its_test() {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let (text, features) = (read(DEVIATIONS), read(FEATURES));
    let entries = entries(&text);
    assert!(
        entries.len() > 90,
        "only {} deviations were found",
        entries.len()
    );
    let mut complaints = check_order(&entries);
    complaints.extend(check_witnesses(&entries));
    complaints.extend(check_citations(&features, &entries));
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The numbers of all deviations.
pub(super) fn numbers(text: &str) -> BTreeSet<u32> {
    entries(text).iter().map(|entry| entry.number).collect()
}

/// A deviation: the position of its section, from 1, its number and its text.
struct Entry {
    section: u32,
    number: u32,
    text: String,
}

/// A section is `## TITLE`, a deviation in it `### NUMBER` and the text below.
fn entries(text: &str) -> Vec<Entry> {
    let mut section = 0;
    let mut found: Vec<Entry> = Vec::new();
    for line in text.lines() {
        if line.starts_with("## ") {
            section += 1;
        }
        let number = line.strip_prefix("### ");
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push(Entry {
                section,
                number,
                text: String::new(),
            });
        } else if let Some(entry) = found.last_mut()
            && !line.starts_with('#')
        {
            entry.text.push_str(line);
            entry.text.push('\n');
        }
    }
    found
}

/// The deviations of the third section are 301, 302 and so on.
fn check_order(entries: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut section = 0;
    let mut expected = 0;
    for entry in entries {
        if entry.section != section {
            section = entry.section;
            expected = section * 100;
        }
        expected += 1;
        if entry.number != expected {
            complaints.push(format!(
                "{DEVIATIONS}: deviation {} stands where {expected} belongs",
                entry.number
            ));
            expected = entry.number;
        }
    }
    complaints
}

fn check_witnesses(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .filter(|entry| !has_witness(&entry.text))
        .map(|entry| format!("{DEVIATIONS}: deviation {} names no test", entry.number))
        .collect()
}

/// Numbers in parentheses in the second cell of a row of a feature: `better (204, 205)`,
/// `same (501 to 503)`.
fn check_citations(features: &str, entries: &[Entry]) -> Vec<String> {
    let numbers: BTreeSet<u32> = entries.iter().map(|entry| entry.number).collect();
    let features = features.lines().filter(|line| line.starts_with("| "));
    let mut complaints = Vec::new();
    for line in features {
        let status = line.split(" | ").nth(1).unwrap_or_default();
        let lists = status.split('(').skip(1);
        for list in lists.filter_map(|rest| rest.split_once(')')) {
            for number in cited(list.0) {
                if !numbers.contains(&number) {
                    complaints.push(format!("{FEATURES}: no deviation {number}: {line}"));
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

    const FEATURES: &str = "| locks | same (101, 102) and (see 9) | `locks/*` |\n";
    const TEXT: &str = "# Deviations\n## One\n### 101\nx.\n\nTests: `locks/free-lock`\n### 102\ny. `word`\n\
                        ## Two\n### 203\nz.\n\nTests: `net: name`\n## Three\n### Other\n";

    #[test]
    fn gaps_and_deviations_without_a_test_are_found() {
        let entries = entries(TEXT);
        assert_eq!(entries.len(), 3);
        assert_eq!(
            check_order(&entries),
            ["docs/reference/deviations.md: deviation 203 stands where 201 belongs"]
        );
        assert_eq!(
            check_witnesses(&entries),
            ["docs/reference/deviations.md: deviation 102 names no test"]
        );
        assert!(check_citations(FEATURES, &entries).is_empty());
        assert_eq!(
            check_citations("| a | same (101 to 104) | |", &entries).len(),
            1
        );
    }
}
