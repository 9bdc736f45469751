//! The crate and its dependencies can be published. A program that depends on
//! `corvid-ovsdb` builds only what a client needs.
//!
//! These tests compile nothing. `crates/examples` is a program that depends on `corvid-ovsdb`
//! alone, and the workspace builds it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The crates that users depend on. The other published crates are dependencies of these.
const FRONTS: [&str; 2] = ["corvid-ovsdb", "corvid-idlc"];

fn cargo(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .env("CARGO_NET_RETRY", "0")
        .env("CARGO_HTTP_TIMEOUT", "20")
        .env("CARGO_TERM_COLOR", "never")
        .output()
        .expect("cargo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The workspace members as `cargo metadata` reports them.
fn members() -> Vec<Value> {
    let output = cargo(&["metadata", "--format-version=1", "--no-deps", "--offline"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn name(member: &Value) -> &str {
    member["name"].as_str().expect("a name")
}

/// Names of the members that may be published.
fn published(members: &[Value]) -> BTreeSet<&str> {
    let may = members.iter().filter(|member| member["publish"].is_null());
    may.map(name).collect()
}

#[test]
fn what_is_published_is_what_users_need() {
    let members = members();
    let mut needed: BTreeSet<&str> = FRONTS.into();
    let mut queue: Vec<&str> = FRONTS.into();
    while let Some(next) = queue.pop() {
        let member = members.iter().find(|member| name(member) == next);
        let dependencies = member.expect("a member")["dependencies"].as_array();
        for dependency in dependencies.expect("a list") {
            let is_for_tests = dependency["kind"] == "dev";
            if dependency["path"].is_string() && !is_for_tests && needed.insert(name(dependency)) {
                queue.push(name(dependency));
            }
        }
    }
    assert_eq!(published(&members), needed);
}

#[test]
fn published_crates_describe_themselves() {
    let members = members();
    let published = published(&members);
    for member in members
        .iter()
        .filter(|member| published.contains(name(member)))
    {
        for field in ["description", "license", "rust_version"] {
            assert!(member[field].is_string(), "{}: no {field}", name(member));
        }
        for field in ["keywords", "categories"] {
            let count = member[field].as_array().map_or(0, Vec::len);
            assert!((1..=5).contains(&count), "{}: {field}", name(member));
        }
        for dependency in member["dependencies"].as_array().expect("a list") {
            let is_named = dependency["req"] != "*" || dependency["kind"] == "dev";
            assert!(
                is_named,
                "{}: {} has no version",
                name(member),
                name(dependency)
            );
        }
        let folder = Path::new(member["manifest_path"].as_str().expect("a path"));
        check_inclusions(&folder.with_file_name("src"));
    }
    let front = members.iter().find(|member| name(member) == "corvid-ovsdb");
    assert_eq!(front.expect("a member")["readme"], "README.md");
}

/// No source includes a file from outside its crate: the package would lack that file.
fn check_inclusions(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            check_inclusions(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).expect("text");
            let inclusions = source.split("include_str!(\"").skip(1);
            for file in inclusions.filter_map(|rest| rest.split('"').next()) {
                let place = path.with_file_name(file).canonicalize().expect("it exists");
                let root = path.ancestors().find(|up| up.join("Cargo.toml").is_file());
                let root = root.expect("a crate").canonicalize().expect("it exists");
                assert!(
                    place.starts_with(root),
                    "{} includes {file}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_set_can_be_published() {
    let members = members();
    let published = published(&members);
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().display().to_string();
    let mut arguments = vec!["--no-verify", "--allow-dirty", "--target-dir", &target];
    arguments.extend(published.iter().flat_map(|name| ["-p", name]));
    let dry_run = cargo(&[&["publish", "--dry-run"][..], &arguments].concat());
    let said = text(&dry_run.stderr);
    if dry_run.status.success() {
        let uploads = said.matches("aborting upload due to dry run").count();
        assert_eq!(uploads, published.len(), "{said}");
        return;
    }
    // Without access to the registry, the packages can still be built.
    let is_unreachable = [
        "download",
        "network",
        "resolve host",
        "HTTP",
        "timed out",
        "connect",
    ]
    .iter()
    .any(|word| said.contains(word));
    assert!(is_unreachable, "{said}");
    eprintln!("SKIPPED: the registry cannot be reached, so only packages were made: {said}");
    let packages = cargo(&[&["package", "--offline"][..], &arguments].concat());
    let said = text(&packages.stderr);
    assert!(packages.status.success(), "{said}");
    assert_eq!(said.matches("Packaged ").count(), published.len(), "{said}");
}

/// Limit on the crates that a client pulls in with default features, ours included. Raising it
/// needs a reason in docs/internals/dependencies.md.
const CLIENT_CRATES_MAX: usize = 35;

/// Names of the packages that a build of `package` compiles, itself included.
fn built(package: &str, features: &[&str]) -> BTreeSet<String> {
    let package = format!("--package={package}");
    let usual = [
        "tree",
        "--offline",
        &package,
        "--edges=normal",
        "--prefix=none",
        "--format={p}",
    ];
    let output = cargo(&[&usual[..], features].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Two versions of one package count as two.
    let lines = text(&output.stdout);
    let packages: BTreeSet<Vec<&str>> = lines
        .lines()
        .map(|line| line.split(' ').take(2).collect())
        .collect();
    let names: BTreeSet<String> = packages
        .iter()
        .map(|package| package[0].to_owned())
        .collect();
    assert_eq!(
        names.len(),
        packages.len(),
        "two versions of one: {packages:?}"
    );
    names
}

/// Packages that a build of `corvid-ovsdb` compiles with exactly these features.
fn built_with(features: &str) -> BTreeSet<String> {
    let features = format!("--features={features}");
    built("corvid-ovsdb", &["--no-default-features", &features])
}

/// Server-only parts: HTTP, daemons, process logs and database files.
const UNWANTED: [&str; 13] = [
    "hyper",
    "http",
    "httparse",
    "bytes",
    "slab",
    "sd-notify",
    "backtrace",
    "corvid-engine",
    "corvid-log",
    "corvid-reactor",
    "corvid-shell",
    "corvid-disk",
    "corvid-server",
];

#[test]
fn a_client_pulls_in_few_crates() {
    // The driver depends on the replica.
    let client = built("corvid-driver", &[]);
    assert!(client.contains("corvid-idl"));
    assert!(
        client.len() <= CLIENT_CRATES_MAX,
        "{} crates: {client:?}",
        client.len()
    );
    // The front crate adds only itself.
    let front = built("corvid-ovsdb", &[]);
    let added: Vec<&String> = front.difference(&client).collect();
    assert_eq!(added, ["corvid-ovsdb"]);
    for unwanted in UNWANTED {
        assert!(!client.contains(unwanted), "{unwanted} in {client:?}");
    }
}

#[test]
fn features_bring_what_they_are_for_and_nothing_else_is_built() {
    let (plain, tls, tokio) = (built_with(""), built_with("tls"), built_with("tokio"));
    for unwanted in UNWANTED {
        for built in [&plain, &tls, &tokio] {
            assert!(!built.contains(unwanted), "{unwanted} in {built:?}");
        }
    }
    for (package, with, without) in [
        ("rustls", &tls, [&plain, &tokio]),
        ("ring", &tls, [&plain, &tokio]),
        ("corvid-tls", &tls, [&plain, &tokio]),
        ("tokio", &tokio, [&plain, &tls]),
    ] {
        assert!(with.contains(package), "{package} is missing");
        for built in without {
            assert!(!built.contains(package), "{package} in {built:?}");
        }
    }
    assert!(plain.contains("log"));
}
