//! Tests: snapshots with and without unusual rows, and entries that apply or fail.

use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Kind, Record};

use super::*;
use crate::once::recorded::snapshot_comment;
use crate::storage::loading;

const SCHEMA: &str = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"},"s":{"type":{"key":"string","min":0,"max":"unlimited"}}},"isRoot":true}},"version":"1.0.0"}"#;

struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let mut bytes = [0xcc; 16];
        bytes[..8].copy_from_slice(&self.0.to_be_bytes());
        Uuid(bytes)
    }
}

fn uuid(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

fn entry(index: u64, data: &str) -> StoredEntry {
    let json = format!(
        r#"{{"term":1,"index":{index},"eid":"{}","data":{data}}}"#,
        uuid(7)
    );
    match Record::decode(json.as_bytes()).expect("a record").kind {
        Kind::Entry(entry) => StoredEntry::of(entry),
        other => panic!("no entry: {other:?}"),
    }
}

/// Loads, and returns the rows as `number: i s`.
fn load(rows: &str, entries: &[StoredEntry]) -> Result<Vec<String>, MemberLoadError> {
    load_all(rows, entries).map(|(shown, _)| shown)
}

/// As [`load`], with the commits that snapshot and entries name.
fn load_all(
    rows: &str,
    entries: &[StoredEntry],
) -> Result<(Vec<String>, RecordedCommits), MemberLoadError> {
    let text = format!("[{SCHEMA},{rows}]");
    let body = BodyLocation {
        offset: 0,
        length: text.len() as u64,
    };
    let LoadedMember { database, recorded } = load_member(
        body,
        entries,
        || Ok(text.as_bytes()),
        HashSeed::FIXED,
        &mut Counter(0),
        |feed, database, uuids| loading::run(feed, database, uuids, &mut Counter(1 << 32)),
    )?;
    database.check_invariants().expect("a consistent database");
    let mut shown = Vec::new();
    for (id, _) in database.schema().iter() {
        for row in database.rows(id) {
            shown.push(format!("{:02x}: {:?}", row.uuid.0[3], row.columns));
        }
    }
    shown.sort();
    Ok((shown, recorded))
}

fn loaded(rows: &str, entries: &[StoredEntry]) -> Vec<String> {
    load(rows, entries).expect("everything applies")
}

#[test]
fn exceptions_in_a_snapshot_mean_the_same_as_in_a_transaction() {
    let row = |number: u32, columns: &str| format!(r#""{}":{columns}"#, uuid(number));
    let table = |rows: &[String]| format!(r#"{{"t":{{{}}}}}"#, rows.join(","));
    let ordinary = loaded(&table(&[row(1, r#"{"i":3}"#), row(2, "{}")]), &[]);
    assert_eq!(ordinary.len(), 2);
    // Of repeated rows the last one wins; this snapshot is read twice.
    let repeated = table(&[row(1, r#"{"i":9}"#), row(2, "{}"), row(1, r#"{"i":3}"#)]);
    assert_eq!(loaded(&repeated, &[]), ordinary);
    let spaced = format!(
        "{{ \"_date\" : 1,\n\"t\": {{ {} , {} }} }} ",
        row(2, "{}"),
        row(1, r#"{ "i" : 3 }"#)
    );
    assert_eq!(loaded(&spaced, &[]), ordinary);
    assert_eq!(loaded("{}", &[]), [""; 0]);
    for malformed in [
        "null",
        "[]",
        "{}, {}",
        r#"{"x":{}}"#,
        r#"{"t":7}"#,
        "{",
        "{}}",
    ] {
        let error = load(malformed, &[]).expect_err(malformed);
        assert_eq!(error.index, None, "{malformed}: {error:?}");
    }
}

#[test]
fn a_long_snapshot_and_many_entries_are_loaded_whole() {
    let rows: Vec<String> = (0..20_000)
        .map(|number| {
            format!(
                r#""{}":{{"i":{number},"s":["set",["x","y"]]}}"#,
                uuid(number << 8)
            )
        })
        .collect();
    let snapshot = format!(r#"{{"t":{{{}}}}}"#, rows.join(","));
    let entries: Vec<StoredEntry> = (0..5_000)
        .map(|number| {
            let row = format!(
                r#"{{"{}":{{"i":{number}}}}}"#,
                uuid((number << 8) + 0x0100_0001)
            );
            entry(u64::from(number) + 2, &format!(r#"[null,{{"t":{row}}}]"#))
        })
        .collect();
    assert_eq!(loaded(&snapshot, &entries).len(), 25_000);
}

#[test]
fn a_snapshot_names_its_last_commits() {
    let commits = [Eid(Uuid([1; 16])), Eid(Uuid([2; 16]))];
    let comment = snapshot_comment("compacting", &commits).replace('\n', "\\n");
    let row = format!(r#""{}":{{"i":1}}"#, uuid(1));
    // Repeated rows have the snapshot read twice.
    for rows in [row.clone(), format!("{row},{row}")] {
        let snapshot = format!(r#"{{"_comment":"{comment}","_date":1,"t":{{{rows}}}}}"#);
        let (rows, recorded) = load_all(&snapshot, &[]).expect("everything applies");
        assert_eq!(rows.len(), 1);
        let ids: Vec<Eid> = recorded.iter().map(|commit| Eid(commit.id)).collect();
        assert_eq!(ids, commits);
        assert!(recorded.has_ids());
    }
    let (_, recorded) = load_all(r#"{"t":{}}"#, &[]).expect("everything applies");
    assert_eq!(recorded, RecordedCommits::default());
}

#[test]
fn an_entry_that_does_not_apply_is_named() {
    let insert = |index, number| {
        let data = format!(r#"[null,{{"t":{{"{}":{{}}}}}}]"#, uuid(number));
        entry(index, &data)
    };
    let no_op = StoredEntry {
        commit: None,
        ..insert(4, 1)
    };
    let delete = format!(r#"[null,{{"t":{{"{}":null}}}}]"#, uuid(77));
    let entries = [
        insert(2, 1),
        insert(3, 2),
        no_op,
        entry(5, &delete),
        insert(6, 3),
    ];
    let error = load("{}", &entries).expect_err("there is no such row");
    assert_eq!(error.index, Some(Index(5)));
    assert!(
        error.error.to_string().contains("does not exist"),
        "{error:?}"
    );
    for data in [
        "[]",
        "[null]",
        "{}",
        "[7,null]",
        "[null,{},null]",
        r#"[null,{"x":{}}]"#,
    ] {
        let error = load("{}", &[insert(2, 1), entry(3, data)]).expect_err(data);
        assert_eq!(error.index, Some(Index(3)), "{data}");
    }
    // An entry after a conversion fails the same way.
    let converted = entry(2, &format!("[{SCHEMA},null]"));
    let error = load("{}", &[converted, insert(3, 1), entry(4, &delete)]);
    assert_eq!(
        error.expect_err("there is no such row").index,
        Some(Index(4))
    );
}
