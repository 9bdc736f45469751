//! Every error of monitor requests (docs/spec/protocol.md 4.5.1 to 4.5.3, 4.8, 4.9), with the
//! reference's texts. A refused request leaves no monitor.

use corvid_monitor::Version;

use crate::fixture::{Fixture, SESSION, ZOO};

fn refuse(version: Version, cases: &[(&str, &str)]) {
    let mut fixture = Fixture::new(ZOO);
    for (params, message) in cases {
        let error = fixture.start(SESSION, version, params).expect_err(params);
        assert_eq!(error, *message, "{params}");
        assert!(fixture.monitors.is_empty(), "{params}");
    }
}

#[test]
fn malformed_parameters() {
    refuse(
        Version::V1,
        &[
            ("", r#"syntax "["Zoo"]": syntax error: invalid parameters"#),
            (
                "1",
                r#"syntax "["Zoo",1]": syntax error: invalid parameters"#,
            ),
            (
                "1,[]",
                r#"syntax "[]": syntax error: monitor-requests must be object"#,
            ),
            (r#"1,{"Q":[{}]}"#, "syntax error: no table named Q"),
        ],
    );
    refuse(
        Version::V2,
        &[
            (
                "1",
                r#"syntax "["Zoo",1]": syntax error: invalid parameters"#,
            ),
            (
                "1,{},2",
                r#"syntax "["Zoo",1,{},2]": syntax error: invalid parameters"#,
            ),
        ],
    );
    refuse(
        Version::V3,
        &[
            (
                "1,{}",
                r#"syntax "["Zoo",1,{}]": syntax error: invalid parameters"#,
            ),
            (
                "1,{},5",
                r#"syntax "5": syntax error: last-txn-id must be string"#,
            ),
            (
                r#"1,{},"zz""#,
                r#"syntax ""zz"": syntax error: last-txn-id must be UUID format."#,
            ),
            (r#"1,{"Q":[]},5"#, "syntax error: no table named Q"),
        ],
    );
}

#[test]
fn version_1_ignores_further_parameters() {
    assert_eq!(Fixture::new(ZOO).monitor(Version::V1, "1,{},2,3"), "{}");
}

#[test]
fn malformed_requests() {
    refuse(
        Version::V1,
        &[
            (
                r#"1,{"Pet":5}"#,
                "syntax error: Parsing table Pet failed: Object expected.",
            ),
            (
                r#"1,{"Pet":[5]}"#,
                "syntax error: Parsing table Pet failed: Object expected.",
            ),
            (
                r#"1,{"Pet":{"columns":5}}"#,
                r#"syntax "{"columns":5}": syntax error: Parsing table Pet failed: Type mismatch for member 'columns'."#,
            ),
            (
                r#"1,{"Pet":{"columns":["kind",5]}}"#,
                r#"syntax "["kind",5]": syntax error: array of column names expected"#,
            ),
            (
                r#"1,{"Pet":{"columns":["zz",5]}}"#,
                r#"syntax "["zz",5]": syntax error: zz is not a valid column name"#,
            ),
            (
                r#"1,{"Pet":{"columns":["kind","kind"]}}"#,
                r#"syntax "["kind","kind"]": syntax error: column kind mentioned more than once"#,
            ),
            (
                r#"1,{"Pet":[{"columns":["kind"]},{"columns":["kind"]}]}"#,
                r#"syntax "["kind"]": syntax error: column kind mentioned more than once"#,
            ),
            (
                r#"1,{"Pet":[{"columns":["kind"]},{}]}"#,
                "syntax error: column kind mentioned more than once",
            ),
            (
                r#"1,{"Pet":{"where":[]}}"#,
                r#"syntax "{"where":[]}": syntax error: Parsing table Pet failed: Member 'where' is present but not allowed here."#,
            ),
            (
                r#"1,{"Pet":{"select":{"initial":1},"x":1}}"#,
                r#"syntax "{"select":{"initial":1},"x":1}": syntax error: Parsing table Pet failed: Member 'x' is present but not allowed here."#,
            ),
            (
                r#"1,{"Pet":{"select":{"q":true}}}"#,
                r#"syntax "{"q":true}": syntax error: Parsing table Pet select failed: Member 'q' is present but not allowed here."#,
            ),
            (
                r#"1,{"Pet":{"select":{"initial":1},"columns":["zz"]}}"#,
                r#"syntax "{"initial":1}": syntax error: Parsing table Pet select failed: Type mismatch for member 'initial'."#,
            ),
        ],
    );
}

#[test]
fn malformed_conditions() {
    refuse(
        Version::V2,
        &[
            (
                r#"1,{"Pet":{"where":true}}"#,
                r#"syntax "{"where":true}": syntax error: Parsing table Pet failed: Type mismatch for member 'where'."#,
            ),
            (
                r#"1,{"Pet":{"columns":["zz"],"where":[["zz","==",1]]}}"#,
                r#"syntax "["zz"]": syntax error: zz is not a valid column name"#,
            ),
            (
                r#"1,{"Pet":{"where":[["zz","==",1]]}}"#,
                r#"syntax "["zz","==",1]": unknown column: No column zz in table Pet."#,
            ),
            (
                r#"1,{"Pet":{"where":["x"]}}"#,
                r#"syntax ""x"": syntax error: Parse error in condition."#,
            ),
            (
                r#"1,{"Pet":{"where":[["size","true",1]]}}"#,
                "unknown function: No function named true.",
            ),
            (
                r#"1,{"Pet":{"where":[["size","<",["set",[]]]]}}"#,
                r#"syntax "["set",[]]": syntax error: set must have exactly one member but 0 are present"#,
            ),
            (
                r#"1,{"Pet":{"where":[["_uuid","==",["named-uuid","x"]]]}}"#,
                r#"syntax "["named-uuid","x"]": syntax error: expected ["uuid", <string>]"#,
            ),
        ],
    );
}

#[test]
fn ids_of_every_shape_and_version_are_unique_in_a_session() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V1, r#"{"a":1,"b":[2]},{}"#);
    let again = fixture.start(SESSION, Version::V2, r#"{"b":[2.0],"a":1},{"Q":1}"#);
    assert_eq!(
        again.expect_err("duplicate"),
        r#"syntax "{"a":1,"b":[2]}": syntax error: duplicate monitor ID"#
    );
    let other_session = corvid_monitor::SessionId(2);
    assert_eq!(
        fixture.start(other_session, Version::V2, r#"{"a":1,"b":[2]},{}"#),
        Ok("{}".to_owned())
    );
    let elsewhere = fixture.monitors.monitor(
        &fixture.database,
        other_session,
        Version::V2,
        br#"["Zoo","used elsewhere",{}]"#,
        &|id| id == br#""used elsewhere""#,
    );
    assert_eq!(
        elsewhere.expect_err("duplicate").details,
        "duplicate monitor ID"
    );
}

#[test]
fn malformed_condition_changes() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, r#""a",{"Pet":{"columns":["kind"]}}"#);
    fixture.monitor(Version::V2, r#""b",{}"#);
    let cases = [
        (
            r#"["a","b"]"#,
            r#"syntax "["a","b"]": syntax error: invalid parameters"#,
        ),
        (
            r#"["zz","b",5]"#,
            r#"syntax ""zz"": syntax error: unknown monitor session"#,
        ),
        (
            r#"["a","b",5]"#,
            r#"syntax ""b"": syntax error: duplicate monitor ID"#,
        ),
        (
            r#"["a","c",5]"#,
            "syntax error: monitor-cond-change-requests must be object",
        ),
        (r#"["a","c",{"Q":1}]"#, "syntax error: no table named Q"),
        (
            r#"["a","c",{"Keeper":1}]"#,
            "syntax error: no table named Keeper in monitor session",
        ),
        (
            r#"["a","c",{"Pet":1}]"#,
            "syntax error: table Pet no monitor-cond-change JSON array",
        ),
        (
            r#"["a","c",{"Pet":[1]}]"#,
            "syntax error: Parsing table Pet failed: Object expected.",
        ),
        (
            r#"["a","c",{"Pet":[{"columns":["kind"],"where":1}]}]"#,
            r#"syntax "{"columns":["kind"],"where":1}": syntax error: Parsing table Pet failed: Type mismatch for member 'where'."#,
        ),
        (
            r#"["a","c",{"Pet":[{"x":5,"where":[]}]}]"#,
            r#"syntax "{"where":[],"x":5}": syntax error: Parsing table Pet failed: Member 'x' is present but not allowed here."#,
        ),
        (
            r#"["a","c",{"Pet":[{"columns":["zz"],"where":["x"]}]}]"#,
            r#"syntax "{"columns":["zz"],"where":["x"]}": syntax error: changing columns is unsupported"#,
        ),
        (
            r#"["a","c",{"Pet":[{"where":["x"]}]}]"#,
            r#"syntax ""x"": syntax error: Parse error in condition."#,
        ),
        (
            r#"["a","c",{"Pet":[{"where":[["zz","==",1]]}]}]"#,
            r#"syntax "["zz","==",1]": unknown column: No column zz in table Pet."#,
        ),
    ];
    for (params, message) in cases {
        assert_eq!(
            fixture.change(params).expect_err(params),
            message,
            "{params}"
        );
    }
    assert_eq!(fixture.monitors.len(), 2);
}
