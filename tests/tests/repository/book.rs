//! The site of the documents (`make book`): `docs/SUMMARY.md` lists every page once, the index
//! lists every page, and no page leads out of the site. `links.rs` checks that links lead anywhere
//! at all.
//!
//! Reads documents as text. The site has the pages of `docs` and of the root, and the other files
//! of `docs`, such as images. The Makefile copies them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::links::{collect, targets};

const SUMMARY: &str = "docs/SUMMARY.md";

const INDEX: &str = "docs/README.md";

/// Documents that are not pages.
const LEFT_OUT: [&str; 2] = [SUMMARY, "docs/plan.md"];

/// Files of the root that are copied, besides documents.
const OTHERS: [&str; 1] = ["LICENSE"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the pages, relative to the root.
fn pages() -> BTreeSet<String> {
    let mut found = Vec::new();
    collect(&root(), false, &mut found);
    collect(&root().join("docs"), true, &mut found);
    let names = found.iter().map(|path| {
        let name = path.strip_prefix(root()).expect("a file below the root");
        name.display().to_string()
    });
    names
        .filter(|name| !LEFT_OUT.contains(&name.as_str()))
        .collect()
}

/// Returns the files to which a document leads, relative to the root.
fn leads_to(document: &str, text: &str) -> Vec<String> {
    let targets = targets(text);
    let files = targets.iter().map(|target| target.parts().0);
    files
        .filter(|file| !file.is_empty())
        .map(|file| resolve(document, file))
        .collect()
}

/// Returns the path of a file that a document names.
fn resolve(document: &str, file: &str) -> String {
    let mut path: Vec<&str> = document.split('/').collect();
    path.pop();
    for part in file.split('/') {
        match part {
            ".." if path.last().is_some_and(|last| *last != "..") => {
                path.pop();
            }
            "." => {}
            part => path.push(part),
        }
    }
    path.join("/")
}

#[test]
fn the_summary_lists_every_page_once() {
    let mut counts = BTreeMap::new();
    for page in leads_to(SUMMARY, &read(SUMMARY)) {
        *counts.entry(page).or_insert(0) += 1;
    }
    let pages = pages();
    let missing: Vec<&String> = pages
        .iter()
        .filter(|page| !counts.contains_key(*page))
        .collect();
    let odd: Vec<_> = counts
        .iter()
        .filter(|(page, count)| **count > 1 || !pages.contains(*page))
        .collect();
    assert!(pages.len() > 50, "only {} pages", pages.len());
    assert!(missing.is_empty(), "{SUMMARY} lacks {missing:?}");
    assert!(
        odd.is_empty(),
        "{SUMMARY} lists twice, or without a page: {odd:?}"
    );
}

/// The README promises that. The index of the specifications lists them.
#[test]
fn the_index_lists_every_page() {
    let index = leads_to(INDEX, &read(INDEX));
    let is_listed = |page: &String| {
        let is_specification = page.starts_with("docs/spec/") && page != "docs/spec/README.md";
        page == INDEX || is_specification || index.contains(page)
    };
    let pages = pages();
    let missing: Vec<&String> = pages.iter().filter(|page| !is_listed(page)).collect();
    assert!(missing.is_empty(), "{INDEX} lacks {missing:?}");
}

#[test]
fn no_page_leads_out_of_the_site() {
    let pages = pages();
    let is_inside = |file: &str| {
        let is_document = Path::new(file)
            .extension()
            .is_some_and(|ending| ending == "md");
        let is_copied = file.starts_with("docs/") && root().join(file).is_file() && !is_document;
        pages.contains(file) || is_copied || OTHERS.contains(&file)
    };
    let mut complaints = Vec::new();
    for page in &pages {
        let outside = leads_to(page, &read(page))
            .into_iter()
            .filter(|file| !is_inside(file));
        complaints.extend(outside.map(|file| format!("{page}: {file}")));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_makefile_copies_what_pages_may_lead_to() {
    let makefile = read("Makefile");
    let copy = format!("cp -R docs *.md {} target/book-src/src", OTHERS.join(" "));
    assert!(makefile.contains(&copy), "not in the Makefile: {copy}");
}

mod proofs {
    use super::*;

    #[test]
    fn files_are_found_from_the_folder_of_their_document() {
        let text = "[a](b.md#c), [d](../../E.md), [f](#g), ![h](../i/j.svg), [k](./l.md)";
        assert_eq!(
            leads_to("docs/x/y.md", text),
            ["docs/x/b.md", "E.md", "docs/i/j.svg", "docs/x/l.md"]
        );
        assert_eq!(resolve("README.md", "../z"), "../z");
    }
}
