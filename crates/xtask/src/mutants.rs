//! Mutants of the crate `consensus`. Each mutant breaks one rule for using the consensus library,
//! and a test must fail with it.
//!
//! `corvid-xtask mutants [NAME]...` builds all mutants together in a copy of the repository
//! (`target/mutants`). Each changed place checks at run time whether its mutant is the one that
//! `CORVID_MUTANT` names. So a mutant costs a run of the tests, but no build. The quickest tests
//! run first, and the simulator ends at its first failures. A mutant also counts as found if the
//! tests take far longer with it than without one, because then something goes on forever. It is an
//! error if a mutant can no longer be applied or does not compile, if tests fail without a mutant,
//! or if a name is not the name of a mutant.

mod rules;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_shell::output;

use crate::Outcome;
use crate::test_run::limits_of_jobs;
use crate::timed_process::{End, Limits, TimedProcess};
use rules::{Mutant, RULES};

/// The crate whose code is changed.
const CRATE: &str = "crates/consensus/src/lib.rs";

/// With a mutant, a suite may take this many times as long as without one.
const SLOWER: u32 = 10;
/// The minimum time limit of a suite.
const LIMIT_MIN: Duration = Duration::from_secs(60);

/// The function that each changed place calls.
const SWITCH: &str = "
/// Whether the mutant of this name is to be tested.
pub(crate) fn is_mutated(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var(\"CORVID_MUTANT\").ok()).as_deref() == Some(name)
}
";

/// Tests that should find a mutant: the arguments of Cargo, and the number of seeds of each
/// simulation.
struct Suite {
    arguments: &'static [&'static str],
    seeds: &'static str,
}

/// The suites, the quickest first.
const SUITES: &[Suite] = &[
    Suite {
        arguments: &["-p", "corvid-consensus", "--lib", "--tests"],
        seeds: "",
    },
    Suite {
        arguments: &[
            "-p",
            "corvid-sim",
            "--test",
            "sim",
            "--",
            "--skip",
            "whole",
            "clusters::",
        ],
        seeds: "2000",
    },
    Suite {
        arguments: &["-p", "corvid-sim", "--lib", "--test", "sim", "whole"],
        seeds: "200",
    },
];

/// Returns the text of a file with the change of a mutant, which takes effect if that mutant is
/// chosen.
fn apply(text: &str, mutant: &Mutant) -> Outcome<String> {
    let Mutant {
        name,
        file,
        find,
        replace,
    } = mutant;
    let parts = find
        .split_once('«')
        .and_then(|(before, rest)| Some((before, rest.split_once('»')?)));
    let (before, (changed, after)) =
        parts.ok_or_else(|| format!("{name} does not say which part is changed"))?;
    let whole = format!("{before}{changed}{after}");
    let count = text.matches(&whole).count();
    if count != 1 {
        return Err(format!("{name}: {file} has {whole:?} {count} times, not once").into());
    }
    let choice = format!("if crate::is_mutated({name:?}) {{ {replace} }} else {{ {changed} }}");
    let is_statement = [changed, replace]
        .iter()
        .any(|text| text.ends_with([';', '}']));
    let choice = match is_statement {
        true => choice,
        false => format!("({choice})"),
    };
    Ok(text.replacen(&whole, &format!("{before}{choice}{after}"), 1))
}

/// Tests all mutants, or only those that are named.
///
/// # Errors
/// If a mutant is not found, cannot be applied, or does not exist.
pub(crate) fn run(only: &BTreeSet<&String>) -> Outcome {
    let mutants = || RULES.iter().flat_map(|rule| rule.mutants);
    let is_unknown = |name: &&&String| !mutants().any(|mutant| mutant.name == name.as_str());
    if let Some(name) = only.iter().find(is_unknown) {
        return Err(format!("no mutant has the name {name}").into());
    }
    let (fresh, copy) = (Path::new("target/mutants.new"), Path::new("target/mutants"));
    unpack(fresh)?;
    for mutant in mutants() {
        let place = fresh.join(mutant.file);
        let text = fs::read_to_string(&place)?;
        fs::write(&place, apply(&text, mutant)?)?;
    }
    let place = fresh.join(CRATE);
    let text = fs::read_to_string(&place)?;
    fs::write(&place, text + SWITCH)?;
    update(fresh, copy)?;
    fs::remove_dir_all(fresh)?;
    let mut limits = Vec::new();
    let mut survivors = Vec::new();
    for rule in RULES {
        let is_chosen =
            |mutant: &&Mutant| only.is_empty() || only.iter().any(|name| *name == mutant.name);
        let chosen: Vec<&Mutant> = rule.mutants.iter().filter(is_chosen).collect();
        if !chosen.is_empty() {
            output::report(format_args!("{}. {}", rule.number, rule.text));
        }
        for mutant in chosen {
            let began = Instant::now();
            let by = match find(copy, mutant.name, &mut limits)? {
                Some(test) => format!("found by {test}"),
                None => {
                    survivors.push(mutant.name);
                    "not found".to_owned()
                }
            };
            output::report(format_args!(
                "   {}: {by}, {} s",
                mutant.name,
                began.elapsed().as_secs()
            ));
        }
    }
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!("not found: {}", survivors.join(", ")).into())
}

/// Copies the last commit of the repository.
fn unpack(copy: &Path) -> Outcome {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy)?;
    let mut archive = Command::new("git")
        .args(["archive", "HEAD"])
        .stdout(Stdio::piped())
        .spawn()?;
    let files = archive.stdout.take().ok_or("no archive")?;
    let unpacked = Command::new("tar")
        .args(["-x", "-C"])
        .arg(copy)
        .stdin(files)
        .status()?;
    if !archive.wait()?.success() || !unpacked.success() {
        return Err("the repository could not be copied".into());
    }
    Ok(())
}

