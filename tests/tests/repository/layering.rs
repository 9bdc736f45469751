//! The rules of this repository that a program can check: which crate may import which, which names
//! must not occur in the pure crates, where `unsafe` is allowed, the heads and lengths of files,
//! and that nothing is left undone.
//!
//! Reads manifests and sources as text. Each rule is a function from a text to complaints, and is
//! tested with the snippets below. One test applies all rules to the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The level of each crate. A crate may only import crates of lower levels. The binaries have the
/// same level as the front of the client library. Only crates for development may import them, and
/// `cli` and `console`, which share the parts of `tools`.
const LEVELS: [(&str, u32); 28] = [
    ("json", 0),
    ("data", 1),
    ("picture", 2),
    ("rpc", 2),
    ("engine", 2),
    ("filter", 2),
    ("log", 2),
    ("history", 3),
    ("monitor", 3),
    ("consensus", 3),
    ("tls", 2),
    ("session", 3),
    ("idl", 4),
    ("net", 3),
    ("reactor", 4),
    ("shell", 5),
    ("driver", 5),
    ("service", 5),
    ("disk", 6),
    ("server", BINARY),
    ("tools", BINARY),
    ("idlc", BINARY),
    ("corvid", BINARY),
    ("python", BINDING),
    ("capi", BINDING),
    ("cli", BINDING),
    ("console", BINDING),
    ("fuzzing", DEVELOPMENT),
];

/// Further crates for development: the simulator, its model, the benchmark, the guard, packaging
/// and examples.
const DEVELOPMENT_CRATES: [&str; 7] = [
    "sim", "model", "bench", "guard", "tests", "xtask", "examples",
];

const BINARY: u32 = 7;
const BINDING: u32 = 8;
const DEVELOPMENT: u32 = 9;

/// The crates that get time, randomness and bytes only as inputs.
const PURE: [&str; 14] = [
    "json",
    "data",
    "picture",
    "rpc",
    "engine",
    "filter",
    "log",
    "history",
    "tls",
    "monitor",
    "consensus",
    "session",
    "idl",
    "service",
];

/// Identifiers with which effects come into a crate.
const EFFECTS: [&str; 31] = [
    "Instant",
    "SystemTime",
    "RandomState",
    "File",
    "OpenOptions",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "JoinHandle",
    "libc",
    "mio",
    "socket2",
    "getrandom",
    "rand",
    "tokio",
    "crossbeam_channel",
    "corvid_net",
    "corvid_reactor",
    "corvid_shell",
    "corvid_disk",
    "rustix",
    "stdin",
    "stdout",
    "stderr",
    "println",
    "eprintln",
    "print",
    "dbg",
];

/// Modules of the standard library with which effects come into a crate.
const EFFECT_MODULES: [&str; 6] = ["net", "fs", "thread", "process", "env", "os"];

/// Packages that a pure crate must not depend on.
const EFFECT_PACKAGES: [&str; 12] = [
    "corvid-net",
    "corvid-reactor",
    "corvid-shell",
    "corvid-disk",
    "rustix",
    "libc",
    "mio",
    "socket2",
    "getrandom",
    "rand",
    "tokio",
    "crossbeam-channel",
];

/// The files that may contain `unsafe`. A name that ends in `/` is a folder.
const UNSAFE: [&str; 7] = [
    "crates/capi/",
    "crates/json/src/scan/x86_64.rs",
    "crates/data/src/str.rs",
    "crates/net/",
    "crates/reactor/",
    "crates/shell/",
    "crates/disk/",
];

const LINES_MAX: usize = 800;

/// Violations of the rules, each with its file.
type Complaints = Vec<String>;

