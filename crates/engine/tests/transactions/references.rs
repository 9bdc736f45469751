//! Strong references, garbage, weak references.

use expect_test::{Expect, expect};

use crate::fixture::Fixture;

fn check(zoo: &mut Fixture, operations: &str, result: &Expect, changes: &Expect) {
    result.assert_eq(&zoo.run(operations));
    changes.assert_eq(&zoo.changes());
}

/// Keeper <1> with pet <2>.
fn keeper_with_pet() -> Fixture {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","pets":["named-uuid","p"]}},
           {"op":"insert","table":"Pet","uuid-name":"p","row":{"kind":"owl"}}"#,
    );
    zoo
}

#[test]
fn an_unreferenced_row_outside_the_root_set_is_collected() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}}"#,
        &expect![[r#"[{"uuid":["uuid","<1>"]}]"#]],
        &expect!["none"],
    );
    assert!(zoo.contents().is_empty());
}

#[test]
fn a_row_is_deleted_with_the_last_reference_to_it() {
    let mut zoo = keeper_with_pet();
    check(
        &mut zoo,
        r#"{"op":"update","table":"Keeper","where":[],"row":{"pets":["set",[]]}}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Keeper <1> pets=["uuid","<2>"]
            Pet <2> delete
        "#]],
    );
}

