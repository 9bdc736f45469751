//! Transactions that are sent again after a lost connection, to be executed once.

use corvid_session::{Interest, Options};
use expect_test::expect;

use crate::play::{Play, id, server_row};

const OURS: &str = r#""d7a3bf0c-5e0c-8c02-b71d-0d8ad7a2ce10""#;
const REFERENCES: &str = r#""d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10""#;
const OPERATION: &[u8] = br#"{"op":"comment"}"#;

/// Plays from a new connection to current contents. `server_id`: a reply, or `None` for an error.
fn contents(play: &mut Play, server_id: Option<&str>, contents: &str) {
    let schema = play.reply_text(crate::play::SERVER_SCHEMA);
    match server_id {
        Some(server_id) => play.reply(server_id),
        None => play.refuse(r#""unknown method""#),
    }
    play.bytes(&schema);
    let row = server_row("standalone", r#""leader":true,"connected":true"#);
    let aa = crate::play::SERVER_ROW;
    play.reply(&format!(r#"{{"Database":{{"{aa}":{{"initial":{row}}}}}}}"#));
    play.reply(contents);
}

/// A client whose transactions have ids, with the contents of a server with this id.
fn monitoring(server_id: Option<&str>) -> Play {
    let mut options = Options::new("D", 1);
    options.interest = Interest::All;
    let mut play = Play::with(options);
    play.client.set_transaction_ids(7);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
    play.connect();
    contents(
        &mut play,
        server_id,
        &format!(r#"[false,"{}",{{}}]"#, id(4)),
    );
    play.take();
    play
}

/// The connection is lost, and another one has current contents.
fn move_on(play: &mut Play, server_id: Option<&str>) {
    play.lose();
    play.wait_for_connect();
    play.connect();
    let next = format!(r#"[true,"{}",{{}}]"#, id(5));
    contents(play, server_id, &next);
}

/// The messages and events about transactions.
fn of_transactions(play: &mut Play) -> String {
    let trace = play.take();
    let lines = trace.lines().filter(|line| {
        line.contains("\"method\":\"transact") || line.contains("reply") || line.contains("cancel")
    });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn a_lost_transaction_is_sent_again_under_its_id_and_gets_its_result() {
    let mut play = monitoring(Some(OURS));
    let first = play.client.transact(OPERATION).unwrap();
    let second = play.client.transact(OPERATION).unwrap();
    let other = play.client.send_request("list_dbs", b"[]").unwrap();
    assert!(first < second && second < other);
    move_on(&mut play, Some(OURS));
    // Contents come first, then what was lost, in its order.
    play.client.transact(OPERATION).unwrap();
    play.collect();
    play.bytes(&format!(r#"{{"id":{},"result":[{{}}]}}"#, first.0));
    play.bytes(&format!(r#"{{"id":{},"error":"canceled"}}"#, second.0));
    let trace = of_transactions(&mut play);
    let ids: Vec<&str> = trace
        .lines()
        .filter_map(|line| line.split(r#""params":[""#).nth(1)?.get(..36))
        .collect();
    assert_eq!(ids.len(), 5, "{trace}");
    assert!(ids[0] == ids[2] && ids[1] == ids[3] && ids[0] != ids[1] && ids[4] != ids[1]);
    let named = ids.iter().zip(["ID1", "ID2", "ID1", "ID2", "ID3"]);
    let text = named.fold(trace.clone(), |text, (id, name)| text.replace(id, name));
    expect![[r#"
        -> {"id":6,"method":"transact_once","params":["ID1",null,["D",{"op":"comment"}]]}
        -> {"id":7,"method":"transact_once","params":["ID2",null,["D",{"op":"comment"}]]}
        * reply to 8: lost
        -> {"id":6,"method":"transact_once","params":["ID1","00000000-0000-0000-0000-000000000004",["D",{"op":"comment"}]]}
        -> {"id":7,"method":"transact_once","params":["ID2","00000000-0000-0000-0000-000000000004",["D",{"op":"comment"}]]}
        -> {"id":14,"method":"transact_once","params":["ID3",null,["D",{"op":"comment"}]]}
        * reply to 6: result [{}]
        * reply to 7: lost
    "#]]
    .assert_eq(&text);
    assert_eq!(play.client.metrics().transactions_repeated, 2);
}

#[test]
fn a_server_that_announces_nothing_gets_plain_transactions() {
    for server_id in [Some(REFERENCES), None] {
        let mut play = monitoring(server_id);
        play.client.transact(OPERATION).unwrap();
        move_on(&mut play, server_id);
        expect![[r#"
            -> {"id":6,"method":"transact","params":["D",{"op":"comment"}]}
            * reply to 6: lost
        "#]]
        .assert_eq(&of_transactions(&mut play));
    }
}

#[test]
fn a_server_that_executes_no_ids_cannot_tell_what_became_of_a_transaction() {
    let mut play = monitoring(Some(OURS));
    let request = play.client.transact(OPERATION).unwrap();
    play.take();
    move_on(&mut play, Some(REFERENCES));
    let trace = of_transactions(&mut play);
    assert_eq!(trace, format!("* reply to {}: lost\n", request.0));
}

#[test]
fn a_refusal_of_the_first_attempt_is_told_as_it_is() {
    let mut play = monitoring(Some(OURS));
    let request = play.client.transact(OPERATION).unwrap();
    play.take();
    play.bytes(&format!(r#"{{"id":{},"error":"canceled"}}"#, request.0));
    let expected = format!("* reply to {}: error \"canceled\"\n", request.0);
    assert_eq!(of_transactions(&mut play), expected);
}

#[test]
fn after_a_long_outage_the_server_is_only_asked() {
    let mut play = monitoring(Some(OURS));
    play.client.transact(OPERATION).unwrap();
    play.take();
    play.lose();
    play.now_ms += 61_000;
    play.wait_for_connect();
    play.connect();
    contents(
        &mut play,
        Some(OURS),
        &format!(r#"[true,"{}",{{}}]"#, id(9)),
    );
    let trace = of_transactions(&mut play);
    assert!(trace.contains(&format!(r#","{}",["D""#, id(0))), "{trace}");
}

#[test]
fn a_canceled_transaction_is_only_asked_for_and_a_forgotten_one_is_not_sent() {
    let mut play = monitoring(Some(OURS));
    let canceled = play.client.transact(OPERATION).unwrap();
    let forgotten = play.client.transact(OPERATION).unwrap();
    play.take();
    play.lose();
    assert_eq!(play.client.unresolved_count(), 2);
    play.client.cancel_request(canceled);
    play.client.forget_request(forgotten);
    assert_eq!(play.client.unresolved_count(), 1);
    play.wait_for_connect();
    play.connect();
    contents(
        &mut play,
        Some(OURS),
        &format!(r#"[true,"{}",{{}}]"#, id(9)),
    );
    let trace = of_transactions(&mut play);
    assert_eq!(trace.lines().count(), 1, "{trace}");
    assert!(trace.contains(&format!(r#","{}",["D""#, id(0))), "{trace}");
}

#[test]
fn a_transaction_that_is_lost_with_eight_connections_is_given_up() {
    let mut play = monitoring(Some(OURS));
    let request = play.client.transact(OPERATION).unwrap();
    for _ in 0..7 {
        play.take();
        move_on(&mut play, Some(OURS));
        let trace = of_transactions(&mut play);
        assert!(trace.contains("transact_once"), "{trace}");
    }
    play.lose();
    let trace = of_transactions(&mut play);
    assert_eq!(trace, format!("* reply to {}: lost\n", request.0));
    assert_eq!(play.client.unresolved_count(), 0);
}

#[test]
fn without_another_attempt_the_outcome_is_unknown() {
    let mut play = monitoring(Some(OURS));
    let request = play.client.transact(OPERATION).unwrap();
    play.take();
    play.client.set_remote(play.now_ms, "", true);
    let trace = of_transactions(&mut play);
    assert_eq!(trace, format!("* reply to {}: lost\n", request.0));
}

#[test]
fn texts_beyond_the_limit_are_not_kept() {
    let mut play = monitoring(Some(OURS));
    let long = format!(r#"{{"op":"comment","comment":"{}"}}"#, "x".repeat(33 << 20));
    let kept = play.client.transact(long.as_bytes()).unwrap();
    let plain = play.client.transact(long.as_bytes()).unwrap();
    play.lose();
    let trace = of_transactions(&mut play);
    assert!(trace.ends_with(&format!("* reply to {}: lost\n", plain.0)));
    assert_eq!(play.client.unresolved_count(), 1);
    play.client.forget_request(kept);
    assert_eq!(play.client.unresolved_count(), 0);
}
