//! A database as a whole: replay, conversion, snapshots, counts.

use corvid_data::{Atom, Datum, HashSeed, Recorded, RecordedRow};
use corvid_engine::{BulkLoad, Database};
use expect_test::expect;

use crate::fixture::{Fixture, ZOO, numbered, parse_schema};

fn keepers() -> Fixture {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["named-uuid","p"]}},
           {"op":"insert","table":"Keeper","row":{"name":"bob"}},
           {"op":"insert","table":"Pet","uuid-name":"p","row":{"kind":"owl"}}"#,
    );
    zoo
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut zoo = keepers();
    let table = zoo.database.schema().table_id("Keeper").expect("a table");
    let snapshot = zoo.database.snapshot();
    let before: Vec<_> = snapshot.rows(table).cloned().collect();
    zoo.run(r#"{"op":"update","table":"Keeper","where":[["name","==","ann"]],"row":{"age":2}},{"op":"delete","table":"Keeper","where":[["name","==","bob"]]}"#);
    assert_eq!(snapshot.row_count(table), 2);
    assert_eq!(before, snapshot.rows(table).cloned().collect::<Vec<_>>());
    assert_eq!(zoo.database.row_count(table), 1);
}

#[test]
fn snapshots_can_be_sent_to_other_threads() {
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<corvid_engine::Snapshot>();
    is_shareable::<corvid_engine::Condition>();
}

#[test]
fn atoms_are_counted() {
    let zoo = keepers();
    // ann: 2 + badge, busy, name, age, 2 tags, pet; bob: 2 + badge, busy, name; the pet: 2 + kind.
    assert_eq!(zoo.database.atom_count(), 9 + 5 + 3);
}

fn row(zoo: &Fixture, table: &str, uuid: u64, columns: Option<&[(&str, Datum)]>) -> RecordedRow {
    let id = zoo.database.schema().table_id(table).expect("a table");
    let schema = zoo.database.schema().table(id);
    RecordedRow {
        table: id,
        uuid: numbered(uuid),
        columns: columns.map(|columns| {
            let columns = columns.iter();
            columns
                .map(|(name, datum)| (schema.column_id(name).expect("a column"), datum.clone()))
                .collect()
        }),
    }
}

fn text(text: &str) -> Datum {
    Datum::one(Atom::String(text.into()))
}

