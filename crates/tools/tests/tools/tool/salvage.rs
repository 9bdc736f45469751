//! `salvage`: extracts the readable parts of a damaged file, row by row, and lists the rest.

use crate::tool::clustered::member;
use crate::tool::sandbox::{Run, Sandbox, record};

const SCHEMA: &str = r#"{"name":"D","tables":{
    "p":{"isRoot":true,"columns":{"n":{"type":"string"},
        "c":{"type":{"key":{"type":"uuid","refTable":"c"},"min":0,"max":"unlimited"}},
        "must":{"type":{"key":{"type":"uuid","refTable":"p"},"min":0}},
        "w":{"type":{"key":{"type":"uuid","refTable":"p","refType":"weak"},"min":0}}},"indexes":[["n"]]},
    "c":{"columns":{"i":{"type":"integer"}}}}}"#;

fn schema() -> Vec<u8> {
    record(&SCHEMA.replace(['\n'], "").replace("    ", ""))
}

fn uuid(last: u8) -> String {
    format!("00000000-0000-4000-8000-0000000000{last:02}")
}

/// Parents 1 and 2, with the children 11 and 12.
fn contents() -> Vec<u8> {
    let (one, two, child, other) = (uuid(1), uuid(2), uuid(11), uuid(12));
    record(&format!(
        r#"{{"_comment":"compacting database online","_date":1700000000000,"c":{{"{child}":{{"i":11}},"{other}":{{"i":12}}}},"p":{{"{one}":{{"c":["uuid","{child}"],"n":"one","w":["uuid","{two}"]}},"{two}":{{"c":["uuid","{other}"],"n":"two"}}}}}}"#
    ))
}

/// Salvages `bytes`. Returns the run and the rows of a query.
fn salvaged(bytes: &[u8], more: &[&str]) -> (Run, String) {
    let sandbox = Sandbox::new();
    sandbox.write("a.db", bytes);
    sandbox.write("s", SCHEMA.as_bytes());
    let run = sandbox.run(&[&["salvage", "a.db", "new.db"], more].concat());
    assert_eq!(std::fs::read(sandbox.path("a.db")).expect("a file"), bytes);
    let select = r#"["D",{"op":"select","table":"p","where":[],"columns":["n"]},{"op":"select","table":"c","where":[],"columns":["i"]}]"#;
    let rows = match run.status {
        Some(1) => String::new(),
        _ => sandbox.ok(&["query", "new.db", select]),
    };
    (run, rows)
}

/// Whether a row is among the rows.
fn has(rows: &str, row: &str) -> bool {
    rows.contains(row)
}