#[test]
fn garbage_is_collected_recursively_but_cycles_stay() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","pets":["named-uuid","a"]}},
           {"op":"insert","table":"Pet","uuid-name":"a","row":{"kind":"a","toys":["named-uuid","b"]}},
           {"op":"insert","table":"Pet","uuid-name":"b","row":{"kind":"b","toys":["set",[["named-uuid","b"],["named-uuid","c"]]]}},
           {"op":"insert","table":"Pet","uuid-name":"c","row":{"kind":"c"}},
           {"op":"insert","table":"Pet","uuid-name":"x","row":{"kind":"x","toys":["named-uuid","y"]}},
           {"op":"insert","table":"Pet","uuid-name":"y","row":{"kind":"y","toys":["named-uuid","x"]}}"#,
    );
    check(
        &mut zoo,
        r#"{"op":"delete","table":"Keeper","where":[]}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Keeper <1> delete
            Pet <2> delete
            Pet <4> delete
            Pet <6> delete
        "#]],
    );
    check(
        &mut zoo,
        r#"{"op":"select","table":"Pet","where":[],"columns":["kind"],"sort":["kind"]}"#,
        &expect![[r#"[{"rows":[{"kind":"x"},{"kind":"y"}]}]"#]],
        &expect!["none"],
    );
    check(
        &mut zoo,
        r#"{"op":"update","table":"Pet","where":[["kind","==","x"]],"row":{"toys":["set",[]]}}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Pet <9> delete
            Pet <10> delete
        "#]],
    );
}

#[test]
fn a_self_reference_keeps_nothing_alive() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Pet","uuid-name":"p","row":{"toys":["named-uuid","p"]}}"#,
        &expect![[r#"[{"uuid":["uuid","<1>"]}]"#]],
        &expect!["none"],
    );
}

#[test]
fn strong_references_must_find_their_row() {
    let mut zoo = keeper_with_pet();
    for (operations, expected) in [
        (
            r#"{"op":"insert","table":"Keeper","row":{"name":"b","pets":["uuid","<900>"]}}"#,
            expect![[
                r#"[{"uuid":["uuid","<5>"]},{"details":"Table Keeper column pets row <5> references nonexistent row <900> in table Pet.","error":"referential integrity violation"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Keeper","row":{"name":"b","pets":["named-uuid","nobody"]}}"#,
            expect![[
                r#"[{"uuid":["uuid","<7>"]},{"details":"Table Keeper column pets row <7> references nonexistent row <8> in table Pet.","error":"referential integrity violation"}]"#
            ]],
        ),
        (
            r#"{"op":"delete","table":"Pet","where":[]}"#,
            expect![[
                r#"[{"count":1},{"details":"cannot delete Pet row <2> because of 1 remaining reference(s)","error":"referential integrity violation"}]"#
            ]],
        ),
        (
            r#"{"op":"update","table":"Keeper","where":[],"row":{"pets":["set",[]]}},{"op":"delete","table":"Pet","where":[]}"#,
            expect![[r#"[{"count":1},{"count":1}]"#]],
        ),
    ] {
        expected.assert_eq(&zoo.run(operations));
    }
}

#[test]
fn a_reference_to_a_row_deleted_here_fails_by_when_the_row_was_inserted() {
    let mut zoo = keeper_with_pet();
    // The row existed before: the reference passes the check of additions and fails that of
    // deletions.
    expect![[r#"[{"uuid":["uuid","<5>"]},{"count":1},{"details":"cannot delete Pet row <2> because of 2 remaining reference(s)","error":"referential integrity violation"}]"#]].assert_eq(&zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"b","pets":["uuid","<2>"]}},{"op":"delete","table":"Pet","where":[]}"#,
    ));
    // The row was inserted by this transaction.
    expect![[r#"[{"uuid":["uuid","<7>"]},{"uuid":["uuid","<9>"]},{"count":1},{"details":"Table Keeper column pets row <9> references nonexistent row <7> in table Pet.","error":"referential integrity violation"}]"#]].assert_eq(&zoo.run(
        r#"{"op":"insert","table":"Pet","uuid-name":"q","row":{"kind":"cat"}},
           {"op":"insert","table":"Keeper","row":{"name":"b","pets":["named-uuid","q"]}},
           {"op":"delete","table":"Pet","where":[["kind","==","cat"]]}"#,
    ));
}

#[test]
fn references_of_rows_about_to_be_collected_still_count() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","pets":["named-uuid","a"]}},
           {"op":"insert","table":"Pet","uuid-name":"a","row":{"kind":"a","toys":["named-uuid","b"]}},
           {"op":"insert","table":"Pet","uuid-name":"b","row":{"kind":"b"}}"#,
    );
    expect![[r#"[{"count":1},{"count":1},{"details":"cannot delete Pet row <4> because of 1 remaining reference(s)","error":"referential integrity violation"}]"#]].assert_eq(&zoo.run(
        r#"{"op":"update","table":"Keeper","where":[],"row":{"pets":["set",[]]}},{"op":"delete","table":"Pet","where":[["kind","==","b"]]}"#,
    ));
}

#[test]
fn weak_references_are_removed_with_their_row_in_any_order() {
    for order in [
        r#"{"op":"update","table":"Keeper","where":[["name","==","ann"]],"row":{"age":9}},{"op":"delete","table":"Keeper","where":[["name","==","bob"]]}"#,
        r#"{"op":"delete","table":"Keeper","where":[["name","==","bob"]]},{"op":"update","table":"Keeper","where":[["name","==","ann"]],"row":{"age":9}}"#,
    ] {
        let mut zoo = Fixture::zoo();
        zoo.run(
            r#"{"op":"insert","table":"Keeper","uuid-name":"a","row":{"name":"ann","friends":["set",[["named-uuid","a"],["named-uuid","b"]]]}},
               {"op":"insert","table":"Keeper","uuid-name":"b","row":{"name":"bob"}},
               {"op":"insert","table":"Cage","row":{"warden":["map",[["x",["named-uuid","a"]],["y",["named-uuid","b"]],["z",["named-uuid","b"]]]]}}"#,
        );
        assert_eq!(zoo.database.weak_reference_count(), 5);
        zoo.run(order);
        let changes = zoo.changes();
        let mut lines: Vec<&str> = changes.lines().collect();
        lines.sort_unstable();
        expect![[r#"
            Cage <5> warden=["map",[["y",["uuid","<2>"]],["z",["uuid","<2>"]]]]
            Keeper <1> age=9 friends=["uuid","<2>"]
            Keeper <2> delete"#]]
        .assert_eq(&lines.join("\n"));
        assert_eq!(zoo.database.weak_reference_count(), 2);
    }
}

#[test]
fn a_dangling_weak_reference_is_dropped_at_once() {
    let mut zoo = Fixture::zoo();
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","friends":["set",[["uuid","<900>"],["named-uuid","nobody"]]]}},
           {"op":"insert","table":"Cage","row":{"inmate":["named-uuid","p"]}},
           {"op":"insert","table":"Pet","uuid-name":"p","row":{}}"#,
        &expect![[r#"[{"uuid":["uuid","<1>"]},{"uuid":["uuid","<4>"]},{"uuid":["uuid","<5>"]}]"#]],
        &expect![[r#"
            Cage <4> insert
            Keeper <1> insert
        "#]],
    );
    // The rest equals the original: nothing has changed.
    check(
        &mut zoo,
        r#"{"op":"update","table":"Keeper","where":[],"row":{"friends":["uuid","<900>"]}}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect!["none"],
    );
    check(
        &mut zoo,
        r#"{"op":"select","table":"Keeper","where":[],"columns":["friends","_version"]},{"op":"select","table":"Cage","where":[],"columns":["inmate"]}"#,
        &expect![[
            r#"[{"rows":[{"friends":["set",[]],"_version":["uuid","<3>"]}]},{"rows":[{"inmate":["set",[]]}]}]"#
        ]],
        &expect!["none"],
    );
}

#[test]
fn a_weak_reference_that_must_stay_blocks_the_deletion() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","uuid-name":"k","row":{"name":"ann"}},
           {"op":"insert","table":"Keeper","uuid-name":"l","row":{"name":"bob"}},
           {"op":"insert","table":"Strict","row":{"must":1,"guard":["set",[["named-uuid","k"],["named-uuid","l"]]]}}"#,
    );
    for (operations, expected) in [
        (
            r#"{"op":"delete","table":"Keeper","where":[]}"#,
            expect![[
                r#"[{"count":2},{"details":"Deletion of 2 weak reference(s) to deleted (or never-existing) rows from column \"guard\" in \"Strict\" row <5> caused this column to become empty, but constraints on this column disallow an empty column.","error":"constraint violation"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Strict","row":{"must":1}}"#,
            expect![[
                r#"[{"uuid":["uuid","<7>"]},{"details":"Weak reference column \"guard\" in \"Strict\" row <7> (inserted within this transaction) contained all-zeros UUID (probably as the default value for this column) but deleting this value caused a constraint volation because this column is not allowed to be empty.","error":"constraint violation"}]"#
            ]],
        ),
        (
            r#"{"op":"insert","table":"Strict","row":{"must":1,"guard":["set",[["uuid","<900>"],["uuid","<901>"]]]}}"#,
            expect![[
                r#"[{"uuid":["uuid","<9>"]},{"details":"Deletion of 2 weak reference(s) to deleted (or never-existing) rows from column \"guard\" in \"Strict\" row <9> (inserted within this transaction) caused this column to become empty, but constraints on this column disallow an empty column.","error":"constraint violation"}]"#
            ]],
        ),
        (
            r#"{"op":"delete","table":"Keeper","where":[["name","==","ann"]]}"#,
            expect![[r#"[{"count":1}]"#]],
        ),
    ] {
        expected.assert_eq(&zoo.run(operations));
    }
    expect![[r#"
        Keeper <1> delete
        Strict <5> guard=["uuid","<1>"]
    "#]]
    .assert_eq(&zoo.changes());
}

#[test]
fn a_pair_dropped_for_its_weak_half_releases_its_strong_half() {
    let schema = r#"{"name":"Pairs","tables":{
        "Holder":{"isRoot":true,"columns":{
            "pairs":{"type":{"key":{"type":"uuid","refTable":"Part"},"value":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":"unlimited"}}}},
        "Root":{"isRoot":true,"columns":{
            "seen":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"},"min":0,"max":"unlimited"}}}},
        "Part":{"columns":{
            "next":{"type":{"key":{"type":"uuid","refTable":"Part"},"min":0,"max":"unlimited"}}}}}}"#;
    let mut pairs = Fixture::new(schema);
    pairs.run(
        r#"{"op":"insert","table":"Root","uuid-name":"r","row":{}},
           {"op":"insert","table":"Root","row":{"seen":["set",[["named-uuid","p"],["named-uuid","q"]]]}},
           {"op":"insert","table":"Part","uuid-name":"p","row":{"next":["named-uuid","q"]}},
           {"op":"insert","table":"Part","uuid-name":"q","row":{}},
           {"op":"insert","table":"Holder","row":{"pairs":["map",[[["named-uuid","p"],["named-uuid","r"]]]]}}"#,
    );
    check(
        &mut pairs,
        r#"{"op":"delete","table":"Root","where":[["seen","==",["set",[]]]]}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Holder <9> pairs=["map",[[["uuid","<4>"],["uuid","<1>"]]]]
            Part <4> delete
            Part <5> delete
            Root <1> delete
            Root <3> seen=["set",[["uuid","<4>"],["uuid","<5>"]]]
        "#]],
    );
}

#[test]
fn changes_of_large_sets_are_counted_as_references() {
    let mut zoo = Fixture::zoo();
    let mut operations = String::from(r#"{"op":"insert","table":"Keeper","row":{"name":"ann"}}"#);
    for pet in 0..2000 {
        operations.push_str(&format!(
            r#",{{"op":"insert","table":"Pet","uuid":"<{}>","row":{{"kind":"{pet}"}}}},
               {{"op":"mutate","table":"Keeper","where":[],"mutations":[["pets","insert",["uuid","<{}>"]]]}}"#,
            10_000 + pet,
            10_000 + pet,
        ));
    }
    zoo.run(&operations);
    check(
        &mut zoo,
        r#"{"op":"mutate","table":"Keeper","where":[],"mutations":[["pets","delete",["set",[["uuid","<10007>"],["uuid","<11999>"]]]]]}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Keeper <1> pets=["set",[["uuid","<10007>"],["uuid","<11999>"]]]
            Pet <11999> delete
            Pet <10007> delete
        "#]],
    );
}

#[test]
fn a_reference_to_another_table_may_hold_its_own_row() {
    let mut zoo = Fixture::zoo();
    assert!(zoo.database.own_references().is_empty());
    let insert = r#"{"op":"insert","table":"Keeper","uuid-name":"k","row":{"name":"ann","pets":["named-uuid","k"]}}"#;
    check(
        &mut zoo,
        insert,
        &expect![[r#"[{"uuid":["uuid","<1>"]}]"#]],
        &expect![[r#"
            Keeper <1> insert
        "#]],
    );
    let own = zoo.database.own_references();
    assert_eq!(own.len(), 1, "{own:?}");
    let schema = zoo.database.schema().clone();
    assert_eq!(schema.table(own[0].table).name.as_str(), "Keeper");
    assert_eq!(schema.table(own[0].target).name.as_str(), "Pet");
    // In another row the reference dangles. If a row has that UUID, the reference does not keep it
    // alive.
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Keeper","row":{"name":"bob","pets":["uuid","<1>"]}}"#,
        &expect![[
            r#"[{"uuid":["uuid","<3>"]},{"details":"Table Keeper column pets row <3> references nonexistent row <1> in table Pet.","error":"referential integrity violation"}]"#
        ]],
        &expect!["none"],
    );
    check(
        &mut zoo,
        r#"{"op":"insert","table":"Pet","uuid":"<1>","row":{"kind":"owl"}}"#,
        &expect![[r#"[{"uuid":["uuid","<1>"]}]"#]],
        &expect!["none"],
    );
    check(
        &mut zoo,
        r#"{"op":"update","table":"Keeper","where":[],"row":{"pets":["set",[]]}}"#,
        &expect![[r#"[{"count":1}]"#]],
        &expect![[r#"
            Keeper <1> pets=["uuid","<1>"]
        "#]],
    );
    assert!(zoo.database.own_references().is_empty());
}
