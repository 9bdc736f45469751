//! `monitor` and `update` (docs/spec/protocol.md 4.6).

use corvid_monitor::Version;

use crate::fixture::{Fixture, ZOO};

#[test]
fn rows_come_change_and_go() {
    let mut fixture = Fixture::new(ZOO);
    let result = fixture.monitor(
        Version::V1,
        r#""v",{"Keeper":[{"columns":["age","name"]}]}"#,
    );
    assert_eq!(result, "{}");
    let kim = fixture.insert("Keeper", r#"{"name":"kim"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update "v",{"Keeper":{"#1":{"new":{"age":["set",[]],"name":"kim"}}}}"##]
    );
    fixture.update("Keeper", &kim, r#"{"age":30}"#);
    assert_eq!(
        fixture.notifications(),
        [
            r##"update "v",{"Keeper":{"#1":{"old":{"age":["set",[]]},"new":{"age":30,"name":"kim"}}}}"##
        ]
    );
    fixture.delete("Keeper", &kim);
    assert_eq!(
        fixture.notifications(),
        [r##"update "v",{"Keeper":{"#1":{"old":{"age":30,"name":"kim"}}}}"##]
    );
}

#[test]
fn initial_rows_hold_defaults_and_all_columns_but_uuid() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.monitor(Version::V1, r#"null,{"Pet":{}}"#),
        r##"{"Pet":{"#1":{"new":{"kind":"owl","size":0,"_version":["uuid","v"]}}}}"##
    );
    assert_eq!(
        fixture.monitor(Version::V1, r#"1,{"Pet":{"columns":["_uuid"]}}"#),
        r##"{"Pet":{"#1":{"new":{"_uuid":["uuid","#1"]}}}}"##
    );
}

#[test]
fn tables_without_rows_are_left_out() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let result = fixture.monitor(Version::V1, r#"1,{"Keeper":{},"Pet":{"columns":["kind"]}}"#);
    assert_eq!(result, r##"{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##);
}

#[test]
fn request_without_columns_reports_only_rows_that_come_and_go() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V1, r#"1,{"Pet":{"columns":[]}}"#);
    let owl = fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#1":{"new":{}}}}"##]
    );
    fixture.update("Pet", &owl, r#"{"size":2}"#);
    assert!(fixture.pending().is_empty());
    assert!(fixture.notifications().is_empty());
    fixture.delete("Pet", &owl);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#1":{"old":{}}}}"##]
    );
}

#[test]
fn table_with_an_empty_array_is_never_reported() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(fixture.monitor(Version::V1, r#"1,{"Pet":[]}"#), "{}");
    fixture.insert("Pet", r#"{"kind":"ape"}"#);
    assert!(fixture.pending().is_empty());
}

#[test]
fn each_request_selects_events_for_its_own_columns() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl","size":1}"#);
    let result = fixture.monitor(
        Version::V1,
        r#"1,{"Pet":[{"columns":["kind"],"select":{"modify":false,"delete":false}},
                     {"columns":["size"],"select":{"initial":false,"insert":false}}]}"#,
    );
    assert_eq!(result, r##"{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##);
    let ape = fixture.insert("Pet", r#"{"kind":"ape","size":2}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#2":{"new":{"kind":"ape"}}}}"##]
    );
    fixture.update("Pet", &ape, r#"{"kind":"gnu","size":3}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#2":{"old":{"size":2},"new":{"size":3}}}}"##]
    );
    fixture.update("Pet", &ape, r#"{"kind":"yak"}"#);
    assert!(
        fixture.notifications().is_empty(),
        "a column that does not select modify is no event"
    );
    fixture.delete("Pet", &ape);
    assert_eq!(
        fixture.notifications(),
        [r##"update 1,{"Pet":{"#2":{"old":{"size":3}}}}"##]
    );
}

#[test]
fn deselected_events_are_not_reported() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let none = r#"{"initial":false,"insert":false,"delete":false,"modify":false}"#;
    let result = fixture.monitor(Version::V1, &format!(r#"1,{{"Pet":{{"select":{none}}}}}"#));
    assert_eq!(result, "{}");
    let ape = fixture.insert("Pet", r#"{"kind":"ape"}"#);
    fixture.update("Pet", &ape, r#"{"kind":"gnu"}"#);
    fixture.delete("Pet", &ape);
    assert!(fixture.pending().is_empty());
}

#[test]
fn a_condition_is_not_part_of_version_1_but_its_id_can_change() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V1, r#""v1",{"Pet":{"columns":["kind"]}}"#);
    let ignored = r#"["v1","v2",{"Pet":[{"where":[["nonsense","==",1]]}]}]"#;
    assert_eq!(fixture.change(ignored), Ok(vec![]));
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update "v2",{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##]
    );
}
