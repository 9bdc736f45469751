//! `where`: matching all clauses, and matching any clause.

use corvid_data::{HashSeed, Row, TableId};
use corvid_engine::Condition;
use expect_test::{Expect, expect};

use crate::fixture::{Fixture, expand};

fn zoo() -> Fixture {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Keeper","row":{"name":"ann","age":30,"tags":["set",["a","b"]],"cfg":["map",[["k","v"],["l","w"]]]}},
           {"op":"insert","table":"Keeper","row":{"name":"bob","age":40,"tags":"b"}},
           {"op":"insert","table":"Keeper","row":{"name":"eve","cfg":["map",[["k","x"]]]}}"#,
    );
    zoo
}

/// Names of the keepers that match.
fn select(zoo: &mut Fixture, condition: &str) -> String {
    zoo.run(&format!(
        r#"{{"op":"select","table":"Keeper","where":{condition},"columns":["name"],"sort":["name"]}}"#
    ))
}

#[test]
fn functions() {
    let mut zoo = zoo();
    let cases: &[(&str, Expect)] = &[
        (
            r#"[["name","==","ann"]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["name","!=","ann"]]"#,
            expect![[r#"[{"rows":[{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["name","includes","ann"]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["name","excludes","ann"]]"#,
            expect![[r#"[{"rows":[{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["age","<",40]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["age","<=",40]]"#,
            expect![[r#"[{"rows":[{"name":"ann"},{"name":"bob"}]}]"#]],
        ),
        (
            r#"[["age",">=",30],["age",">",30]]"#,
            expect![[r#"[{"rows":[{"name":"bob"}]}]"#]],
        ),
        (
            r#"[["age","==",["set",[]]]]"#,
            expect![[r#"[{"rows":[{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["age","!=",30]]"#,
            expect![[r#"[{"rows":[{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["tags","includes","b"]]"#,
            expect![[r#"[{"rows":[{"name":"ann"},{"name":"bob"}]}]"#]],
        ),
        (
            r#"[["tags","includes",["set",["a","b"]]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["tags","includes",["set",[]]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"},{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["tags","excludes",["set",["a","z"]]]]"#,
            expect![[r#"[{"rows":[{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["tags","==",["set",["b","a"]]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["cfg","includes",["map",[["k","v"]]]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["cfg","excludes",["map",[["k","v"]]]]]"#,
            expect![[r#"[{"rows":[{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        (
            r#"[["_uuid","==",["uuid","<1>"]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["_uuid","includes",["uuid","<1>"]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["_version","==",["uuid","<2>"]]]"#,
            expect![[r#"[{"rows":[{"name":"ann"}]}]"#]],
        ),
        (
            r#"[["_uuid","!=",["uuid","<1>"]],["age",">",0]]"#,
            expect![[r#"[{"rows":[{"name":"bob"}]}]"#]],
        ),
        (
            r#"[["_uuid","==",["uuid","<1>"]],["name","==","bob"]]"#,
            expect![[r#"[{"rows":[]}]"#]],
        ),
        (
            r#"[["name","==","ann"],["name","==","bob"]]"#,
            expect![[r#"[{"rows":[]}]"#]],
        ),
        (
            "[true]",
            expect![[r#"[{"rows":[{"name":"ann"},{"name":"bob"},{"name":"eve"}]}]"#]],
        ),
        ("[true,false]", expect![[r#"[{"rows":[]}]"#]]),
    ];
    for (condition, expected) in cases {
        expected.assert_eq(&select(&mut zoo, condition));
    }
}

#[test]
fn faults() {
    let mut zoo = zoo();
    let cases: &[(&str, Expect)] = &[
        (
            "[5]",
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"5"}]"#
            ]],
        ),
        (
            "[null]",
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"null"}]"#
            ]],
        ),
        (
            r#"[["name","=="]]"#,
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"[\"name\",\"==\"]"}]"#
            ]],
        ),
        (
            r#"[["name","==","a","b"]]"#,
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"[\"name\",\"==\",\"a\",\"b\"]"}]"#
            ]],
        ),
        (
            r#"[[5,"==",7]]"#,
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"[5,\"==\",7]"}]"#
            ]],
        ),
        (
            r#"[["name",true,7]]"#,
            expect![[
                r#"[{"details":"Parse error in condition.","error":"syntax error","syntax":"[\"name\",true,7]"}]"#
            ]],
        ),
        (
            r#"[["zz","==",7]]"#,
            expect![[
                r#"[{"details":"No column zz in table Keeper.","error":"unknown column","syntax":"[\"zz\",\"==\",7]"}]"#
            ]],
        ),
        (
            r#"[["name","===",7]]"#,
            expect![[r#"[{"details":"No function named ===.","error":"unknown function"}]"#]],
        ),
        (
            r#"[["name","true",7]]"#,
            expect![[r#"[{"details":"No function named true.","error":"unknown function"}]"#]],
        ),
        (
            r#"[["name","<","x"]]"#,
            expect![[
                r#"[{"details":"Type mismatch: \"<\" operator may not be applied to column name of type string.","error":"syntax error","syntax":"[\"name\",\"<\",\"x\"]"}]"#
            ]],
        ),
        (
            r#"[["tags",">=","x"]]"#,
            expect![[
                r#"[{"details":"Type mismatch: \">=\" operator may not be applied to column tags of type set of strings.","error":"syntax error","syntax":"[\"tags\",\">=\",\"x\"]"}]"#
            ]],
        ),
        (
            r#"[["age","<",["set",[]]]]"#,
            expect![[
                r#"[{"details":"set must have exactly one member but 0 are present","error":"syntax error","syntax":"[\"set\",[]]"}]"#
            ]],
        ),
        (
            r#"[["age","==","x"]]"#,
            expect![[
                r#"[{"details":"expected integer","error":"syntax error","syntax":"\"x\""}]"#
            ]],
        ),
        (
            r#"[["age","==",["set",[1,2]]]]"#,
            expect![[
                r#"[{"details":"set must have 0 to 1 members but 2 are present","error":"syntax error","syntax":"[\"set\",[1,2]]"}]"#
            ]],
        ),
        (
            r#"[["cfg","includes","k"]]"#,
            expect![[
                r#"[{"details":"expected [\"map\", <array>]","error":"syntax error","syntax":"\"k\""}]"#
            ]],
        ),
    ];
    for (condition, expected) in cases {
        expected.assert_eq(&select(&mut zoo, condition));
    }
    // Arguments are checked against the column's constraints.
    expect![[r#"[{"details":"100 is not in the valid range -5 to 10 (inclusive)","error":"constraint violation"}]"#]].assert_eq(
        &zoo.run(r#"{"op":"select","table":"Limits","where":[["small","==",100]]}"#),
    );
}

fn table(zoo: &Fixture, name: &str) -> TableId {
    zoo.database.schema().table_id(name).expect("a table")
}

/// Names of the keepers that match any clause: evaluated one by one, and as found by the database.
fn any(zoo: &Fixture, condition: &str) -> Vec<String> {
    let id = table(zoo, "Keeper");
    let schema = zoo.database.schema().table(id);
    let raw = expand(condition);
    let condition = Condition::parse(schema, raw.as_bytes(), None, HashSeed::FIXED).expect("valid");
    let column = schema.column_id("name").expect("a column");
    let name = |row: &Row| {
        let datum = &row.columns[usize::from(column.0)];
        datum.as_string().expect("a name").to_string()
    };
    let rows = zoo.database.rows(id);
    let mut judged: Vec<String> = rows
        .filter(|row| condition.matches_any(schema, row))
        .map(|row| name(row))
        .collect();
    let mut found = Vec::new();
    zoo.database
        .for_each_matching_any(id, &condition, &mut |row| found.push(name(row)));
    judged.sort();
    found.sort();
    assert_eq!(judged, found, "{raw}");
    found
}

#[test]
fn any_clause_suffices() {
    let zoo = zoo();
    let all = ["ann", "bob", "eve"];
    assert_eq!(any(&zoo, "[]"), all);
    assert_eq!(any(&zoo, "[false,false,true]"), all);
    assert!(any(&zoo, "[false]").is_empty());
    assert_eq!(any(&zoo, r#"[["name","==","bob"]]"#), ["bob"]);
    assert_eq!(
        any(
            &zoo,
            r#"[["name","==","bob"],["_uuid","==",["uuid","<1>"]]]"#
        ),
        ["ann", "bob"]
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["name","==","ann"],["_uuid","==",["uuid","<1>"]]]"#
        ),
        ["ann"]
    );
    assert_eq!(
        any(&zoo, r#"[["name","==","bob"],["age",">",35]]"#),
        ["bob"]
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["tags","includes","a"],["tags","includes","z"],["age","==",["set",[]]]]"#
        ),
        ["ann", "eve"]
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["cfg","includes",["map",[["k","x"]]]],["name","==","zz"]]"#
        ),
        ["eve"]
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["name","==","zz"],["tags","includes",["set",[]]]]"#
        ),
        all
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["name","==","zz"],["tags","excludes",["set",[]]]]"#
        ),
        all
    );
    assert_eq!(
        any(
            &zoo,
            r#"[["_version","==",["uuid","<2>"]],["name","includes","bob"]]"#
        ),
        ["ann", "bob"]
    );
}

#[test]
fn conditions_find_rows_by_an_index_of_their_own() {
    let mut zoo = zoo();
    for first in (0..300).step_by(50) {
        let inserts: Vec<String> = (first..first + 50)
            .map(|n| {
                let age = n % 7;
                format!(r#"{{"op":"insert","table":"Keeper","row":{{"name":"k{n}","age":{age}}}}}"#)
            })
            .collect();
        zoo.run(&inserts.join(","));
    }
    let wanted = r#"[["age","==",3],["age","==",["set",[]]],["name","==","bob"]]"#;
    let id = table(&zoo, "Keeper");
    let visited = |zoo: &mut Fixture| {
        let raw = expand(wanted);
        let schema = zoo.database.schema().table(id);
        let condition =
            Condition::parse(schema, raw.as_bytes(), None, HashSeed::FIXED).expect("valid");
        zoo.database.want_index(id, &condition);
        zoo.database.rows_visited(id, &condition, usize::MAX)
    };
    assert_eq!(visited(&mut zoo), 303, "a walk");
    let walked = any(&zoo, wanted);
    // One page of two is indexed. The table changes meanwhile, the change is undone, and the table
    // changes again.
    zoo.database.index(1);
    assert!(zoo.database.is_indexing());
    zoo.run(r#"{"op":"update","table":"Keeper","where":[["age","==",5]],"row":{"age":3}}"#);
    zoo.run(r#"{"op":"delete","table":"Keeper","where":[["name","==","k3"]]}"#);
    zoo.database.index(1);
    assert!(!zoo.database.is_indexing());
    let found = any(&zoo, wanted);
    assert_eq!(found.len(), walked.len() - 1 + 43);
    assert_eq!(visited(&mut zoo), found.len());
    zoo.run(r#"{"op":"update","table":"Keeper","where":[["age","==",3]],"row":{"age":4}}"#);
    zoo.run(r#"{"op":"insert","table":"Keeper","row":{"name":"new","age":3}}"#);
    any(&zoo, wanted);
    assert_eq!(any(&zoo, r#"[["age","==",3]]"#), ["new"]);
}

#[test]
fn monitor_conditions_refuse_named_uuids() {
    let zoo = zoo();
    let schema = zoo.database.schema().table(table(&zoo, "Keeper"));
    let raw = br#"[["_uuid","==",["named-uuid","x"]]]"#;
    let error = Condition::parse(schema, raw, None, HashSeed::FIXED).expect_err("named");
    expect![[r#"syntax "["named-uuid","x"]": syntax error: expected ["uuid", <string>]"#]]
        .assert_eq(&error.to_string());
}

#[test]
fn an_index_of_two_columns_finds_the_rows_that_a_walk_finds() {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Cage","row":{"row":1,"col":1,"note":"x"}},
           {"op":"insert","table":"Cage","row":{"row":1,"col":2,"note":"y"}}"#,
    );
    for (condition, expected) in [
        (
            r#"[["row","==",1],["col","==",2]]"#,
            expect![[r#"[{"rows":[{"note":"y"}]}]"#]],
        ),
        (
            r#"[["col","==",2],["row","==",1],["note","!=","y"]]"#,
            expect![[r#"[{"rows":[]}]"#]],
        ),
        (
            r#"[["col","==",2]]"#,
            expect![[r#"[{"rows":[{"note":"y"}]}]"#]],
        ),
    ] {
        let operation =
            format!(r#"{{"op":"select","table":"Cage","where":{condition},"columns":["note"]}}"#);
        expected.assert_eq(&zoo.run(&operation));
    }
}

#[test]
fn lookups_see_earlier_operations() {
    let mut zoo = zoo();
    expect![[r#"[{"count":1},{"rows":[]},{"count":1},{"rows":[{"age":40}]},{"count":1},{"rows":[]},{"details":"aborted by request","error":"aborted"}]"#]].assert_eq(&zoo.run(
        r#"{"op":"update","table":"Keeper","where":[["name","==","ann"]],"row":{"name":"zoe"}},
           {"op":"select","table":"Keeper","where":[["name","==","ann"]],"columns":["name"]},
           {"op":"update","table":"Keeper","where":[["name","==","bob"]],"row":{"name":"ann"}},
           {"op":"select","table":"Keeper","where":[["name","==","ann"]],"columns":["age"]},
           {"op":"delete","table":"Keeper","where":[["name","==","zoe"]]},
           {"op":"select","table":"Keeper","where":[["name","==","zoe"]],"columns":["age"]},
           {"op":"abort"}"#,
    ));
    expect![[r#"[{"rows":[{"name":"ann"}]}]"#]]
        .assert_eq(&select(&mut zoo, r#"[["name","==","ann"]]"#));
}

#[test]
fn operations_that_walk_for_a_column_again_and_again_find_rows_by_an_index() {
    let mut zoo = zoo();
    let inserts: Vec<String> = (0..600)
        .map(|n| {
            let note = if n % 2 == 0 { "even".to_owned() } else { format!("n{n}") };
            format!(r#"{{"op":"insert","table":"Limits","row":{{"some":"{note}","big":{n},"small":3}}}}"#)
        })
        .collect();
    zoo.run(&inserts.join(","));
    let of_note = |note: &str| {
        format!(
            r#"{{"op":"select","table":"Limits","where":[["small","<",5],["some","==","{note}"]],"columns":["big"]}}"#
        )
    };
    let [rare, common] = ["n77", "even"].map(of_note);
    let walked = [zoo.run(&rare), zoo.run(&common)];
    assert!(walked[0].contains(r#"[{"big":77}]"#), "{}", walked[0]);
    // Fewer steps than a walk needs.
    let is_quick = |zoo: &mut Fixture| zoo.fits_into(&rare, 400);
    assert!(!is_quick(&mut zoo));
    for _ in 0..10 {
        zoo.run(&rare);
    }
    while zoo.database.is_indexing() {
        zoo.database.index(256);
    }
    assert!(is_quick(&mut zoo));
    // The index and the walk find the same rows in the same order. A value that many rows have is
    // searched by a walk.
    assert_eq!([zoo.run(&rare), zoo.run(&common)], walked);
    zoo.run(r#"{"op":"update","table":"Limits","where":[["big","==",400]],"row":{"some":"n77"}}"#);
    zoo.run(r#"{"op":"update","table":"Limits","where":[["big","==",2]],"row":{"some":"n77"}}"#);
    let found = zoo.run(&rare);
    assert!(
        found.contains(r#"[{"big":2},{"big":77},{"big":400}]"#),
        "{found}"
    );
}
