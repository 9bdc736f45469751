//! Plays the scripts of `scripted/`, with one test for each topic file, so that a failure names its
//! topic.
//!
//! The server is ours unless `CORVID_REFERENCE=1` is set. See `corvid_tests::play` for the other
//! variables and `corvid_tests::script` for the format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use corvid_tests::play;
use corvid_tests::server::Implementation;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripted")
}

fn run(topic: &str) {
    let report = play::run(&scripts().join(topic), Implementation::from_env())
        .unwrap_or_else(|error| panic!("{topic}: {error}"));
    println!(
        "{topic}: {} cases, {} left out",
        report.played, report.left_out
    );
    report.assert_passed();
}

macro_rules! topics {
    ($($test:ident $file:literal)*) => {
        const TOPICS: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $test() {
                run($file);
            }
        )*
    };
}

topics! {
    access "access.txt"
    cancel "cancel.txt"
    cond_change "cond-change.txt"
    conditions "conditions.txt"
    constraints "constraints.txt"
    convert "convert.txt"
    datum_forms "datum-forms.txt"
    error_table "error-table.txt"
    gc "gc.txt"
    indexes "indexes.txt"
    insert "insert.txt"
    json_strictness "json-strictness.txt"
    locks "locks.txt"
    max_rows "max-rows.txt"
    monitor_cond "monitor-cond.txt"
    monitor_since "monitor-since.txt"
    monitor_v1 "monitor-v1.txt"
    mutate "mutate.txt"
    numbers "numbers.txt"
    refs "refs.txt"
    rpc_envelope "rpc-envelope.txt"
    schema_canonical "schema-canonical.txt"
    schema_errors "schema-errors.txt"
    select "select.txt"
    server_db "server-db.txt"
    small_operations "small-operations.txt"
    update "update.txt"
    utf8 "utf8.txt"
    wait "wait.txt"
    weak_refs "weak-refs.txt"
    worked_examples "worked-examples.txt"
}

#[test]
fn every_file_is_listed() {
    let listed: BTreeSet<String> = TOPICS.iter().map(|&file| file.to_owned()).collect();
    let present: BTreeSet<String> = std::fs::read_dir(scripts())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".txt"))
        .collect();
    assert_eq!(listed, present);
    assert_eq!(listed.len(), TOPICS.len(), "a file is listed twice");
}

/// Tests the scripts themselves: the reference must also meet their expectations, except for those
/// that are marked otherwise.
#[test]
fn corpus_holds_on_the_reference() {
    if Implementation::Reference.server_binary().is_err() {
        println!(
            "SKIPPED: the reference server is not installed, so the corpus is not proven in this run"
        );
        return;
    }
    if Implementation::from_env() == Implementation::Reference {
        // The tests of the topics already do this in this run, and two runs must not rewrite the
        // same file.
        return;
    }
    let mut failures = Vec::new();
    for topic in TOPICS {
        failures.extend(
            play::run(&scripts().join(topic), Implementation::Reference)
                .unwrap()
                .failures,
        );
    }
    assert!(
        failures.is_empty(),
        "{} cases\n{}",
        failures.len(),
        failures.join("\n")
    );
}
