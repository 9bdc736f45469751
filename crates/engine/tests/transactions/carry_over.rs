//! Commits carried over to a converted database. After each commit the contents equal a conversion
//! of the source at that moment, or the commit is refused and changes nothing.
//!
//! Random pairs of schemas (which tables are roots, limits, indexes, strengths of references,
//! types, columns and tables that are added and removed) under the random transactions of
//! [`crate::random`].

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{Datum, Uuid};
use corvid_engine::{Database, Misfit};

use crate::fixture::{Counter, Fixture, parse_schema};
use crate::random::{Dice, SCHEMA, seed};

/// Changes of the schema under which its random transactions still make sense.
const TYPES: [(&str, &str); 12] = [
    (r#""Root":{"isRoot":true"#, r#""Root":{"isRoot":false"#),
    (r#""Part":{"columns""#, r#""Part":{"isRoot":true,"columns""#),
    (r#""maxRows":20"#, r#""maxRows":15"#),
    (r#""Part":{"#, r#""Part":{"maxRows":10,"#),
    (r#"[["name"],["x","y"]]"#, r#"[["x","y"]]"#),
    (r#"[["name"],["x","y"]]"#, r#"[["name"],["x"]]"#),
    (r#""x":{"type":"integer"}"#, r#""x":{"type":"real"}"#),
    (
        r#""y":{"type":"integer"}"#,
        r#""y":{"type":{"key":{"type":"integer","maxInteger":8}}}"#,
    ),
    (
        r#""owns":{"type":{"key":{"type":"uuid","refTable":"Part"}"#,
        r#""owns":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"}"#,
    ),
    (
        r#""home":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"}"#,
        r#""home":{"type":{"key":{"type":"uuid","refTable":"Root"}"#,
    ),
    (
        r#""sees":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"}"#,
        r#""sees":{"type":{"key":{"type":"uuid"}"#,
    ),
    (
        r#""value":{"type":"uuid","refTable":"Root","refType":"weak"}"#,
        r#""value":{"type":"uuid"}"#,
    ),
];

/// Further changes that a new schema may have.
const SHAPES: [(&str, &str); 6] = [
    (
        r#""Root":{"#,
        r#""Another":{"columns":{"n":{"type":"integer"}}},"Root":{"#,
    ),
    (
        r#""x":{"#,
        r#""added":{"type":{"key":"integer","min":0,"max":1}},"given":{"type":"string"},"x":{"#,
    ),
    (
        r#""next":{"type":{"key":{"type":"uuid","refTable":"Part"},"min":0,"max":"unlimited"}},"#,
        "",
    ),
    (r#""min":0,"max":2}"#, r#""min":0,"max":1}"#),
    (r#""Pin":{"isRoot":true"#, r#""Pinned":{"isRoot":true"#),
    (
        r#""sees":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"}"#,
        r#""sees":{"type":{"key":{"type":"uuid","refTable":"Part"}"#,
    ),
];

/// The schema with each change applied in one of `odds` cases.
fn schema(dice: &mut Dice, changes: &[(&str, &str)], odds: u64) -> String {
    let mut schema = SCHEMA.to_owned();
    for (from, to) in changes {
        if dice.below(odds) == 0 {
            schema = schema.replacen(from, to, 1);
        }
    }
    schema
}

type Rows = BTreeMap<(String, Uuid), Vec<Datum>>;

/// All columns except versions.
fn rows(database: &Database) -> Rows {
    let mut found = Rows::new();
    for (table, schema) in database.schema().iter() {
        for row in database.rows(table) {
            let key = (schema.name.to_string(), row.uuid);
            found.insert(key, row.columns.to_vec());
        }
    }
    found
}

/// The outcomes of the runs.
#[derive(Debug, Default)]
struct Tally {
    unconvertible: u32,
    carried: u32,
    followed_to_the_end: u32,
    refused_although_convertible: u32,
    reasons: BTreeSet<&'static str>,
}

fn play(dice: &mut Dice, tally: &mut Tally) {
    let old = schema(dice, &TYPES, 8);
    let all: Vec<_> = TYPES.iter().chain(&SHAPES).copied().collect();
    let new = parse_schema(&schema(dice, &all, 6));
    let mut source = Fixture::new(&old);
    for _ in 0..dice.below(40) {
        dice.transact(&mut source);
    }
    let mut uuids = Counter(1 << 40);
    let converted = source.database.snapshot().convert(new.clone(), &mut uuids);
    let mut converted = match converted {
        Ok(converted) => converted,
        Err(error) => {
            let again = source.database.convert(new, &mut uuids);
            assert_eq!(again.expect_err("does not fit"), error);
            tally.unconvertible += 1;
            return;
        }
    };
    for _ in 0..30 {
        source.last = None;
        dice.transact(&mut source);
        let Some(delta) = source.last.clone() else {
            continue;
        };
        let before = rows(converted.database());
        let expected = source.database.convert(new.clone(), &mut uuids);
        let outcome = converted.carry_over(&delta, &mut uuids);
        converted.database().check_invariants().expect("consistent");
        match (outcome, expected) {
            (Ok(_), Ok(expected)) => {
                assert_eq!(
                    rows(converted.database()),
                    rows(&expected),
                    "{old}\n{new:?}"
                );
                tally.carried += 1;
            }
            (Ok(_), Err(error)) => panic!("{error} went unnoticed\n{old}\n{new:?}"),
            (Err(misfit), expected) => {
                assert_eq!(rows(converted.database()), before);
                tally.refused_although_convertible += u32::from(expected.is_ok());
                tally.reasons.insert(match misfit {
                    Misfit::Violation(_) => "violation",
                    Misfit::Reappeared => "reappeared",
                    Misfit::Referenced => "held",
                    Misfit::Limited => "limited",
                    _ => "other",
                });
                return;
            }
        }
    }
    tally.followed_to_the_end += 1;
}

#[test]
fn carried_over_commits_equal_a_conversion_at_the_end() {
    const RUNS: u32 = 800;
    let mut dice = Dice::new(seed());
    let mut tally = Tally::default();
    for _ in 0..RUNS {
        play(&mut dice, &mut tally);
    }
    println!("{tally:?}");
    assert!(
        tally.carried > RUNS && tally.followed_to_the_end > RUNS / 20 && tally.reasons.len() > 2,
        "{tally:?}: the mix proves little"
    );
}

/// The outcome of carrying over `operations`, and that of a conversion afterwards, between two
/// schemas.
fn both_ways(old: &str, new: &str, before: &str, operations: &str) -> (Misfit, String) {
    let mut source = Fixture::new(old);
    source.run(before);
    let mut uuids = Counter(1 << 40);
    let new = parse_schema(new);
    let mut converted = source
        .database
        .snapshot()
        .convert(new.clone(), &mut uuids)
        .expect("fits");
    source.last = None;
    source.run(operations);
    let delta = source.last.clone().expect("commits");
    let misfit = converted
        .carry_over(&delta, &mut uuids)
        .expect_err("is refused");
    let error = source
        .database
        .convert(new, &mut uuids)
        .expect_err("does not fit");
    (misfit, crate::fixture::abridge(&error.to_string()))
}

#[test]
fn garbage_may_refer_to_a_deleted_row() {
    let old = r#"{"name":"D","tables":{
        "Lone":{"isRoot":true,"columns":{"to":{"type":"uuid"}}},
        "Target":{"isRoot":true,"columns":{"x":{"type":"integer"}}}}}"#;
    let new = r#"{"name":"D","tables":{
        "Lone":{"columns":{"to":{"type":{"key":{"type":"uuid","refTable":"Target"}}}}},
        "Target":{"isRoot":true,"columns":{"x":{"type":"integer"}}}}}"#;
    let (misfit, error) = both_ways(
        old,
        new,
        r#"{"op":"insert","table":"Target","uuid":"<7>","row":{}},
           {"op":"insert","table":"Lone","uuid":"<8>","row":{"to":["uuid","<7>"]}}"#,
        r#"{"op":"delete","table":"Target","where":[]}"#,
    );
    assert_eq!(misfit, Misfit::Referenced);
    expect_test::expect!["referential integrity violation: Table Lone column to row <8> references nonexistent row <7> in table Target."].assert_eq(&error);
}

#[test]
fn garbage_counts_until_it_is_collected() {
    let schema = |root: &str, limit: &str| {
        format!(
            r#"{{"name":"D","tables":{{
                "Holder":{{"isRoot":true,"columns":{{"pairs":{{"type":{{"key":{{"type":"uuid","refTable":"Few"}},
                    "value":{{"type":"uuid","refTable":"Sign","refType":"weak"}},"min":0,"max":5}}}}}}}},
                "Few":{{{limit}"columns":{{"x":{{"type":"integer"}}}}}},
                "Sign":{{{root}"columns":{{"x":{{"type":"integer"}}}}}}}}}}"#
        )
    };
    // The sign is garbage under the new schema. The pair is dropped with it, and with the pair the
    // reference to the other row.
    let (misfit, error) = both_ways(
        &schema(r#""isRoot":true,"#, ""),
        &schema("", r#""maxRows":1,"#),
        r#"{"op":"insert","table":"Sign","uuid":"<7>","row":{}},
           {"op":"insert","table":"Few","uuid":"<8>","row":{}},
           {"op":"insert","table":"Holder","row":{"pairs":["map",[[["uuid","<8>"],["uuid","<7>"]]]]}}"#,
        r#"{"op":"insert","table":"Few","uuid":"<9>","row":{}},
           {"op":"insert","table":"Holder","row":{"pairs":["map",[[["uuid","<9>"],["uuid","<7>"]]]]}}"#,
    );
    assert_eq!(misfit, Misfit::Limited);
    expect_test::expect![[r#"constraint violation: transaction causes "Few" table to contain 2 rows, greater than the schema-defined limit of 1 row(s)"#]].assert_eq(&error);
}

#[test]
fn a_conversion_can_be_sent_to_other_threads() {
    fn is_sendable<T: Send>() {}
    is_sendable::<corvid_engine::Converted>();
}
