//! `monitor` and `update` (docs/spec/protocol.md 4.6).

use corvid_monitor::Version;

use crate::bed::{Bed, ZOO};

#[test]
fn rows_come_change_and_go() {
    let mut bed = Bed::new(ZOO);
    let result = bed.monitor(
        Version::V1,
        r#""v",{"Keeper":[{"columns":["age","name"]}]}"#,
    );
    assert_eq!(result, "{}");
    let kim = bed.insert("Keeper", r#"{"name":"kim"}"#);
    assert_eq!(
        bed.told(),
        [r##"update "v",{"Keeper":{"#1":{"new":{"age":["set",[]],"name":"kim"}}}}"##]
    );
    bed.update("Keeper", &kim, r#"{"age":30}"#);
    assert_eq!(
        bed.told(),
        [
            r##"update "v",{"Keeper":{"#1":{"old":{"age":["set",[]]},"new":{"age":30,"name":"kim"}}}}"##
        ]
    );
    bed.delete("Keeper", &kim);
    assert_eq!(
        bed.told(),
        [r##"update "v",{"Keeper":{"#1":{"old":{"age":30,"name":"kim"}}}}"##]
    );
}

#[test]
fn initial_rows_hold_defaults_and_all_columns_but_uuid() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        bed.monitor(Version::V1, r#"null,{"Pet":{}}"#),
        r##"{"Pet":{"#1":{"new":{"kind":"owl","size":0,"_version":["uuid","v"]}}}}"##
    );
    assert_eq!(
        bed.monitor(Version::V1, r#"1,{"Pet":{"columns":["_uuid"]}}"#),
        r##"{"Pet":{"#1":{"new":{"_uuid":["uuid","#1"]}}}}"##
    );
}

#[test]
fn tables_without_rows_are_left_out() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    let result = bed.monitor(Version::V1, r#"1,{"Keeper":{},"Pet":{"columns":["kind"]}}"#);
    assert_eq!(result, r##"{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##);
}

#[test]
fn without_columns_only_coming_and_going_is_told() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V1, r#"1,{"Pet":{"columns":[]}}"#);
    let owl = bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(bed.told(), [r##"update 1,{"Pet":{"#1":{"new":{}}}}"##]);
    bed.update("Pet", &owl, r#"{"size":2}"#);
    assert!(bed.pending().is_empty());
    assert!(bed.told().is_empty());
    bed.delete("Pet", &owl);
    assert_eq!(bed.told(), [r##"update 1,{"Pet":{"#1":{"old":{}}}}"##]);
}

#[test]
fn a_table_with_an_empty_array_is_never_told_of() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(bed.monitor(Version::V1, r#"1,{"Pet":[]}"#), "{}");
    bed.insert("Pet", r#"{"kind":"ape"}"#);
    assert!(bed.pending().is_empty());
}

#[test]
fn each_request_selects_events_for_its_own_columns() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl","size":1}"#);
    let result = bed.monitor(
        Version::V1,
        r#"1,{"Pet":[{"columns":["kind"],"select":{"modify":false,"delete":false}},
                     {"columns":["size"],"select":{"initial":false,"insert":false}}]}"#,
    );
    assert_eq!(result, r##"{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##);
    let ape = bed.insert("Pet", r#"{"kind":"ape","size":2}"#);
    assert_eq!(
        bed.told(),
        [r##"update 1,{"Pet":{"#2":{"new":{"kind":"ape"}}}}"##]
    );
    bed.update("Pet", &ape, r#"{"kind":"gnu","size":3}"#);
    assert_eq!(
        bed.told(),
        [r##"update 1,{"Pet":{"#2":{"old":{"size":2},"new":{"size":3}}}}"##]
    );
    bed.update("Pet", &ape, r#"{"kind":"yak"}"#);
    assert!(
        bed.told().is_empty(),
        "a column that does not select modify is no event"
    );
    bed.delete("Pet", &ape);
    assert_eq!(
        bed.told(),
        [r##"update 1,{"Pet":{"#2":{"old":{"size":3}}}}"##]
    );
}

#[test]
fn deselected_events_are_not_told() {
    let mut bed = Bed::new(ZOO);
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    let none = r#"{"initial":false,"insert":false,"delete":false,"modify":false}"#;
    let result = bed.monitor(Version::V1, &format!(r#"1,{{"Pet":{{"select":{none}}}}}"#));
    assert_eq!(result, "{}");
    let ape = bed.insert("Pet", r#"{"kind":"ape"}"#);
    bed.update("Pet", &ape, r#"{"kind":"gnu"}"#);
    bed.delete("Pet", &ape);
    assert!(bed.pending().is_empty());
}

#[test]
fn a_condition_is_not_part_of_version_1_but_its_id_can_change() {
    let mut bed = Bed::new(ZOO);
    bed.monitor(Version::V1, r#""v1",{"Pet":{"columns":["kind"]}}"#);
    let ignored = r#"["v1","v2",{"Pet":[{"where":[["nonsense","==",1]]}]}]"#;
    assert_eq!(bed.change(ignored), Ok(vec![]));
    bed.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        bed.told(),
        [r##"update "v2",{"Pet":{"#1":{"new":{"kind":"owl"}}}}"##]
    );
}
