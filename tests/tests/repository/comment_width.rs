//! Comment lines have at most 100 columns.
//!
//! Files that were written before the rule have longer lines. [`ALLOWED`] has their number for each
//! crate: it only falls. A change that wraps comments of a crate lowers its number.
//!
//! Reads files as text. The rule is a function from text to line numbers, proven on snippets below.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The widest comment line, columns.
const COLUMNS_MAX: usize = 100;

/// Longer comment lines that a crate may have; a crate that is not listed has none.
const ALLOWED: &[(&str, usize)] = &[
    ("corvid", 4),
    ("data", 1),
    ("driver", 1),
    ("idl", 5),
    ("idlc", 2),
    ("log", 1),
    ("net", 1),
    ("python", 1),
    ("reactor", 1),
    ("server", 5),
    ("service", 29),
    ("shell", 2),
    ("tests", 9),
];

#[test]
fn comment_lines_are_at_most_100_columns_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wide: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for (name, folder) in crates(&root) {
        for path in sources(&folder) {
            count += 1;
            let text = fs::read_to_string(&path).expect("a source");
            let shown = path
                .strip_prefix(&root)
                .expect("below the root")
                .display()
                .to_string();
            let lines = wide_comments(&text).into_iter();
            let lines = lines.map(|line| format!("{shown}:{line}"));
            wide.entry(name.clone()).or_default().extend(lines);
        }
    }
    assert!(count > 500, "only {count} files were found");
    let allowed: BTreeMap<&str, usize> = ALLOWED.iter().copied().collect();
    let complaints: Vec<String> = wide
        .iter()
        .filter(|(name, lines)| lines.len() > allowed.get(name.as_str()).copied().unwrap_or(0))
        .map(|(name, lines)| format!("{name} has {}:\n{}", lines.len(), lines.join("\n")))
        .collect();
    assert!(
        complaints.is_empty(),
        "wrap comments at {COLUMNS_MAX} columns\n{}",
        complaints.join("\n")
    );
}

/// Names and folders of the crates; the tests and the fuzz targets count as crates.
fn crates(root: &Path) -> Vec<(String, PathBuf)> {
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, path))
    };
    let folders = fs::read_dir(root.join("crates")).expect("crates");
    let folders = folders.flatten().map(|entry| entry.path());
    let others = ["tests", "fuzz"].map(|name| root.join(name));
    folders.chain(others).filter_map(named).collect()
}

/// All Rust sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                found.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Numbers of the lines that hold only a comment and are too wide. A line with a single word, such
/// as a long link, cannot be wrapped.
fn wide_comments(text: &str) -> Vec<usize> {
    let is_wide = |line: &str| {
        let words = line.trim_start().strip_prefix("//")?;
        let words = words.trim_start_matches(['/', '!']).trim();
        Some(line.chars().count() > COLUMNS_MAX && words.contains(' '))
    };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| is_wide(line) == Some(true))
        .map(|(index, _)| index + 1)
        .collect()
}

#[test]
fn wide_comments_are_found_and_code_is_not() {
    let long = "word ".repeat(20);
    assert_eq!(
        wide_comments(&format!("// {long}\n    /// {long}\n")),
        [1, 2]
    );
    assert!(wide_comments(&format!("let a = \"{long}{long}\"; // short\n")).is_empty());
    assert!(wide_comments(&format!("// {}\n", "x".repeat(120))).is_empty());
    assert!(wide_comments("// short\n").is_empty());
}
