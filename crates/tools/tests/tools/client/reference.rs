//! Our `ovsdb-client` and the reference's against the reference server: the same command lines must
//! have the same output and exit status. Skipped with a message if the reference is not installed.

mod commands;
mod fixture;
mod options;
mod snapshots;
mod tables;
mod watching;

use fixture::{Fixture, THEIRS, with_sorted_members};

use crate::client::OURS;
use crate::support::{Outcome, run, without_uuids};

/// The parts of two outcomes that must be equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// Everything except the order of members in JSON.
    Exactly,
    /// Everything except UUIDs.
    UpToUuids,
    /// Everything except the order of lines, for outputs that the reference does not order.
    UpToOrder,
    /// Only the exit status; the messages differ on purpose.
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

/// Runs each command line with both programs, and fails with a list of the differences.
fn compare_all<'a>(
    fixture: &Fixture,
    compare: Compare,
    cases: impl IntoIterator<Item = &'a [&'a str]>,
) {
    let mut differences = String::new();
    for args in cases {
        // The server may not have noticed yet that the previous client has ended. That client then
        // still owns its lock: the next one waits for it, or, if it steals the lock, is told
        // "locked" once more when the server notices.
        let takes_a_lock = args.contains(&"lock") || args.contains(&"steal");
        let tries = if takes_a_lock { 20 } else { 1 };
        let run_both = || {
            let theirs = comparable(&run(THEIRS, fixture.dir.path(), args, b""), compare);
            let ours = comparable(&run(OURS, fixture.dir.path(), args, b""), compare);
            (theirs, ours)
        };
        let (mut theirs, mut ours) = run_both();
        for _ in 1..tries {
            if ours == theirs {
                break;
            }
            (theirs, ours) = run_both();
        }
        if ours != theirs {
            differences.push_str(&format!(
                "\n{args:?}\n  theirs: {theirs:?}\n  ours:   {ours:?}\n"
            ));
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
