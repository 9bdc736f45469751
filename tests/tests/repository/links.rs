//! The links of all documents must lead to a file of the repository and, if they name a heading, to
//! a heading of that file.
//!
//! Reads documents as text. The rule is a function from a text to complaints, and is tested with
//! the snippets below.

use std::fs;
use std::path::{Path, PathBuf};

use super::citations::{anchor, headings};

/// The folders that contain documents, besides the root.
const FOLDERS: [&str; 5] = ["contrib", "crates", "docs", "packaging", "tests"];

#[test]
fn links_lead_to_files_and_headings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut documents = Vec::new();
    collect(&root, false, &mut documents);
    for folder in FOLDERS {
        collect(&root.join(folder), true, &mut documents);
    }
    let mut complaints = Vec::new();
    for document in &documents {
        let text = read(document);
        let found = check(&text, |target| {
            let path = match target {
                "" => document.clone(),
                target => document.with_file_name(target),
            };
            path.exists().then(|| {
                if path.is_file() {
                    read(&path)
                } else {
                    String::new()
                }
            })
        });
        complaints.extend(
            found
                .iter()
                .map(|it| format!("{}: {it}", document.display())),
        );
    }
    assert!(documents.len() > 30, "only {} documents", documents.len());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(
        |error| panic!("{}: {error}", path.display()),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// Collects the documents in a folder and, if `is_deep` is true, below it.
fn collect(folder: &Path, is_deep: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && is_deep {
            collect(&path, true, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// Returns the links that lead nowhere. `open` returns the text of a target. For an empty target it
/// returns the text of the document itself.
fn check(text: &str, open: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let links = text.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split_once(')'));
    let mut complaints = Vec::new();
    for (link, _) in links.filter(|(link, _)| !link.contains("://")) {
        let (target, heading) = link.split_once('#').unwrap_or((link, ""));
        match open(target) {
            None => complaints.push(format!("{link} leads to no file")),
            Some(text) if !heading.is_empty() => {
                let title = text.lines().find_map(|line| line.strip_prefix("# "));
                let mut anchors = headings(&text).into_iter().chain(title).map(anchor);
                if !anchors.any(|anchor| anchor == heading) {
                    complaints.push(format!("{link} leads to no heading"));
                }
            }
            Some(_) => {}
        }
    }
    complaints
}

mod proofs {
    //! The rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    #[test]
    fn links_to_nowhere_are_found() {
        let open = |target: &str| match target {
            "" => Some("# Top\n## A `b` of c?\n".to_owned()),
            "x.md" => Some("## Y\n```\n## Z\n```\n".to_owned()),
            _ => None,
        };
        let good = "[a](#a-b-of-c), [b](#top), [c](x.md), [d](x.md#y), [e](https://h/none.md#z)";
        assert!(check(good, open).is_empty());
        for bad in ["[a](#b)", "[b](none.md)", "[c](x.md#z)"] {
            assert_eq!(check(bad, open).len(), 1, "{bad}");
        }
    }
}
