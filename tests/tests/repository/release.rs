//! A release can be made: `packaging/release/files.txt` lists the crates that are published, in an
//! order in which that is possible, and names the other files as the build names them; every file
//! that repeats the version has the right one; `RELEASING.md` shows the versions of the code.
//!
//! Reads files, asks Cargo about the workspace, and runs the script only to list names. It builds
//! nothing: `make release` does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The version of everything, from its only source.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const LIST: &str = "packaging/release/files.txt";

/// Returns the names of the files that a step makes, with their placeholders, in order.
fn files(list: &str, step: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .filter(|(of, _)| *of == step)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Returns the names of a step's files without the version and the ending.
fn parts(list: &str, step: &str, ending: &str) -> Vec<String> {
    let ending = format!("-@VERSION@{ending}");
    let names = files(list, step);
    let parts = names.iter().filter_map(|name| name.strip_suffix(&ending));
    parts.map(str::to_owned).collect()
}

/// Returns the text between the first `before` and the next `after`.
fn between<'text>(text: &'text str, before: &str, after: &str) -> &'text str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before}"));
    rest.split_once(after)
        .unwrap_or_else(|| panic!("no {after} after {before}"))
        .0
}

/// A member of the workspace.
struct Member {
    name: String,
    is_published: bool,
    /// The members that must be published before it: dependencies, and those of its tests that have
    /// a version.
    needs: BTreeSet<String>,
}

fn members() -> Vec<Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    let member = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("a list");
        let needs = dependencies
            .iter()
            .filter(|it| it["path"].is_string() && it["req"] != "*")
            .map(|it| text(&it["name"]))
            .collect();
        Member {
            name: text(&package["name"]),
            is_published: package["publish"].is_null(),
            needs,
        }
    };
    packages.iter().map(member).collect()
}

/// Returns what is wrong with the order of the crates.
fn check_crates(listed: &[String], members: &[Member]) -> Vec<String> {
    let mut complaints = Vec::new();
    let published = members.iter().filter(|member| member.is_published);
    for member in published.clone().filter(|it| !listed.contains(&it.name)) {
        complaints.push(format!("{LIST} lacks {}", member.name));
    }
    for (place, name) in listed.iter().enumerate() {
        let Some(member) = published.clone().find(|member| member.name == *name) else {
            complaints.push(format!("{LIST}: {name} is not published"));
            continue;
        };
        let before = &listed[..place];
        for needed in member.needs.iter().filter(|it| !before.contains(it)) {
            complaints.push(format!("{LIST}: {name} comes before {needed}"));
        }
    }
    complaints
}

#[test]
fn crates_are_listed_in_an_order_in_which_they_can_be_published() {
    let listed = parts(&read(LIST), "crates", ".crate");
    let complaints = check_crates(&listed, &members());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    for member in members().iter().filter(|member| member.is_published) {
        let folder = crate_folder(&member.name);
        let licence = fs::canonicalize(folder.join("LICENSE"));
        let shared = fs::canonicalize(root().join("LICENSE"));
        assert_eq!(
            licence.ok(),
            shared.ok(),
            "{} needs a link to LICENSE",
            member.name
        );
    }
}

/// Returns the folder of a member.
fn crate_folder(name: &str) -> PathBuf {
    let line = format!("\nname = \"{name}\"\n");
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let mut folders = crates.flatten().map(|entry| entry.path());
    let found = folders.find(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.contains(&line)
    });
    found.unwrap_or_else(|| panic!("no crate is named {name}"))
}

