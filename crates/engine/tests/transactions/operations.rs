//! The results of operations, by kind of operation.

use crate::fixture::Fixture;
use expect_test::{Expect, expect};

fn check(fixture: &mut Fixture, operations: &str, expected: &Expect) {
    expected.assert_eq(&fixture.run(operations));
}

#[test]
fn no_operations_give_no_results() {
    check(&mut Fixture::zoo(), "", &expect!["[]"]);
}

#[test]
fn inserted_rows_are_selected_with_defaults() {
    let mut zoo = Fixture::zoo();
    let insert = r#"{"op":"insert","table":"Keeper","row":{"name":"ann","age":5,"cfg":["map",[["k","v"]]]}}"#;
    check(&mut zoo, insert, &expect![[r#"[{"uuid":["uuid","<1>"]}]"#]]);
    let select = r#"{"op":"select","table":"Keeper","where":[]}"#;
    check(
        &mut zoo,
        select,
        &expect![[
            r#"[{"rows":[{"_uuid":["uuid","<1>"],"_version":["uuid","<2>"],"age":5,"badge":0,"busy":false,"cfg":["map",[["k","v"]]],"friends":["set",[]],"name":"ann","pets":["set",[]],"tags":["set",[]]}]}]"#
        ]],
    );
}

#[test]
fn operations_behind_a_failed_one_are_not_read() {
    let operations = r#"{"op":"comment","comment":"x"},{"op":"delete","table":"Nope","where":[]},{"op":"abort"},{"op":"zz"}"#;
    check(
        &mut Fixture::zoo(),
        operations,
        &expect![[
            r#"[{},{"details":"Parsing ovsdb operation 2 of 4 failed: No table named Nope.","error":"syntax error","syntax":"{\"op\":\"delete\",\"table\":\"Nope\",\"where\":[]}"},null,null]"#
        ]],
    );
}

#[test]
fn faults_of_members_are_reported_in_order_and_before_execution() {
    let mut zoo = Fixture::zoo();
    for (operation, expected) in [
        (
            "5",
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Object expected.","error":"syntax error"}]"#
            ]],
        ),
        (
            "{}",
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'op' member is missing.","error":"syntax error","syntax":"{}"}]"#
            ]],
        ),
        (
            r#"{"op":"zap"}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: No operation \"zap\"","error":"syntax error","syntax":"{\"op\":\"zap\"}"}]"#
            ]],
        ),
        (
            r#"{"op":7}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Type mismatch for member 'op'.","error":"syntax error","syntax":"{\"op\":7}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert"}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'table' member is missing.","error":"syntax error","syntax":"{\"op\":\"insert\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Nope"}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: No table named Nope.","error":"syntax error","syntax":"{\"op\":\"insert\",\"table\":\"Nope\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","uuid":5,"row":{}}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Type mismatch for member 'uuid'.","error":"syntax error","syntax":"{\"op\":\"insert\",\"row\":{},\"table\":\"Pet\",\"uuid\":5}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","uuid-name":"0a","row":{}}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Type mismatch for member 'uuid-name'.","error":"syntax error","syntax":"{\"op\":\"insert\",\"row\":{},\"table\":\"Pet\",\"uuid-name\":\"0a\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"delete","table":"Nope"}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'where' member is missing.","error":"syntax error","syntax":"{\"op\":\"delete\",\"table\":\"Nope\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","row":{"zz":1},"extra":1}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Member 'extra' is present but not allowed here.","error":"syntax error","syntax":"{\"extra\":1,\"op\":\"insert\",\"row\":{\"zz\":1},\"table\":\"Pet\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"abort","extra":1,"more":2}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Member 'extra' and 1 other member are present but not allowed here.","error":"syntax error","syntax":"{\"extra\":1,\"more\":2,\"op\":\"abort\"}"}]"#
            ]],
        ),
        (
            r#"{"op":"wait","table":"Nope","where":[],"rows":[]}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'until' member is missing.","error":"syntax error","syntax":"{\"op\":\"wait\",\"rows\":[],\"table\":\"Nope\",\"where\":[]}"}]"#
            ]],
        ),
        (
            r#"{"op":"commit"}"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'durable' member is missing.","error":"syntax error","syntax":"{\"op\":\"commit\"}"}]"#
            ]],
        ),
    ] {
        check(&mut zoo, operation, &expected);
    }
}

