//! `ping`: the servers that it accepts and rejects.

use corvid_json::Value;

use crate::client::OURS;
use crate::client::scripted::peer::{Peer, serve};
use crate::support::{Dir, Outcome, run};

/// Runs `ping` with these options and words against a server that plays the script.
fn ping(args: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> Outcome {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", script);
    let outcome = run(OURS, dir.path(), &[&["ping"], args].concat(), b"");
    server.join().expect("the script ran to its end");
    outcome
}

fn answer_echo(peer: &mut Peer) {
    let (id, params) = peer.expect("echo");
    peer.reply(&id, &params.to_string());
}

/// Answers the requests about database `D`.
fn answer_database(peer: &mut Peer, served: &str, row: &str) {
    peer.answer("list_dbs", served);
    peer.answer("transact", &format!(r#"[{{"rows":[{row}]}}]"#));
}

/// Accepts the connection, sends nothing, and waits until the program closes it.
fn stay_silent(peer: &mut Peer) {
    peer.expect("echo");
    let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| peer.receive()));
    assert!(gone.is_err(), "nothing follows");
}

/// Asserts that the program printed only the server and a time.
fn assert_alive(outcome: &Outcome, server: &str) {
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    let time = outcome
        .stdout
        .strip_prefix(&format!("{server}: "))
        .and_then(|rest| rest.strip_suffix(" ms\n"))
        .and_then(|time| time.parse::<f64>().ok());
    assert!(time.is_some_and(|ms| ms > 0.0), "{outcome:?}");
}

#[test]
fn ping_succeeds_when_the_server_answers() {
    assert_alive(&ping(&["unix:db.sock"], answer_echo), "unix:db.sock");
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", answer_echo);
    let outcome = run(OURS, dir.path(), &["ping"], b"");
    server.join().expect("the script ran to its end");
    assert_alive(&outcome, &format!("unix:{}", dir.file("db.sock").display()));
}

#[test]
fn ping_fails_on_an_unexpected_reply() {
    let outcome = ping(&["unix:db.sock"], |peer| {
        assert_eq!(
            peer.answer("echo", "[]"),
            Value::Array(vec![Value::string("ping")])
        );
    });
    let message = "ovsdb-client: unix:db.sock: the reply to echo is another text\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}

#[test]
fn ping_checks_service_connection_and_leadership_of_the_database() {
    let check = |options: &[&str], served: &'static str, row: &'static str, is_fit: bool| {
        let args = [options, &["unix:db.sock", "D"]].concat();
        let outcome = ping(&args, move |peer| {
            if served.contains("\"D\"") {
                answer_database(peer, served, row);
            } else {
                peer.answer("list_dbs", served);
            }
            if is_fit {
                answer_echo(peer);
            }
        });
        if is_fit {
            assert_alive(&outcome, "unix:db.sock");
            return String::new();
        }
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""));
        outcome.stderr
    };
    let both = r#"["_Server","D"]"#;
    let standalone = r#"{"model":"standalone","connected":true,"leader":true}"#;
    let follower = r#"{"model":"clustered","connected":true,"leader":false}"#;
    let cut_off = r#"{"model":"clustered","connected":false,"leader":false}"#;
    check(&[], both, standalone, true);
    check(&["--no-leader-only"], both, follower, true);
    assert_eq!(
        check(&[], r#"["_Server","E"]"#, "", false),
        "ovsdb-client: unix:db.sock: server does not have D database\n"
    );
    assert_eq!(
        check(&[], both, follower, false),
        "ovsdb-client: unix:db.sock: clustered database server is not cluster leader\n"
    );
    assert_eq!(
        check(&["--no-leader-only"], both, cut_off, false),
        "ovsdb-client: unix:db.sock: clustered database server is disconnected from cluster\n"
    );
}

#[test]
fn ping_fails_without_an_answer() {
    let outcome = ping(&["unix:db.sock"], stay_silent);
    let message = "ovsdb-client: unix:db.sock: transaction failed (timed out)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
    let outcome = ping(&["-t1", "unix:db.sock"], stay_silent);
    assert_eq!(outcome.status, -14);
    let dir = Dir::new();
    let outcome = run(OURS, dir.path(), &["ping", "unix:nobody.sock"], b"");
    let message =
        "ovsdb-client: failed to connect to \"unix:nobody.sock\" (No such file or directory)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}

#[test]
fn ping_needs_an_answer_of_one_server() {
    let outcome = ping(&["unix:nobody.sock,unix:db.sock"], answer_echo);
    assert_alive(&outcome, "unix:db.sock");
    let dir = Dir::new();
    let servers = "unix:nobody.sock,unix:nobody2.sock";
    let outcome = run(OURS, dir.path(), &["ping", servers, "D"], b"");
    let message = "ovsdb-client: failed to connect to \"unix:nobody.sock\" (No such file or directory); \
                   failed to connect to \"unix:nobody2.sock\" (No such file or directory)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}

#[test]
fn ping_refuses_surplus_arguments() {
    let dir = Dir::new();
    let outcome = run(
        OURS,
        dir.path(),
        &["ping", "unix:db.sock", "D", "more"],
        b"",
    );
    let message = "ovsdb-client: invalid syntax for 'ping' (use --help for help)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, message));
}
