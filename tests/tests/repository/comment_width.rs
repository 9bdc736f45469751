//! Comment lines have at most 100 columns.
//!
//! Rows of tables and blocks of code and drawings are left out: they cannot be wrapped.
//!
//! Reads files as text. The rule is a function from text to line numbers, proven on snippets below.

use std::fs;
use std::path::Path;

use super::layering::sources;

/// The widest comment line, columns.
const COLUMNS_MAX: usize = 100;

#[test]
fn comment_lines_are_at_most_100_columns_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut wide, mut count) = (Vec::new(), 0);
    for folder in ["crates", "fuzz", "tests"] {
        for path in sources(&root.join(folder)) {
            count += 1;
            let text = fs::read_to_string(&path).expect("a source");
            let shown = path.strip_prefix(&root).expect("below the root").display();
            let lines = wide_comments(&text).into_iter();
            wide.extend(lines.map(|line| format!("{shown}:{line}")));
        }
    }
    assert!(count > 500, "only {count} files were found");
    assert!(
        wide.is_empty(),
        "wrap comments at {COLUMNS_MAX} columns\n{}",
        wide.join("\n")
    );
}

/// Numbers of the lines that hold only a comment and are too wide. A line with a single word, such
/// as a long link, cannot be wrapped.
fn wide_comments(text: &str) -> Vec<usize> {
    let (mut wide, mut is_code) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']);
        let words = comment.trim();
        is_code ^= words.starts_with("```");
        let is_prose = !is_code && !comment.starts_with("  ") && !words.starts_with('|');
        if is_prose && words.contains(' ') && line.chars().count() > COLUMNS_MAX {
            wide.push(index + 1);
        }
    }
    wide
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
    assert!(wide_comments(&format!("//! | {long} |\n")).is_empty());
    let block = format!("/// ```\n/// {long}\n/// ```\n/// {long}\n///     {long}\n");
    assert_eq!(wide_comments(&block), [4]);
}
