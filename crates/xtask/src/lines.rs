//! `corvid-xtask lines`: lines of product code, by crate.
//!
//! A line counts unless it is blank or a comment. Left out are crates for development, the folders
//! `tests`, `examples` and `benches`, and everything under `#[cfg(test)]`: items, modules, and
//! their files. Sources are read as text and must be formatted: an item ends at the bracket below
//! its first line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use corvid_shell::output;

use crate::Outcome;

/// Crates that ship nothing.
const DEVELOPMENT: [&str; 5] = ["sim", "bench", "guard", "fuzzing", "examples"];
/// Folders of a crate without product code.
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
    for (lines, name) in &crates {
        output::line(format_args!("{lines:7} {name}"));
    }
    let sum: usize = crates.iter().map(|(lines, _)| lines).sum();
    output::line(format_args!("{sum:7} together"));
    Ok(())
}

/// The lines of all sources below a folder.
fn count_folder(folder: &Path) -> Outcome<usize> {
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
        counted.push((file, source.lines));
    }
    let product = counted.iter().filter(|(file, _)| {
        let mut above = file.ancestors();
        !above.any(|path| tests.contains(path))
    });
    Ok(product.map(|(_, lines)| lines).sum())
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

/// Where the modules are that a file declares.
fn folder_of_modules(file: &Path) -> PathBuf {
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => file.with_file_name(""),
        _ => file.with_extension(""),
    }
}

/// A source as far as it is counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Source {
    lines: usize,
    /// Modules for tests that are files of their own.
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
                source.lines += 1;
            }
        }
        source
    }

    /// Skips the item after `#[cfg(test)]`, which is indented so far.
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
            // The first line of an item that goes on ends with an open bracket.
            if is_at_indent && ends && (!is_begun || code.starts_with(['}', ')', ']'])) {
                return;
            }
            is_begun = true;
        }
    }
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

    #[cfg(test)]
    h();
}

#[cfg(test)]
impl F {
    fn i() {
        j();
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
        assert_eq!(source.lines, 5, "{source:?}");
        assert_eq!(source.test_modules, ["more"]);
        assert_eq!(Source::read("#![cfg(test)]\nfn f() {}\n").lines, 0);
    }

    #[test]
    fn modules_are_looked_for_where_the_compiler_does() {
        let place = |file: &str| folder_of_modules(Path::new(file));
        assert_eq!(place("a/src/lib.rs"), Path::new("a/src/"));
        assert_eq!(place("a/src/b.rs"), Path::new("a/src/b"));
    }
}
