//! `monitor_cond` and `update2` (docs/spec/protocol.md 4.7), without conditions. Also sessions,
//! groups and cancelling.

use corvid_monitor::{SessionId, Version};

use crate::fixture::{Fixture, SESSION, ZOO};

const KEEPER: &str = r#""m",{"Keeper":[{"columns":["name","age","tags","badge","cfg"]}]}"#;

#[test]
fn new_rows_leave_defaults_out() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Keeper", r#"{"name":"ann","tags":["set",["b","a"]]}"#);
    fixture.insert("Keeper", "{}");
    let result = fixture.monitor(Version::V2, KEEPER);
    assert!(
        result.contains(r##""#1":{"initial":{"name":"ann","tags":["set",["a","b"]]}}"##),
        "{result}"
    );
    assert!(result.contains(r##""#2":{"initial":{}}"##), "{result}");
    fixture.insert("Keeper", r#"{"age":0}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 "m",{"Keeper":{"#3":{"insert":{"age":0}}}}"##]
    );
}

#[test]
fn modifications_are_differences() {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert("Keeper", r#"{"name":"ann"}"#);
    fixture.monitor(Version::V2, KEEPER);
    let cases = [
        (r#"{"age":5}"#, r#"{"age":5}"#),
        (r#"{"age":["set",[]]}"#, r#"{"age":["set",[]]}"#),
        (r#"{"name":""}"#, r#"{"name":""}"#),
        (
            r#"{"tags":["set",["a","b"]]}"#,
            r#"{"tags":["set",["a","b"]]}"#,
        ),
        (
            r#"{"tags":["set",["b","c"]]}"#,
            r#"{"tags":["set",["a","c"]]}"#,
        ),
        (r#"{"tags":"b"}"#, r#"{"tags":"c"}"#),
        (
            r#"{"badge":["map",[["x",1]]]}"#,
            r#"{"badge":["map",[["x",1]]]}"#,
        ),
        (
            r#"{"badge":["map",[["y",1]]]}"#,
            r#"{"badge":["map",[["y",1]]]}"#,
        ),
        (r#"{"badge":["map",[]]}"#, r#"{"badge":["map",[]]}"#),
        (
            r#"{"cfg":["map",[["k","1"],["l","2"]]]}"#,
            r#"{"cfg":["map",[["k","1"],["l","2"]]]}"#,
        ),
        (
            r#"{"cfg":["map",[["k","9"],["m","3"]]]}"#,
            r#"{"cfg":["map",[["k","9"],["l","2"],["m","3"]]]}"#,
        ),
    ];
    for (row, difference) in cases {
        fixture.update("Keeper", &ann, row);
        let expected = format!(r##"update2 "m",{{"Keeper":{{"#1":{{"modify":{difference}}}}}}}"##);
        assert_eq!(fixture.notifications(), [expected], "{row}");
    }
}

#[test]
fn merged_modifications_are_differences_too() {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert(
        "Keeper",
        r#"{"name":"ann","tags":["set",["a","b"]],"cfg":["map",[["k","1"]]]}"#,
    );
    fixture.monitor(Version::V2, KEEPER);
    fixture.update("Keeper", &ann, r#"{"tags":["set",["b","c"]],"age":1}"#);
    fixture.update(
        "Keeper",
        &ann,
        r#"{"tags":["set",["a","c"]],"age":["set",[]],"cfg":["map",[["k","2"]]]}"#,
    );
    assert_eq!(
        fixture.notifications(),
        [
            r##"update2 "m",{"Keeper":{"#1":{"modify":{"cfg":["map",[["k","2"]]],"tags":["set",["b","c"]]}}}}"##
        ]
    );
}

#[test]
fn a_deleted_row_is_null() {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert("Keeper", r#"{"name":"ann"}"#);
    fixture.monitor(Version::V2, KEEPER);
    fixture.delete("Keeper", &ann);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 "m",{"Keeper":{"#1":{"delete":null}}}"##]
    );
}

#[test]
fn standard_columns_are_reported_like_others() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["_version","_uuid"]}}"#),
        r##"{"Pet":{"#1":{"initial":{"_version":["uuid","v"],"_uuid":["uuid","#1"]}}}}"##
    );
    fixture.update("Pet", &owl, r#"{"size":7}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 1,{"Pet":{"#1":{"modify":{"_version":["uuid","v"]}}}}"##]
    );
}

#[test]
fn one_notification_holds_all_tables_of_a_commit() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(
        Version::V2,
        r#"[1],{"Pet":{"columns":["kind"]},"Keeper":{"columns":["name"]}}"#,
    );
    fixture.transact(
        r#"{"op":"insert","table":"Pet","row":{"kind":"owl"}},
           {"op":"insert","table":"Keeper","row":{"name":"ann"}},
           {"op":"insert","table":"Pet","row":{"kind":"ape"}}"#,
    );
    let sent = fixture.notifications();
    assert_eq!(sent.len(), 1);
    assert!(
        sent[0].starts_with(r#"update2 [1],{"Keeper":{"#),
        "{}",
        sent[0]
    );
    assert_eq!(sent[0].matches("insert").count(), 3);
}

#[test]
fn change_of_unmonitored_columns_wakes_no_session() {
    let mut fixture = Fixture::new(ZOO);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    fixture.update("Pet", &owl, r#"{"size":7}"#);
    fixture.insert("Keeper", "{}");
    assert!(fixture.pending().is_empty());
}

#[test]
fn sessions_with_the_same_subscription_share_one_body() {
    let mut fixture = Fixture::new(ZOO);
    let others = [SessionId(2), SessionId(3)];
    fixture.monitor(
        Version::V2,
        r#"1,{"Pet":[{"columns":["kind","size"]}],"Keeper":[]}"#,
    );
    for session in others {
        let same = r#"{"x":2},{"Keeper":[],"Pet":{"columns":["size","kind"],"where":[]}}"#;
        let version = if session == others[0] {
            Version::V2
        } else {
            Version::V3
        };
        let params = if version == Version::V3 {
            format!("{same},\"{}\"", corvid_data::Uuid::ZERO)
        } else {
            same.to_owned()
        };
        fixture.start(session, version, &params).expect("started");
    }
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(fixture.pending(), [1, 2, 3]);
    let frames = [SESSION, others[0], others[1]].map(|session| fixture.frames(session));
    assert!(frames[0][0].body.ptr_eq(&frames[1][0].body));
    assert!(frames[0][0].body.ptr_eq(&frames[2][0].body));
}

#[test]
fn canceled_monitor_gets_no_notification() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    fixture.monitor(Version::V2, r#"2,{"Pet":{"columns":["kind"]}}"#);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert!(fixture.monitors.cancel(SESSION, b"1"));
    assert!(!fixture.monitors.cancel(SESSION, b"1"));
    assert!(!fixture.monitors.cancel(SessionId(9), b"2"));
    assert_eq!(
        fixture.notifications(),
        [r##"update2 2,{"Pet":{"#1":{"insert":{"kind":"owl"}}}}"##]
    );
    assert_eq!(fixture.monitors.len(), 1);
}

#[test]
fn closed_session_leaves_no_monitors() {
    let mut fixture = Fixture::new(ZOO);
    let other = SessionId(2);
    fixture.monitor(Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#);
    fixture
        .start(other, Version::V2, r#"1,{"Pet":{"columns":["kind"]}}"#)
        .expect("started");
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.monitors.remove_session(SESSION);
    assert_eq!(fixture.pending(), [2]);
    fixture.monitors.remove_session(other);
    assert!(fixture.monitors.is_empty());
    fixture.insert("Pet", r#"{"kind":"ape"}"#);
    assert!(fixture.pending().is_empty());
}

#[test]
fn removing_all_names_every_monitor() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V1, r#"{"b":1,"a":2},{"Pet":{}}"#);
    fixture
        .start(SessionId(2), Version::V2, r#"null,{"Pet":{}}"#)
        .expect("started");
    fixture.insert("Pet", "{}");
    let removed = fixture.monitors.remove_all();
    let removed: Vec<(u64, &[u8])> = removed
        .iter()
        .map(|(session, id)| (session.0, &**id))
        .collect();
    assert_eq!(removed, [(1, &br#"{"a":2,"b":1}"#[..]), (2, b"null")]);
    assert!(fixture.monitors.is_empty());
    assert!(fixture.pending().is_empty());
    assert_eq!(
        fixture.monitor(Version::V2, r#"null,{"Pet":{"columns":[]}}"#),
        r##"{"Pet":{"#1":{"initial":{}}}}"##
    );
}
