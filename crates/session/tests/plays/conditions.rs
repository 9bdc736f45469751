//! Conditions on their way to the server.

use corvid_data::Str;
use corvid_json::Value;
use corvid_session::{Condition, Failure, Interest, TableInterest};
use expect_test::expect;

use crate::play::{Play, SCHEMA, id, server_row};

fn set(play: &mut Play, table: &str, condition: &str) -> u64 {
    let json = Value::parse(condition.as_bytes()).expect("JSON");
    let condition = Condition::from_json(&json).expect("a condition");
    let promise = play
        .client
        .set_condition(play.now_ms, table, condition)
        .expect("accepted");
    play.collect();
    promise
}

fn clustered() -> String {
    server_row("clustered", r#""connected":true,"leader":true"#)
}

#[test]
fn one_change_is_in_flight_at_a_time() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    assert_eq!(set(&mut play, "T", "[true]"), 0);
    assert_eq!(set(&mut play, "T", r#"[["n","==",1]]"#), 1);
    assert_eq!(set(&mut play, "T", r#"[["n","==",2],["n","==",3]]"#), 2);
    assert_eq!(set(&mut play, "T", r#"[["n","==",3],["n","==",2]]"#), 2);
    play.notify(
        "update3",
        &format!(
            r#"[["monid","D"],"{}",{{"T":{{"{}":{{"insert":{{"n":1}}}}}}}}]"#,
            id(0),
            id(1)
        ),
    );
    assert_eq!(play.client.condition_seqno(), 0);
    play.reply("{}");
    assert_eq!(play.client.condition_seqno(), 1);
    play.reply("{}");
    assert_eq!(play.client.condition_seqno(), 2);
    expect![[r#"
        -> {"id":5,"method":"monitor_cond_change","params":[["monid","D"],["monid","D"],{"T":[{"where":[["n","==",1]]}]}]}
        * update insert T[1] n=1
        -> {"id":6,"method":"monitor_cond_change","params":[["monid","D"],["monid","D"],{"T":[{"where":[["n","==",2],["n","==",3]]}]}]}
    "#]].assert_eq(&play.take());
}

#[test]
fn conditions_set_before_connecting_travel_with_the_monitor_request() {
    let mut play = Play::new();
    assert_eq!(set(&mut play, "T", r#"[["n","==",1],["gone","==",1]]"#), 1);
    assert_eq!(set(&mut play, "Gone", r#"[["n","==",1]]"#), 1);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&clustered());
    assert!(
        play.take()
            .contains(r#"{"T":[{"columns":["n","s"],"where":[["n","==",1]]}]}"#)
    );
    assert_eq!(play.client.condition_seqno(), 0);
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    assert_eq!(play.client.condition_seqno(), 1);
    play.reply("{}");
    // A table that the server lacks has no rows to select.
    assert_eq!(set(&mut play, "Gone", "[]"), 1);
    assert_eq!(play.take(), "* contents\n");
}

#[test]
fn a_change_lost_in_flight_travels_with_a_full_request() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    set(&mut play, "T", r#"[["n","==",1]]"#);
    set(&mut play, "T", r#"[["n","==",2]]"#);
    play.lose();
    play.wait_for_connect();
    play.connect();
    play.take();
    play.go_to_contents(&clustered());
    let trace = play.take();
    assert!(
        trace.contains(r#""where":[["n","==",2]]"#) && trace.contains(&id(0)),
        "{trace}"
    );
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    assert_eq!(play.client.condition_seqno(), 2);
    play.reply("{}");
    assert_eq!(play.take(), "* contents\n", "nothing is left to send");
}

#[test]
fn unsent_changes_follow_contents_that_are_carried_on() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&clustered());
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.lose();
    assert_eq!(set(&mut play, "T", "[]"), 1);
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(&clustered());
    play.take();
    play.reply(&format!(r#"[true,"{}",{{}}]"#, id(6)));
    play.reply("{}");
    play.reply("{}");
    assert_eq!(play.client.condition_seqno(), 1);
    expect![[r#"
        * more contents
        -> {"id":9,"method":"monitor_cond_change","params":[["monid","D"],["monid","D"],{"T":[{"where":[false]}]}]}
    "#]].assert_eq(&play.take());
}

#[test]
fn a_clause_that_the_server_would_refuse_is_an_error_of_the_call() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    for (condition, error) in [
        (
            r#"[["s","<","x"]]"#,
            r#"Type mismatch: "<" operator may not be applied to column s of type set of strings."#,
        ),
        (r#"[["n","like",1]]"#, "No function named like."),
        (r#"[["n","==",1],["n","==","x"]]"#, "expected integer"),
    ] {
        let json = Value::parse(condition.as_bytes()).expect("JSON");
        let condition = Condition::from_json(&json).expect("an array of clauses");
        let refused = play.client.set_condition(0, "T", condition);
        let text = refused.expect_err("refused").to_string();
        assert!(text.contains(error), "{text}");
    }
    assert_eq!(play.take(), "", "nothing is sent");
    assert_eq!(set(&mut play, "T", r#"[["n","==",1]]"#), 1);
}

#[test]
fn a_change_that_the_server_refuses_leaves_the_session_and_the_conditions_as_they_were() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.shows_log = true;
    play.reply("{}");
    set(&mut play, "T", r#"[["n","==",1]]"#);
    play.reply("{}");
    let promise = set(&mut play, "T", r#"[["n","==",2]]"#);
    play.take();
    play.refuse(r#"{"error":"resources exhausted"}"#);
    assert!(play.client.is_monitoring() && play.client.condition_seqno() >= promise);
    let error = Some(r#"{"error":"resources exhausted"}"#);
    assert_eq!(play.client.condition_refusal(promise), error);
    play.reply("{}");
    expect![[r#"
        * log: server refused new conditions for D database, so the previous ones stay in force: {"error":"resources exhausted"}
        -> {"id":7,"method":"monitor_cond_change","params":[["monid","D"],["monid","D"],{"T":[{"where":[["n","==",1]]}]}]}
    "#]]
    .assert_eq(&play.take());
    // A new connection starts with the earlier conditions.
    play.lose();
    play.wait_for_connect();
    play.connect();
    play.take();
    play.go_to_contents(&clustered());
    assert!(play.take().contains(r#""where":[["n","==",1]]"#));
}

#[test]
fn a_server_that_refuses_the_restored_conditions_is_left() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    let promise = set(&mut play, "T", r#"[["n","==",1]]"#);
    play.refuse(r#"{"error":"syntax error"}"#);
    play.refuse(r#"{"error":"syntax error"}"#);
    assert!(matches!(
        play.client.last_failure(),
        Some(Failure::Refused {
            method: "monitor_cond_change",
            ..
        })
    ));
    set(&mut play, "T", r#"[["n","==",1]]"#);
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(&clustered());
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    assert!(play.client.condition_seqno() >= promise);
}

#[test]
fn a_server_that_cannot_choose_shows_everything() {
    let mut play = Play::new();
    assert_eq!(set(&mut play, "T", "[]"), 1);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.refuse(r#""unknown method""#);
    play.reply(SCHEMA);
    play.refuse(r#""unknown method""#);
    play.take();
    play.reply("{}");
    assert_eq!(play.client.condition_seqno(), 1);
    assert_eq!(set(&mut play, "T", r#"[["n","==",1]]"#), 2);
    assert_eq!(play.client.condition_seqno(), 2);
    assert!(!play.client.conditions_supported());
    assert_eq!(play.take(), "* contents\n");
}

#[test]
fn conditions_come_back_with_the_columns_that_they_look_at() {
    let interest = Interest::Tables(vec![TableInterest {
        name: Str::new("T"),
        columns: vec![Str::new("n")],
    }]);
    let mut play = Play::monitoring(interest, "{}");
    play.reply("{}");
    set(&mut play, "T", r#"[["later","==",1]]"#);
    assert!(play.take().contains(r#"{"T":[{"where":[false]}]}"#));
    play.lose();
    play.wait_for_connect();
    play.connect();
    let wider = clustered().replace(r#"\"n\":"#, r#"\"later\":{\"type\":\"integer\"},\"n\":"#);
    play.go_to_contents(&wider);
    assert!(play.take().contains(r#""where":[["later","==",1]]"#));
}
