//! The links and images of all documents must lead to a file of the repository and, if they name a
//! heading, to a heading of that file.
//!
//! Reads documents as text: links and images of Markdown, and the attributes `href`, `src` and
//! `srcset` of HTML. Anchors are those that forges and the site of the documents (`make book`) make
//! alike. The rule is a function from a text to complaints, and is tested with the snippets below.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::citations::{anchor, outside_fences};

/// The folders that contain documents, besides the root.
const FOLDERS: [&str; 6] = ["contrib", "crates", "docs", "fuzz", "packaging", "tests"];

/// The formats of images that browsers and forges show.
const IMAGES: [&str; 3] = ["jpg", "png", "svg"];

#[test]
fn links_and_images_lead_to_files_and_headings() {
    let documents = documents();
    let mut complaints = Vec::new();
    let mut count = 0;
    for document in &documents {
        let text = read(document);
        count += targets(&text).len();
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
    assert!(count > 500, "only {count} links");
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(
        |error| panic!("{}: {error}", path.display()),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// Returns all documents of the repository.
pub(super) fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut documents = Vec::new();
    collect(&root, false, &mut documents);
    for folder in FOLDERS {
        collect(&root.join(folder), true, &mut documents);
    }
    assert!(documents.len() > 50, "only {} documents", documents.len());
    documents
}

/// Collects the documents in a folder and, if `is_deep` is true, below it.
pub(super) fn collect(folder: &Path, is_deep: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && is_deep && !path.ends_with("target") {
            collect(&path, true, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// The target of a link or an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The file, relative to that of the document, or nothing for the document itself; perhaps `#`
    /// and an anchor.
    pub(super) link: String,
    pub(super) is_image: bool,
}

impl Target {
    /// Returns the file and the anchor, each empty if it is missing.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.link.split_once('#').unwrap_or((&self.link, ""))
    }
}

/// Returns the targets in a document, except for those outside of the repository.
pub(super) fn targets(text: &str) -> Vec<Target> {
    let prose = without_code(text);
    let mut found = Vec::new();
    for (at, mark) in prose.match_indices("](") {
        let Some((target, _)) = prose[at + mark.len()..].split_once(')') else {
            continue;
        };
        // A title may follow the target.
        let link = target.split_whitespace().next().unwrap_or_default();
        let is_image = before_bracket(&prose[..at]).ends_with('!');
        found.push((link, is_image));
    }
    // Definitions of links: `[label]: target`.
    let definitions = prose.lines().filter_map(|line| {
        let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
        (!label.contains(']')).then_some(target)
    });
    found.extend(definitions.map(|target| (target.trim(), false)));
    found.extend(attributes(&prose, "href").map(|link| (link, false)));
    found.extend(attributes(&prose, "src").map(|link| (link, true)));
    // Each image of the list may be followed by its size.
    let sets = attributes(&prose, "srcset").flat_map(|set| set.split(','));
    found.extend(sets.map(|image| (image.split_whitespace().next().unwrap_or_default(), true)));
    found
        .into_iter()
        .filter(|(link, _)| !link.contains("://") && !link.starts_with("mailto:"))
        .map(|(link, is_image)| Target {
            link: link.to_owned(),
            is_image,
        })
        .collect()
}

/// Returns the text before the bracket that opens the text of a link, which ends at the end of
/// `before`.
fn before_bracket(before: &str) -> &str {
    let mut depth = 1;
    for (at, c) in before.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &before[..at];
        }
    }
    ""
}

/// Returns the values of an attribute of HTML elements.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let head = format!("{name}=\"");
    let tags = text.split('<').skip(1);
    let tags = tags.filter_map(|tag| Some(tag.split_once('>')?.0));
    tags.filter_map(move |tag| {
        let (at, _) = tag.match_indices(&head).find(|(at, _)| {
            let before = tag[..*at].chars().next_back();
            before.is_some_and(char::is_whitespace)
        })?;
        Some(tag[at + head.len()..].split_once('"')?.0)
    })
}