#[test]
fn an_undamaged_file_is_copied_whole() {
    let more = record(&format!(
        r#"{{"_is_diff":true,"p":{{"{}":{{"n":"uno"}}}}}}"#,
        uuid(1)
    ));
    let (run, rows) = salvaged(&[schema(), contents(), more].concat(), &[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.ends_with(
        "4 rows were written; of 3 records 0 could not be read, 0 were restored; losses listed above: 0\n"
    ));
    for row in [r#""n":"uno""#, r#""n":"two""#, r#""i":11"#, r#""i":12"#] {
        assert!(has(&rows, row), "{row}: {rows}");
    }
}

#[test]
fn a_flipped_bit_is_restored() {
    let mut bytes = [schema(), contents()].concat();
    let at = bytes.len() - 40;
    bytes[at] ^= 1;
    let (run, rows) = salvaged(&bytes, &[]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("restored, one bit had changed"),
        "{run:?}"
    );
    assert!(
        has(&rows, r#""n":"one""#) && has(&rows, r#""n":"two""#),
        "{rows}"
    );
}

#[test]
fn rows_around_the_damage_are_taken_and_what_they_lack_is_listed() {
    let mut bytes = [schema(), contents()].concat();
    // Parent 2, from its first column on.
    let at = bytes.len() - 40;
    bytes[at..at + 30].fill(b'#');
    let (run, rows) = salvaged(&bytes, &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(
        has(&rows, r#""n":"one""#) && has(&rows, r#""i":11"#),
        "{rows}"
    );
    assert!(!has(&rows, r#""n":"two""#), "{rows}");
    for line in [
        "bytes are damaged".to_owned(),
        format!("p {}: what follows cannot be read", uuid(2)),
    ] {
        assert!(run.stdout.contains(&line), "{line}: {run:?}");
    }
}

#[test]
fn rows_without_their_parents_and_references_to_lost_rows_are_listed_with_their_content() {
    let mut bytes = [schema(), contents()].concat();
    let text = String::from_utf8(bytes.clone()).expect("ASCII");
    // The name of parent 2, and the name of child 11.
    let parent = text
        .rfind(&format!("\"{}\":{{\"c\"", uuid(2)))
        .expect("a row");
    let child = text
        .find(&format!("\"{}\":{{\"i\"", uuid(11)))
        .expect("a row");
    bytes[parent + 1..parent + 30].fill(b'#');
    bytes[child + 1..child + 30].fill(b'#');
    let (run, rows) = salvaged(&bytes, &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(
        has(&rows, r#""n":"one""#) && !has(&rows, r#""i":12"#),
        "{rows}"
    );
    for line in [
        format!("c {}: no row refers to it: {{\"i\":12}}", uuid(12)),
        format!(
            "p {} column c: refers to rows that are lost: c {}",
            uuid(1),
            uuid(11)
        ),
    ] {
        assert!(run.stdout.contains(&line), "{line}: {run:?}");
    }
}

#[test]
fn a_damaged_schema_is_read_from_a_file_that_the_user_names() {
    let mut bytes = [schema(), contents()].concat();
    bytes[60..80].fill(b'#');
    let (run, _) = salvaged(&bytes, &[]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr
            .contains("name a file with the schema as the third argument"),
        "{run:?}"
    );
    let (run, rows) = salvaged(&bytes, &["s"]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(
        has(&rows, r#""n":"one""#) && has(&rows, r#""n":"two""#),
        "{rows}"
    );
}

#[test]
fn records_that_do_not_commit_are_taken_without_what_breaks_a_rule() {
    let again = record(&format!(r#"{{"p":{{"{}":{{"n":"two"}}}}}}"#, uuid(3)));
    let later = record(&format!(r#"{{"p":{{"{}":{{"n":"four"}}}}}}"#, uuid(4)));
    let (run, rows) = salvaged(&[schema(), contents(), again, later].concat(), &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(has(&rows, r#""n":"four""#), "{rows}");
    let line = format!("p {}: it has the same key as {}", uuid(3), uuid(2));
    assert!(run.stdout.contains(&line), "{run:?}");
}

#[test]
fn a_member_becomes_a_standalone_database() {
    let entry = |index: u32, row: u8| {
        format!(
            r#"{{"data":[null,{{"t":{{"{}":{{}}}}}}],"eid":"{}","index":{index},"term":1}}"#,
            uuid(row),
            uuid(50 + row)
        )
    };
    let mut bytes = member('A', &[&entry(2, 1), &entry(3, 2), &entry(4, 3)]);
    let sandbox = Sandbox::new();
    sandbox.write("intact.db", &bytes);
    let run = sandbox.run(&["salvage", "intact.db", "whole.db"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.starts_with("3 rows were written"), "{run:?}");
    assert_eq!(
        sandbox.run(&["db-is-standalone", "whole.db"]).status,
        Some(0)
    );
    let text = String::from_utf8(bytes.clone()).expect("ASCII");
    let at = text.find(&uuid(52)).expect("an entry");
    bytes[at..at + 20].fill(b'#');
    sandbox.write("a.db", &bytes);
    let run = sandbox.run(&["salvage", "a.db", "new.db"]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stdout.contains("3 rows were written"), "{run:?}");
}
