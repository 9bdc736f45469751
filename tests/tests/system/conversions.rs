//! Conversions as other clients see them, with real processes: which clients are disconnected, and
//! that the others continue in the meantime.
//!
//! With `CORVID_REFERENCE=1`, the reference is tested instead of our server.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use corvid_tests::client::{Client, Received};
use corvid_tests::ledger::{self, Answer, Contents, DATABASE, Ledger};
use corvid_tests::server::{Implementation, Server, Setup};

/// The number of conversions. Each may happen at a different moment relative to the new session.
const CONVERSIONS: u32 = 50;

/// A conversion disconnects sessions that are not aware of database changes. But a session that
/// begins after the reply to the conversion has never seen the old schema, and must not be
/// disconnected: a client may convert and then immediately run other programs, as start scripts do.
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

/// The number of conversions under load, which alternate between two schemas.
const LOADED_CONVERSIONS: u32 = 4;
/// The number of rows, which make a conversion take some time.
const FILLERS: usize = 30_000;

/// The state that the writers share with the test.
#[derive(Default)]
struct Progress {
    is_over: AtomicBool,
    acknowledged: AtomicU64,
}

/// Sends the transactions of one writer, one at a time, until the test is over.
fn write(mut client: Client, mut ledger: Ledger, progress: &Progress) -> io::Result<Ledger> {
    client.call("set_db_change_aware", &json!([true]))?;
    client.call("transact", &json!([DATABASE, ledger.beginning()]))?;
    while !progress.is_over.load(Ordering::Relaxed) {
        client.send(ledger.request(ledger.count() % 3 == 2).as_bytes())?;
        let Received::Text(text) = client.receive(Duration::from_secs(60))? else {
            return Err(io::Error::other("no answer"));
        };
        let reply: Value = serde_json::from_slice(&text)?;
        match ledger.apply_reply(&reply).map_err(io::Error::other)? {
            Answer::Acknowledged => progress.acknowledged.fetch_add(1, Ordering::Relaxed),
            Answer::Refused(reply) => return Err(io::Error::other(reply.to_string())),
        };
    }
    Ok(ledger)
}

/// Writers continue while the database is converted. Everything that was acknowledged before,
/// during and after is in the converted database and in its file.
#[test]
fn writers_continue_during_a_conversion() {
    // The reference does not serve any client during a conversion.
    if Implementation::from_env() == Implementation::Reference {
        return;
    }
    let setup = Setup {
        databases: vec![ledger::schema(1)],
        ..Setup::default()
    };
    let mut server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let mut converter = server.connect().expect("a connection");
    ledger::fill(&mut converter, FILLERS, 200).expect("rows");
    converter
        .call("set_db_change_aware", &json!([true]))
        .expect("awareness");
    let progress = Progress::default();
    let mut during = 0;
    let ledgers: Vec<Ledger> = thread::scope(|scope| {
        let progress = &progress;
        let writers: Vec<_> = (1..=3)
            .map(|writer| {
                let client = server.connect().expect("a connection");
                let ledger = Ledger::new(writer, writer == 1, 300);
                scope.spawn(move || write(client, ledger, progress))
            })
            .collect();
        for number in 0..LOADED_CONVERSIONS {
            let before = progress.acknowledged.load(Ordering::Relaxed);
            let schema = ledger::schema(2 - number % 2);
            let reply = converter
                .call("convert", &json!([DATABASE, schema]))
                .expect("an answer");
            assert_eq!(reply["error"], Value::Null);
            during += progress.acknowledged.load(Ordering::Relaxed) - before;
        }
        progress.is_over.store(true, Ordering::Relaxed);
        let ended = writers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|outcome| outcome.expect("no panic").expect("all is acknowledged"))
            .collect()
    });
    check(&mut converter, &ledgers);
    server.restart().expect("a server");
    check(&mut server.connect().expect("a connection"), &ledgers);
    println!("{during} commits during {LOADED_CONVERSIONS} conversions");
    assert!(during > 100, "writers stood still: {during} commits");
}

/// Checks that everything exists, and nothing else.
fn check(client: &mut Client, ledgers: &[Ledger]) {
    let contents = Contents::read(client).expect("contents");
    assert_eq!(contents.fillers(), FILLERS);
    let wrong: Vec<String> = ledgers
        .iter()
        .flat_map(|ledger| ledger.check(&contents))
        .chain(contents.strays(ledgers))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
