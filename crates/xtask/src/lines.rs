//! `corvid-xtask lines`: counts the lines of product code in each crate, and the assertions: those
//! that release builds check, and those that only debug builds check.
//!
//! A line counts unless it is blank or a comment. An assertion is at the beginning of its line.
//! Crates for development, the folders `tests`, `examples` and `benches`, and everything under
//! `#[cfg(test)]` (items, modules and their files) do not count. Sources are read as text and must
//! be formatted, because an item is assumed to end at the bracket with the same indentation as its
//! first line.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use corvid_shell::output;

use crate::Outcome;

/// Crates that are only used for development.
const DEVELOPMENT: [&str; 6] = ["sim", "model", "bench", "guard", "fuzzing", "examples"];
/// Folders of a crate that do not contain product code.
const FOLDERS: [&str; 4] = ["tests", "examples", "benches", "target"];

/// Prints the lines of each crate of the repository at `root`, and their sum.
pub(crate) fn print(root: &Path) -> Outcome {
    let mut crates = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if path.is_dir() && !DEVELOPMENT.contains(&name.as_str()) {
            crates.push((count_folder(&path)?, name));
        }
    }
    crates.sort_unstable_by(|one, other| other.cmp(one));
    let mut together = Counts::default();
    output::line(format_args!("  lines assert  debug"));
    for (counts, name) in &crates {
        together += *counts;
        output::line(format_args!("{counts} {name}"));
    }
    output::line(format_args!("{together} together"));
    Ok(())
}

/// The counts of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Counts {
    lines: usize,
    assertions: usize,
    debug_assertions: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.lines += other.lines;
        self.assertions += other.assertions;
        self.debug_assertions += other.debug_assertions;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            lines,
            assertions,
            debug_assertions,
        } = self;
        write!(f, "{lines:7} {assertions:6} {debug_assertions:6}")
    }
}

/// Returns the sum of all sources below a folder.
fn count_folder(folder: &Path) -> Outcome<Counts> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    let mut counted = Vec::new();
    let mut tests = BTreeSet::new();
    for file in files {
        let source = Source::read(&fs::read_to_string(&file)?);
        for module in &source.test_modules {
            let place = folder_of_modules(&file).join(module);
            tests.insert(place.with_extension("rs"));
            tests.insert(place);
        }
        counted.push((file, source.counts));
    }
    let mut together = Counts::default();
    for (file, counts) in counted {
        if !file.ancestors().any(|path| tests.contains(path)) {
            together += counts;
        }
    }
    Ok(together)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if !FOLDERS.iter().any(|left_out| name == *left_out) {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the folder of the modules that a file declares.
fn folder_of_modules(file: &Path) -> PathBuf {
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => file.with_file_name(""),
        _ => file.with_extension(""),
    }
}

/// The parts of a source that are counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Source {
    counts: Counts,
    /// Modules for tests that are separate files.
    test_modules: Vec<String>,
}

impl Source {
    fn read(text: &str) -> Source {
        let mut source = Source::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let code = line.trim_start();
            if code.starts_with("#[cfg(test)]") || code.starts_with("#![cfg(test)]") {
                if code.starts_with("#!") {
                    return Source::default();
                }
                source.skip_item(&mut lines, line.len() - code.len());
            } else if !code.is_empty() && !code.starts_with("//") {
                source.counts.lines += 1;
                source.counts.assertions += usize::from(is_assertion(code));
                let debug = code.strip_prefix("debug_");
                source.counts.debug_assertions += usize::from(debug.is_some_and(is_assertion));
            }
        }
        source
    }

    /// Skips the item after `#[cfg(test)]`. `indent` is its indentation.
    fn skip_item<'a>(&mut self, lines: &mut impl Iterator<Item = &'a str>, indent: usize) {
        let mut is_begun = false;
        for line in lines {
            let code = line.trim();
            if !is_begun && (code.starts_with("#[") || code.starts_with("//")) {
                continue;
            }
            let words = code.trim_start_matches("pub(crate) ").strip_prefix("mod ");
            if let Some(module) = words.and_then(|words| words.strip_suffix(';')) {
                self.test_modules.push(module.to_owned());
            }
            let is_at_indent = line.len() - line.trim_start().len() == indent;
            let ends = code.ends_with([';', '}', ',']);
            // If the first line of an item is not its end, it ends with an open bracket.
            if is_at_indent && ends && (!is_begun || code.starts_with(['}', ')', ']'])) {
                return;
            }
            is_begun = true;
        }
    }
}

fn is_assertion(code: &str) -> bool {
    ["assert!(", "assert_eq!(", "assert_ne!("]
        .iter()
        .any(|word| code.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_are_left_out() {
        let text = "\
//! Head.

use a::b;
#[cfg(test)]
use c::d;

/// Doc.
fn f() {
    // Why.
    g(); // Counted.
    assert!(h());
    debug_assert_eq!(1, 1);

    #[cfg(test)]
    h();
}

#[cfg(test)]
impl F {
    fn i() {
        assert!(j());
    }
}

#[cfg(test)]
mod more;

#[cfg(test)]
#[allow(x)]
mod tests {
    use super::*;

    fn k() {}
}

const L: u8 = 1;
";
        let source = Source::read(text);
        let expected = Counts {
            lines: 7,
            assertions: 1,
            debug_assertions: 1,
        };
        assert_eq!(source.counts, expected, "{source:?}");
        assert_eq!(source.test_modules, ["more"]);
        let tests = Source::read("#![cfg(test)]\nfn f() {}\n");
        assert_eq!(tests.counts, Counts::default());
    }

    #[test]
    fn modules_are_looked_for_where_the_compiler_does() {
        let place = |file: &str| folder_of_modules(Path::new(file));
        assert_eq!(place("a/src/lib.rs"), Path::new("a/src/"));
        assert_eq!(place("a/src/b.rs"), Path::new("a/src/b"));
    }
}
