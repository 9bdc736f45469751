//! Role-based access control.

use expect_test::{Expect, expect};

use crate::fixture::Fixture;

const SCHEMA: &str = r#"{"name":"Guarded","tables":{
    "RBAC_Role":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "permissions":{"type":{"key":"string","value":{"type":"uuid","refTable":"RBAC_Permission","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "RBAC_Permission":{"isRoot":true,"columns":{
        "table":{"type":"string"},
        "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "insert_delete":{"type":"boolean"},
        "update":{"type":{"key":"string","min":0,"max":"unlimited"}}}},
    "Chassis":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "other":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "nb":{"type":"integer"}}},
    "Open":{"isRoot":true,"columns":{"x":{"type":"integer"}}},
    "Closed":{"isRoot":true,"columns":{"x":{"type":"integer"}}}}}"#;

fn guarded(client_id: Option<&str>) -> Fixture {
    let mut guarded = Fixture::new(SCHEMA);
    guarded.run(
        r#"{"op":"insert","table":"RBAC_Permission","uuid-name":"c","row":{"authorization":["set",["name","other:owner"]],"insert_delete":true,"update":["set",["nb","other"]]}},
           {"op":"insert","table":"RBAC_Permission","uuid-name":"o","row":{"authorization":"","update":"x"}},
           {"op":"insert","table":"RBAC_Role","row":{"name":"host","permissions":["map",[["Chassis",["named-uuid","c"]],["Open",["named-uuid","o"]]]]}},
           {"op":"insert","table":"Chassis","row":{"name":"hv1"}},
           {"op":"insert","table":"Chassis","row":{"name":"hv2"}},
           {"op":"insert","table":"Open","row":{}}"#,
    );
    guarded.role = Some("host".into());
    guarded.client_id = client_id.map(Into::into);
    guarded
}

fn check(client_id: Option<&str>, operations: &str, expected: &Expect) {
    expected.assert_eq(&guarded(client_id).run(operations));
}

