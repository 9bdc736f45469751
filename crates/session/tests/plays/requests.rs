//! Requests of the user.

use corvid_session::{Input, Interest};
use expect_test::expect;

use crate::play::{Play, id};

#[test]
fn answers_are_matched_in_any_order() {
    let mut play = Play::monitoring(Interest::All, "{}");
    let first = play
        .client
        .transact(br#"{"op":"comment","comment":"a"}"#)
        .unwrap();
    let second = play.client.send_request("list_dbs", b"[]").unwrap();
    let forgotten = play.client.transact(b"").unwrap();
    play.client.forget_request(forgotten);
    play.bytes(&format!(r#"{{"id":{},"error":"canceled"}}"#, second.0));
    play.bytes(&format!(r#"{{"id":{},"result":[{{}}]}}"#, first.0));
    play.bytes(&format!(r#"{{"id":{},"result":[{{}}]}}"#, first.0));
    play.bytes(&format!(r#"{{"id":{},"result":[]}}"#, forgotten.0));
    play.bytes(r#"{"id":"x","result":[]}"#);
    expect![[r#"
        * reply to 6: error "canceled"
        -> {"id":5,"method":"transact","params":["D",{"op":"comment","comment":"a"}]}
        -> {"id":6,"method":"list_dbs","params":[]}
        -> {"id":7,"method":"transact","params":["D"]}
        * reply to 5: result [{}]
    "#]]
    .assert_eq(&play.take());
}

#[test]
fn what_is_outstanding_is_lost_with_the_connection() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.client.transact(b"").unwrap();
    play.take();
    play.lose();
    expect![[r#"
        * disconnected
        * reply to 5: lost
    "#]]
    .assert_eq(&play.take());
    assert_eq!(play.client.transact(b""), None);
    play.wait_for_connect();
    play.connect();
    assert_eq!(
        play.client.transact(b""),
        None,
        "not before there are contents"
    );
}

#[test]
fn an_update_comes_before_the_answer() {
    let mut play = Play::monitoring(Interest::All, "{}");
    let request = play.client.transact(b"").unwrap();
    play.take();
    let update = format!(
        r#"{{"id":null,"method":"update3","params":[["monid","D"],"{}",{{"T":{{"{}":{{"insert":{{"n":1}}}}}}}}]}}"#,
        id(0),
        id(1)
    );
    play.bytes(&format!(r#"{update}{{"id":{},"result":[]}}"#, request.0));
    expect![[r#"
        * update insert T[1] n=1
        * reply to 5: result []
    "#]]
    .assert_eq(&play.take());
}

#[test]
fn probes_and_foreign_requests_are_answered() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.bytes(
        r#"{"id":"echo","method":"echo","params":[]}{"id":[7],"method":"steal","params":[]}"#,
    );
    play.bytes(r#"{"id":"echo","result":[]}"#);
    play.input(Input::Sent);
    expect![[r#"
        -> {"id":"echo","result":[],"error":null}
        -> {"id":[7],"error":"unknown method"}
    "#]]
    .assert_eq(&play.take());
}