#[test]
fn records_insert_replace_differ_and_delete() {
    let mut zoo = keepers();
    let rows = vec![
        row(
            &zoo,
            "Keeper",
            1,
            Some(&[("tags", text("b")), ("age", Datum::one(Atom::Integer(5)))]),
        ),
        row(&zoo, "Keeper", 4, None),
        row(
            &zoo,
            "Keeper",
            900,
            Some(&[("name", text("eve")), ("tags", text("x"))]),
        ),
    ];
    let recorded = Recorded {
        is_diff: true,
        comment: Some("hello".into()),
        rows: rows.into(),
        ..Recorded::default()
    };
    let delta = zoo
        .database
        .apply_recorded(recorded, &mut zoo.uuids)
        .expect("fits");
    assert_eq!(delta.comment, "hello");
    zoo.database.check_invariants().expect("consistent");
    zoo.last = Some(corvid_data::Arc::new(delta));
    expect![[r#"
        Keeper <1> age=5 tags="b"
        Keeper <4> delete
        Keeper <900> insert
    "#]]
    .assert_eq(&zoo.changes());
    let rows = vec![row(&zoo, "Keeper", 1, Some(&[("tags", text("b"))]))];
    let recorded = Recorded {
        rows: rows.into(),
        ..Recorded::default()
    };
    let delta = zoo
        .database
        .apply_recorded(recorded, &mut zoo.uuids)
        .expect("fits");
    zoo.last = Some(corvid_data::Arc::new(delta));
    expect![[r#"
        Keeper <1> tags=["set",["a","b"]]
    "#]]
    .assert_eq(&zoo.changes());
}

#[test]
fn a_record_that_does_not_fit_changes_nothing() {
    let mut zoo = keepers();
    let before = zoo.contents();
    for (rows, expected) in [
        (
            vec![
                row(&zoo, "Keeper", 1, Some(&[("name", text("zoe"))])),
                row(&zoo, "Keeper", 901, None),
            ],
            expect!["syntax error: transaction deletes row <901> that does not exist"],
        ),
        (
            vec![row(&zoo, "Keeper", 1, Some(&[("name", text("bob"))]))],
            expect![[
                r#"constraint violation: Transaction causes multiple rows in "Keeper" table to have identical values (bob) for index on column "name".  First row, with UUID <1>, had the following index values before the transaction: ann.  Second row, with UUID <4>, existed in the database before this transaction and was not modified by the transaction."#
            ]],
        ),
        (
            vec![row(&zoo, "Pet", 2, None)],
            expect![
                "referential integrity violation: cannot delete Pet row <2> because of 1 remaining reference(s)"
            ],
        ),
    ] {
        let recorded = Recorded {
            rows: rows.into(),
            ..Recorded::default()
        };
        let error = zoo
            .database
            .apply_recorded(recorded, &mut zoo.uuids)
            .expect_err("does not fit");
        expected.assert_eq(&crate::fixture::abridge(&error.to_string()));
        zoo.database.check_invariants().expect("consistent");
        assert_eq!(before, zoo.contents());
    }
}

fn convert(from: &str, to: &str) -> String {
    let mut zoo = keepers();
    let changed = ZOO.replacen(from, to, 1);
    assert_ne!(changed, ZOO);
    match zoo.database.convert(parse_schema(&changed), &mut zoo.uuids) {
        Ok(database) => {
            database.check_invariants().expect("consistent");
            zoo.database = database;
            zoo.run(r#"{"op":"select","table":"Keeper","where":[],"columns":["name","age","tags","pets"],"sort":["name"]}"#)
        }
        Err(error) => crate::fixture::abridge(&error.to_string()),
    }
}

#[test]
fn conversion_keeps_what_fits() {
    let age = r#"{"key":"integer","min":0,"max":1}"#;
    expect![[r#"[{"rows":[{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["uuid","<2>"]},{"name":"bob","age":["set",[]],"tags":["set",[]],"pets":["set",[]]}]}]"#]].assert_eq(&convert("1.0.0", "1.0.1"));
    expect![[r#"[{"rows":[{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["uuid","<2>"]},{"name":"bob","age":["set",[]],"tags":["set",[]],"pets":["set",[]]}]}]"#]].assert_eq(&convert(age, r#"{"key":"integer","min":0,"max":5}"#));
    expect![[r#"[{"rows":[{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["uuid","<2>"]},{"name":"bob","age":["set",[]],"tags":["set",[]],"pets":["set",[]]}]}]"#]].assert_eq(&convert(age, r#"{"key":"real","min":0,"max":1}"#));
    expect![[r#"syntax "1": syntax error: expected string"#]]
        .assert_eq(&convert(age, r#"{"key":"string","min":0,"max":1}"#));
    expect!["constraint violation: 1 is less than minimum allowed value 2"].assert_eq(&convert(
        age,
        r#"{"key":{"type":"integer","minInteger":2},"min":0,"max":1}"#,
    ));
    expect![[
        r#"syntax "["set",[]]": syntax error: set must have exactly one member but 0 are present"#
    ]]
    .assert_eq(&convert(age, r#""integer""#));
    // A new table that sorts first gives every other table another number.
    expect![[r#"[{"rows":[{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["uuid","<2>"]},{"name":"bob","age":["set",[]],"tags":["set",[]],"pets":["set",[]]}]}]"#]].assert_eq(&convert(r#""Keeper":{"#, r#""AAA":{"columns":{"x":{"type":"integer"}}},"Keeper":{"#));
    expect![[r#"constraint violation: Transaction causes multiple rows in "Keeper" table to have identical values (0) for index on column "badge".  First row, with UUID <1>, was inserted by this transaction.  Second row, with UUID <4>, was inserted by this transaction."#]].assert_eq(&convert(r#"[["name"]]"#, r#"[["badge"]]"#));
    expect![[r#"constraint violation: transaction causes "Keeper" table to contain 2 rows, greater than the schema-defined limit of 1 row(s)"#]].assert_eq(&convert(r#""Keeper":{"isRoot":true,"#, r#""Keeper":{"isRoot":true,"maxRows":1,"#));
    // The column that keeps a pet alive is missing, so no row refers to the pet and it is
    // collected.
    expect![[r#"[{"rows":[{"name":"ann","age":1,"tags":["set",["a","b"]],"pets":["uuid","<2>"]},{"name":"bob","age":["set",[]],"tags":["set",[]],"pets":["set",[]]}]}]"#]].assert_eq(&convert(r#""pets":{"type":{"key":{"type":"uuid","refTable":"Pet"}"#, r#""pets":{"type":{"key":{"type":"uuid"}"#));
}

#[test]
fn rows_that_refer_to_themselves_are_accepted_from_every_source() {
    let mut zoo = keepers();
    zoo.run(r#"{"op":"insert","table":"Keeper","uuid-name":"k","row":{"name":"eve","pets":["named-uuid","k"]}}"#);
    let found = zoo.database.own_references();
    assert_eq!(found.len(), 1);
    let schema = zoo.database.schema().clone();
    // As a compacted file is loaded.
    let mut fill = BulkLoad::new(Database::new(schema.clone(), HashSeed::FIXED));
    for (table, _) in schema.iter() {
        let rows = zoo.database.rows(table).cloned();
        fill.add(table, rows).expect("no twins");
    }
    let filled = fill.finish().expect("it is taken as it is");
    filled.check_invariants().expect("consistent");
    assert_eq!(filled.own_references(), found);
    // Record by record.
    let mut loaded = Fixture::zoo();
    let pets = Datum::one(Atom::Uuid(numbered(7)));
    let rows = vec![row(
        &loaded,
        "Keeper",
        7,
        Some(&[("name", text("eve")), ("pets", pets)]),
    )];
    let recorded = Recorded {
        rows: rows.into(),
        ..Recorded::default()
    };
    let taken = loaded.database.load(recorded, &mut loaded.uuids);
    taken.expect("it is taken as it is");
    loaded.database.check_invariants().expect("consistent");
    assert_eq!(loaded.database.own_references().len(), 1);
    // Under another schema.
    let converted = zoo.database.convert(parse_schema(ZOO), &mut zoo.uuids);
    let converted = converted.expect("it fits");
    converted.check_invariants().expect("consistent");
    assert_eq!(converted.own_references(), found);
}
