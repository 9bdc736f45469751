//! maxRows and unique indexes.

use expect_test::{Expect, expect};

use crate::fixture::Fixture;

fn cages() -> Fixture {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Cage","row":{"row":1,"col":1,"note":"b"}},
           {"op":"insert","table":"Cage","row":{"row":1,"col":2,"note":"a"}}"#,
    );
    zoo
}

fn check(operations: &str, expected: &Expect) {
    expected.assert_eq(&cages().run(operations));
}

#[test]
fn rows_beyond_the_limit_are_refused_at_commit_only() {
    check(
        r#"{"op":"insert","table":"Cage","row":{}}"#,
        &expect![[
            r#"[{"uuid":["uuid","<5>"]},{"details":"transaction causes \"Cage\" table to contain 3 rows, greater than the schema-defined limit of 2 row(s)","error":"constraint violation"}]"#
        ]],
    );
    check(
        r#"{"op":"insert","table":"Cage","row":{}},{"op":"delete","table":"Cage","where":[["row","==",1]]}"#,
        &expect![[r#"[{"uuid":["uuid","<5>"]},{"count":2}]"#]],
    );
}

#[test]
fn equal_keys_are_refused_with_the_history_of_both_rows() {
    // An inserted row conflicts with an untouched one.
    let operations = r#"{"op":"delete","table":"Cage","where":[["col","==",2]]},{"op":"insert","table":"Cage","row":{"row":1,"col":1,"note":"c"}}"#;
    check(
        operations,
        &expect![[
            r#"[{"count":1},{"uuid":["uuid","<5>"]},{"details":"Transaction causes multiple rows in \"Cage\" table to have identical values (1 and 1) for index on columns \"row\" and \"col\".  First row, with UUID <5>, was inserted by this transaction.  Second row, with UUID <1>, existed in the database before this transaction and was not modified by the transaction.","error":"constraint violation"}]"#
        ]],
    );
    let operations = r#"{"op":"delete","table":"Cage","where":[["col","==",2]]},{"op":"insert","table":"Cage","row":{"row":1,"col":1,"note":"b"}}"#;
    check(
        operations,
        &expect![[
            r#"[{"count":1},{"uuid":["uuid","<5>"]},{"details":"Transaction causes multiple rows in \"Cage\" table to have identical values (1 and 1) for index on columns \"row\" and \"col\".  First row, with UUID <1>, existed in the database before this transaction and was not modified by the transaction.  Second row, with UUID <5>, was inserted by this transaction.","error":"constraint violation"}]"#
        ]],
    );
    // A changed key conflicts with an untouched row, and with a row changed in other columns.
    let operations = r#"{"op":"update","table":"Cage","where":[["col","==",2]],"row":{"col":1}}"#;
    check(
        operations,
        &expect![[
            r#"[{"count":1},{"details":"Transaction causes multiple rows in \"Cage\" table to have identical values (1 and 1) for index on columns \"row\" and \"col\".  First row, with UUID <1>, existed in the database before this transaction and was not modified by the transaction.  Second row, with UUID <3>, had the following index values before the transaction: 1 and 2.","error":"constraint violation"}]"#
        ]],
    );
    let operations = r#"{"op":"update","table":"Cage","where":[["col","==",2]],"row":{"col":1}},{"op":"update","table":"Cage","where":[["note","==","b"]],"row":{"note":"0"}}"#;
    check(
        operations,
        &expect![[
            r#"[{"count":1},{"count":1},{"details":"Transaction causes multiple rows in \"Cage\" table to have identical values (1 and 1) for index on columns \"row\" and \"col\".  First row, with UUID <3>, had the following index values before the transaction: 1 and 2.  Second row, with UUID <1>, existed in the database before this transaction, which modified some of the row's columns but not any columns in this index.","error":"constraint violation"}]"#
        ]],
    );
    // Two inserted rows conflict.
    let operations = r#"{"op":"delete","table":"Cage","where":[]},{"op":"insert","table":"Cage","row":{}},{"op":"insert","table":"Cage","row":{}}"#;
    check(
        operations,
        &expect![[
            r#"[{"count":2},{"uuid":["uuid","<5>"]},{"uuid":["uuid","<7>"]},{"details":"Transaction causes multiple rows in \"Cage\" table to have identical values (0 and 0) for index on columns \"row\" and \"col\".  First row, with UUID <5>, was inserted by this transaction.  Second row, with UUID <7>, was inserted by this transaction.","error":"constraint violation"}]"#
        ]],
    );
}

#[test]
fn keys_may_be_swapped() {
    check(
        r#"{"op":"update","table":"Cage","where":[["note","==","a"]],"row":{"col":1}},
           {"op":"update","table":"Cage","where":[["note","==","b"]],"row":{"col":2}}"#,
        &expect![[r#"[{"count":1},{"count":1}]"#]],
    );
}

#[test]
fn a_new_row_may_have_the_key_of_a_deleted_one() {
    let mut zoo = cages();
    expect![[r#"[{"count":1},{"uuid":["uuid","<5>"]}]"#]].assert_eq(&zoo.run(
        r#"{"op":"delete","table":"Cage","where":[["col","==",1]]},
           {"op":"insert","table":"Cage","row":{"row":1,"col":1,"note":"new"}}"#,
    ));
    expect![[r#"
        Cage <1> delete
        Cage <5> insert
    "#]]
    .assert_eq(&zoo.changes());
}

#[test]
fn a_single_column_index_names_its_column() {
    let mut zoo = Fixture::zoo();
    zoo.run(r#"{"op":"insert","table":"Keeper","row":{"name":"ann"}}"#);
    expect![[r#"[{"uuid":["uuid","<3>"]},{"details":"Transaction causes multiple rows in \"Keeper\" table to have identical values (ann) for index on column \"name\".  First row, with UUID <1>, existed in the database before this transaction and was not modified by the transaction.  Second row, with UUID <3>, was inserted by this transaction.","error":"constraint violation"}]"#]].assert_eq(&zoo.run(r#"{"op":"insert","table":"Keeper","row":{"name":"ann"}}"#));
}