#[test]
fn the_other_files_have_the_names_that_the_build_gives_them() {
    let list = read(LIST);
    // Debian packages.
    let made = read("crates/xtask/src/deb.rs") + &read("crates/xtask/src/c_library.rs");
    let debs = files(&list, "packages");
    assert_eq!(
        debs.len(),
        made.matches("_{version}_{architecture}.deb").count()
    );
    for name in &debs {
        let package = name
            .strip_suffix("_@VERSION@-1_@ARCH@.deb")
            .unwrap_or_else(|| panic!("{name}"));
        let template = format!("\"{package}_{{version}}_{{architecture}}.deb\"");
        assert!(made.contains(&template), "{template}");
    }

    // Python: the distribution's name with underscores, then the version.
    let wheels: BTreeSet<String> = files(&list, "wheels").into_iter().collect();
    let distribution = |folder: &str| {
        let project = read(&format!("crates/python/{folder}pyproject.toml"));
        between(&project, "\nname = \"", "\"").replace('-', "_")
    };
    let main = distribution("");
    let mut expected: BTreeSet<String> = BTreeSet::from([
        format!("{main}-@VERSION@.tar.gz"),
        format!("{}-@VERSION@-py3-none-any.whl", distribution("corvid-ovs/")),
        format!(
            "{}-{}@VERSION@-py3-none-any.whl",
            distribution("ovs/"),
            between(
                &read("crates/python/ovs/pyproject.toml"),
                "\nversion = \"",
                VERSION
            )
        ),
    ]);
    let makefile = read("Makefile");
    for target in between(&makefile, "\nWHEELS ?= ", "\n").split(' ') {
        let (machine, _) = target.split_once('-').expect("a target");
        let platform = if target.ends_with("-musl") {
            format!("musllinux_1_2_{machine}")
        } else {
            format!("manylinux2014_{machine}.manylinux_2_17_{machine}")
        };
        expected.insert(format!("{main}-@VERSION@-cp39-abi3-{platform}.whl"));
    }
    assert_eq!(wheels, expected);

    // Everything that contains libraries of other projects has a list of them.
    let described: BTreeSet<String> = parts(&list, "sbom", ".cdx.json").into_iter().collect();
    let members: BTreeSet<String> = members().into_iter().map(|member| member.name).collect();
    assert!(described.is_subset(&members), "{described:?}");
    for shipped in [
        "server", "tools", "idlc", "cli", "console", "capi", "python", "ovsdb",
    ] {
        assert!(
            described.contains(&format!("corvid-{shipped}")),
            "{shipped}"
        );
    }
}

#[test]
fn the_script_makes_the_files_of_the_list() {
    let script = "packaging/release/make-files";
    let output = Command::new(root().join(script)).arg("--list").output();
    let output = output.unwrap_or_else(|error| panic!("{script}: {error}"));
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let list = read(LIST);
    let names = list.lines().filter(|line| !line.starts_with('#'));
    let expected: Vec<String> = names
        .filter_map(|line| line.split_once(' '))
        .map(|(_, name)| name.replace("@VERSION@", VERSION))
        .collect();
    assert_eq!(listed.lines().count(), expected.len(), "{listed}");
    for (name, expected) in listed.lines().zip(&expected) {
        match expected.split_once("@ARCH@") {
            Some((before, after)) => assert!(
                name.strip_prefix(before)
                    .is_some_and(|rest| rest.ends_with(after)),
                "{name}"
            ),
            None => assert_eq!(name, expected),
        }
    }
    // Each step of the list is a function of the script, and the reverse.
    let text = read(script);
    let steps: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_suffix("_step() {"))
        .collect();
    let of_list: BTreeSet<&str> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(step, _)| step)
        .collect();
    assert_eq!(steps, of_list);
    let documented = read("RELEASING.md");
    for step in steps {
        assert!(documented.contains(&format!("\n| `{step}` |")), "{step}");
    }
    assert!(read("Makefile").contains(&format!("\n\t{script} ")));
}

