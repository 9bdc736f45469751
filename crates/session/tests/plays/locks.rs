//! A client's lock.

use corvid_session::{Input, Interest};
use expect_test::expect;

use crate::play::Play;

#[test]
fn a_lock_is_asked_for_on_every_connection() {
    let mut play = Play::new();
    play.client.set_lock(0, Some("l"));
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    expect![[r#"
        * connected
        connect tcp:a:1
        -> {"id":1,"method":"get_schema","params":["_Server"]}
        -> {"id":2,"method":"lock","params":["l"]}
    "#]]
    .assert_eq(&play.take());
    play.bytes(r#"{"id":2,"result":{"locked":true},"error":null}"#);
    assert!(play.client.has_lock() && !play.client.has_ever_had_contents());
    play.lose();
    assert!(!play.client.has_lock());
    play.wait_for_connect();
    play.connect();
    assert!(play.take().contains(r#""method":"lock","params":["l"]"#));
}

#[test]
fn locks_change_hands() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    play.client.set_lock(0, Some("l"));
    play.reply(r#"{"locked":false}"#);
    assert!(play.client.is_lock_contended() && !play.client.has_lock());
    play.notify("locked", r#"["other"]"#);
    assert!(!play.client.has_lock());
    play.notify("locked", r#"["l"]"#);
    assert!(play.client.has_lock() && !play.client.is_lock_contended());
    play.notify("stolen", r#"["l"]"#);
    assert!(!play.client.has_lock() && play.client.is_lock_contended());
    // A reply about a lock that is no longer requested has no effect.
    play.client.set_lock(0, Some("m"));
    assert!(!play.client.is_lock_contended());
    play.client.set_lock(0, None);
    play.reply("{}");
    play.reply(r#"{"locked":true}"#);
    assert!(!play.client.has_lock());
    expect![[r#"
        -> {"id":5,"method":"lock","params":["l"]}
        * lock other: true
        * locked
        -> {"id":6,"method":"unlock","params":["l"]}
        -> {"id":7,"method":"lock","params":["m"]}
        -> {"id":8,"method":"unlock","params":["m"]}
    "#]]
    .assert_eq(&play.take());
}

#[test]
fn a_lost_lock_is_seen_before_it_comes_back() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    play.client.set_lock(0, Some("l"));
    play.reply(r#"{"locked":true}"#);
    let message = |method| format!(r#"{{"id":null,"method":"{method}","params":["l"]}}"#);
    play.bytes(&format!("{}{}", message("stolen"), message("locked")));
    assert!(!play.client.has_lock());
    assert_eq!(
        play.client.poll_timeout(0),
        Some(0),
        "the rest is due at once"
    );
    play.input(Input::Tick);
    assert!(play.client.has_lock());
}

#[test]
fn a_lock_that_the_server_refuses_is_not_another_clients() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.reply("{}");
    play.client.set_lock(0, Some("no id"));
    play.bytes(r#"{"id":5,"result":null,"error":{"error":"parsing error"}}"#);
    assert!(!play.client.has_lock() && !play.client.is_lock_contended());
    let refusal = r#"{"error":"parsing error"}"#;
    assert_eq!(play.client.lock_refusal(), Some(refusal));
    expect![[r#"
        -> {"id":5,"method":"lock","params":["no id"]}
    "#]]
    .assert_eq(&play.take());
    play.client.set_lock(0, Some("l"));
    assert_eq!(play.client.lock_refusal(), None, "it was another lock's");
}
