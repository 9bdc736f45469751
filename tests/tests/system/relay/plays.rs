//! The scripts of `tests/scripted`, played through relays: the databases of each case are those of
//! a source. Some replies differ from those of a server that has these databases itself. At the
//! reference's relay they must differ in the same way, except for the cases that are listed here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use corvid_tests::play;
use corvid_tests::server::Implementation::{Corvid, Reference};
use corvid_tests::server::{Implementation, Subject};

use super::node::implementations;

/// The cases in which the replies of our relay differ from those of the reference's relay, with the
/// reason.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "convert.txt: conversion-clears-the-history",
        "the source converts, and its answer comes before the relay has the new contents",
    ),
    (
        "convert.txt: own-monitor-is-canceled-before-the-reply",
        "the same",
    ),
    (
        "monitor-v1.txt: notification-comes-before-the-reply-of-the-own-transaction",
        "an echo does not wait for the source, as it does not wait for a cluster",
    ),
];

/// Returns the failures of all scripts by file and case. Ids are masked.
fn failures(relay: Implementation, source: Implementation) -> BTreeMap<String, String> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripted");
    let mut files: Vec<_> = std::fs::read_dir(scripts)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut failures = BTreeMap::new();
    for file in files {
        let report = play::run_on(&file, Subject::Relay { relay, source });
        for failure in report.expect("played").failures {
            let (place, text) = failure.split_once('\n').expect("two lines");
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let case = place.split(": case ").nth(1).unwrap_or(place);
            failures.insert(format!("{name}: {case}"), without_folder(&masked(text)));
        }
    }
    failures
}

/// Returns the text without the random part of the folder's name.
fn without_folder(text: &str) -> String {
    let mut parts = text.split("/ovsdb");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        out + "/ovsdb" + part.get(6..).unwrap_or(part)
    })
}

/// Returns the text without the digits of UUIDs.
fn masked(text: &str) -> String {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('-') {
        let is_uuid = at >= 8
            && rest.is_char_boundary(at - 8)
            && rest.is_char_boundary((at + 28).min(rest.len()))
            && rest.len() >= at + 28
            && rest[at - 8..at + 28].split('-').all(is_hex);
        if is_uuid {
            out.push_str(&rest[..at - 8]);
            out.push_str("<uuid>");
            rest = &rest[at + 28..];
        } else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
        }
    }
    out + rest
}

#[test]
fn scripts_have_the_same_answers_through_our_relay_and_the_references() {
    if !implementations().contains(&Reference) {
        return;
    }
    let theirs = failures(Reference, Reference);
    let listed: BTreeSet<&str> = DIFFERENCES.iter().map(|(case, _)| *case).collect();
    let mut unexpected = String::new();
    for source in [Corvid, Reference] {
        for (case, text) in failures(Corvid, source) {
            if !listed.contains(case.as_str()) && theirs.get(&case) != Some(&text) {
                let of_theirs = theirs.get(&case).map_or("(as written)", String::as_str);
                unexpected += &format!(
                    "== over {source:?}: {case}\nours: {text}\nthe reference's: {of_theirs}\n"
                );
            }
        }
    }
    assert!(unexpected.is_empty(), "{unexpected}");
}