/// The files that repeat the version because they cannot take it from `Cargo.toml`, each with texts
/// that it must contain; `@` stands for the version. A text without `@` is not changed by hand.
const PLACES: [(&str, &[&str]); 17] = [
    ("Cargo.toml", &["[workspace.package]\nversion = \"@\""]),
    (
        "crates/corvid/Cargo.toml",
        &["path = \"../driver\", version = \"=@\""],
    ),
    (
        "crates/driver/Cargo.toml",
        &["path = \"../net\", version = \"=@\""],
    ),
    (
        "crates/capi/cbindgen.toml",
        &["#define CORVID_VERSION \"@\""],
    ),
    (
        "crates/capi/include/corvid.h",
        &["#define CORVID_VERSION \"@\""],
    ),
    (
        "crates/python/ovs/pyproject.toml",
        &["version = \"4.0.0+corvid.@\""],
    ),
    (
        "crates/python/corvid-ovs/pyproject.toml",
        &["\nversion = \"@\"", "\"ovs==4.0.0+corvid.@\""],
    ),
    ("crates/python/ovs/README.md", &["+corvid.@` is Corvid @ "]),
    ("docs/clients/python-ovs.md", &["version `4.0.0+corvid.@`"]),
    ("docs/clients/rust.md", &["@"]),
    ("docs/start/replace-the-reference.md", &["\n    Corvid @\n"]),
    ("RELEASING.md", &["| `@` |", "Corvid @`", "+corvid.@`"]),
    ("CHANGELOG.md", &["\n## @,"]),
    ("packaging/debian/changelog", &["corvid (@-1) "]),
    ("fuzz/Cargo.toml", &["\nversion = \"@\""]),
    (
        "tests/interop/command-lines/client.py",
        &["\\\\nCorvid @\""],
    ),
    (
        "tests/interop/python-packages/run",
        &["OURS = \"4.0.0+corvid.@\"", "\"corvid_ovsdb\", \"@\""],
    ),
];

/// Files that name the version only to say that nothing is published yet. They need not name it.
const ANNOUNCEMENTS: [&str; 4] = [
    "README.md",
    "SECURITY.md",
    "crates/corvid/README.md",
    "crates/corvid/src/lib.rs",
];