#[test]
fn the_workspace_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut complaints = Complaints::new();
    let mut crates: Vec<PathBuf> = folders(&root.join("crates"));
    crates.push(root.join("tests"));
    for folder in crates {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        complaints.extend(check_manifest(&name, &manifest));
        for path in sources(&folder) {
            let shown = path.strip_prefix(root).unwrap().display().to_string();
            let source = fs::read_to_string(&path).unwrap();
            complaints.extend(check_source(&name, &shown, &source));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Returns every Rust file of a crate, except for files that fuzzers and builds have left behind.
pub(super) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the dependencies that a crate must not have.
fn check_manifest(name: &str, manifest: &str) -> Complaints {
    let Some(level) = level_of(name) else {
        return vec![format!("{name}: has no level; give it one here")];
    };
    let mut complaints = Complaints::new();
    for package in dependencies(manifest) {
        if PURE.contains(&name) && EFFECT_PACKAGES.contains(&package.as_str()) {
            complaints.push(format!("{name}: pure, but depends on {package}"));
        }
        let lower = match package.as_str() {
            "corvid-ovsdb" => "corvid",
            package => match package.strip_prefix("corvid-") {
                Some(lower) => lower,
                None => continue,
            },
        };
        // These crates handle bytes only: framing, the disk of `log`, the sessions of `tls`. They
        // also handle text for people: `json::shown` escapes it, and `rpc::wire_log` knows the form
        // of messages in the log.
        let carries_bytes = match name {
            "net" => Some(&["json", "tls"][..]),
            "reactor" => Some(&["json", "net"][..]),
            "shell" => Some(&["json", "net", "reactor", "rpc"][..]),
            "disk" => Some(&["log", "net", "shell"][..]),
            _ => None,
        };
        if let Some(allowed) = carries_bytes.filter(|allowed| !allowed.contains(&lower)) {
            let allowed = allowed.join(", ");
            complaints.push(format!(
                "{name}: depends on {lower}; it may on {allowed} only"
            ));
        }
        // A program that embeds the client library has its own log, and handles signals and daemons
        // itself.
        if ["session", "idl", "driver", "corvid", "python", "capi"].contains(&name)
            && ["reactor", "shell", "disk"].contains(&lower)
        {
            complaints.push(format!(
                "{name}: a library for other programs, but depends on {lower}"
            ));
        }
        if level < DEVELOPMENT && level_of(lower).is_none_or(|lower| lower >= level) {
            complaints.push(format!("{name}: depends on {lower}, which is not below it"));
        }
    }
    complaints
}

fn level_of(name: &str) -> Option<u32> {
    if DEVELOPMENT_CRATES.contains(&name) {
        return Some(DEVELOPMENT);
    }
    LEVELS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, level)| *level)
}

/// Returns the names of the packages that a manifest depends on for more than its tests.
pub(super) fn dependencies(manifest: &str) -> Vec<String> {
    let mut packages = Vec::new();
    let mut is_inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_inside = section == "dependencies"
                || section == "build-dependencies"
                || (section.starts_with("target.") && section.ends_with(".dependencies"));
            if let Some(package) = section.strip_prefix("dependencies.") {
                packages.push(package.to_owned());
            }
        } else if is_inside
            && let Some((package, _)) = line.split_once(['=', '.'])
            && !line.starts_with('#')
        {
            packages.push(package.trim().to_owned());
        }
    }
    packages
}

fn check_source(name: &str, path: &str, source: &str) -> Complaints {
    let mut complaints = Complaints::new();
    if !source.starts_with("//!") {
        complaints.push(format!("{path}: has no `//!` head"));
    }
    let lines = source.lines().count();
    if lines > LINES_MAX {
        complaints.push(format!("{path}: {lines} lines"));
    }
    let code = Code::of(source);
    for word in ["todo", "unimplemented"] {
        complaints.extend(code.find(word).map(|line| format!("{path}:{line}: {word}")));
    }
    if code
        .text
        .replace(char::is_whitespace, "")
        .contains("#[ignore")
    {
        complaints.push(format!("{path}: ignores a test"));
    }
    for (number, line) in source.lines().enumerate() {
        // The words are in two halves, so that this line is not a violation.
        if line.contains(concat!("FIX", "ME")) || line.contains(concat!("TO", "DO:")) {
            complaints.push(format!("{path}:{}: left undone", number + 1));
        }
    }
    complaints.extend(check_unsafe(path, source, &code));
    if PURE.contains(&name) && !is_test_file(path) {
        complaints.extend(check_pure(path, &code.without_tests()));
    }
    complaints
}

/// Whether a file contains tests or examples. The rules about effects do not apply to them.
fn is_test_file(path: &str) -> bool {
    ["/tests/", "/examples/", "/benches/"]
        .iter()
        .any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
}

/// Checks that a pure crate has no effects.
fn check_pure(path: &str, code: &Code) -> Complaints {
    let mut complaints = Complaints::new();
    for effect in EFFECTS {
        complaints.extend(
            code.find(effect)
                .map(|line| format!("{path}:{line}: pure, but names {effect}")),
        );
    }
    for (line, module) in code.std_modules() {
        if EFFECT_MODULES.contains(&module.as_str()) {
            complaints.push(format!("{path}:{line}: pure, but names std::{module}"));
        }
    }
    // The default hasher has a random key, so the order of iteration would differ from run to run.
    for map in ["HashMap", "HashSet"] {
        let packed = code.text.replace(char::is_whitespace, "");
        if packed.contains(&format!("{map}::new("))
            || packed.contains(&format!("{map}::with_capacity("))
        {
            complaints.push(format!(
                "{path}: pure, but makes a {map} with a random hasher"
            ));
        }
    }
    complaints
}

