//! What other clients see of a conversion, with real processes: who is disconnected and who is not.
//!
//! `CORVID_REFERENCE=1` puts the reference in the place of our server.

use std::time::Duration;

use serde_json::{Value, json};

use corvid_tests::client::Received;
use corvid_tests::ledger::{self, DATABASE};
use corvid_tests::server::{Implementation, Server, Setup};

/// Conversions; each may meet another moment.
const CONVERSIONS: u32 = 50;

/// A conversion disconnects sessions that do not know that databases change. One that begins after the answer to the
/// conversion has never seen the old schema: a client may convert and go on with other programs at once, as start
/// scripts do.
#[test]
fn a_session_that_begins_after_the_answer_stays() {
    let setup = Setup {
        databases: vec![ledger::schema(1)],
        ..Setup::default()
    };
    let server = Server::start(Implementation::from_env(), &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    ledger::fill(&mut client, 3_000, 200).expect("rows");
    let mut converter = server.connect().expect("a connection");
    converter
        .call("set_db_change_aware", &json!([true]))
        .expect("awareness");
    let mut closed = 0;
    for number in 0..CONVERSIONS {
        let schema = ledger::schema(2 - number % 2);
        let reply = converter
            .call("convert", &json!([DATABASE, schema]))
            .expect("an answer");
        assert_eq!(reply["error"], Value::Null);
        let mut late = server.connect().expect("a connection");
        let is_served = (0..3).all(|_| late.call("echo", &json!(["x"])).is_ok());
        let after = late.receive(Duration::from_millis(2));
        let is_open = is_served && after.is_ok_and(|found| found == Received::Nothing);
        closed += u32::from(!is_open);
    }
    assert_eq!(
        closed,
        0,
        "of {CONVERSIONS} sessions so many were closed:\n{}",
        server.log()
    );
}
