//! Comments and documents may only cite sections of `docs/spec` that exist, in one form, and the
//! references within `docs/spec` must lead to a section.
//!
//! Reads files as text. Each rule is a function from a text to complaints, and is tested with the
//! snippets below.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::deviations;

/// The files of `docs/spec`, without their extension.
const SPECS: [&str; 5] = ["protocol", "storage", "distribution", "cli", "idl"];

/// The folders in which citations are looked for. The files in the root are also read.
const FOLDERS: [&str; 6] = ["contrib", "crates", "docs", "fuzz", "packaging", "tests"];

/// The extensions of the files that are read.
const ENDINGS: [&str; 7] = ["rs", "md", "py", "txt", "sh", "toml", "go"];

/// Wrong citations, each with its file and line.
type Complaints = Vec<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn spec_path(name: &str) -> PathBuf {
    root().join(format!("docs/spec/{name}.md"))
}

#[test]
fn cited_sections_exist() {
    let specs = Spec::all();
    let mut files: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|folder| files_below(&root().join(folder)))
        .collect();
    files.extend(files_in(&root()));
    let mut complaints = Vec::new();
    let mut count = 0;
    for file in files {
        let text = joined(&read(&file));
        let name = file.strip_prefix(root()).unwrap_or(&file).display();
        let mut found = citations(&text);
        // A document in the same folder may have the name of a specification.
        found.retain(|citation| citation.has_folder || !has_neighbour(&file, &citation.spec));
        count += found.len();
        for problem in check_citations(&found, &specs) {
            complaints.push(format!("{name}: {problem}"));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(count > 200, "only {count} citations were found");
}

#[test]
fn plays_that_differ_name_sections_of_the_protocol() {
    let specs = Spec::all();
    let mut complaints = Vec::new();
    let mut count = 0;
    for file in files_in(&root().join("tests/scripted")) {
        let name = file.file_name().unwrap_or_default().display().to_string();
        for line in read(&file)
            .lines()
            .filter(|line| line.starts_with("differs:"))
        {
            count += 1;
            if let Some(problem) = check_difference(line, &specs) {
                complaints.push(format!("{name}: {problem}: {line}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(count > 30, "only {count} differences were found");
}

#[test]
fn references_within_the_specifications_resolve() {
    let specs = Spec::all();
    let deviations = deviations::numbers(&read(&root().join("docs/reference/deviations.md")));
    let mut complaints = Vec::new();
    let texts = specs.iter().map(|spec| (spec.name, &spec.text));
    let index = read(&spec_path("README"));
    for (name, text) in texts.chain([("README", &index)]) {
        for problem in check_references(name, text, &specs, &deviations) {
            complaints.push(format!("{name}.md: {problem}"));
        }
    }
    for spec in &specs {
        for problem in check_contents(&spec.text) {
            complaints.push(format!("{}.md: {problem}", spec.name));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn has_neighbour(file: &Path, spec: &str) -> bool {
    file.with_file_name(format!("{spec}.md")).exists()
}

#[test]
fn lines_of_the_clients_catalogue_exist() {
    let spec = read(&spec_path("idl"));
    let document = read(&root().join("docs/clients/behaviour.md"));
    let complaints = check_catalogue(&document, &spec);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// A file of `docs/spec`.
struct Spec {
    name: &'static str,
    text: String,
    sections: BTreeSet<String>,
}

impl Spec {
    fn all() -> Vec<Spec> {
        SPECS
            .iter()
            .map(|name| Spec::of(name, read(&spec_path(name))))
            .collect()
    }

    fn of(name: &'static str, text: String) -> Spec {
        let sections = headings(&text)
            .iter()
            .filter_map(|heading| section_of(heading))
            .collect();
        Spec {
            name,
            text,
            sections,
        }
    }
}

fn find<'a>(specs: &'a [Spec], name: &str) -> &'a Spec {
    let found = specs.iter().find(|spec| spec.name == name);
    found.expect("a name of a specification")
}

/// Returns the headings below the title, without their marks.
fn headings(text: &str) -> Vec<&str> {
    outside_fences(text)
        .filter(|line| line.starts_with("##"))
        .map(|line| line.trim_start_matches('#').trim())
        .collect()
}

/// Returns the lines of a document that are not in fenced blocks.
pub(super) fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// Returns `4.9` for `4.9 monitor_cond_since`, and `Appendix B` for `Appendix B. Defects`.
fn section_of(heading: &str) -> Option<String> {
    let mut words = heading.split(' ');
    let first = words.next()?;
    if first == "Appendix" {
        let letter = words.next()?.trim_end_matches('.');
        return Some(format!("Appendix {letter}"));
    }
    let number = first.trim_end_matches('.');
    is_number(number).then(|| number.to_owned())
}

/// Whether a word is a number such as `4.5.6`.
fn is_number(word: &str) -> bool {
    word.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns a file as one line, so that a citation may be divided between two lines of a comment.
fn joined(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        let marks = line.trim_start_matches("//").trim_start_matches(['/', '!']);
        marks.trim_start_matches('#').trim()
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// A place that names a specification.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    /// The name without its extension.
    spec: String,
    /// Whether the folder is named, too.
    has_folder: bool,
    /// The sections: `4.9`, `Appendix B`.
    sections: Vec<String>,
}

/// Returns all places in a text that name a specification. `design/storage.md` is another file, and
/// so is a file with a longer name.
fn citations(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for spec in SPECS {
        let file = format!("{spec}.md");
        for (at, _) in text.match_indices(&file) {
            let before = &text[..at];
            let has_folder = before.ends_with("spec/");
            let is_other =
                before.ends_with(|end: char| end.is_alphanumeric() || "/-_".contains(end));
            // In a link, both the text and the target name the file. Only the target counts.
            let is_text_of_link = text[at + file.len()..].starts_with("](");
            if (is_other && !has_folder) || is_text_of_link {
                continue;
            }
            found.push(Citation {
                spec: spec.to_owned(),
                has_folder,
                sections: section_list(&text[at + file.len()..]),
            });
        }
    }
    found
}

/// Returns the sections that follow a name: `4.6, 4.7`, `1.9 to 1.11`, `3 and 4`, `Appendix B`.
fn section_list(rest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = rest.trim_start_matches([')', '`']);
    let mut separators: &[&str] = &[" "];
    while let Some(next) = separators.iter().find_map(|mark| rest.strip_prefix(mark)) {
        let next = next.trim_start_matches('§');
        if let Some(appendix) = next.strip_prefix("Appendix ") {
            let letter: String = appendix.chars().take(1).collect();
            found.push(format!("Appendix {letter}"));
            rest = &appendix[letter.len()..];
        } else {
            let end = next
                .find(|end: char| !end.is_ascii_digit() && end != '.')
                .unwrap_or(next.len());
            let number = next[..end].trim_end_matches('.');
            let is_quantity = next[number.len()..].starts_with(char::is_alphabetic);
            if number.is_empty() || is_quantity {
                break;
            }
            found.push(number.to_owned());
            rest = &next[number.len()..];
        }
        separators = &[", ", " and ", " to "];
    }
    found
}

fn check_citations(found: &[Citation], specs: &[Spec]) -> Complaints {
    let mut complaints = Vec::new();
    for citation in found {
        let name = &citation.spec;
        if !citation.has_folder {
            complaints.push(format!("{name}.md is cited without its folder, docs/spec"));
        }
        let missing = |section: &&String| !find(specs, name).sections.contains(*section);
        for section in citation.sections.iter().filter(missing) {
            complaints.push(format!("docs/spec/{name}.md has no section {section}"));
        }
    }
    complaints
}

/// Checks a line `differs: WHY (4.9, 9)`. The sections at its end are those of
/// `docs/spec/protocol.md`.
fn check_difference(line: &str, specs: &[Spec]) -> Option<String> {
    let sections = line
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('));
    let Some((_, sections)) = sections else {
        return Some("no section".to_owned());
    };
    let list = section_list(&format!(" {sections}"));
    let is_there = |section: &String| find(specs, "protocol").sections.contains(section);
    if list.is_empty() || !list.iter().all(is_there) {
        return Some(format!("no such section, {sections}"));
    }
    None
}

/// Checks the references of one specification: `§4.9` is a section of the same file,
/// `[cli.md](cli.md) §2.4` is a section of another file, and `COMPAT 14` is a deviation.
fn check_references(
    name: &str,
    text: &str,
    specs: &[Spec],
    deviations: &BTreeSet<u32>,
) -> Complaints {
    let text = joined(text);
    let mut complaints = Vec::new();
    for (at, mark) in text.match_indices('§') {
        let number = section_list(&format!(" {}", &text[at + mark.len()..]));
        let Some(number) = number.first() else {
            complaints.push(format!(
                "§ without a number before {:?}",
                excerpt(&text, at)
            ));
            continue;
        };
        let target = target_of(name, &text[..at]);
        let is_there = SPECS.contains(&target) && find(specs, target).sections.contains(number);
        // README explains the mark with a number that stands for any number.
        if !is_there && name != "README" {
            complaints.push(format!("no §{number} in {target}.md"));
        }
    }
    for (at, mark) in text.match_indices("COMPAT ") {
        let list = section_list(&format!(" {}", &text[at + mark.len()..]));
        let numbers = list.iter().filter_map(|number| number.parse().ok());
        for number in numbers.filter(|number| !deviations.contains(number)) {
            complaints.push(format!(
                "docs/reference/deviations.md has no deviation {number}"
            ));
        }
    }
    complaints
}

/// Returns the file that a `§` refers to: the file that is named before it, or before other
/// sections of the same list.
fn target_of<'a>(name: &'a str, before: &str) -> &'a str {
    let mut before = before.trim_end();
    loop {
        if let Some(spec) = SPECS
            .iter()
            .find(|spec| before.ends_with(&format!("]({spec}.md)")))
        {
            return spec;
        }
        let list = before
            .trim_end_matches(" to")
            .trim_end_matches(" and")
            .trim_end_matches(',')
            .trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
        match list.strip_suffix('§') {
            Some(list) => before = list.trim_end(),
            None => return name,
        }
    }
}

fn excerpt(text: &str, at: usize) -> String {
    text[at..].chars().take(20).collect()
}

/// Checks that the table of contents names every heading, in order, by the anchor that Markdown
/// gives it, and that no section exists twice.
fn check_contents(text: &str) -> Complaints {
    let headings = headings(text);
    let wanted: Vec<String> = headings
        .iter()
        .filter(|heading| {
            section_of(heading).is_none_or(|section| section.matches('.').count() < 2)
        })
        .map(|heading| format!("- [{heading}](#{})", anchor(heading)))
        .collect();
    let contents: Vec<String> = outside_fences(text)
        .map(str::trim)
        .filter(|line| line.starts_with("- [") && line.contains("](#"))
        .map(str::to_owned)
        .collect();
    let mut complaints = Vec::new();
    if contents != wanted {
        let odd = wanted.iter().find(|line| !contents.contains(line));
        let odd = odd.or_else(|| contents.iter().find(|line| !wanted.contains(line)));
        complaints.push(format!("contents and headings differ: {odd:?}"));
    }
    let mut seen = BTreeSet::new();
    for section in headings.iter().filter_map(|heading| section_of(heading)) {
        if !seen.insert(section.clone()) {
            complaints.push(format!("two sections {section}"));
        }
    }
    complaints
}

/// Returns the anchor of a heading: lower case, with hyphens for blanks and without other
/// punctuation.
pub(super) fn anchor(heading: &str) -> String {
    let kept = |found: &char| found.is_alphanumeric() || "-_ ".contains(*found);
    let text: String = heading.to_lowercase().chars().filter(kept).collect();
    text.replace(' ', "-")
}

/// Checks that the rows of tables with the heading `Line` name rows of the catalogue, and that
/// those with the heading `Fault` name rows of Appendix B.
fn check_catalogue(document: &str, spec: &str) -> Complaints {
    let mut complaints = Vec::new();
    let mut heading = "";
    for line in document.lines().filter(|line| line.starts_with('|')) {
        let first = line.trim_start_matches('|').split('|').next();
        let first = first.unwrap_or_default().trim();
        if first == "Line" || first == "Fault" {
            heading = first;
            continue;
        }
        let part = match heading {
            "Fault" => part(spec, "## Appendix B.", "## Appendix C."),
            _ => part(spec, "## 10.", "## 11."),
        };
        let numbers = first.split([',', ' ']).filter(|word| is_line_number(word));
        for number in numbers.filter(|number| !part.contains(&format!("\n| {number} | "))) {
            complaints.push(format!("docs/spec/idl.md has no {heading} {number}"));
        }
    }
    complaints
}

/// Returns the part of a text from one heading to another, or to the end of the text.
fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(&format!("\n{from}")).unwrap_or(text.len());
    let rest = &text[start..];
    &rest[..rest.find(&format!("\n{to}")).unwrap_or(rest.len())]
}

/// Whether a word is like `34` or `34a`.
fn is_line_number(word: &str) -> bool {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    is_number(digits) && word.len() - digits.len() < 2
}

/// Returns the files with text in a folder and below it, except for `docs/spec`.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = files_in(folder);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_left_out = path.ends_with("docs/spec") || path.ends_with("target");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_left_out {
            found.extend(files_below(&path));
        }
    }
    found
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let has_text = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ENDINGS.contains(&ending))
    };
    // This file contains wrong citations on purpose.
    let is_read =
        |path: &PathBuf| path.is_file() && has_text(path) && !path.ends_with("citations.rs");
    entries.map(|entry| entry.path()).filter(is_read).collect()
}

mod proofs {
    //! Each rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    fn specs() -> Vec<Spec> {
        let text = "# Title\n\n- [1. A](#1-a)\n  - [1.1 B `x`](#11-b-x)\n\n## 1. A\n### 1.1 B `x`\n#### 1.1.1 C\n```text\n## 7. no\n```\n";
        SPECS
            .iter()
            .map(|name| Spec::of(name, text.to_owned()))
            .collect()
    }

    fn check(source: &str) -> Complaints {
        check_citations(&citations(&joined(source)), &specs())
    }

    #[test]
    fn citations_are_read_with_all_their_sections() {
        let sections = |text: &str| citations(&joined(text)).remove(0).sections;
        assert_eq!(sections("//! (docs/spec/cli.md 1.4, 1.5)."), ["1.4", "1.5"]);
        assert_eq!(
            sections("/// docs/spec/idl.md\n/// 1.9 to 1.11, 5"),
            ["1.9", "1.11", "5"]
        );
        assert_eq!(sections("`docs/spec/idl.md` 3 and 4)"), ["3", "4"]);
        assert_eq!(sections("[idl.md](../spec/idl.md) §10. What"), ["10"]);
        assert_eq!(sections("docs/spec/idl.md Appendix B)"), ["Appendix B"]);
        assert_eq!(sections("docs/spec/cli.md 2.4, 3rd"), ["2.4"]);
        assert!(sections("docs/spec/cli.md, which").is_empty());
    }

    #[test]
    fn wrong_citations_are_found() {
        assert!(check("// docs/spec/protocol.md 1.1, 1.1.1 and 1").is_empty());
        assert_eq!(check("// docs/spec/protocol.md 1.2").len(), 1);
        assert_eq!(check("# docs/spec/storage.md\n# 1 to 7").len(), 1);
        assert_eq!(check("//! docs/spec/idl.md Appendix B").len(), 1);
        assert_eq!(check("/// (protocol.md 1.1)").len(), 1);
        assert!(check("docs/internals/storage.md 9, my-cli.md 4").is_empty());
    }

    #[test]
    fn wrong_references_are_found() {
        let check = |name: &str, text: &str| {
            check_references(name, text, &specs(), &BTreeSet::from([3, 14])).len()
        };
        assert_eq!(
            check("cli", "§1.1, [idl.md](idl.md) §1, §1.1.1; COMPAT 3, 14"),
            0
        );
        assert_eq!(check("cli", "see §7"), 1);
        assert_eq!(
            check("README", "[idl.md](idl.md) §1 and §1.1; §4.9 for any"),
            0
        );
        assert_eq!(check("cli", "§ and (COMPAT 3, 15)"), 2);
    }

    #[test]
    fn lists_of_a_file_lead_to_that_file() {
        assert_eq!(target_of("cli", "in [idl.md](idl.md) "), "idl");
        assert_eq!(
            target_of("cli", "in [idl.md](idl.md) §1.1, §1.2 and "),
            "idl"
        );
        assert_eq!(target_of("cli", "in [idl.md](idl.md). See "), "cli");
    }

    #[test]
    fn differences_without_a_section_are_found() {
        let is_fine = |line: &str| check_difference(line, &specs()).is_none();
        assert!(is_fine("differs: the reference aborts (1.1, 1)"));
        assert!(!is_fine("differs: the reference aborts (1.2)"));
        assert!(!is_fine("differs: the reference aborts (always)"));
        assert!(!is_fine("differs: the reference aborts"));
    }

    #[test]
    fn missing_lines_of_the_catalogue_are_found() {
        let spec = "# T\n## 10. C\n\n| 34 | x |\n| 34a | + y |\n## 11. P\n| 35 | z |\n## Appendix B. D\n| 7 | PY |\n";
        let check = |rows: &str| check_catalogue(rows, spec).len();
        assert_eq!(
            check("| Line | Test |\n|---|---|\n| 34, 34a | a |\n| + | b |\n"),
            0
        );
        assert_eq!(check("| Line | Test |\n| 33 to 35, the 2nd | a |\n"), 2);
        assert_eq!(check("| Fault | Test |\n| 7, 34 | a |\n"), 1);
    }

    #[test]
    fn contents_name_every_heading_once() {
        let text = &specs()[0].text;
        assert!(check_contents(text).is_empty());
        assert_eq!(
            check_contents(&text.replace("(#11-b-x)", "(#11-b)")).len(),
            1
        );
        assert_eq!(check_contents(&format!("{text}\n#### 1.1.1 D\n")).len(), 1);
    }
}