/// Checks that `unsafe` only occurs where it is allowed, and with its reason. The tests of these
/// crates may also contain it.
fn check_unsafe(path: &str, source: &str, code: &Code) -> Complaints {
    let lines: Vec<&str> = source.lines().collect();
    let is_allowed = UNSAFE
        .iter()
        .any(|allowed| path == *allowed || (allowed.ends_with('/') && path.starts_with(allowed)));
    let kept = code.without_tests();
    let outside_tests: Vec<usize> = kept.find("unsafe").collect();
    let mut complaints = Complaints::new();
    for line in code.find("unsafe") {
        if !is_allowed && outside_tests.contains(&line) {
            complaints.push(format!("{path}:{line}: unsafe"));
        }
        // Unsafe traits and functions state their requirements in their documentation.
        let text = lines[line - 1];
        let is_block = text.contains("unsafe {") || text.contains("unsafe impl");
        if is_block && !has_reason(&lines, line) {
            complaints.push(format!("{path}:{line}: unsafe without SAFETY"));
        }
    }
    complaints
}

/// Whether SAFETY is in the comment above the statement that contains `line`, or at the end of that
/// line.
fn has_reason(lines: &[&str], line: usize) -> bool {
    if lines[line - 1].contains("SAFETY:") {
        return true;
    }
    let above = lines[..line - 1].iter().rev();
    let mut is_inside_comment = false;
    for text in above.map(|text| text.trim()).take(20) {
        if text.contains("SAFETY:") {
            return true;
        }
        let is_comment = text.starts_with("//");
        if is_inside_comment && !is_comment {
            return false;
        }
        is_inside_comment |= is_comment;
        // The statement begins here. The lines above belong to another statement, except for
        // attributes.
        if !is_comment && (text.ends_with(';') || text.ends_with('}') || text.is_empty()) {
            return false;
        }
    }
    false
}

/// A source without comments and literals. Its lines are kept, so that line numbers remain valid.
pub(super) struct Code {
    pub(super) text: String,
}

impl Code {
    pub(super) fn of(source: &str) -> Code {
        let mut text = String::with_capacity(source.len());
        let mut rest = source;
        while let Some(first) = rest.chars().next() {
            let skipped = literal_or_comment(rest);
            if skipped > 0 {
                let lines = rest[..skipped].matches('\n').count();
                text.push(' ');
                text.extend(std::iter::repeat_n('\n', lines));
                rest = &rest[skipped..];
                continue;
            }
            // A word is taken as a whole, so that a letter in it is not mistaken for the prefix of
            // a literal.
            let word = rest.find(|found| !is_word(found)).unwrap_or(rest.len());
            let taken = word.max(first.len_utf8());
            text.push_str(&rest[..taken]);
            rest = &rest[taken..];
        }
        Code { text }
    }

    /// Returns the numbers of the lines that contain an identifier.
    fn find<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        let has = move |line: &str| line.split(|found| !is_word(found)).any(|word| word == name);
        let lines = self.text.lines().enumerate();
        lines
            .filter(move |(_, line)| has(line))
            .map(|(number, _)| number + 1)
    }

    /// Returns the modules of `std` that are named, alone or in braces, with their lines.
    fn std_modules(&self) -> Vec<(usize, String)> {
        let mut modules = Vec::new();
        for (position, _) in self.text.match_indices("std::") {
            if self.text[..position].ends_with(is_word) {
                continue;
            }
            let line = self.text[..position].matches('\n').count() + 1;
            let rest = &self.text[position + "std::".len()..];
            let Some(group) = rest.strip_prefix('{') else {
                let end = rest.find(|found| !is_word(found)).unwrap_or(rest.len());
                modules.push((line, rest[..end].to_owned()));
                continue;
            };
            let mut depth = 1;
            let mut is_path = false;
            let mut word = String::new();
            for found in group.chars() {
                if is_word(found) {
                    word.push(found);
                    continue;
                }
                if !word.is_empty() && depth == 1 && !is_path {
                    modules.push((line, word.clone()));
                }
                is_path = found == ':' || (is_path && found.is_whitespace());
                word.clear();
                match found {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        }
        modules
    }

    /// Returns the source without the items that are marked with `#[cfg(test)]`.
    pub(super) fn without_tests(&self) -> Code {
        let mut text = String::new();
        let mut rest = self.text.as_str();
        while let Some(start) = rest.find("#[cfg(test)]") {
            text.push_str(&rest[..start]);
            let item = &rest[start..];
            let end = item_end(item);
            text.extend(item[..end].chars().filter(|found| *found == '\n'));
            rest = &item[end..];
        }
        text.push_str(rest);
        Code { text }
    }
}

/// Returns where an item with its attributes ends: at its semicolon or at the end of its braces.
pub(super) fn item_end(item: &str) -> usize {
    let mut depth = 0_usize;
    for (position, found) in item.char_indices() {
        match found {
            '{' => depth += 1,
            '}' if depth <= 1 => return position + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return position + 1,
            _ => {}
        }
    }
    item.len()
}

pub(super) fn is_word(found: char) -> bool {
    found.is_alphanumeric() || found == '_'
}

/// Returns the length of the comment or literal with which a text begins; 0 if there is none.
fn literal_or_comment(text: &str) -> usize {
    let until = |end: &str, from: usize| {
        text[from..]
            .find(end)
            .map_or(text.len(), |found| from + found + end.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| {
            let hashes = rest.trim_start_matches('#');
            rest.starts_with('"')
                || (prefix.ends_with('r') && rest.starts_with('#') && hashes.starts_with('"'))
                || (rest.starts_with('\'') && matches!(*prefix, "b" | "") && is_char(rest))
        })
    });
    let Some(prefix) = prefix else {
        return 0;
    };
    let rest = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        return until(&end, prefix.len() + hashes + 1);
    }
    let quote = if rest.starts_with('\'') { '\'' } else { '"' };
    let mut is_escaped = false;
    for (position, found) in rest.char_indices().skip(1) {
        if !std::mem::take(&mut is_escaped) {
            if found == quote {
                return prefix.len() + position + 1;
            }
            is_escaped = found == '\\';
        }
    }
    text.len()
}