#[test]
fn a_client_writes_its_own_rows_in_listed_columns() {
    let one = Some("hv1");
    check(
        one,
        r#"{"op":"insert","table":"Chassis","row":{"name":"hv1"}}"#,
        &expect![[r#"[{"uuid":["uuid","<13>"]}]"#]],
    );
    check(
        one,
        r#"{"op":"insert","table":"Chassis","row":{"name":"x","other":["map",[["owner","hv1"]]]}}"#,
        &expect![[r#"[{"uuid":["uuid","<13>"]}]"#]],
    );
    check(
        one,
        r#"{"op":"insert","table":"Chassis","row":{"name":"hv2"}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row insertion into table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"update","table":"Chassis","where":[["name","==","hv1"]],"row":{"nb":1}}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    check(
        one,
        r#"{"op":"update","table":"Chassis","where":[["name","==","hv1"]],"row":{"name":"x"}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"update","table":"Chassis","where":[],"row":{"nb":1}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"mutate","table":"Chassis","where":[["name","==","hv1"]],"mutations":[["nb","+=",1]]}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    check(
        one,
        r#"{"op":"mutate","table":"Chassis","where":[["name","==","hv2"]],"mutations":[["nb","+=",1]]}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit mutate operation on table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"mutate","table":"Closed","where":[],"mutations":[]}"#,
        &expect![[r#"[{"count":0}]"#]],
    );
    check(
        one,
        r#"{"op":"delete","table":"Chassis","where":[["name","==","hv1"]]}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    check(
        one,
        r#"{"op":"delete","table":"Chassis","where":[]}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row deletion from table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"delete","table":"Chassis","where":[false]}"#,
        &expect![[r#"[{"count":0}]"#]],
    );
}

#[test]
fn everyone_means_every_client_with_a_name() {
    check(
        Some("zz"),
        r#"{"op":"update","table":"Open","where":[],"row":{"x":1}}"#,
        &expect![[r#"[{"count":1}]"#]],
    );
    check(
        Some("zz"),
        r#"{"op":"delete","table":"Open","where":[]}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"zz\" role \"host\" prohibit row deletion from table \"Open\".","error":"permission error"}]"#
        ]],
    );
    check(
        None,
        r#"{"op":"update","table":"Open","where":[],"row":{"x":1}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"(null)\" role \"host\" prohibit modification of table \"Open\".","error":"permission error"}]"#
        ]],
    );
}

#[test]
fn a_role_without_an_entry_may_not_write() {
    check(
        Some("hv1"),
        r#"{"op":"insert","table":"Closed","row":{}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row insertion into table \"Closed\".","error":"permission error"}]"#
        ]],
    );
    check(
        Some("hv1"),
        r#"{"op":"select","table":"Closed","where":[]},{"op":"comment","comment":"x"}"#,
        &expect![[r#"[{"rows":[]},{}]"#]],
    );
    let mut stranger = guarded(Some("hv1"));
    stranger.role = Some("other".into());
    expect![[r#"[{"details":"RBAC rules for client \"hv1\" role \"other\" prohibit row insertion into table \"Open\".","error":"permission error"}]"#]].assert_eq(&stranger.run(r#"{"op":"insert","table":"Open","row":{}}"#));
    stranger.role = Some(String::new());
    expect![[r#"[{"uuid":["uuid","<15>"]}]"#]]
        .assert_eq(&stranger.run(r#"{"op":"insert","table":"Closed","row":{}}"#));
}

/// Rules whose tables or columns have types that rules may not have: they permit no writes.
#[test]
fn rules_of_another_shape_deny() {
    const ODD: &str = r#"{"name":"Odd","tables":{
        "RBAC_Role":{"isRoot":true,"columns":{
            "name":{"type":"string"},
            "permissions":{"type":{"key":"string","value":{"type":"uuid","refTable":"P"},"min":0,"max":"unlimited"}}}},
        "P":{"isRoot":true,"columns":{
            "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},
            "insert_delete":{"type":"boolean"},
            "update":{"type":{"key":"string","min":0,"max":3}}}},
        "T":{"isRoot":true,"columns":{
            "n":{"type":"integer"},
            "few":{"type":{"key":"string","value":"string","min":0,"max":2}},
            "many":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
            "names":{"type":{"key":"string","min":0,"max":2}}}}}}"#;
    let refused = |action: &str| {
        format!(
            r#"[{{"details":"RBAC rules for client \"me\" role \"host\" prohibit {action} table \"T\".","error":"permission error"}}]"#
        )
    };
    let outcome = |authorization: &str, operation: &str| {
        let mut odd = Fixture::new(ODD);
        odd.run(&format!(
            r#"{{"op":"insert","table":"P","uuid-name":"p","row":{{"authorization":"{authorization}","insert_delete":true,"update":"n"}}}},
               {{"op":"insert","table":"RBAC_Role","row":{{"name":"host","permissions":["map",[["T",["named-uuid","p"]]]]}}}},
               {{"op":"insert","table":"T","row":{{"names":"me","few":["map",[["k","me"]]],"many":["map",[["k","me"]]]}}}}"#
        ));
        odd.role = Some("host".into());
        odd.client_id = Some("me".into());
        odd.run(operation)
    };
    let delete = r#"{"op":"delete","table":"T","where":[]}"#;
    assert_eq!(outcome("many:k", delete), r#"[{"count":1}]"#);
    // A key of a bounded map, another key, a map as a whole, a key of a set, a set, a number, and a
    // column that does not exist.
    for authorization in ["few:k", "many:x", "many", "names:me", "names", "n", "zz"] {
        assert_eq!(outcome(authorization, delete), refused("row deletion from"));
    }
    // Columns are listed in a set that has bounds.
    let update = r#"{"op":"update","table":"T","where":[],"row":{"n":1}}"#;
    assert_eq!(outcome("", update), refused("modification of"));
    let nothing = r#"{"op":"mutate","table":"T","where":[false],"mutations":[["n","+=",1]]}"#;
    assert_eq!(outcome("", nothing), refused("mutate operation on"));
}

#[test]
fn rules_and_rows_are_read_as_the_transaction_has_changed_them() {
    // A client may not write a row that it gave to another client.
    check(
        Some("hv1"),
        r#"{"op":"insert","table":"Chassis","row":{"name":"x","other":["map",[["owner","hv1"]]]}},
           {"op":"update","table":"Chassis","where":[["name","==","x"]],"row":{"other":["map",[["owner","hv2"]]]}},
           {"op":"update","table":"Chassis","where":[["name","==","x"]],"row":{"nb":2}}"#,
        &expect![[
            r#"[{"uuid":["uuid","<13>"]},{"count":1},{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    // A column with a key is not a column of `update`.
    let mut listed = guarded(None);
    listed.role = None;
    listed.run(r#"{"op":"update","table":"RBAC_Permission","where":[["update","includes","nb"]],"row":{"update":["set",["nb","other:x"]]}}"#);
    listed.role = Some("host".into());
    listed.client_id = Some("hv1".into());
    expect![[r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit mutate operation on table \"Chassis\".","error":"permission error"}]"#]]
        .assert_eq(&listed.run(r#"{"op":"mutate","table":"Chassis","where":[["name","==","hv1"]],"mutations":[["other","insert",["map",[["x","y"]]]]]}"#));
    // The role's entry no longer refers to a row.
    listed.role = None;
    listed.run(r#"{"op":"delete","table":"RBAC_Permission","where":[]}"#);
    listed.role = Some("host".into());
    expect![[r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row deletion from table \"Open\".","error":"permission error"}]"#]]
        .assert_eq(&listed.run(r#"{"op":"delete","table":"Open","where":[false]}"#));
}

#[test]
fn databases_without_roles_have_no_rules() {
    let mut zoo = Fixture::zoo();
    zoo.role = Some("host".into());
    expect![[r#"[{"uuid":["uuid","<1>"]}]"#]]
        .assert_eq(&zoo.run(r#"{"op":"insert","table":"Cage","row":{}}"#));
}

#[test]
fn what_depends_on_no_row_is_checked_where_no_row_matches() {
    // Rules of another role restrict as well.
    let one = Some("hv1");
    check(
        one,
        r#"{"op":"update","table":"Chassis","where":[["name","==","none"]],"row":{"name":"x"}}"#,
        &expect![[
            r#"[{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#
        ]],
    );
    check(
        one,
        r#"{"op":"mutate","table":"Open","where":[["x","==",7]],"mutations":[["x","+=",1]]},{"op":"delete","table":"Open","where":[["x","==",7]]}"#,
        &expect![[
            r#"[{"count":0},{"details":"RBAC rules for client \"hv1\" role \"host\" prohibit row deletion from table \"Open\".","error":"permission error"}]"#
        ]],
    );
}

#[test]
fn each_of_several_roles_must_allow_an_operation() {
    let mut both = guarded(Some("hv1"));
    let update =
        r#"{"op":"update","table":"Chassis","where":[["name","==","hv1"]],"row":{"nb":1}}"#;
    both.also = Some(("host".into(), "hv1".into()));
    expect![[r#"[{"count":1}]"#]].assert_eq(&both.run(update));
    both.also = Some(("host".into(), "hv2".into()));
    expect![[r#"[{"details":"RBAC rules for client \"hv2\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#]]
        .assert_eq(&both.run(update));
    both.role = None;
    expect![[r#"[{"details":"RBAC rules for client \"hv2\" role \"host\" prohibit modification of table \"Chassis\".","error":"permission error"}]"#]]
        .assert_eq(&both.run(update));
}

/// Executes a transaction with its guards, as a server that checks no role does. `change` happens
/// between the creation of the guards and the execution.
fn run_guarded(operations: &str, change: &str) -> String {
    let mut fixture = guarded(Some("hv1"));
    let identity = corvid_engine::Identity {
        role: "host",
        client_id: Some("hv1"),
    };
    let params = format!("[\"db\",{operations}]");
    let guarded = fixture.database.guarded(params.as_bytes(), &[identity]);
    let guarded = match guarded {
        Ok(guarded) => guarded.expect("a guard"),
        Err(error) => return error.to_string(),
    };
    fixture.role = None;
    fixture.run(change);
    let params = String::from_utf8(guarded.params).expect("UTF-8");
    let operations = params
        .strip_prefix("[\"db\",")
        .and_then(|it| it.strip_suffix("]"));
    let result = fixture.run(operations.expect("operations"));
    let places: Vec<usize> = guarded.guards.iter().map(|guard| guard.at).collect();
    format!("{places:?} {result}")
}

#[test]
fn a_guarded_transaction_fails_where_the_role_would_not_allow_it() {
    let nothing = r#"{"op":"comment"}"#;
    let delete = r#"{"op":"delete","table":"Chassis","where":[["nb","==",0],["name","==","hv1"]]}"#;
    let all = r#"{"op":"delete","table":"Chassis","where":[["nb","==",7]]}"#;
    let foreign =
        r#"{"op":"update","table":"Chassis","where":[["name","==","hv2"]],"row":{"nb":7}}"#;
    let own = foreign.replace("hv2", "hv1");
    let owned = r#"{"op":"update","table":"Chassis","where":[["name","==","hv2"]],"row":{"nb":7,"other":["map",[["owner","hv1"]]]}}"#;
    let rules = r#"{"op":"update","table":"RBAC_Permission","where":[["authorization","includes","name"]],"row":{"update":"nb"}}"#;
    let role = r#"{"op":"update","table":"RBAC_Role","where":[],"row":{"permissions":["map",[]]}}"#;
    let insert = r#"{"op":"insert","table":"Chassis","row":{"name":"hv1"}}"#;
    let twice = r#"{"op":"delete","table":"Open","where":[],"table":"Chassis"}"#;
    let mut told = String::new();
    for (operations, change) in [
        (delete, nothing),
        (all, nothing),
        (all, foreign),
        (all, &*own),
        (all, owned),
        (insert, nothing),
        (insert, rules),
        (insert, role),
        (twice, nothing),
    ] {
        told += &run_guarded(operations, change);
        told.push('\n');
    }
    expect![[r#"
        [0, 1, 2] [{},{},{},{"count":1}]
        [0, 1, 2] [{},{},{},{"count":0}]
        [0, 1, 2] [{},{},{"details":"\"where\" clause test failed","error":"timed out"},null]
        [0, 1, 2] [{},{},{},{"count":1}]
        [0, 1, 2] [{},{},{},{"count":1}]
        [0, 1] [{},{},{"uuid":["uuid","<13>"]}]
        [0, 1] [{},{"details":"\"where\" clause test failed","error":"timed out"},null]
        [0, 1] [{"details":"\"where\" clause test failed","error":"timed out"},null,null]
        not supported: access control at a relay: an operation names a member twice
    "#]]
    .assert_eq(&told);
}