/// Makes the files of `to` equal to those of `from`, except for the build in `to`. An equal file
/// keeps its time, so nothing is built again for it. A changed file is written anew, so that it
/// becomes newer than the build. The unpacked file would not do, because it is as old as its
/// commit.
fn update(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        let is_build = entry.file_name() == "target";
        let (old, new) = (entry.path(), from.join(entry.file_name()));
        if is_build || new.is_dir() && old.is_dir() || new.is_file() && old.is_file() {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(old)?,
            false => fs::remove_file(old)?,
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (new, old) = (entry.path(), to.join(entry.file_name()));
        if new.is_dir() {
            update(&new, &old)?;
        } else if new.is_file() && fs::read(&old).ok() != Some(fs::read(&new)?) {
            fs::write(&old, fs::read(&new)?)?;
        }
    }
    Ok(())
}

/// Returns the command that runs the tests of a suite, with more options for `cargo test`.
fn command(copy: &Path, suite: &Suite, mutant: &str, options: &[&str]) -> Outcome<Command> {
    let mut command = Command::new("cargo");
    command
        .arg("test")
        .args(options)
        .args(suite.arguments)
        .current_dir(copy)
        // The target directory of the repository cannot be used, because Cargo would take the
        // copy's crates for those of the repository.
        .env("CARGO_TARGET_DIR", fs::canonicalize(copy)?.join("target"))
        .env("CORVID_MUTANT", mutant);
    if !suite.seeds.is_empty() {
        command.env("CORVID_CASES", suite.seeds);
    }
    Ok(command)
}

/// Builds a suite and runs it without a mutant. Returns the limits for a run with a mutant.
///
/// # Errors
/// If the suite does not compile, or if a test fails.
fn try_unchanged(copy: &Path, suite: &Suite) -> Outcome<Limits> {
    let mut build = command(copy, suite, "", &["--no-run"])?;
    let process = TimedProcess::run(&mut build, limits_of_jobs()?)?;
    if !process.end.is_success() {
        let (end, errors) = (process.end, process.errors);
        return Err(format!("the mutants do not compile ({end}): {errors}").into());
    }
    let began = Instant::now();
    let process = TimedProcess::run(&mut command(copy, suite, "", &[])?, limits_of_jobs()?)?;
    if !process.end.is_success() {
        let failed = failed_test(&process.output);
        let failed = failed.unwrap_or_else(|| suite.arguments.join(" "));
        return Err(format!("without a mutant, {failed} fails ({})", process.end).into());
    }
    Ok(Limits::of(LIMIT_MIN.max(began.elapsed() * SLOWER)))
}

/// Returns the first test that fails with a mutant. `limits` has the limits of the suites that have
/// been used so far. A suite runs without a mutant before its first use, which gives its limits.
fn find(copy: &Path, mutant: &str, limits: &mut Vec<Limits>) -> Outcome<Option<String>> {
    for (number, suite) in SUITES.iter().enumerate() {
        let limit = match limits.get(number) {
            Some(limit) => *limit,
            None => {
                let limit = try_unchanged(copy, suite)?;
                limits.push(limit);
                limit
            }
        };
        let process = TimedProcess::run(&mut command(copy, suite, mutant, &[])?, limit)?;
        match process.end {
            End::Exited(status) if status.success() => continue,
            End::Exited(_) => {}
            End::Interrupted => return Err("interrupted".into()),
            // Something goes on forever with this mutant, which counts as found.
            end @ End::OutOfTime(_) => {
                return Ok(Some(format!("{}: {end}", suite.arguments.join(" "))));
            }
        }
        let failed = failed_test(&process.output);
        return Ok(Some(failed.unwrap_or_else(|| suite.arguments.join(" "))));
    }
    Ok(None)
}

/// Returns the first test that has failed, according to the output of Rust's test harness.
fn failed_test(output: &str) -> Option<String> {
    let mut tests = output.lines().filter_map(|line| line.strip_prefix("test "));
    let failed = tests.find_map(|line| line.strip_suffix(" ... FAILED"))?;
    Some(failed.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_mutant_applies_and_has_a_name_of_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut names = BTreeSet::new();
        // All mutants are built together, so each must apply to a file that contains the mutants
        // before it.
        let mut files = BTreeMap::new();
        for mutant in RULES.iter().flat_map(|rule| rule.mutants) {
            let text = files.entry(mutant.file).or_insert_with(|| {
                fs::read_to_string(root.join(mutant.file)).expect("the file of a mutant")
            });
            *text = apply(text, mutant).expect("a mutant that applies");
            assert!(names.insert(mutant.name), "{} twice", mutant.name);
        }
    }

    #[test]
    fn a_mutant_changes_an_expression_or_a_statement() {
        let mutant = |find, replace| Mutant {
            name: "m",
            file: "f",
            find,
            replace,
        };
        let changed = |find, replace| apply("if a && b { c(); }", &mutant(find, replace));
        assert_eq!(
            changed("&& «b»", "true").expect("an expression"),
            "if a && (if crate::is_mutated(\"m\") { true } else { b }) { c(); }"
        );
        assert_eq!(
            changed("«c();»", "").expect("a statement"),
            "if a && b { if crate::is_mutated(\"m\") {  } else { c(); } }"
        );
        assert!(changed("«d»", "").is_err() && changed("a", "").is_err());
    }

    #[test]
    fn the_failed_test_is_named() {
        let output = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n";
        assert_eq!(failed_test(output).as_deref(), Some("a::c"));
        assert_eq!(failed_test("test a ... ok\n"), None);
    }
}
