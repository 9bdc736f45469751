//! Plays a whole script file and reports the results, or rewrites its expectations.
//!
//! Environment variables: `CORVID_REFERENCE=1` plays against the reference and leaves out the cases
//! that are marked with `differs:`. `UPDATE_EXPECT=1` replaces expectations that are not met by
//! what was received. `CORVID_CASE=TEXT` plays only the cases whose name contains TEXT. Called by
//! `tests/scripted.rs`. [`crate::stage`] knows how a case is played.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::Path;

use crate::script::Script;
use crate::server::{Implementation, Subject};
use crate::stage::{self, Edit};

/// The maximum number of failures of one file that are shown.
const SHOWN_MAX: usize = 20;

/// The result of a file.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of cases that were played.
    pub played: usize,
    /// The number of cases that were left out because the reference answers differently.
    pub left_out: usize,
    /// One text for each failed case. It begins with the file and the line.
    pub failures: Vec<String>,
}

impl Report {
    /// Makes the calling test fail if a case failed.
    ///
    /// # Panics
    ///
    /// If there are failures. The text shows the first of them.
    pub fn assert_passed(&self) {
        let shown = &self.failures[..self.failures.len().min(SHOWN_MAX)];
        let (failed, played) = (self.failures.len(), self.played);
        assert!(
            failed == 0,
            "{failed} of {played} cases failed\n{}",
            shown.join("\n")
        );
    }
}

/// Plays every case of a file.
///
/// # Errors
///
/// If the script cannot be read, the server cannot be started, or the file cannot be rewritten.
pub fn run(path: &Path, implementation: Implementation) -> io::Result<Report> {
    run_on(path, Subject::Server(implementation))
}

/// Like [`run`], on any subject. Scripts are only rewritten for a server with its own databases.
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_on(path: &Path, subject: Subject) -> io::Result<Report> {
    let rewriting = matches!(subject, Subject::Server(_))
        && env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1");
    let wanted = env::var("CORVID_CASE").unwrap_or_default();
    let script = Script::read(path)?;
    let text = script.lines.join("\n");
    let mut report = Report::default();
    let mut edits = BTreeMap::new();
    for case in script
        .cases
        .iter()
        .filter(|case| case.name.contains(&wanted))
    {
        if subject.has_reference() && case.differs.is_some() {
            report.left_out += 1;
            continue;
        }
        report.played += 1;
        let outcome =
            stage::play(subject, &script.prologue, case, &text, rewriting).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("{}: {}: {error}", path.display(), case.name),
                )
            })?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        // While rewriting, only the differences that an edit cannot resolve are failures.
        let mended = if rewriting { outcome.edits.len() } else { 0 };
        if let Some(mismatch) = outcome.mismatches.get(mended) {
            let (line, name) = (mismatch.line + 1, &case.name);
            report
                .failures
                .push(format!("{file}:{line}: case {name}\n{}", mismatch.text));
        }
        note(&mut edits, outcome.edits);
    }
    if rewriting && !edits.is_empty() {
        fs::write(path, rewritten(&script.lines, &edits))?;
    }
    Ok(report)
}

/// The edits by the lines that they replace. Those of the prologue recur in every case; the first
/// one counts.
type Edits = BTreeMap<(usize, usize), Vec<String>>;

fn note(all: &mut Edits, of_case: Vec<Edit>) {
    let mut mine = Edits::new();
    for edit in of_case {
        mine.entry((edit.lines.start, edit.lines.end))
            .or_default()
            .extend(edit.text);
    }
    for (place, text) in mine {
        all.entry(place).or_insert(text);
    }
}

fn rewritten(lines: &[String], edits: &Edits) -> String {
    let mut written: Vec<&str> = Vec::new();
    let mut next = 0;
    for ((start, end), text) in edits {
        written.extend(lines[next..*start].iter().map(String::as_str));
        written.extend(text.iter().map(String::as_str));
        next = *end;
    }
    written.extend(lines[next..].iter().map(String::as_str));
    written.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_replace_and_insert_lines() {
        let lines: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let mut edits = Edits::new();
        let edit = |lines, text: &[&str]| Edit {
            lines,
            text: text.iter().map(|&line| line.to_owned()).collect(),
        };
        note(
            &mut edits,
            vec![edit(1..3, &["x"]), edit(4..4, &["y"]), edit(4..4, &["z"])],
        );
        note(&mut edits, vec![edit(1..3, &["late"])]);
        assert_eq!(rewritten(&lines, &edits), "a\nx\nd\ny\nz\n");
    }
}
