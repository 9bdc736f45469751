//! Mutants of `consensus`: each breaks one rule of the use of the library, and a test must fail.
//!
//! Invariant: every text to find occurs exactly once in its file, which a unit test checks; so a mutant that does not apply any more is an
//! error. `corvid-xtask mutants [NAME]` applies them one after the other in a copy of the repository (`target/mutants`) and says which test
//! has found each.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

/// A change of one place.
struct Mutant {
    name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
}

const fn mutant(
    name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant {
        name,
        file,
        find,
        replace,
    }
}

const GUARD: &str = "crates/consensus/src/guard.rs";
const NODE: &str = "crates/consensus/src/raft_node.rs";
const FILE: &str = "crates/consensus/src/member/log_file.rs";
const LEAVING: &str = "crates/consensus/src/member/leaving.rs";
const REWRITE: &str = "crates/consensus/src/member/rewrite.rs";

const MUTANTS: &[Mutant] = &[
    mutant("sender-zero", GUARD, "from.number() == 0", "false"),
    mutant(
        "term-range",
        GUARD,
        "(1..NUMBER_END).contains(&term.0)",
        "true",
    ),
    mutant(
        "index-range",
        GUARD,
        ".any(|number| *number >= NUMBER_END)",
        ".any(|_| false)",
    ),
    mutant("entry-terms", GUARD, "*entry_term < last_term,", "false,"),
    mutant("previous-term", GUARD, "*prev_term == Term(0),", "false,"),
    mutant(
        "lost-log",
        GUARD,
        "*commit > view.last_index && *term >= view.term",
        "false",
    ),
    mutant(
        "reply-ahead",
        GUARD,
        "*index > view.last_index || rejection.hint > view.last_index",
        "false",
    ),
    mutant(
        "unsynced-winner",
        GUARD,
        "view.persisted < view.last_index",
        "false",
    ),
    mutant(
        "forced-election",
        GUARD,
        "*term == view.term && view.leader == Some(from)",
        "true",
    ),
    mutant(
        "second-leader",
        GUARD,
        "term == view.term && known != from",
        "false",
    ),
    mutant(
        "snapshot-index",
        GUARD,
        "snapshot.index == Index(0)",
        "false",
    ),
    mutant("servers-alike", GUARD, "pair[0] == pair[1]", "false"),
    mutant(
        "place-of-entries",
        NODE,
        "self.place_entries(&mut message)?;",
        "",
    ),
    mutant(
        "early-promises",
        FILE,
        "let is_early = is_hard_stored && promises_nothing(&message);",
        "let is_early = true;",
    ),
    mutant("removal-quorum", LEAVING, "if fit < quorum {", "if false {"),
    mutant(
        "records-twice",
        REWRITE,
        "self.file.replaced(mark);",
        "let _ = mark;",
    ),
];

/// Commands that must find a mutant, the quickest first.
const TESTS: &[&[&str]] = &[
    &["test", "-q", "-p", "corvid-consensus"],
    &["test", "-q", "-p", "corvid-sim", "--test", "sim", "cluster"],
];

/// The file with the change.
fn apply(text: &str, mutant: &Mutant) -> Outcome<String> {
    let count = text.matches(mutant.find).count();
    if count != 1 {
        let Mutant {
            name, file, find, ..
        } = mutant;
        return Err(format!("{name}: {file} has {find:?} {count} times, not once").into());
    }
    Ok(text.replacen(mutant.find, mutant.replace, 1))
}

/// Applies all mutants, or the one with this name, and tests each.
///
/// # Errors
/// One of them is not found, or does not apply.
pub(crate) fn run(only: Option<&String>) -> Outcome {
    let copy = Path::new("target/mutants/tree");
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
    let mut survivors = Vec::new();
    let chosen = MUTANTS
        .iter()
        .filter(|mutant| only.is_none_or(|name| name == mutant.name));
    for mutant in chosen {
        let place = copy.join(mutant.file);
        let text = fs::read_to_string(&place)?;
        fs::write(&place, apply(&text, mutant)?)?;
        let found = find(copy);
        fs::write(&place, text)?;
        match found? {
            Some(test) => println!("{}: found by cargo {test}", mutant.name),
            None => {
                println!("{}: not found", mutant.name);
                survivors.push(mutant.name);
            }
        }
    }
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!("not found: {}", survivors.join(", ")).into())
}

/// The first command that fails.
fn find(copy: &Path) -> Outcome<Option<String>> {
    for arguments in TESTS {
        let output = Command::new("cargo")
            .args(*arguments)
            .current_dir(copy)
            .env(
                "CARGO_TARGET_DIR",
                fs::canonicalize(copy)?.with_file_name("built"),
            )
            .output()?;
        if output.status.success() {
            continue;
        }
        // A mutant that does not compile proves nothing.
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("could not compile") {
            return Err(format!("a mutant does not compile: {errors}").into());
        }
        return Ok(Some(arguments.join(" ")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_applies() {
        for mutant in MUTANTS {
            let place = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../..")
                .join(mutant.file);
            let text = fs::read_to_string(&place).expect("the file of a mutant");
            apply(&text, mutant).expect("a mutant that applies");
        }
    }
}