/// Returns a text without fenced blocks and without the contents of code spans.
fn without_code(text: &str) -> String {
    let text = outside_fences(text).collect::<Vec<_>>().join("\n");
    let paragraphs = text.split("\n\n").map(without_spans);
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Returns a paragraph without the contents of code spans. A span ends with as many backticks as it
/// begins with.
fn without_spans(paragraph: &str) -> String {
    let mut kept = String::new();
    let mut rest = paragraph;
    while let Some(start) = rest.find('`') {
        let (before, from) = rest.split_at(start);
        let inside = from.trim_start_matches('`');
        let mark = &from[..from.len() - inside.len()];
        kept.push_str(before);
        rest = match inside.find(mark) {
            Some(end) => &inside[end + mark.len()..],
            None => inside,
        };
    }
    kept.push_str(rest);
    kept
}

/// Returns the anchors of a document, as forges and the site of the documents make them: one for
/// each heading, with a number from the second heading of the same text on, and those of HTML
/// elements.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for line in outside_fences(text) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let name = anchor(without_targets(heading).trim());
        let mut numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut name = name.clone();
        while !found.insert(name) {
            name = numbered.next().expect("numbers do not end");
        }
    }
    let prose = without_code(text);
    found.extend(attributes(&prose, "id").map(str::to_owned));
    found.extend(attributes(&prose, "name").map(str::to_owned));
    found
}

/// Returns a heading with the text of each link in place of the link.
fn without_targets(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    kept
}

/// Returns the links and images that lead nowhere. `open` returns the text of a target. For an
/// empty target it returns the text of the document itself.
fn check(text: &str, open: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for target in targets(text) {
        let link = &target.link;
        let (file, heading) = target.parts();
        let is_shown = Path::new(file)
            .extension()
            .is_some_and(|ending| IMAGES.iter().any(|image| ending == *image));
        match open(file) {
            None => complaints.push(format!("{link} leads to no file")),
            Some(_) if target.is_image && !is_shown => {
                complaints.push(format!("{link} is not an image"));
            }
            Some(text) if !heading.is_empty() && !anchors(&text).contains(heading) => {
                complaints.push(format!("{link} leads to no heading"));
            }
            Some(_) => {}
        }
    }
    complaints
}

mod proofs {
    //! The rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    fn open(target: &str) -> Option<String> {
        match target {
            "" => Some("# Top\n## A `b` of c?\n### A `b` of c?\n<a id=\"here\"></a>\n".to_owned()),
            "x.md" => Some("## Y\n```\n## Z\n```\n## See [it](y.md#b), 2\n".to_owned()),
            "i.svg" => Some("<svg/>".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn links_to_nowhere_are_found() {
        let good = "[a](#a-b-of-c), [b](#top), [c](x.md), [d](x.md#y), [e](https://h/none.md#z), \
                    [f](#a-b-of-c-1), [g](#here), [h](x.md#see-it-2), [m](mailto:a@b), [n]\n\n[n]: x.md#y\n";
        assert!(check(good, open).is_empty(), "{:?}", check(good, open));
        for bad in [
            "[a](#b)",
            "[b](none.md)",
            "[c](x.md#z)",
            "[d](#a-b-of-c-2)",
            "[e]\n\n[e]: none.md",
            "<a href=\"x.md#z\">e</a>",
        ] {
            assert_eq!(check(bad, open).len(), 1, "{bad}");
        }
    }

    #[test]
    fn images_that_nobody_sees_are_found() {
        let good = "![a](i.svg) [![b](i.svg)](x.md) <img alt=\"c\" src=\"i.svg\">\n\
                    <picture><source srcset=\"i.svg 1x, i.svg 2x\"><img src=\"i.svg\"></picture>";
        assert!(check(good, open).is_empty(), "{:?}", check(good, open));
        for bad in [
            "![a](none.svg)",
            "![a\nb](x.md)",
            "[![b](none.svg)](x.md)",
            "<img\nsrc=\"none.svg\">",
            "<picture><source srcset=\"i.svg, none.svg 2x\"></picture>",
        ] {
            assert_eq!(check(bad, open).len(), 1, "{bad}");
        }
    }

    #[test]
    fn code_contains_no_links() {
        let text = "`[a](b)` and ``[c]`](d)`` and [`e`](x.md)\n\n```\n[f](g)\n```\n";
        let found = targets(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].link, "x.md");
    }
}