#[test]
fn versions_agree() {
    let mut complaints = Vec::new();
    for (path, texts) in PLACES {
        let contents = read(path);
        for text in texts {
            let text = text.replace('@', VERSION);
            if !contents.contains(&text) {
                complaints.push(format!("{path}: no {text:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));

    // Dependencies within the workspace require exactly this version.
    let workspace = read("Cargo.toml");
    let required: Vec<&str> = workspace
        .lines()
        .filter(|line| line.contains("path = \"crates/") && line.contains("version = "))
        .collect();
    let exact = format!("version = \"={VERSION}\"");
    assert!(required.len() >= 12, "{required:?}");
    let odd: Vec<&&str> = required.iter().filter(|it| !it.contains(&exact)).collect();
    assert!(odd.is_empty(), "{odd:?}");

    // The numbers of the header for C.
    let header = read("crates/capi/include/corvid.h");
    let numbers = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let before = format!("#define CORVID_VERSION_{part} ");
        between(&header, &before, "\n").to_owned()
    });
    assert_eq!(numbers.join("."), VERSION);

    // The newest entry is the first one.
    let changes = read("CHANGELOG.md");
    assert_eq!(between(&changes, "\n## ", ","), VERSION);
    let debian = read("packaging/debian/changelog");
    assert!(debian.starts_with(&format!("corvid ({VERSION}-1) ")));

    // No crate has a version of its own.
    for entry in fs::read_dir(root().join("crates"))
        .expect("crates")
        .flatten()
    {
        let manifest = entry.path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let (package, _) = text.split_once("\n[").expect("more than one section");
        let is_shared = package.contains("\nversion.workspace = true");
        assert!(is_shared, "{}", manifest.display());
    }
}

/// Returns whether a text contains the version as a number of its own, not as a part of an address
/// or of a longer number.
fn names_version(text: &str, version: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    text.match_indices(version).any(|(at, _)| {
        let (before, after) = (
            &text.as_bytes()[..at],
            &text.as_bytes()[at + version.len()..],
        );
        let follows = after.first() == Some(&b'.') && is_part(after.get(1));
        let continues = before.last() == Some(&b'.') && is_part(before.iter().rev().nth(1));
        !is_part(before.last()) && !is_part(after.first()) && !follows && !continues
    })
}

#[test]
fn no_other_file_repeats_the_version() {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .expect("git runs");
    let mut complaints = Vec::new();
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        // Versions of other projects, and requests of tests with versions of schemas.
        let is_foreign = name.ends_with(".lock")
            || name.ends_with("go.sum")
            || name.ends_with("go.mod")
            || name.starts_with("docs/spec/");
        let is_known =
            PLACES.iter().any(|(path, _)| *path == name) || ANNOUNCEMENTS.contains(&name);
        if is_foreign || is_known {
            continue;
        }
        let Ok(text) = fs::read_to_string(root().join(name)) else {
            continue;
        };
        if names_version(&text, VERSION) {
            complaints.push(name.to_owned());
        }
    }
    assert!(
        complaints.is_empty(),
        "take the version from Cargo.toml, or add to PLACES: {complaints:?}"
    );
}

#[test]
fn the_table_of_versions_is_that_of_the_code() {
    let text = read("RELEASING.md");
    let table = between(&text, "\n## Versions\n", "\n**Corvid**");
    let shown = |row: &str| {
        let line = table
            .lines()
            .find(|line| line.starts_with(&format!("| {row}")));
        let line = line.unwrap_or_else(|| panic!("no row {row}"));
        line.split(" | ")
            .nth(1)
            .expect("a cell")
            .trim_matches('`')
            .to_owned()
    };
    assert_eq!(shown("Corvid: programs"), VERSION);
    let constant = |path: &str, name: &str| {
        between(&read(path), &format!("const {name}: &str = \""), "\"").to_owned()
    };
    let reference = constant("crates/shell/src/program.rs", "VERSION");
    assert_eq!(shown("the release of Open vSwitch"), reference);
    assert!(text.contains(&format!("ovsdb-server (Open vSwitch) {reference}`")));
    let codec = constant("crates/consensus/src/wire.rs", "CODEC");
    assert_eq!(shown("messages between members"), codec);
    let once = read("crates/session/src/once.rs");
    let level = between(&once, "const LEVEL_CLIENT: u8 = ", ";");
    assert_eq!(shown("level of the server ids"), level);
    let python = read("crates/python/ovs/pyproject.toml");
    let ovs = between(&python, "\nversion = \"", "\"");
    assert_eq!(shown("`ovs` for Python"), ovs);
    let rust = read("Cargo.toml");
    let rust = between(&rust, "\nrust-version = \"", "\"");
    assert_eq!(shown("the oldest Rust"), rust);

    // The number of the shared library is that of its package, its links and its symbols.
    let soname = constant("crates/xtask/src/c_library.rs", "SONAME");
    assert_eq!(shown("the library for C"), soname);
    let number = soname.strip_prefix("libcorvid.so.").expect("a soname");
    assert!(read("crates/capi/link.sh").contains(&format!("-soname,{soname} ")));
    assert!(read("crates/capi/libcorvid.map").contains(&format!("\nCORVID_{number} {{")));
    let library = read("crates/xtask/src/c_library.rs");
    assert!(library.contains(&format!(
        "\"libcorvid {number} libcorvid{number} (>= {{version}})"
    )));
}

mod proofs {
    //! The rules find their violations, and accept text that only looks like a violation.

    use super::*;

    fn member(name: &str, is_published: bool, needs: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            is_published,
            needs: needs.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    #[test]
    fn missing_odd_and_misplaced_crates_are_found() {
        let members = [
            member("a", true, &[]),
            member("b", true, &["a"]),
            member("tests", false, &["a"]),
        ];
        let check = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            check_crates(&names, &members)
        };
        assert!(check(&["a", "b"]).is_empty());
        assert_eq!(check(&["b", "a"]), [format!("{LIST}: b comes before a")]);
        assert_eq!(check(&["a"]), [format!("{LIST} lacks b")]);
        let odd = format!("{LIST}: tests is not published");
        assert_eq!(check(&["a", "b", "tests"]), [odd]);
    }

    #[test]
    fn versions_are_told_from_addresses() {
        for text in [
            "3.2.0",
            "v3.2.0",
            "Corvid 3.2.0.",
            "+corvid.3.2.0`",
            "3.2.0-1",
        ] {
            assert!(names_version(text, "3.2.0"), "{text}");
        }
        for text in ["13.2.0.9", "13.2.0", "10.3.2.0/24", "3.2.01", "3.2.0.5"] {
            assert!(!names_version(text, "3.2.0"), "{text}");
        }
    }
}
