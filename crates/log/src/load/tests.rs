//! Replay of whole files, and where a damaged file ends.

use super::*;
use crate::fixture::{append, row, schema, table_id};
use crate::{Stamp, write_schema, write_snapshot};

const INSERT: &str =
    r#"{"_date":1700000000000,"t":{"00000000-0000-4000-8000-000000000001":{"i":7}}}"#;
const MISFIT: &str = r#"{"_date":1700000000000,"x":{}}"#;

fn new_file() -> Vec<u8> {
    let mut file = Vec::new();
    assert_eq!(write_schema(&mut file, &schema()), file.len());
    file
}

/// Reads to the end. Returns the number of transactions, the end of the good part and the damage.
fn replay(file: &[u8]) -> (u64, u64, Option<Damage>) {
    let mut load = Load::open(file).expect("a schema");
    let damage = loop {
        match load.next_transaction() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(damage) => {
                assert_eq!(
                    load.next_transaction().map(|_| ()),
                    Err(damage.clone()),
                    "damage is sticky"
                );
                break Some(damage);
            }
        }
    };
    (load.records(), load.good_end(), damage)
}

#[test]
fn intact_file_is_read_to_its_end() {
    let mut file = new_file();
    assert_eq!(replay(&file), (1, file.len() as u64, None));
    append(&mut file, INSERT);
    append(&mut file, INSERT);
    assert_eq!(replay(&file), (3, file.len() as u64, None));
}

#[test]
fn schema_survives_the_round_trip() {
    let file = new_file();
    let load = Load::open(&file[..]).expect("a schema");
    assert_eq!(load.schema().to_json(), schema().to_json());
}

#[test]
fn growth_is_measured_from_the_second_record() {
    let mut file = new_file();
    append(&mut file, INSERT);
    let base = file.len() as u64;
    append(&mut file, INSERT);
    let mut load = Load::open(&file[..]).expect("a schema");
    assert_eq!(load.base_bytes(), 0);
    while load.next_transaction().expect("intact").is_some() {}
    assert_eq!(load.base_bytes(), base);
}

#[test]
fn torn_tail_ends_the_log_before_it() {
    let mut file = new_file();
    append(&mut file, INSERT);
    let good = file.len();
    append(&mut file, INSERT);
    for length in good + 1..file.len() {
        let (records, end, damage) = replay(&file[..length]);
        assert_eq!((records, end), (2, good as u64), "cut at {length}");
        let damage = damage.expect("torn");
        assert_eq!((damage.record, damage.offset), (2, good as u64));
        assert!(matches!(damage.cause, Cause::Read(_)));
    }
}

#[test]
fn record_that_does_not_fit_ends_the_log_although_good_ones_follow() {
    let mut file = new_file();
    append(&mut file, INSERT);
    let good = file.len() as u64;
    append(&mut file, MISFIT);
    append(&mut file, INSERT);
    let (records, end, damage) = replay(&file);
    assert_eq!((records, end), (2, good));
    let damage = damage.expect("misfit");
    assert_eq!(
        damage.report("a.db"),
        format!(
            "a.db: record 2 at offset {good} cannot be used: syntax \"{{\"_date\":1700000000000,\"x\":{{}}}}\": unknown table: No table named x."
        )
    );
}

#[test]
fn record_that_does_not_commit_ends_the_log() {
    let mut file = new_file();
    let good = file.len() as u64;
    append(&mut file, INSERT);
    let mut load = Load::open(&file[..]).expect("a schema");
    load.next_transaction().expect("intact").expect("present");
    let damage = load.reject(WireError::new(Tag::ConstraintViolation, "too many"));
    assert_eq!((damage.record, damage.offset), (1, good));
    assert_eq!((load.records(), load.good_end()), (1, good));
    assert_eq!(load.next_transaction().map(|_| ()), Err(damage));
}

#[test]
fn body_that_is_no_json_is_reported_as_damage_of_its_bytes() {
    let mut file = new_file();
    let good = file.len();
    append(&mut file, r#"{"_date":1,"x":{}"#);
    let (_, end, damage) = replay(&file);
    assert_eq!(end, good as u64);
    let damage = damage.expect("no JSON");
    let text = damage.to_wire("a.db").to_string();
    assert!(text.contains("18 bytes starting at offset"), "{text}");
    assert!(
        text.ends_with("are not valid JSON (line 1, column 0, byte 18: unexpected end of input)"),
        "{text}"
    );
}

#[test]
fn missing_or_wrong_schema_is_an_error_of_record_0() {
    let open = |file: &[u8]| {
        Load::open(file)
            .map(|_| ())
            .map_err(|damage| damage.to_wire("a.db").to_string())
    };
    assert_eq!(
        open(b""),
        Err("ovsdb error: unexpected end of file reading schema".into())
    );
    let mut file = Vec::new();
    append(&mut file, r#"{"name":"x"}"#);
    assert_eq!(
        open(&file),
        Err(r#"syntax "{"name":"x"}": syntax error: Parsing database schema failed: Required 'tables' member is missing."#.into())
    );
    file.clear();
    append(&mut file, "[]");
    assert_eq!(
        open(&file),
        Err("syntax error: a.db: 3 bytes starting at offset 54 are not a JSON object".into())
    );
}

#[test]
fn snapshot_holds_every_row_in_pieces() {
    let schema = schema();
    let t = table_id(&schema, "t");
    let long = "x".repeat(10_000);
    let rows: Vec<_> = (0..100)
        .map(|n| {
            row(
                schema.table(t),
                n,
                &format!("{{\"i\":{n},\"eph\":3,\"tags\":\"{long}\"}}"),
            )
        })
        .collect();
    let mut file = new_file();
    let start = file.len();
    let mut pieces = 0;
    let stamp = Stamp {
        date_ms: 1_700_000_000_000,
        comment: "compacted",
        is_diff: true,
        with_defaults: false,
    };
    let written = write_snapshot(
        &schema,
        &stamp,
        |id| if id == t { rows.iter() } else { [].iter() },
        &mut |piece| {
            pieces += 1;
            file.extend_from_slice(piece);
            Ok::<(), ()>(())
        },
    );
    assert_eq!(written, Ok((file.len() - start) as u64));
    assert!(pieces > 3, "{pieces}");
    let mut load = Load::open(&file[..]).expect("a schema");
    let recorded = load.next_transaction().expect("intact").expect("present");
    assert_eq!(recorded.comment.as_deref(), Some("compacted"));
    assert_eq!(recorded.rows.len(), 100);
    assert!(recorded.rows.iter().all(|row| {
        row.columns
            .as_ref()
            .is_some_and(|columns| columns.len() <= 2)
    }));
    assert!(load.next_transaction().expect("intact").is_none());
}

#[test]
fn empty_snapshot_still_makes_a_record() {
    let stamp = Stamp {
        date_ms: 5,
        comment: "",
        is_diff: false,
        with_defaults: false,
    };
    let mut out = Vec::new();
    let written = write_snapshot(&schema(), &stamp, |_| [].iter(), &mut |piece| {
        out.extend_from_slice(piece);
        Ok::<(), ()>(())
    });
    assert_eq!(written, Ok(out.len() as u64));
    assert!(out.ends_with(b"\n{\"_date\":5}\n"));
}
