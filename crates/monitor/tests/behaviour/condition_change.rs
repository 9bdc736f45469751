//! `monitor_cond_change` (docs/spec/protocol.md 4.8): effect and order. Its errors are in `errors`.

use corvid_data::Uuid;
use corvid_monitor::Version;

use crate::fixture::{Fixture, ZOO};

/// Keepers ann, eve and joe, and a monitor that shows only ann.
fn fixture() -> (Fixture, String) {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert("Keeper", r#"{"name":"ann"}"#);
    fixture.insert("Keeper", r#"{"name":"eve"}"#);
    fixture.insert("Keeper", r#"{"name":"joe","age":71}"#);
    fixture.monitor(
        Version::V2,
        r#""m",{"Keeper":{"columns":["name","age"],"where":[["name","==","ann"]]},"Pet":{"columns":["kind"]}}"#,
    );
    (fixture, ann)
}

#[test]
fn rows_that_match_only_one_condition_are_sent_under_the_new_id() {
    let (mut fixture, _) = fixture();
    let frames = fixture
        .change(r#"["m","m2",{"Keeper":[{"where":[["name","==","eve"],["age",">",60]]}]}]"#)
        .expect("changed");
    assert_eq!(frames.len(), 1);
    let frame = &frames[0];
    assert!(frame.starts_with(r#"update2 "m2",{"Keeper":{"#), "{frame}");
    assert!(frame.contains(r##""#1":{"delete":null}"##), "{frame}");
    assert!(
        frame.contains(r##""#2":{"insert":{"name":"eve"}}"##),
        "{frame}"
    );
    assert!(
        frame.contains(r##""#3":{"insert":{"age":71,"name":"joe"}}"##),
        "{frame}"
    );
}

#[test]
fn pending_changes_come_first_under_the_old_id_and_later_ones_use_the_new() {
    let (mut fixture, ann) = fixture();
    fixture.update("Keeper", &ann, r#"{"age":9}"#);
    let frames = fixture
        .change(r#"["m","m2",{"Keeper":[{"where":[["name","==","eve"],["name","==","ann"]]}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update2 "m",{"Keeper":{"#1":{"modify":{"age":9}}}}"##.to_owned(),
            r##"update2 "m2",{"Keeper":{"#2":{"insert":{"name":"eve"}}}}"##.to_owned(),
        ])
    );
    fixture.update("Keeper", &ann, r#"{"age":10}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 "m2",{"Keeper":{"#1":{"modify":{"age":10}}}}"##]
    );
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 "m2",{"Pet":{"#4":{"insert":{"kind":"owl"}}}}"##]
    );
}

#[test]
fn an_equal_condition_has_no_effect() {
    let (mut fixture, _) = fixture();
    fixture
        .change(r#"["m","m",{"Keeper":[{"where":[["name","==","eve"],["name","==","ann"]]}]}]"#)
        .expect("changed");
    let same = r#"["m","m",{"Keeper":[{"where":[["name","==","ann"],["name","==","eve"]]}]}]"#;
    assert_eq!(fixture.change(same), Ok(vec![]));
    assert_eq!(
        fixture.change(r#"["m","n",{"Keeper":[]}]"#),
        Ok(vec![]),
        "an empty array changes nothing"
    );
    assert_eq!(fixture.change(r#"["n","m",{}]"#), Ok(vec![]));
}

#[test]
fn the_last_element_wins_and_an_absent_where_is_true() {
    let (mut fixture, _) = fixture();
    let frames = fixture.change(r#"["m","m",{"Keeper":[{"where":[false]},{"where":[["name","==","eve"],["name","==","ann"]]}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update2 "m",{"Keeper":{"#2":{"insert":{"name":"eve"}}}}"##.to_owned()
        ])
    );
    let frames = fixture.change(r#"["m","m",{"Keeper":[{}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update2 "m",{"Keeper":{"#3":{"insert":{"age":71,"name":"joe"}}}}"##.to_owned()
        ])
    );
    let frames = fixture
        .change(r#"["m","m",{"Keeper":[{"where":[false]}]}]"#)
        .expect("changed");
    assert_eq!(frames[0].matches("delete").count(), 3);
    let frames = fixture.change(r#"["m","m",{"Keeper":[{"where":[["age",">",60]]}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update2 "m",{"Keeper":{"#3":{"insert":{"age":71,"name":"joe"}}}}"##.to_owned()
        ])
    );
}

#[test]
fn a_table_registered_without_requests_accepts_a_condition_without_effect() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", "{}");
    fixture.monitor(Version::V2, r#"1,{"Pet":[]}"#);
    assert_eq!(
        fixture.change(r#"[1,1,{"Pet":[{"where":[false]}]}]"#),
        Ok(vec![])
    );
    assert_eq!(fixture.change(r#"[1,1,{"Pet":[{}]}]"#), Ok(vec![]));
    fixture.insert("Pet", "{}");
    assert!(fixture.notifications().is_empty());
}

#[test]
fn the_effect_obeys_the_original_select() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    fixture.insert("Pet", r#"{"kind":"ape"}"#);
    fixture.monitor(
        Version::V2,
        r#"1,{"Pet":{"columns":["kind"],"where":[["kind","==","owl"]],"select":{"insert":false}}}"#,
    );
    let frames = fixture.change(r#"[1,1,{"Pet":[{"where":[["kind","==","ape"]]}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update2 1,{"Pet":{"#1":{"delete":null}}}"##.to_owned()
        ])
    );
}

#[test]
fn update3_carries_the_newest_transaction_with_the_effect() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Pet", r#"{"kind":"owl"}"#);
    let none = Uuid::ZERO;
    fixture.monitor(
        Version::V3,
        &format!(r#"1,{{"Pet":{{"columns":["kind"],"where":[false]}}}},"{none}""#),
    );
    let frames = fixture.change(r#"[1,2,{"Pet":[{"where":[["kind","==","owl"]]}]}]"#);
    assert_eq!(
        frames,
        Ok(vec![
            r##"update3 2,"t1",{"Pet":{"#1":{"insert":{"kind":"owl"}}}}"##.to_owned()
        ])
    );
}

#[test]
fn a_failed_change_leaves_conditions_and_id_alone() {
    let (mut fixture, ann) = fixture();
    let failing =
        r#"["m","m2",{"Keeper":[{"where":[false]}],"Pet":[{"where":[["nope","==",1]]}]}]"#;
    assert!(fixture.change(failing).is_err());
    fixture.update("Keeper", &ann, r#"{"age":9}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 "m",{"Keeper":{"#1":{"modify":{"age":9}}}}"##]
    );
}