/// Whether a quote begins a character and not a lifetime.
fn is_char(text: &str) -> bool {
    let mut found = text.chars().skip(1);
    match found.next() {
        Some('\\') => true,
        Some(_) => found.next() == Some('\''),
        None => false,
    }
}

mod proofs {
    //! Each rule finds its violations, and accepts text that only looks like a violation.

    use super::*;

    const HEAD: &str = "//! A file.\n";

    fn source(name: &str, path: &str, body: &str) -> Complaints {
        check_source(name, path, &format!("{HEAD}{body}"))
    }

    fn pure(body: &str) -> Complaints {
        source("engine", "crates/engine/src/x.rs", body)
    }

    fn manifest(name: &str, dependencies: &[&str]) -> Complaints {
        let mut text = "[package]\nname = \"x\"\n[dependencies]\n".to_owned();
        for package in dependencies {
            text += &format!("{package} = {{ workspace = true }}\n");
        }
        check_manifest(name, &text)
    }

    #[test]
    fn crates_import_lower_levels_only() {
        assert!(manifest("engine", &["corvid-json", "corvid-data", "bstr"]).is_empty());
        assert!(manifest("server", &["corvid-service", "corvid-shell", "libc"]).is_empty());
        assert!(manifest("sim", &["corvid-server", "corvid-sim"]).is_empty());
        let refused = [
            ("data", "corvid-engine"),
            ("engine", "corvid-log"),
            ("monitor", "corvid-service"),
            ("net", "corvid-data"),
            ("reactor", "corvid-data"),
            ("shell", "corvid-data"),
            ("shell", "corvid-log"),
            ("disk", "corvid-engine"),
            ("driver", "corvid-shell"),
            ("corvid", "corvid-reactor"),
            ("service", "corvid-net"),
            ("server", "corvid-tools"),
            ("server", "corvid-sim"),
            ("driver", "corvid-ovsdb"),
            ("engine", "corvid-unheard-of"),
            ("engine", "getrandom"),
            ("unheard-of", "corvid-json"),
        ];
        for (name, package) in refused {
            assert!(
                !manifest(name, &[package]).is_empty(),
                "{name} -> {package}"
            );
        }
    }

    #[test]
    fn every_way_to_depend_is_seen() {
        for text in [
            "[dependencies]\ncorvid-engine.workspace = true",
            "[dependencies.corvid-engine]\nworkspace = true",
            "[target.'cfg(unix)'.dependencies]\ncorvid-engine = \"1\"",
            "[build-dependencies]\ncorvid-engine = \"1\"",
        ] {
            assert_eq!(check_manifest("data", text).len(), 1, "{text}");
        }
        let tests_only =
            "[dependencies]\n# corvid-engine = 1\n[dev-dependencies]\ncorvid-engine = \"1\"";
        assert!(check_manifest("data", tests_only).is_empty());
    }

