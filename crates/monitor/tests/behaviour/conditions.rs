//! Conditions of monitors (docs/spec/protocol.md 4.7): the table of old and new matches, every
//! clause function, many groups.

use corvid_monitor::{SessionId, Version};

use crate::fixture::{Fixture, ZOO};

fn keeper(condition: &str) -> String {
    format!(r#""m",{{"Keeper":[{{"columns":["name","tags"],"where":{condition}}}]}}"#)
}

fn row(event: &str) -> Vec<String> {
    vec![format!(r##"update2 "m",{{"Keeper":{{"#1":{event}}}}}"##)]
}

#[test]
fn rows_enter_and_leave_the_view() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V2, &keeper(r#"[["name","==","ann"]]"#));
    let ann = fixture.insert("Keeper", r#"{"name":"ann","tags":"a"}"#);
    assert_eq!(
        fixture.notifications(),
        row(r#"{"insert":{"name":"ann","tags":"a"}}"#)
    );
    fixture.update("Keeper", &ann, r#"{"tags":"b"}"#);
    assert_eq!(
        fixture.notifications(),
        row(r#"{"modify":{"tags":["set",["a","b"]]}}"#)
    );
    fixture.update("Keeper", &ann, r#"{"name":"bob"}"#);
    assert_eq!(fixture.notifications(), row(r#"{"delete":null}"#));
    fixture.update("Keeper", &ann, r#"{"tags":"c"}"#);
    assert!(fixture.pending().is_empty(), "out of view before and after");
    fixture.update("Keeper", &ann, r#"{"name":"ann"}"#);
    assert_eq!(
        fixture.notifications(),
        row(r#"{"insert":{"name":"ann","tags":"c"}}"#)
    );
    fixture.delete("Keeper", &ann);
    assert_eq!(fixture.notifications(), row(r#"{"delete":null}"#));
    let bob = fixture.insert("Keeper", r#"{"name":"bob"}"#);
    fixture.delete("Keeper", &bob);
    assert!(fixture.pending().is_empty());
}

#[test]
fn clauses_are_a_disjunction() {
    let mut fixture = Fixture::new(ZOO);
    for name in ["ann", "bob", "eve"] {
        fixture.insert("Keeper", &format!(r#"{{"name":"{name}"}}"#));
    }
    let result = fixture.monitor(
        Version::V2,
        &keeper(r#"[["name","==","ann"],["name","==","eve"]]"#),
    );
    assert!(
        result.contains("ann") && result.contains("eve") && !result.contains("bob"),
        "{result}"
    );
}

#[test]
fn constants_match_everything_or_nothing() {
    for (condition, is_told) in [
        ("[]", true),
        ("[true]", true),
        ("[false]", false),
        ("[false,false,true]", true),
        (r#"[["name","==","nobody"],true]"#, true),
        (r#"[["name","==","nobody"],false]"#, false),
    ] {
        let mut fixture = Fixture::new(ZOO);
        fixture.insert("Keeper", r#"{"name":"ann"}"#);
        let result = fixture.monitor(Version::V2, &keeper(condition));
        assert_eq!(result != "{}", is_told, "{condition}");
        fixture.insert("Keeper", r#"{"name":"bob"}"#);
        assert_eq!(!fixture.notifications().is_empty(), is_told, "{condition}");
    }
}

#[test]
fn every_function_decides_alike_at_the_start_and_later() {
    let ann = r#"{"name":"ann","age":5,"tags":["set",["a","b"]],"badge":["map",[["x",1]]],"cfg":["map",[["k","1"],["l","2"]]]}"#;
    let empty = r#"{"name":"eve"}"#;
    // Condition, whether it shows `ann`, whether it shows `empty`.
    let cases = [
        (r#"["name","==","ann"]"#, true, false),
        (r#"["name","!=","ann"]"#, false, true),
        (r#"["name","includes","ann"]"#, true, false),
        (r#"["name","excludes","ann"]"#, false, true),
        (r#"["age","<",6]"#, true, false),
        (r#"["age","<=",5]"#, true, false),
        (r#"["age",">",5]"#, false, false),
        (r#"["age",">=",5]"#, true, false),
        (r#"["age","==",5]"#, true, false),
        (r#"["age","==",["set",[]]]"#, false, true),
        (r#"["age","!=",5]"#, false, true),
        (r#"["age","includes",5]"#, true, false),
        (r#"["age","includes",["set",[]]]"#, true, true),
        (r#"["age","excludes",5]"#, false, true),
        (r#"["tags","==","a"]"#, false, false),
        (r#"["tags","==",["set",["b","a"]]]"#, true, false),
        (r#"["tags","==",["set",[]]]"#, false, true),
        (r#"["tags","includes","a"]"#, true, false),
        (r#"["tags","includes",["set",["a","c"]]]"#, false, false),
        (r#"["tags","includes",["set",["a","b"]]]"#, true, false),
        (r#"["tags","excludes","c"]"#, true, true),
        (r#"["tags","excludes",["set",["b","c"]]]"#, false, true),
        (r#"["badge","==",["map",[["x",1]]]]"#, true, false),
        (r#"["badge","==",["map",[["x",2]]]]"#, false, false),
        (r#"["badge","includes",["map",[["x",1]]]]"#, true, false),
        (r#"["cfg","includes",["map",[["k","1"]]]]"#, true, false),
        (r#"["cfg","includes",["map",[["k","2"]]]]"#, false, false),
        (r#"["cfg","==",["map",[["k","1"]]]]"#, false, false),
        (r#"["cfg","==",["map",[]]]"#, false, true),
        (r#"["cfg","excludes",["map",[["k","1"]]]]"#, false, true),
        (
            r##"["_uuid","==",["uuid","00000000-0000-0000-0000-000000000001"]]"##,
            true,
            false,
        ),
        (
            r##"["_uuid","!=",["uuid","00000000-0000-0000-0000-000000000001"]]"##,
            false,
            true,
        ),
    ];
    for (clause, shows_ann, shows_empty) in cases {
        let params = keeper(&format!("[{clause}]"));
        let mut fixture = Fixture::new(ZOO);
        fixture.monitor(Version::V2, &params);
        let first = fixture.insert("Keeper", ann);
        assert_eq!(
            !fixture.notifications().is_empty(),
            shows_ann,
            "{clause} insert"
        );
        let second = fixture.insert("Keeper", empty);
        assert_eq!(
            !fixture.notifications().is_empty(),
            shows_empty,
            "{clause} insert of an empty row"
        );
        let result = fixture
            .start(SessionId(2), Version::V2, &params)
            .expect("started");
        assert_eq!(
            result.contains("#1\""),
            shows_ann,
            "{clause} at the start: {result}"
        );
        assert_eq!(
            result.contains("#2\""),
            shows_empty,
            "{clause} at the start: {result}"
        );
        fixture.update(
            "Keeper",
            &first,
            r#"{"name":"ann","tags":["set",["a","b","z"]]}"#,
        );
        let still = shows_ann && !clause.starts_with(r#"["tags","==""#);
        assert_eq!(
            fixture.notifications().concat().contains("modify"),
            still,
            "{clause} modify"
        );
        fixture.delete("Keeper", &first);
        fixture.delete("Keeper", &second);
        fixture.notifications();
        assert_eq!(
            fixture
                .notifications_to(SessionId(2))
                .concat()
                .matches("delete")
                .count(),
            usize::from(shows_ann) + usize::from(shows_empty),
            "{clause} delete"
        );
    }
}

#[test]
fn a_condition_may_name_columns_that_are_not_reported() {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert("Keeper", r#"{"name":"ann","age":5}"#);
    fixture.monitor(Version::V2, &keeper(r#"[["age","<",10]]"#));
    fixture.update("Keeper", &ann, r#"{"age":6}"#);
    assert!(
        fixture.pending().is_empty(),
        "in view before and after, nothing reported changed"
    );
    fixture.update("Keeper", &ann, r#"{"age":60}"#);
    assert_eq!(fixture.notifications(), row(r#"{"delete":null}"#));
}

#[test]
fn deselected_insert_and_delete_hide_entering_and_leaving() {
    let mut fixture = Fixture::new(ZOO);
    let ann = fixture.insert("Keeper", r#"{"name":"ann"}"#);
    fixture.monitor(
        Version::V2,
        r#""m",{"Keeper":[{"columns":["name"],"where":[["name","==","ann"]],"select":{"insert":false,"delete":false}}]}"#,
    );
    fixture.update("Keeper", &ann, r#"{"name":"bob"}"#);
    assert!(fixture.notifications().is_empty());
    fixture.update("Keeper", &ann, r#"{"name":"ann"}"#);
    assert!(fixture.notifications().is_empty());
}

#[test]
fn conditions_of_several_requests_are_united() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Keeper", r#"{"name":"ann","age":5}"#);
    fixture.insert("Keeper", r#"{"name":"bob","age":7}"#);
    let two = r#""m",{"Keeper":[{"columns":["name"],"where":[["name","==","ann"]]},{"columns":["age"],"where":[["age","==",7]]}]}"#;
    let result = fixture.monitor(Version::V2, two);
    assert!(
        result.contains(r#"{"age":5,"name":"ann"}"#)
            && result.contains(r#"{"age":7,"name":"bob"}"#),
        "{result}"
    );
}

#[test]
fn a_plain_and_a_conditional_monitor_with_equal_columns_are_independent() {
    let mut fixture = Fixture::new(ZOO);
    fixture.monitor(Version::V1, r#"1,{"Keeper":{"columns":["name"]}}"#);
    fixture.monitor(
        Version::V2,
        r#"2,{"Keeper":{"columns":["name"],"where":[["age",">",60]]}}"#,
    );
    let ann = fixture.insert("Keeper", r#"{"name":"ann"}"#);
    assert_eq!(fixture.notifications().len(), 1);
    fixture.update("Keeper", &ann, r#"{"age":61}"#);
    assert_eq!(
        fixture.notifications(),
        [r##"update2 2,{"Keeper":{"#1":{"insert":{"name":"ann"}}}}"##]
    );
}

#[test]
fn commit_wakes_only_sessions_that_name_its_values() {
    let mut fixture = Fixture::new(ZOO);
    for number in 0..500 {
        let condition = keeper(&format!(r#"[["name","==","host-{number}"]]"#));
        fixture
            .start(SessionId(number), Version::V2, &condition)
            .expect("started");
    }
    let row = fixture.insert("Keeper", r#"{"name":"host-17"}"#);
    assert_eq!(fixture.pending(), [17]);
    fixture.update("Keeper", &row, r#"{"name":"host-400"}"#);
    assert_eq!(fixture.pending(), [400]);
    assert_eq!(fixture.notifications_to(SessionId(400)).len(), 1);
    assert!(
        fixture.notifications_to(SessionId(17)).is_empty(),
        "came and went"
    );
}

#[test]
fn initial_reply_is_encoded_once_until_the_next_change() {
    let mut fixture = Fixture::new(ZOO);
    fixture.insert("Keeper", r#"{"name":"ann"}"#);
    let params = format!("[\"Zoo\",{}]", keeper("[]"));
    let ask = |fixture: &mut Fixture, session| {
        let session = SessionId(session);
        let started = fixture
            .monitors
            .monitor(
                &fixture.database,
                session,
                Version::V2,
                params.as_bytes(),
                &|_| false,
            )
            .expect("started");
        started.result.into_reply(b"1").body
    };
    let first = ask(&mut fixture, 1);
    assert!(first.ptr_eq(&ask(&mut fixture, 2)));
    fixture.insert("Pet", "{}");
    assert!(
        first.ptr_eq(&ask(&mut fixture, 3)),
        "a commit out of view changes nothing"
    );
    fixture.insert("Keeper", r#"{"name":"bob"}"#);
    assert!(!first.ptr_eq(&ask(&mut fixture, 4)));
}