#[test]
fn insert_refuses() {
    let mut zoo = Fixture::zoo();
    for (operation, expected) in [
        (
            r#"{"op":"insert","table":"Pet","uuid":"x","row":{}}"#,
            expect![[r#"[{"details":"bad uuid","error":"syntax error","syntax":"\"x\""}]"#]],
        ),
        (
            r#"{"op":"insert","table":"Pet","row":{"zz":1}}"#,
            expect![[
                r#"[{"details":"No column zz in table Pet.","error":"unknown column","syntax":"{\"zz\":1}"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","row":{"kind":5}}"#,
            expect![[r#"[{"details":"expected string","error":"syntax error","syntax":"5"}]"#]],
        ),
        (
            r#"{"op":"insert","table":"Strict","row":{}}"#,
            expect![[
                r#"[{"details":"0 is less than minimum allowed value 1","error":"constraint violation"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","uuid-name":"p","row":{}},{"op":"insert","table":"Pet","uuid-name":"p","row":{}}"#,
            expect![[
                r#"[{"uuid":["uuid","<4>"]},{"details":"This \"uuid-name\" appeared on an earlier \"insert\" operation.","error":"duplicate uuid-name","syntax":"\"p\""}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Keeper","uuid":"<900>","row":{}},{"op":"insert","table":"Keeper","uuid":"<900>","row":{}}"#,
            expect![[
                r#"[{"uuid":["uuid","<900>"]},{"details":"This UUID would duplicate a UUID already present within the \"Keeper\" table or deleted from this table within the same transaction.","error":"duplicate uuid","syntax":"\"<900>\""}]"#
            ]],
        ),
    ] {
        check(&mut zoo, operation, &expected);
    }
}

#[test]
fn the_last_of_repeated_members_counts() {
    let mut zoo = Fixture::zoo();
    let operations = r#"{"op":"insert","table":"Keeper","row":{"name":5,"name":"ann","age":1,"age":2}},
        {"op":"select","table":"Keeper","where":[],"columns":["name","age"]}"#;
    check(
        &mut zoo,
        operations,
        &expect![[r#"[{"uuid":["uuid","<1>"]},{"rows":[{"name":"ann","age":2}]}]"#]],
    );
}

#[test]
fn a_deleted_uuid_is_refused_until_the_commit() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","uuid":"<900>","row":{"name":"a"}}"#,
        &expect![[r#"[{"uuid":["uuid","<900>"]}]"#]],
    );
    check(
        &mut zoo,
        r#"{"op":"delete","table":"Keeper","where":[]},{"op":"insert","table":"Keeper","uuid":"<900>","row":{}}"#,
        &expect![[
            r#"[{"count":1},{"details":"This UUID would duplicate a UUID already present within the \"Keeper\" table or deleted from this table within the same transaction.","error":"duplicate uuid","syntax":"\"<900>\""}]"#
        ]],
    );
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","uuid":"<901>","row":{"name":"b"}},
           {"op":"delete","table":"Keeper","where":[["name","==","b"]]},
           {"op":"insert","table":"Keeper","uuid":"<901>","row":{"name":"c"}},
           {"op":"delete","table":"Keeper","where":[["_uuid","==",["uuid","<900>"]]]}"#,
        &expect![[
            r#"[{"uuid":["uuid","<901>"]},{"count":1},{"uuid":["uuid","<901>"]},{"count":1}]"#
        ]],
    );
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","uuid":"<900>","row":{"name":"d"}}"#,
        &expect![[r#"[{"uuid":["uuid","<900>"]}]"#]],
    );
    check(
        &mut zoo,
        r#"{"op":"select","table":"Keeper","where":[],"columns":["name","_uuid"],"sort":["name"]}"#,
        &expect![[
            r#"[{"rows":[{"name":"c","_uuid":["uuid","<901>"]},{"name":"d","_uuid":["uuid","<900>"]}]}]"#
        ]],
    );
}

#[test]
fn names_denote_rows_before_and_after_their_insert() {
    let mut zoo = Fixture::zoo();
    let operations = r#"{"op":"insert","table":"Keeper","row":{"name":"ann","pets":["set",[["named-uuid","p"],["named-uuid","q"]]]}},
        {"op":"insert","table":"Pet","uuid-name":"p","row":{"kind":"owl"}},
        {"op":"insert","table":"Pet","uuid":"<900>","uuid-name":"q","row":{"kind":"cat"}},
        {"op":"select","table":"Pet","where":[["_uuid","==",["named-uuid","q"]]],"columns":["kind"]}"#;
    check(
        &mut zoo,
        operations,
        &expect![[
            r#"[{"uuid":["uuid","<1>"]},{"uuid":["uuid","<2>"]},{"uuid":["uuid","<900>"]},{"rows":[{"kind":"cat"}]}]"#
        ]],
    );
}

#[test]
fn long_results_are_the_same_in_slices() {
    let mut zoo = Fixture::zoo();
    let names: Vec<_> = (0..1500).map(|number| number * 7919 % 1500).collect();
    let rows = names.iter().map(|name| {
        let age = name % 90;
        format!(r#"{{"op":"insert","table":"Keeper","row":{{"name":"{name}","age":{age}}}}}"#)
    });
    zoo.run(&rows.collect::<Vec<_>>().join(","));
    let select = |rest: &str| format!(r#"{{"op":"select","table":"Keeper",{rest}}}"#);
    // The fixture compares each with the result that is written at once.
    for rest in [
        r#""where":[],"columns":["name","age"]"#,
        r#""where":[["age",">",30],["age","<",80]],"columns":["name"],"sort":["age","name"]"#,
        r#""where":[],"columns":["age"],"sort":["age"]"#,
        r#""where":[],"columns":["age"]"#,
        r#""where":[],"columns":[]"#,
    ] {
        let result = zoo.run(&select(rest));
        assert!(result.starts_with(r#"[{"rows":[{"#), "{result}");
    }
    zoo.run(
        &[r#""where":[]"#, r#""where":[],"columns":["age"]"#]
            .map(select)
            .join(","),
    );
}

#[test]
fn select_projects_sorts_and_deduplicates() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"c","age":1,"tags":["set",["x","y"]]}},
           {"op":"insert","table":"Keeper","row":{"name":"a","age":1}},
           {"op":"insert","table":"Keeper","row":{"name":"b"}}"#,
    );
    for (rest, expected) in [
        (
            r#""columns":["age"],"sort":["age"]"#,
            expect![[r#"[{"rows":[{"age":["set",[]]},{"age":1}]}]"#]],
        ),
        (
            r#""columns":["name","age"],"sort":["age","name"]"#,
            expect![[
                r#"[{"rows":[{"name":"b","age":["set",[]]},{"name":"a","age":1},{"name":"c","age":1}]}]"#
            ]],
        ),
        (
            r#""columns":["tags","name"],"sort":["tags","name"]"#,
            expect![[
                r#"[{"rows":[{"tags":["set",[]],"name":"a"},{"tags":["set",[]],"name":"b"},{"tags":["set",["x","y"]],"name":"c"}]}]"#
            ]],
        ),
        (r#""columns":[]"#, expect![[r#"[{"rows":[{}]}]"#]]),
        (
            r#""columns":["zz"]"#,
            expect![[
                r#"[{"details":"zz is not a valid column name","error":"syntax error","syntax":"[\"zz\"]"}]"#
            ]],
        ),
        (
            r#""columns":["age","age"]"#,
            expect![[
                r#"[{"details":"array of distinct column names expected","error":"syntax error","syntax":"[\"age\",\"age\"]"}]"#
            ]],
        ),
        (
            r#""columns":["age",5]"#,
            expect![[
                r#"[{"details":"array of distinct column names expected","error":"syntax error","syntax":"[\"age\",5]"}]"#
            ]],
        ),
        (
            r#""sort":["zz"]"#,
            expect![[
                r#"[{"details":"zz is not a valid column name","error":"syntax error","syntax":"[\"zz\"]"}]"#
            ]],
        ),
    ] {
        let operation = format!(r#"{{"op":"select","table":"Keeper","where":[],{rest}}}"#);
        check(&mut zoo, &operation, &expected);
    }
    check(
        &mut zoo,
        r#"{"op":"select","table":"Keeper","where":[false],"columns":[]}"#,
        &expect![[r#"[{"rows":[]}]"#]],
    );
}

#[test]
fn update_writes_only_the_given_columns() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","age":1,"tags":"x","badge":7}}"#,
    );
    check(
        &mut zoo,
        r#"{"op":"update","table":"Keeper","where":[["name","==","ann"]],"row":{"age":["set",[]],"tags":["set",["x","y"]]}}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    expect![[r#"
        Keeper <1> age=["set",[]] tags="y"
    "#]]
    .assert_eq(&zoo.changes());
    // Writing the current value changes nothing: no delta, the same `_version`.
    check(
        &mut zoo,
        r#"{"op":"update","table":"Keeper","where":[],"row":{"tags":["set",["y","x"]]}}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    expect!["none"].assert_eq(&zoo.changes());
    for (row, expected) in [
        (
            r#"{"badge":7}"#,
            expect![[
                r#"[{"details":"Cannot update immutable column badge in table Keeper.","error":"constraint violation","syntax":"{\"op\":\"update\",\"row\":{\"badge\":7},\"table\":\"Keeper\",\"where\":[]}"}]"#
            ]],
        ),
        (
            r#"{"_uuid":["uuid","<1>"]}"#,
            expect![[
                r#"[{"details":"Cannot update immutable column _uuid in table Keeper.","error":"constraint violation","syntax":"{\"op\":\"update\",\"row\":{\"_uuid\":[\"uuid\",\"<1>\"]},\"table\":\"Keeper\",\"where\":[]}"}]"#
            ]],
        ),
        (
            r#"{"zz":7}"#,
            expect![[
                r#"[{"details":"No column zz in table Keeper.","error":"unknown column","syntax":"{\"zz\":7}"}]"#
            ]],
        ),
        ("{}", expect![[r#"[{"count":1}]"#]]),
    ] {
        let operation = format!(r#"{{"op":"update","table":"Keeper","where":[],"row":{row}}}"#);
        check(&mut zoo, &operation, &expected);
    }
    check(
        &mut zoo,
        r#"{"op":"select","table":"Keeper","where":[]}"#,
        &expect![[
            r#"[{"rows":[{"_uuid":["uuid","<1>"],"_version":["uuid","<3>"],"age":["set",[]],"badge":7,"busy":false,"cfg":["map",[]],"friends":["set",[]],"name":"ann","pets":["set",[]],"tags":["set",["x","y"]]}]}]"#
        ]],
    );
}

#[test]
fn delete_counts_matching_rows() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"a"}},{"op":"insert","table":"Keeper","row":{"name":"b"}}"#,
    );
    check(
        &mut zoo,
        r#"{"op":"delete","table":"Keeper","where":[["name","==","a"]]},{"op":"delete","table":"Keeper","where":[["name","==","a"]]},
           {"op":"select","table":"Keeper","where":[],"columns":["name"]}"#,
        &expect![[r#"[{"count":1},{"count":0},{"rows":[{"name":"b"}]}]"#]],
    );
}

#[test]
fn waits_block_time_out_or_pass() {
    let mut zoo = Fixture::zoo();
    zoo.run(r#"{"op":"insert","table":"Keeper","row":{"name":"ann","age":1}},{"op":"insert","table":"Keeper","row":{"name":"bob","age":1}}"#);
    for (rest, expected) in [
        (
            r#""until":"==","columns":["age"],"rows":[{"age":1}]"#,
            expect!["[{}]"],
        ),
        (
            r#""until":"!=","columns":["age"],"rows":[{"age":1}]"#,
            expect!["blocked until None"],
        ),
        (
            r#""until":"==","columns":["age"],"rows":[{"age":1},{"age":2}],"timeout":700"#,
            expect!["blocked until Some(700)"],
        ),
        (
            r#""until":"==","columns":["age"],"rows":[],"timeout":0"#,
            expect![[r#"[{"details":"\"where\" clause test failed","error":"timed out"}]"#]],
        ),
        (
            r#""until":"==","columns":["age"],"rows":[{}],"timeout":0"#,
            expect![[r#"[{"details":"\"where\" clause test failed","error":"timed out"}]"#]],
        ),
        (
            r#""until":"==","columns":["name","age"],"rows":[{"age":1,"name":"bob"},{"age":1,"name":"ann","tags":"x"}],"timeout":0"#,
            expect!["[{}]"],
        ),
        (
            r#""until":"==","columns":[],"rows":[{}],"timeout":0"#,
            expect!["[{}]"],
        ),
        (
            r#""until":"!=","columns":[],"rows":[],"timeout":0"#,
            expect!["[{}]"],
        ),
        (
            r#""until":"<","columns":[],"rows":[]"#,
            expect![[
                r#"[{"details":"\"until\" must be \"==\" or \"!=\"","error":"syntax error","syntax":"\"<\""}]"#
            ]],
        ),
        (
            r#""until":"==","columns":[],"rows":[5]"#,
            expect![[
                r#"[{"details":"row must be JSON object","error":"syntax error","syntax":"5"}]"#
            ]],
        ),
        (
            r#""until":"==","columns":[],"rows":[],"timeout":-1"#,
            expect![[
                r#"[{"details":"timeout must be nonnegative","error":"syntax error","syntax":"-1"}]"#
            ]],
        ),
        (
            r#""until":"==","columns":[],"rows":[],"timeout":1.5"#,
            expect![[
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Type mismatch for member 'timeout'.","error":"syntax error","syntax":"{\"columns\":[],\"op\":\"wait\",\"rows\":[],\"table\":\"Keeper\",\"timeout\":1.5,\"until\":\"==\",\"where\":[]}"}]"#
            ]],
        ),
        (
            r#""until":"==","columns":["name"],"rows":[{"zz":5}]"#,
            expect![[
                r#"[{"details":"No column zz in table Keeper.","error":"unknown column","syntax":"{\"zz\":5}"}]"#
            ]],
        ),
    ] {
        let operation = format!(r#"{{"op":"wait","table":"Keeper","where":[],{rest}}}"#);
        check(&mut zoo, &operation, &expected);
    }
    zoo.elapsed_ms = 300;
    check(
        &mut zoo,
        r#"{"op":"wait","table":"Keeper","where":[],"until":"==","columns":[],"rows":[],"timeout":300}"#,
        &expect![[r#"[{"details":"\"wait\" timed out after 300 ms","error":"timed out"}]"#]],
    );
    // The deadline is the smallest of the time-outs seen; each wait tests only its own.
    check(
        &mut zoo,
        r#"{"op":"wait","table":"Keeper","where":[],"until":"!=","columns":[],"rows":[],"timeout":100},
           {"op":"wait","table":"Keeper","where":[],"until":"==","columns":[],"rows":[],"timeout":900}"#,
        &expect!["blocked until Some(100)"],
    );
    zoo.can_wait = false;
    check(
        &mut zoo,
        r#"{"op":"wait","table":"Keeper","where":[],"until":"==","columns":[],"rows":[]}"#,
        &expect![[r#"[{"details":"triggers not supported","error":"not supported"}]"#]],
    );
}

#[test]
fn a_blocked_transaction_changes_nothing() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann"}},
           {"op":"wait","table":"Keeper","where":[],"until":"==","columns":["name"],"rows":[{"name":"bob"}]}"#,
        &expect!["blocked until None"],
    );
    check(
        &mut zoo,
        r#"{"op":"select","table":"Keeper","where":[],"columns":["name"]}"#,
        &expect![[r#"[{"rows":[]}]"#]],
    );
}

#[test]
fn control_operations() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"comment","comment":"a"},{"op":"comment","comment":"b"},{"op":"commit","durable":true},
           {"op":"insert","table":"Keeper","row":{"name":"ann"}}"#,
        &expect![[r#"[{},{},{},{"uuid":["uuid","<1>"]}]"#]],
    );
    assert!(zoo.durable);
    assert_eq!(
        zoo.last
            .as_ref()
            .map(|delta| (&delta.comment[..], delta.durable)),
        Some(("a\nb", true))
    );
    check(
        &mut zoo,
        r#"{"op":"assert","lock":"L"}"#,
        &expect![[r#"[{"details":"Asserted lock L not held.","error":"not owner"}]"#]],
    );
    zoo.locks.push("L".into());
    check(
        &mut zoo,
        r#"{"op":"assert","lock":"L"},{"op":"abort"}"#,
        &expect![[r#"[{},{"details":"aborted by request","error":"aborted"}]"#]],
    );
    check(
        &mut zoo,
        r#"{"op":"commit","durable":false}"#,
        &expect!["[{}]"],
    );
    assert!(!zoo.durable);
}

#[test]
fn read_only_refuses_operations_that_could_write() {
    let mut zoo = Fixture::zoo();
    zoo.read_only = true;
    for (operation, expected) in [
        (
            r#"{"op":"select","table":"Pet","where":[]}"#,
            expect![[r#"[{"rows":[]}]"#]],
        ),
        (
            r#"{"op":"insert","table":"Pet","row":{}}"#,
            expect![[
                r#"[{"details":"insert operation not allowed when database server is in read only mode","error":"not allowed"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Pet","row":{"zz":1}}"#,
            expect![[
                r#"[{"details":"No column zz in table Pet.","error":"unknown column","syntax":"{\"zz\":1}"}]"#
            ]],
        ),
        (
            r#"{"op":"update","table":"Pet","where":[],"row":{}}"#,
            expect![[
                r#"[{"details":"update operation not allowed when database server is in read only mode","error":"not allowed"}]"#
            ]],
        ),
        (
            r#"{"op":"mutate","table":"Pet","where":[],"mutations":[]}"#,
            expect![[
                r#"[{"details":"mutate operation not allowed when database server is in read only mode","error":"not allowed"}]"#
            ]],
        ),
        (
            r#"{"op":"delete","table":"Pet","where":[]}"#,
            expect![[
                r#"[{"details":"delete operation not allowed when database server is in read only mode","error":"not allowed"}]"#
            ]],
        ),
        (
            r#"{"op":"commit","durable":true}"#,
            expect![[
                r#"[{"details":"commit operation not allowed when database server is in read only mode","error":"not allowed"}]"#
            ]],
        ),
        (r#"{"op":"comment","comment":"x"}"#, expect!["[{}]"]),
    ] {
        check(&mut zoo, operation, &expected);
    }
}
