//! Our program beside the reference's, both against the reference server: the same command lines must print the same, and
//! end the same. Skipped, loudly, where the reference is not installed.

mod commands;
mod fixture;
mod options;
mod snapshots;
mod tables;
mod watching;

use fixture::{Fixture, THEIRS, with_sorted_members};

use crate::client::OURS;
use crate::support::{Outcome, run, without_uuids};

/// How far two outcomes must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// In everything, up to the order of members in JSON.
    Exactly,
    /// In everything but UUIDs.
    UpToUuids,
    /// In everything but the order of lines, where the reference has none.
    UpToOrder,
    /// In the exit status; what is said differs on purpose.
    Status,
}

fn comparable(outcome: &Outcome, compare: Compare) -> Outcome {
    let change = |text: &str| {
        let text = with_sorted_members(text);
        match compare {
            Compare::Exactly => text,
            Compare::UpToUuids => without_uuids(&text),
            Compare::UpToOrder => {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                lines.join("\n")
            }
            Compare::Status => String::new(),
        }
    };
    Outcome {
        stdout: change(&outcome.stdout),
        stderr: change(&outcome.stderr),
        status: outcome.status,
    }
}

/// Runs each command line with both programs and lists those on which they differ.
fn compare_all<'a>(
    fixture: &Fixture,
    compare: Compare,
    cases: impl IntoIterator<Item = &'a [&'a str]>,
) {
    let mut differences = String::new();
    for args in cases {
        let theirs = comparable(&run(THEIRS, fixture.dir.path(), args, b""), compare);
        let ours = comparable(&run(OURS, fixture.dir.path(), args, b""), compare);
        if ours != theirs {
            differences.push_str(&format!(
                "\n{args:?}\n  theirs: {theirs:?}\n  ours:   {ours:?}\n"
            ));
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
