//! The documents of the repository are true: the files that they name exist, and so do the tests
//! that docs/reference/compatibility.md and the client's catalogue name as evidence.
//!
//! Reads documents and sources as text. Each rule is a function from a text to complaints, and is
//! tested with the snippets below.

use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "ROADMAP.md",
    "SECURITY.md",
    "docs/README.md",
    "docs/start/cluster.md",
    "docs/start/ovn.md",
    "docs/start/relay.md",
    "docs/start/replace-the-reference.md",
    "docs/start/server.md",
    "docs/reference/compatibility.md",
    "docs/performance/history.md",
    "docs/performance/method.md",
    "docs/performance/results.md",
    "docs/internals/add-a-control-command.md",
    "docs/internals/add-an-operation.md",
    "docs/internals/decisions.md",
    "docs/internals/monitors.md",
    "docs/internals/request.md",
    "docs/internals/testing.md",
    "docs/internals/threads.md",
    "docs/reference/commands.md",
    "docs/reference/deviations.md",
    "docs/reference/metrics.md",
    "docs/reference/options.md",
    "docs/reference/settings.md",
    "docs/reference/wire-extensions.md",
    "docs/operate/audit.md",
    "docs/operate/active-backup.md",
    "docs/operate/backup-and-restore.md",
    "docs/operate/clusters.md",
    "docs/operate/logs.md",
    "docs/operate/relays.md",
    "docs/operate/configuration.md",
    "docs/operate/containers.md",
    "docs/operate/disaster-recovery.md",
    "docs/operate/guarantees.md",
    "docs/operate/memory.md",
    "docs/operate/metrics-and-alerts.md",
    "docs/operate/service-scripts.md",
    "docs/operate/time.md",
    "docs/operate/tls-and-roles.md",
    "docs/operate/troubleshooting.md",
    "docs/operate/upgrade.md",
    "docs/reference/files.md",
    "docs/spec/README.md",
    "docs/spec/cli.md",
    "docs/spec/distribution.md",
    "docs/spec/idl.md",
    "docs/spec/protocol.md",
    "docs/spec/storage.md",
];

/// The documents whose tables name tests.
const WITNESSED: &[&str] = &[
    "docs/reference/compatibility.md",
    "docs/reference/deviations.md",
    "docs/clients/behaviour.md",
    "docs/internals/simulation.md",
];

/// Folders in the root below which files are named in prose.
const FOLDERS: [&str; 6] = [
    "contrib/",
    "crates/",
    "docs/",
    "fuzz/",
    "packaging/",
    "tests/",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The figures of the README's table are those of `docs/performance/results.md`, digit by digit.
#[test]
fn figures_of_the_readme_are_results() {
    let results = read(&root().join("docs/performance/results.md"));
    let readme = read(&root().join("README.md"));
    let figures = figures_of(&readme);
    assert!(figures.len() >= 8, "{figures:?}");
    let printed: Vec<&str> = results.split_whitespace().collect();
    for figure in figures {
        assert!(
            printed.contains(&figure),
            "README.md has {figure}, which docs/performance/results.md does not"
        );
    }
}

/// The numbers in the second and third column of the table below "Figures".
fn figures_of(readme: &str) -> Vec<&str> {
    let (_, after) = readme
        .split_once("## Figures")
        .expect("README.md has a table of figures");
    let rows = after
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('#'));
    rows.filter(|line| line.starts_with('|'))
        .skip(2)
        .flat_map(|row| row.split('|').skip(2).take(2))
        .filter_map(|cell| cell.split_whitespace().next())
        .collect()
}

