//! The commands of the Makefile must build the same libraries: whichever command has run first, the
//! others must find the programs built.
//!
//! Cargo builds a library with all features that the packages of one build ask for. The same
//! library with other features is built separately. So if two commands build the same programs
//! together with different other packages, most of the tree may be built twice. This test does not
//! compile anything: it gets the features from `cargo tree`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The features of each library, by its name and version. A library may have two sets of features
/// if both macros and programs use it.
type Features = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the variables of the Makefile, each as it is written.
fn variables(makefile: &str) -> BTreeMap<&str, &str> {
    makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', '#']))
        .filter_map(|line| line.split_once(" = "))
        .collect()
}

/// Returns the commands of all recipes. Variables are replaced by their values, and continued lines
/// are joined.
fn recipes(makefile: &str) -> Vec<String> {
    let variables = variables(makefile);
    let joined = makefile.replace("\\\n", " ");
    let commands = joined.lines().filter_map(|line| line.strip_prefix('\t'));
    commands
        .map(|command| {
            let mut command = command.to_owned();
            // The text of a variable may contain another variable.
            for _ in 0..2 {
                for (name, text) in &variables {
                    command = command.replace(&format!("$({name})"), text);
                }
            }
            command
        })
        .collect()
}

/// Returns the packages that a command builds.
fn packages(command: &str) -> BTreeSet<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| pair[0] == "-p")
        .map(|pair| pair[1])
        .collect()
}

/// Returns the sets of packages that recipes build with their default features.
fn built(makefile: &str) -> Vec<BTreeSet<String>> {
    recipes(makefile)
        .iter()
        .filter(|command| command.contains("cargo build"))
        .filter(|command| !command.contains("--no-default-features"))
        .map(|command| packages(command).into_iter().map(str::to_owned).collect())
        .collect()
}

fn features(packages: &BTreeSet<String>) -> Features {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root());
    command.args(["tree", "--offline", "--locked", "--edges", "normal,build"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"]);
    for package in packages {
        command.args(["-p", package]);
    }
    let output = command.output().expect("cargo");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}");
    let mut found = Features::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((package, features)) = line.split_once('|') else {
            continue;
        };
        // The source of the package follows its version.
        let name: Vec<&str> = package.split_whitespace().take(2).collect();
        let of_it = found.entry(name.join(" ")).or_default();
        of_it.insert(features.trim_end_matches(" (*)").to_owned());
    }
    found
}

/// Returns the libraries that are in both, with different features.
fn differences(one: &Features, other: &Features) -> Vec<String> {
    one.iter()
        .filter_map(|(name, here)| {
            let there = other.get(name).filter(|there| *there != here)?;
            Some(format!("{name}: {here:?}, {there:?}"))
        })
        .collect()
}

#[test]
fn all_commands_build_the_programs_with_the_same_features() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let sets = built(&makefile);
    let programs: BTreeSet<String> = packages(variables(&makefile)["PROGRAMS"])
        .into_iter()
        .map(str::to_owned)
        .collect();
    assert!(
        programs.len() > 2 && sets.len() > 6,
        "{programs:?} {sets:?}"
    );
    let expected = features(&programs);
    let mut tried = BTreeSet::new();
    for set in sets.iter().filter(|set| !set.is_disjoint(&programs)) {
        assert!(set.is_superset(&programs), "some programs only: {set:?}");
        if tried.insert(set) {
            let differences = differences(&expected, &features(set));
            assert!(
                differences.is_empty(),
                "features, with the programs alone and with {set:?}:\n{}",
                differences.join("\n")
            );
        }
    }
}

#[test]
fn nothing_is_built_by_running_it() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let recipes = recipes(&makefile);
    let runs = |command: &&String| {
        let is_run = command.contains("cargo run") || command.contains("cargo install");
        // Programs of other projects share nothing with our builds.
        is_run && !command.contains("--root target/tools")
    };
    assert_eq!(recipes.iter().find(runs), None);
}

mod proofs {
    use super::*;

    const MAKEFILE: &str = "\
ALL = -p a -p b
BUILD = cargo build $(ALL)
x:
\t$(BUILD) -p c
\tcargo build -p a \\
\t\t-p d
\tfor i in 1; do cargo build --no-default-features -p a; done
";

    #[test]
    fn sets_of_packages_are_found() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            built(MAKEFILE),
            [set(&["a", "b", "c"]), set(&["a", "d"])] as [BTreeSet<String>; 2]
        );
    }

    #[test]
    fn differences_are_those_of_what_both_have() {
        let of = |list: &[(&str, &str)]| {
            let mut features = Features::new();
            for (name, with) in list {
                let of_it = features.entry((*name).to_owned()).or_default();
                of_it.insert((*with).to_owned());
            }
            features
        };
        let one = of(&[("a 1", "x"), ("b 1", ""), ("b 1", "full"), ("c 1", "")]);
        let other = of(&[("a 1", "x"), ("b 1", ""), ("d 1", "")]);
        assert_eq!(differences(&one, &other), ["b 1: {\"\", \"full\"}, {\"\"}"]);
    }
}
