//! docs/reference/compatibility.md must have a row for everything that the programs offer: each
//! option, and each control command of the server.
//!
//! The built programs themselves list their options and commands, so no second list can be
//! incomplete.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};

/// The sections of docs/reference/compatibility.md that describe the options of a program.
const SECTIONS: [(&str, &str); 6] = [
    ("ovsdb-server", "## `ovsdb-server`: options"),
    ("ovsdb-client", "## `ovsdb-client`"),
    ("ovsdb-tool", "## `ovsdb-tool`"),
    ("ovs-appctl", "## `ovs-appctl`"),
    ("corvid", "## `corvid`"),
    ("corvid-console", "## `corvid-console`"),
];

const COMMANDS: &str = "## `ovsdb-server`: control commands";

/// Commands that exist but are not listed.
const HIDDEN: [&str; 1] = ["vlog/message"];

/// Returns the rows of a section's table.
fn rows(section: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/compatibility.md");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows: Vec<String> = text
        .lines()
        .skip_while(|line| *line != section)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| "))
        .map(str::to_owned)
        .collect();
    assert!(!rows.is_empty(), "no section {section}");
    rows
}

/// Whether the first cell of a row has a code span that is `name`, with or without arguments.
fn is_about(row: &str, name: &str) -> bool {
    let cell = row.split(" | ").next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2).any(|span| {
        span.strip_prefix(name).is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || "-/".contains(next))
        })
    })
}

/// Returns the names without a row.
fn missing<'a>(names: impl IntoIterator<Item = &'a String>, section: &str) -> Vec<String> {
    let rows = rows(section);
    let has_row = |name: &str| rows.iter().any(|row| is_about(row, name));
    let names = names.into_iter().filter(|name| !has_row(name));
    names.map(|name| format!("{section}: {name}")).collect()
}

/// Returns the long options at the beginnings of the lines of `--help`.
fn options(program: &str) -> BTreeSet<String> {
    let output = Command::new(binary::bin(program))
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let help = String::from_utf8(output.stdout).expect("text");
    let option = |line: &str| {
        let line = line.strip_prefix("  ")?;
        let line = match line.split_once(", --") {
            Some((short, long)) if short.starts_with('-') => long,
            _ => line.strip_prefix("--")?,
        };
        let end = line.find(|next: char| !next.is_ascii_alphanumeric() && next != '-');
        Some(format!("--{}", &line[..end.unwrap_or(line.len())]))
    };
    help.lines().filter_map(option).collect()
}

#[test]
fn every_option_has_a_row() {
    let mut complaints = Vec::new();
    for (program, section) in SECTIONS {
        let options = options(program);
        for certain in ["--help", "--version", "--verbose"] {
            assert!(options.contains(certain), "{program}: {options:?}");
        }
        complaints.extend(missing(&options, section));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_control_command_has_a_row() {
    let setup = Setup {
        options: [
            "--no-dbs",
            "--disable-file-column-diff",
            "--disable-file-no-data-conversion",
            "--audit-log=<dir>/audit.log",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let reply = server.control("list-commands", &[]).expect("a reply");
    let listed = reply["result"].as_str().expect("a text").lines().skip(1);
    let mut names: Vec<String> = listed
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 20, "{names:?}");
    names.extend(HIDDEN.map(str::to_owned));
    let complaints = missing(&names, COMMANDS);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_row_has_a_test_unless_it_is_planned() {
    let sections = SECTIONS.map(|(_, section)| section);
    let rows = sections
        .iter()
        .chain([&COMMANDS])
        .flat_map(|section| rows(section));
    let unproven: Vec<String> = rows
        .filter(|row| row.trim_end().ends_with("| – |") && !row.contains("| later"))
        .collect();
    assert!(unproven.is_empty(), "\n{}", unproven.join("\n"));
}

#[test]
fn names_are_distinguished_from_longer_ones() {
    let row = "| `--log-file[=FILE]`, `ovsdb-server/add-db DB` | same | `--monitor` |";
    assert!(is_about(row, "--log-file") && is_about(row, "ovsdb-server/add-db"));
    assert!(
        !is_about(row, "--log") && !is_about(row, "ovsdb-server") && !is_about(row, "--monitor")
    );
}
