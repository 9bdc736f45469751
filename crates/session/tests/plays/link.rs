//! When each remote is tried, and when silence ends a connection.

use std::collections::BTreeSet;

use corvid_rpc::log_event::End;
use corvid_session::{Input, Interest, Options};
use expect_test::expect;

use crate::play::{Play, id, server_row};

fn refused() -> Input<'static> {
    Input::Disconnected(End::Failed("Connection refused".to_owned()))
}

#[test]
fn each_remote_is_tried_before_anybody_waits() {
    let mut play = Play::new();
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1,tcp:c:1", true);
    play.input(Input::Tick);
    let mut waits = Vec::new();
    for _ in 0..8 {
        play.take();
        play.input(refused());
        waits.push(play.wait_for_connect());
    }
    assert_eq!(waits[..2], [0, 0]);
    for (wait, least) in waits[2..].iter().zip([1000, 2000, 4000, 8000, 8000, 8000]) {
        assert!((least..least * 3 / 2).contains(wait), "{waits:?}");
    }
    assert_eq!(play.take(), "connect tcp:c:1\n", "round and round");
}

#[test]
fn clients_do_not_come_back_all_at_once() {
    let mut waits = BTreeSet::new();
    for seed in 0..100 {
        let mut play = Play::with(Options::new("D", seed));
        play.client.set_remote(0, "tcp:a:1", true);
        play.connect();
        play.take();
        play.lose();
        waits.insert(play.wait_for_connect());
    }
    assert!(waits.len() > 50, "{waits:?}");
    assert!(
        waits.iter().all(|wait| (1000..1500).contains(wait)),
        "{waits:?}"
    );
}

#[test]
fn a_good_connection_is_followed_by_another_at_once() {
    for (lasted_ms, is_prompt) in [(60_000, true), (100, false)] {
        let mut play = Play::new();
        play.client.set_probe_interval(Some(0));
        play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
        for _ in 0..6 {
            play.wait_for_connect();
            play.take();
            play.input(refused());
        }
        play.wait_for_connect();
        play.connect();
        play.go_to_contents(&server_row("standalone", r#""leader":true"#));
        play.reply(&format!(r#"[false,"{}",{{}}]"#, id(0)));
        play.take();
        play.wait(lasted_ms);
        play.lose();
        assert_eq!(play.wait_for_connect() == 0, is_prompt, "{lasted_ms}");
    }
}

#[test]
fn a_demanded_connection_is_made_at_once_if_the_last_one_was_good() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.client.force_reconnect(0);
    expect![[r#"
        * disconnected
        disconnect
        connect tcp:a:1
    "#]]
    .assert_eq(&play.take());
    play.connect();
    play.client.force_reconnect(0);
    play.take();
    assert!(play.wait_for_connect() >= 1000);
}

#[test]
fn attempts_time_out() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.wait(999);
    assert_eq!(play.take(), "connect tcp:a:1\n");
    play.wait(1);
    assert_eq!(play.take(), "disconnect\n");
}

#[test]
fn silence_is_probed_and_ends_the_connection() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.wait(4999);
    assert_eq!(play.take(), "");
    play.wait(1);
    play.bytes(" ");
    assert!(play.take().starts_with(r#"-> {"id":"echo""#));
    play.wait(5000);
    assert!(
        play.take().starts_with(r#"-> {"id":"echo""#),
        "the blank was a sign of life"
    );
    play.wait(4999);
    assert_eq!(play.take(), "");
    play.wait(1);
    assert_eq!(play.take(), "* disconnected\ndisconnect\n");
}

#[test]
fn an_application_that_slept_judges_nobody() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.now_ms += 60_000;
    play.input(Input::Tick);
    assert_eq!(play.take(), "", "nothing was read since");
    play.bytes(r#"{"id":"echo","method":"echo","params":[]}"#);
    assert_eq!(
        play.take(),
        "-> {\"id\":\"echo\",\"result\":[],\"error\":null}\n"
    );
    assert!(play.client.is_connected());
}

#[test]
fn without_retries_each_remote_gets_one_attempt() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", false);
    play.input(refused());
    play.input(refused());
    assert!(!play.client.is_alive());
    play.wait(100_000);
    assert_eq!(play.take().matches("connect ").count(), 2);
    let now_ms = play.now_ms;
    play.client.enable_reconnect(now_ms);
    play.wait_for_connect();
    assert!(play.client.is_alive());
}

#[test]
fn a_connection_to_a_remote_that_is_still_listed_is_kept() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.client.set_remote(0, "tcp:b:1,tcp:a:1,tcp:c:1", true);
    assert_eq!(play.take(), "");
    play.client.set_remote(0, "tcp:b:1,tcp:a:1,tcp:c:1", true);
    assert_eq!(play.client.remote(), "tcp:a:1");
    play.client.set_remote(0, "tcp:b:1", true);
    assert_eq!(play.take(), "* disconnected\ndisconnect\nconnect tcp:b:1\n");
    play.client.set_remote(0, "", true);
    assert_eq!(play.take(), "disconnect\n");
    assert!(!play.client.is_alive());
    play.client.set_remote(0, "tcp:b:1", true);
    assert_eq!(play.take(), "connect tcp:b:1\n");
}

#[test]
fn passive_remotes_wait_for_the_server() {
    let mut play = Play::new();
    play.client.set_remote(0, "ptcp:6640", true);
    play.input(Input::Listening);
    play.wait(100_000);
    assert_eq!(play.take(), "connect ptcp:6640\n");
    play.connect();
    play.take();
    play.lose();
    assert_eq!(play.wait_for_connect(), 0, "another listener, at once");
}
