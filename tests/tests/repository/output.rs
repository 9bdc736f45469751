//! Programs may only print through `crates/shell/src/output.rs`, because the macros of the standard
//! library panic if output cannot be written.
//!
//! Reads files as text. The examples, which show how users of the library write programs, may use
//! the macros, and so may the examples in comments.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts that print or open a standard stream. Each is the beginning of an expression.
const PRINTING: [&str; 7] = [
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "dbg!(",
    "stdout()",
    "stderr()",
];

/// The files that may print: the output module, the log's console, the drawing of progress bars,
/// and the log of the library for C, which does not have `shell`.
const ALLOWED: [&str; 4] = [
    "crates/capi/src/logging.rs",
    "crates/shell/src/output.rs",
    "crates/shell/src/progress.rs",
    "crates/shell/src/vlog.rs",
];

/// Whether a file is not part of a program. These are the examples, which show what users of the
/// library write, and libraries of tests, whose output the test runner captures.
fn is_no_program(path: &str) -> bool {
    let is_of_tests = path.starts_with("crates/fuzzing/")
        || path.starts_with("crates/sim/") && !path.contains("/bin/");
    path.starts_with("crates/examples/") || is_of_tests
}

#[test]
fn programs_print_through_one_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut complaints = Vec::new();
    let mut count = 0;
    for folder in fs::read_dir(root.join("crates")).expect("crates") {
        let sources = folder.expect("a crate").path().join("src");
        for path in sources_below(&sources) {
            let shown = path.strip_prefix(&root).expect("below the root").display();
            let shown = shown.to_string();
            if is_no_program(&shown) || ALLOWED.contains(&shown.as_str()) {
                continue;
            }
            count += 1;
            let text = fs::read_to_string(&path).expect("a source file");
            let lines = printing_lines(&text).into_iter();
            complaints.extend(lines.map(|line| format!("{shown}:{line}")));
        }
    }
    assert!(count > 500, "only {count} files were found");
    assert_eq!(complaints, [""; 0], "use corvid_shell::output");
}

/// Returns the numbers of the lines that print. Comments and test modules are ignored.
fn printing_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        // Asking whether the stream is a terminal does not print anything.
        let code = code.replace("stdout().is_terminal()", "");
        let code = code.replace("stderr().is_terminal()", "");
        let is_printing = PRINTING.iter().any(|word| {
            code.match_indices(word).any(|(start, _)| {
                let before = code[..start].chars().next_back();
                !before.is_some_and(|it| it.is_alphanumeric() || "_.".contains(it))
            })
        });
        if is_printing {
            lines.push(number);
        }
    }
    lines
}

fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && path.file_name().is_some_and(|name| name != "tests.rs")
            {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn printing_is_found() {
    let found = "println!(\"a\");\n    eprint!(\n// print!(\"b\")\nlet mut out = io::stdout().lock();\ndbg!(x)";
    assert_eq!(printing_lines(found), [1, 2, 4, 5]);
    let clean = "if io::stdout().is_terminal() {}\nself.stdout()\ncommand.stdout(Stdio::piped())\nreprint!(x)\n\
                 #[cfg(test)]\nprintln!(\"a\")";
    assert!(printing_lines(clean).is_empty());
}