    #[test]
    fn effects_are_found_in_pure_crates() {
        for body in [
            "use std::net::TcpStream;",
            "use std::{collections::BTreeMap, fs};",
            "use std::{\n    fs::File as F,\n};",
            "use std::{time::{Duration, Instant}};",
            "fn now() { std::time::SystemTime::now(); }",
            "fn f() { std::thread::spawn(|| {}); }",
            "fn f() { let _ = ::std::process::id(); }",
            "fn f() { std::env::args(); }",
            "use std::os::fd::RawFd;",
            "fn f() { libc::getpid(); }",
            "fn f() { println!(\"x\"); }",
            "fn f() { let map = HashMap\n::new(); }",
            "fn f() { let set: S = std::collections::HashSet::with_capacity(1); }",
            "fn f<'a>(x: &'a str) -> File { loop {} }",
            "fn f() { let quote = '\"'; let file: File; let other = '\"'; }",
        ] {
            assert!(!pure(body).is_empty(), "{body}");
            let elsewhere = source("server", "crates/server/src/x.rs", body);
            assert!(elsewhere.is_empty(), "{elsewhere:?}");
        }
    }

    #[test]
    fn what_only_looks_like_an_effect_passes() {
        for body in [
            "// std::net is not for us\n/* std::fs */",
            "const TEXT: &str = \"std::net::TcpStream File\";",
            "const TEXT: &str = r#\"a \" std::fs File\"#;",
            "const TEXT: &[u8] = b\"\\\" File\";",
            "use std::collections::{BTreeMap, os};",
            "use std::{cell::{fs}, mem};",
            "use my_std::net;",
            "struct FileName; struct Instantly;",
            "fn f() { let map: M = HashMap::default(); }",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    use std::fs::File;\n    fn g() { let map = HashMap::new(); }\n}",
            "#[cfg(test)]\nuse std::fs;\nfn f() {}",
        ] {
            let complaints = pure(body);
            assert!(complaints.is_empty(), "{body}: {complaints:?}");
        }
        let after_tests = "#[cfg(test)]\nmod tests { fn f() {} }\nuse std::fs;";
        assert_eq!(pure(after_tests).len(), 1);
        let in_tests = check_source("engine", "crates/engine/tests/x.rs", "//! T\nuse std::fs;");
        assert!(in_tests.is_empty());
    }

    #[test]
    fn unsafe_stands_where_it_may_and_has_reasons() {
        let reasoned = "fn f() {\n    // SAFETY: it is.\n    let x =\n        unsafe { g() };\n}";
        let bare = "fn f() {\n    // SAFETY: of another one.\n    g();\n    unsafe { g() };\n}";
        let shell = |body| source("shell", "crates/shell/src/x.rs", body);
        assert!(shell(reasoned).is_empty());
        assert_eq!(shell(bare).len(), 1);
        assert!(
            shell("#![allow(unsafe_code)]\n// unsafe { }\nconst S: &str = \"unsafe {\";")
                .is_empty()
        );
        assert_eq!(pure(reasoned).len(), 1);
        assert_eq!(
            source("server", "crates/server/src/x.rs", reasoned).len(),
            1
        );
        let scan = |body| source("json", "crates/json/src/scan/x86_64.rs", body);
        assert!(scan(reasoned).is_empty());
        let test = format!("#[cfg(test)]\nmod tests {{\n{reasoned}\n}}");
        assert!(source("json", "crates/json/src/number.rs", &test).is_empty());
    }

    #[test]
    fn heads_lengths_and_leftovers_are_seen() {
        let path = "crates/server/src/x.rs";
        assert_eq!(check_source("server", path, "fn f() {}\n").len(), 1);
        assert!(source("server", path, &"\n".repeat(LINES_MAX - 1)).is_empty());
        assert_eq!(source("server", path, &"\n".repeat(LINES_MAX)).len(), 1);
        for body in [
            "fn f() { todo!() }",
            "fn f() { unimplemented!() }",
            "#[test]\n#[ignore]\nfn f() {}",
            "#[ignore = \"slow\"]\nfn f() {}",
            concat!("// FIX", "ME\n"),
            concat!("// TO", "DO: more\n"),
        ] {
            assert_eq!(source("server", path, body).len(), 1, "{body}");
        }
    }

    #[test]
    fn levels_name_each_crate_once() {
        let mut seen = BTreeMap::new();
        for name in LEVELS
            .iter()
            .map(|(name, _)| *name)
            .chain(DEVELOPMENT_CRATES)
        {
            *seen.entry(name).or_insert(0) += 1;
        }
        assert!(seen.into_values().all(|count| count == 1));
        assert!(
            PURE.iter()
                .all(|name| level_of(name).is_some_and(|level| level < BINARY))
        );
    }
}
