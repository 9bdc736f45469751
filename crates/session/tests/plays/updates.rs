//! Contents and their changes, within a connection and across connections.

use corvid_data::Str;
use corvid_session::{Failure, Interest, TableInterest};
use expect_test::expect;

use crate::play::{Play, SERVER_ROW, id, server_row};

fn clustered() -> Play {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&row());
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.take();
    play
}

fn row() -> String {
    server_row("clustered", r#""connected":true,"leader":true"#)
}

fn update3(play: &mut Play, last_id: u32, row: &str) {
    let (last_id, uuid) = (id(last_id), id(1));
    play.notify(
        "update3",
        &format!(r#"[["monid","D"],"{last_id}",{{"T":{{"{uuid}":{row}}}}}]"#),
    );
}

/// Loses the connection, and plays up to the next request for contents.
fn reconnect(play: &mut Play, row: &str) {
    play.lose();
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(row);
}

#[test]
fn contents_are_carried_on_from_the_last_update() {
    let mut play = clustered();
    update3(&mut play, 6, r#"{"insert":{"n":1}}"#);
    update3(&mut play, 7, r#"{"modify":{"n":2,"s":"a"}}"#);
    reconnect(&mut play, &row());
    play.reply(&format!(
        r#"[true,"{}",{{"T":{{"{}":{{"delete":null}}}}}}]"#,
        id(9),
        id(1)
    ));
    expect![[r#"
        * update insert T[1] n=1
        * update diff T[1] n=2 s="a"
        * disconnected
        connect tcp:a:1
        * connected
        -> {"id":5,"method":"get_schema","params":["_Server"]}
        -> {"id":6,"method":"monitor_cond","params":["_Server",["monid","_Server"],{"Database":[{"columns":["cid","connected","index","leader","model","name","schema"]}]}]}
        -> {"id":7,"method":"monitor_cond_since","params":["D",["monid","D"],{"T":[{"columns":["n","s"]}]},"00000000-0000-0000-0000-000000000007"]}
        -> {"id":8,"method":"set_db_change_aware","params":[true]}
        * more contents delete T[1]
    "#]].assert_eq(&play.take());
    assert_eq!(play.client.last_id().to_string(), id(9));
}

#[test]
fn a_database_with_other_things_in_it_is_fetched_whole() {
    let mut play = clustered();
    let wider = row().replace(r#"\"n\":"#, r#"\"m\":{\"type\":\"integer\"},\"n\":"#);
    reconnect(&mut play, &wider);
    assert!(play.take().contains(&id(0)));
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(6)));
    // That server may not have applied a conversion yet, so its contents are accepted only when the
    // client's own are two seconds old.
    play.wait(2000);
    // With the same columns the contents continue; with fewer they do not, because the missing
    // column must go.
    reconnect(&mut play, &wider);
    assert!(play.take().contains(&id(6)));
    play.reply(&format!(r#"[true,"{}",{{}}]"#, id(7)));
    reconnect(&mut play, &row());
    assert!(play.take().contains(&id(0)));
}

#[test]
fn what_does_not_fit_is_fetched_whole_over_another_connection() {
    let mut play = clustered();
    let now_ms = play.now_ms;
    play.client.flag_inconsistency(now_ms, "a row twice");
    assert_eq!(
        play.client.last_failure(),
        Some(&Failure::Inconsistent("a row twice".to_owned()))
    );
    play.take();
    assert!(play.wait_for_connect() >= 1000, "not in a hurry");
    play.connect();
    play.go_to_contents(&row());
    assert!(play.take().contains(&id(0)));
}

#[test]
fn malformed_messages_end_the_connection() {
    for (bytes, reason) in [
        (
            r#"{"id":null,"method":"update3","params":[["monid","D"],"x",{}]}"#,
            "transaction id is not a UUID",
        ),
        (
            r#"{"id":null,"method":"update3","params":[["monid","D"]]}"#,
            "params are too short",
        ),
        (
            r#"{"id":null,"method":"update3","params":[["monid","D"],"00000000-0000-0000-0000-000000000006",{"T":{"x":{}}}]}"#,
            "row name x is not a UUID",
        ),
        (
            r#"{"id":null,"method":"update2","params":[["monid","_Server"],{"X":{}}]}"#,
            "update for unknown table X",
        ),
        (
            "{}",
            "received bad JSON-RPC message: notification must have \"method\"",
        ),
        (
            "true",
            "line 0, column 4, byte 4: syntax error at beginning of input",
        ),
    ] {
        let mut play = clustered();
        play.bytes(bytes);
        assert_eq!(
            play.client.last_failure(),
            Some(&Failure::Malformed(reason.to_owned())),
            "{bytes}"
        );
        assert!(play.take().contains("disconnect\n"), "{bytes}");
    }
}

#[test]
fn updates_of_other_monitors_are_passed_over() {
    let mut play = clustered();
    for (method, params) in [
        ("update", r#"[["monid","D"],{"X":{}}]"#),
        ("update2", r#"[["monid","D"],{"X":{}}]"#),
        ("update3", r#"[["monid","E"],"x",{}]"#),
        ("update3", r#"[null,"x",{}]"#),
        ("monitor_canceled", r#"[["monid","E"]]"#),
        ("unheard_of", "[]"),
    ] {
        play.notify(method, params);
        assert_eq!(play.take(), "", "{method}");
    }
    let unknown_row = format!(
        r#"[["monid","_Server"],{{"Database":{{"{}":{{"delete":null}}}}}}]"#,
        id(1)
    );
    assert_ne!(SERVER_ROW, id(1));
    play.notify("update2", &unknown_row);
    assert!(matches!(
        play.client.last_failure(),
        Some(Failure::Inconsistent(_))
    ));
}

#[test]
fn messages_are_handled_fifty_at_a_time() {
    let mut play = Play::monitoring(Interest::All, "{}");
    let mut bytes = String::new();
    for number in 1..=200 {
        bytes += &format!(
            r#"{{"id":null,"method":"update3","params":[["monid","D"],"{}",{{"T":{{"{}":{{"insert":{{}}}}}}}}]}}"#,
            id(0),
            id(number)
        );
    }
    let (early, late) = bytes.split_at(777);
    play.bytes(early);
    play.bytes(late);
    let mut calls = 0;
    let mut inserts = play.take().matches("insert").count();
    while play.client.poll_timeout(0) == Some(0) {
        play.input(corvid_session::Input::Tick);
        inserts += play.take().matches("insert").count();
        calls += 1;
    }
    assert_eq!(inserts, 200);
    assert!(calls >= 3, "{calls}");
}

#[test]
fn a_conversion_before_the_monitor_began_is_seen_in_the_server_database() {
    let columns = |names: &[&str]| {
        Interest::Tables(vec![TableInterest {
            name: Str::new("T"),
            columns: names.iter().map(|name| Str::new(name)).collect(),
        }])
    };
    let row = server_row("standalone", r#""leader":true,"connected":true"#);
    let wide = row.replace(
        r#"\"columns\":{"#,
        r#"\"columns\":{\"m\":{\"type\":\"integer\"},"#,
    );
    let real = row.replace(
        r#"\"n\":{\"type\":\"integer\"}"#,
        r#"\"n\":{\"type\":\"real\"}"#,
    );
    for (interest, shown, is_other) in [
        (Interest::All, &wide, true),
        (columns(&["n"]), &wide, false),
        (columns(&["n", "m"]), &wide, true),
        (columns(&["n"]), &real, true),
        (columns(&["s"]), &real, false),
    ] {
        assert_ne!(*shown, row);
        for has_contents in [true, false] {
            let mut play = match has_contents {
                true => Play::monitoring(interest.clone(), "{}"),
                false => Play::waiting(interest.clone()),
            };
            play.take();
            for shown in [&row, shown] {
                let text = play.take();
                assert!(!text.contains("monitor"), "{text}");
                play.notify(
                    "update2",
                    &format!(
                        r#"[["monid","_Server"],{{"Database":{{"{SERVER_ROW}":{{"modify":{shown}}}}}}}]"#
                    ),
                );
            }
            let text = play.take();
            assert_eq!(text.contains("monitor ended"), is_other, "{text}");
            assert_eq!(
                text.contains(r#""method":"monitor_cancel","params":[["monid","D"]]"#),
                is_other
            );
        }
    }
}

/// A member of a cluster that does not know the client's last transaction sends full contents,
/// which end at transaction 7. The client has seen 8.
fn contents_of_another_member(play: &mut Play, pause_ms: u64) {
    contents_of(play, pause_ms, &member());
}

fn member() -> String {
    server_row("clustered", r#""leader":true,"connected":true,"index":10"#)
}

fn contents_of(play: &mut Play, pause_ms: u64, other: &str) {
    let member = member();
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&member);
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(6)));
    for number in [7, 8] {
        play.notify(
            "update3",
            &format!(
                r#"[["monid","D"],"{}",{{"T":{{"{}":{{"insert":{{}}}}}}}}]"#,
                id(number),
                id(number)
            ),
        );
    }
    play.lose();
    play.wait(pause_ms);
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(other);
    play.take();
    play.reply(&format!(
        r#"[false,"{}",{{"T":{{"{}":{{"initial":{{}}}}}}}}]"#,
        id(7),
        id(7)
    ));
}

#[test]
fn contents_of_a_member_that_is_behind_wait_until_it_is_not() {
    let mut play = Play::new();
    contents_of_another_member(&mut play, 0);
    assert_eq!(play.take(), "");
    assert!(!play.client.is_monitoring());
    assert_eq!(play.client.last_id().to_string(), id(8));
    play.notify(
        "update3",
        &format!(
            r#"[["monid","D"],"{}",{{"T":{{"{}":{{"insert":{{}}}}}}}}]"#,
            id(8),
            id(8)
        ),
    );
    expect![[r#"
        * contents insert T[7]
        * update insert T[8]
    "#]]
    .assert_eq(&play.take());
    assert!(play.client.is_monitoring());
}

#[test]
fn contents_of_a_member_that_is_behind_a_conversion_wait_too() {
    let mut play = Play::new();
    let other = member().replace(r#"\"n\":"#, r#"\"m\":"#);
    assert_ne!(other, member());
    contents_of(&mut play, 0, &other);
    assert_eq!(play.take(), "");
    assert!(!play.client.is_monitoring());
    play.wait(2000);
    assert_eq!(play.take(), "* contents insert T[7]\n");
    assert!(play.client.is_monitoring());
}

#[test]
fn contents_of_a_member_that_has_forgotten_wait_for_two_seconds_at_most() {
    let mut play = Play::new();
    contents_of_another_member(&mut play, 0);
    assert_eq!(play.take(), "");
    play.wait(2000);
    assert_eq!(play.take(), "* contents insert T[7]\n");
    assert!(play.client.is_monitoring());
    // A client that was disconnected for longer cannot have seen anything newer.
    let mut play = Play::new();
    contents_of_another_member(&mut play, 2000);
    assert_eq!(play.take(), "* contents insert T[7]\n");
}

#[test]
fn contents_that_were_held_back_are_forgotten_with_their_connection() {
    let mut play = Play::new();
    contents_of_another_member(&mut play, 0);
    play.lose();
    play.wait(2000);
    assert!(!play.take().contains("contents"));
    assert_eq!(play.client.last_id().to_string(), id(8));
}
