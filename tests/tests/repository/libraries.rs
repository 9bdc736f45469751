//! `docs/internals/dependencies.md` must name each third-party library, with every crate that uses
//! it.
//!
//! Reads manifests and the document as text. The rule is a function from a text to complaints, and
//! is tested with the snippets below.

use std::fs;
use std::path::{Path, PathBuf};

use super::layering::dependencies;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_library_is_listed_with_its_users() {
    let document = read(&root().join("docs/internals/dependencies.md"));
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let mut manifests: Vec<PathBuf> = crates.flatten().map(|entry| entry.path()).collect();
    manifests.push(root().join("tests"));
    let mut complaints = Vec::new();
    for folder in manifests {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let manifest = read(&folder.join("Cargo.toml"));
        complaints.extend(check(&name, &dependencies(&manifest), &document));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns the libraries that the document does not list, or not for this crate.
fn check(user: &str, libraries: &[String], document: &str) -> Vec<String> {
    let rows: Vec<(Vec<&str>, Vec<&str>)> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|line| line.split_once(" | "))
        .filter_map(|(names, rest)| Some((names, rest.split_once(" | ")?.0)))
        .map(|(names, users)| (words(names), words(users)))
        .collect();
    libraries
        .iter()
        .filter(|library| !library.starts_with("corvid"))
        .filter_map(|library| {
            let mut named = rows
                .iter()
                .filter(|(names, _)| names.contains(&library.as_str()))
                .peekable();
            if named.peek().is_none() {
                return Some(format!("dependencies.md: no row for {library} of {user}"));
            }
            let is_listed = named.any(|(_, users)| users.contains(&user));
            (!is_listed).then(|| format!("dependencies.md: {library} is used by {user} too"))
        })
        .collect()
}

/// Returns the names in a cell.
fn words(cell: &str) -> Vec<&str> {
    cell.split(|letter: char| letter.is_whitespace() || ",;()`".contains(letter))
        .filter(|word| !word.is_empty())
        .collect()
}

mod proofs {
    //! The rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    #[test]
    fn missing_rows_and_users_are_found() {
        let document = "| Crate | Used by | Why |\n|---|---|---|\n| slab, webpki (rustls-webpki) | net; tests of log | x |\n";
        let libraries = ["slab", "rustls-webpki", "corvid-data"].map(str::to_owned);
        assert!(check("net", &libraries, document).is_empty());
        assert_eq!(check("data", &libraries, document).len(), 2);
        assert_eq!(check("net", &["mio".to_owned()], document).len(), 1);
    }
}
