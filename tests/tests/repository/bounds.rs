//! Compares `docs/reference/limits.md` with the sources. Every limit that the page names must exist
//! in a file that it names, and every file with a queue must be named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/reference/limits.md";

/// The crates whose queues the page lists.
const CRATES: [&str; 14] = [
    "server",
    "service",
    "net",
    "reactor",
    "shell",
    "disk",
    "monitor",
    "engine",
    "log",
    "rpc",
    "session",
    "driver",
    "idl",
    "consensus",
];

/// Expressions that make a queue in Rust.
const QUEUES: [&str; 3] = ["VecDeque<", "unbounded()", "channel()"];

/// Files whose queues only exist during the call that made them.
const SHORT_LIVED: [&str; 1] = ["crates/shell/src/args.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the words of a line that are in backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_constant(word: &str) -> bool {
    let is_of_one = |byte: u8| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit();
    word.len() > 3 && word.bytes().all(is_of_one)
}

/// Whether a source contains the constant or option that the page names.
fn has(source: &str, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(option) => source.contains(&format!("\"{option}\"")),
        None => source.contains(&format!("const {word}:")),
    }
}

#[test]
fn limits_that_are_named_exist() {
    let page = read(&root().join(PAGE));
    let mut wrong = Vec::new();
    let mut checked = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let files = quoted(line).filter(|word| word.ends_with(".rs"));
        let sources: Vec<String> = files.map(|file| read(&root().join(file))).collect();
        for word in quoted(line).filter(|word| is_constant(word) || word.starts_with("--")) {
            checked += 1;
            if !sources.iter().any(|source| has(source, word)) {
                wrong.push(format!("{word} is in none of the files of: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(checked > 40, "the page is read");
}

#[test]
fn every_queue_is_told_of() {
    let page = read(&root().join(PAGE));
    let named: BTreeSet<&str> = quoted(&page).collect();
    let mut untold = Vec::new();
    for name in CRATES {
        let mut folders = vec![root().join("crates").join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && path.file_stem().is_some_and(|stem| stem != "tests")
                {
                    let file = path
                        .strip_prefix(root())
                        .expect("below")
                        .display()
                        .to_string();
                    let is_told = named.contains(file.as_str()) || SHORT_LIVED.contains(&&*file);
                    if !is_told && has_queue(&read(&path)) {
                        untold.push(file);
                    }
                }
            }
        }
    }
    untold.sort();
    assert!(
        untold.is_empty(),
        "{PAGE} does not tell of the queues in\n{}",
        untold.join("\n")
    );
}

/// Whether a source, except for its tests, makes or keeps a queue.
fn has_queue(source: &str) -> bool {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.any(|line| QUEUES.iter().any(|queue| line.contains(queue)))
}

#[test]
fn queues_are_found_and_tests_left_out() {
    assert!(has_queue("struct S {\n    frames: VecDeque<Frame>,\n}"));
    assert!(has_queue("let (a, b) = crossbeam_channel::unbounded();"));
    assert!(!has_queue(
        "// VecDeque<Frame>\n#[cfg(test)]\nmod tests { fn f(q: VecDeque<u8>) {} }"
    ));
}