#[test]
fn files_that_are_named_exist() {
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let file = root().join(document);
        let text = read(&file);
        for path in paths(&text) {
            // Paths in prose begin at the root; paths in links begin at the folder of the document.
            let beside = file.with_file_name(&path);
            if !root().join(&path).exists() && !beside.exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn tests_that_are_called_as_witnesses_exist() {
    let mut complaints = Vec::new();
    for document in WITNESSED {
        let text = read(&root().join(document));
        for (name, witness) in witnesses(&text) {
            match witness {
                Some(witness) if witness.exists() => {}
                Some(_) => complaints.push(format!("{document}: no such test: {name}")),
                None => complaints.push(format!("{document}: neither a test nor a path: {name}")),
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns the code spans of a text, without fenced blocks.
fn spans(text: &str) -> Vec<&str> {
    text.split("```")
        .step_by(2)
        .flat_map(str::lines)
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

/// Returns the targets of links that lead into the repository.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .filter_map(|(target, _)| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// Whether a code span names a file or folder of the repository.
fn is_path(span: &str) -> bool {
    let is_plain = !span.contains(|found: char| found.is_whitespace() || "<>*$…=:".contains(found));
    let is_source = span.contains('/') && !span.starts_with('/') && span.ends_with(".rs");
    let is_beneath = FOLDERS.iter().any(|folder| span.starts_with(folder));
    let is_document = !span.contains('/') && span.ends_with(".md");
    is_plain && (is_source || is_beneath || is_document)
}

/// Returns the paths that a text names.
fn paths(text: &str) -> Vec<String> {
    let named = spans(text).into_iter().filter(|span| is_path(span));
    links(text)
        .into_iter()
        .chain(named)
        .map(str::to_owned)
        .collect()
}

/// The test or code that proves a row.
#[derive(Debug, PartialEq, Eq)]
enum Witness<'a> {
    /// `topic/case`, where `*` is any case.
    Case(&'a str, &'a str),
    /// `interop/peer`
    Peer(&'a str),
    /// `crate: function`
    Function(&'a str, &'a str),
    /// `crate/file: case`, for tests with their own runner.
    Named(&'a str, &'a str, &'a str),
    /// Code, if no test shows it.
    Path(&'a str),
}

impl Witness<'_> {
    fn of(span: &str) -> Option<Witness<'_>> {
        if let Some((place, name)) = span.split_once(": ") {
            return Some(match place.split_once('/') {
                Some((package, file)) => Witness::Named(package, file, name),
                None => Witness::Function(place, name),
            });
        }
        if is_path(span) {
            return Some(Witness::Path(span));
        }
        match span.split_once('/')? {
            ("interop", peer) => Some(Witness::Peer(peer)),
            (topic, case) => Some(Witness::Case(topic, case)),
        }
    }

    fn exists(&self) -> bool {
        match *self {
            Witness::Path(path) => root().join(path).exists(),
            Witness::Peer(peer) => root().join("tests/interop").join(peer).is_dir(),
            Witness::Case(topic, case) => {
                let path = root().join("tests/scripted").join(format!("{topic}.txt"));
                path.is_file() && (case == "*" || has_line(&read(&path), &format!("case {case}")))
            }
            Witness::Named(package, file, name) => {
                let path = home(package).join("tests").join(format!("{file}.rs"));
                path.is_file() && read(&path).contains(&format!("\"{name}\""))
            }
            Witness::Function(package, name) => sources(&home(package))
                .iter()
                .any(|path| is_test(&read(path), name)),
        }
    }
}

/// Returns the folder of a crate. `tests` is in the root.
fn home(package: &str) -> PathBuf {
    match package {
        "tests" => root().join("tests"),
        _ => root().join("crates").join(package),
    }
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim_end() == wanted)
}

/// Whether a source contains a test function with this name.
fn is_test(source: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let mut is_marked = false;
    for line in source.lines().map(str::trim) {
        if is_marked && line.starts_with(&head) {
            return true;
        }
        is_marked = line == "#[test]" || (is_marked && line.starts_with("#["));
    }
    false
}

/// Returns all sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the witnesses of a document: all code spans in the last cell of its tables with tests,
/// and those code spans in deviations that cannot be anything else. `None` means a span in the
/// place of a test that is not a witness.
fn witnesses(text: &str) -> Vec<(&str, Option<Witness<'_>>)> {
    let mut found = Vec::new();
    let mut has_test_column = false;
    for line in text.lines() {
        if let Some(list) = line.strip_prefix("Tests: ") {
            found.extend(
                spans(list)
                    .into_iter()
                    .map(|span| (span, Witness::of(span))),
            );
            continue;
        }
        if !line.starts_with('|') {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let last = cells.last().copied().unwrap_or_default();
        if last.trim() == "Test" {
            has_test_column = true;
        } else if line.starts_with("| | |") {
            has_test_column = false;
        }
        for span in spans(last) {
            let witness = Witness::of(span);
            if has_test_column || witness.as_ref().is_some_and(is_certain) {
                found.push((span, witness));
            }
        }
    }
    found
}

/// Whether a text names a test, or the code.
pub(super) fn has_witness(text: &str) -> bool {
    let mut found = spans(text).into_iter().filter_map(Witness::of);
    found.any(|witness| is_certain(&witness))
}

/// Whether a span among other prose must be a witness.
fn is_certain(witness: &Witness<'_>) -> bool {
    match witness {
        Witness::Case(topic, _) => root().join(format!("tests/scripted/{topic}.txt")).is_file(),
        Witness::Function(package, _) => home(package).is_dir(),
        Witness::Path(_) => true,
        Witness::Peer(_) | Witness::Named(..) => true,
    }
}

mod proofs {
    //! Each rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    #[test]
    fn paths_are_told_from_other_code() {
        let text = "See `crates/net`, `x/src/y.rs`, `memory/show`, `/proc/x.rs`, `tests/a b`, `P.md` and [it](docs/a.md#b), \
                    [web](https://x/y.md), [here](#c).\n```sh\n`crates/no`\n```\n";
        assert_eq!(
            paths(text),
            ["docs/a.md", "crates/net", "x/src/y.rs", "P.md"]
        );
    }

    #[test]
    fn witnesses_are_the_spans_of_the_test_column() {
        let text = "| F | S | Test |\n|---|---|---|\n| `a/b` | same | `locks/*`, `shell/process: x`, `net: y` |\n| z | same | `word` |\n\
                    | | |\n|---|---|\n| 1 | `tcp:[::1]`: `null/x`. `wait/no-such-case` |\n";
        let found = witnesses(text);
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "locks/*",
                "shell/process: x",
                "net: y",
                "word",
                "wait/no-such-case"
            ]
        );
        assert_eq!(found[0].1, Some(Witness::Case("locks", "*")));
        assert_eq!(found[1].1, Some(Witness::Named("shell", "process", "x")));
        assert_eq!(found[3].1, None);
    }

    #[test]
    fn missing_tests_are_missed() {
        for (span, exists) in [
            ("locks/*", true),
            ("locks/no-such-case", false),
            ("no-such-topic/*", false),
            ("interop/files", true),
            ("interop/nobody", false),
            ("tests: missing_tests_are_missed", true),
            ("tests: has_line", false),
            ("tests/documents.rs", false),
        ] {
            let witness = Witness::of(span).expect("a witness");
            assert_eq!(witness.exists(), exists, "{span}");
        }
    }
}
