//! The last failure of a session, while there are no contents.

use corvid_rpc::log_event::End;
use corvid_session::{Cause, Failure, Input, Interest, Options, TableInterest};
use expect_test::expect;

use crate::play::{Play, id, server_row};

fn refused() -> Input<'static> {
    Input::Disconnected(End::Failed("Connection refused".to_owned()))
}

/// The remote and the cause of the last error.
fn last_error(play: &Play) -> Option<(&str, &Cause)> {
    let error = play.client.last_error()?;
    Some((&error.remote, &error.cause))
}

fn failed() -> Cause {
    Cause::Connection(End::Failed("Connection refused".to_owned()))
}

#[test]
fn a_refused_connection_is_remembered_with_its_remote_until_contents_arrive() {
    let mut play = Play::new();
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
    play.input(Input::Tick);
    assert_eq!(last_error(&play), None);
    play.input(refused());
    assert_eq!(last_error(&play), Some(("tcp:a:1", &failed())));
    assert_eq!(play.client.remote(), "tcp:b:1", "the next one is tried");
    play.connect();
    play.go_to_contents(&server_row("clustered", r#""connected":false"#));
    let cause = Cause::Server(Failure::Disconnected);
    assert_eq!(last_error(&play), Some(("tcp:b:1", &cause)));
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(&server_row("standalone", r#""leader":true"#));
    assert!(play.client.last_error().is_some(), "no contents yet");
    play.reply(&format!("[false,\"{}\",{{}}]", id(0)));
    assert_eq!(last_error(&play), None);
    play.lose();
    let closed = Cause::Connection(End::Closed);
    assert_eq!(last_error(&play).map(|(_, cause)| cause), Some(&closed));
}

#[test]
fn a_server_that_does_not_answer_in_time_is_remembered() {
    let mut play = Play::new();
    play.client.set_remote(0, "tcp:a:1", true);
    play.wait(500);
    assert_eq!(last_error(&play), None);
    play.wait(1000);
    let silent = Cause::Connection(End::Local);
    assert_eq!(last_error(&play), Some(("tcp:a:1", &silent)));
}

#[test]
fn a_connection_that_the_user_asks_for_is_no_error() {
    let mut play = Play::monitoring(Interest::All, "{}");
    play.client.force_reconnect(0);
    assert_eq!(last_error(&play), None);
    assert!(!play.client.is_connected());
}

#[test]
fn log_messages_of_a_connection_name_its_remote() {
    let mut play = Play::new();
    play.shows_log = true;
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
    play.take();
    play.input(refused());
    expect![[r#"
        * log: tcp:a:1: connection attempt failed (Connection refused)
        * log: tcp:b:1: connecting...
        connect tcp:b:1
    "#]]
    .assert_eq(&play.take());
}

#[test]
fn what_the_schema_lacks_is_listed() {
    let mut options = Options::new("D", 1);
    let table = |name: &str, columns: &[&str]| TableInterest {
        name: name.into(),
        columns: columns.iter().map(|&name| name.into()).collect(),
    };
    options.interest = Interest::Tables(vec![table("T", &["n", "x"]), table("U", &["y"])]);
    let mut play = Play::with(options);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&server_row("standalone", r#""leader":true"#));
    let plan = play.client.plan().expect("the schema is known");
    let missing: Vec<String> = plan.missing().iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["column x of table T", "table U"]);
}

#[test]
fn the_servers_part_is_known_while_it_is_connected() {
    let mut play = Play::new();
    play.client.set_leader_only(0, false);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    assert_eq!(play.client.server_status(), None);
    play.go_to_contents(&server_row(
        "clustered",
        r#""connected":true,"leader":false,"index":7"#,
    ));
    let status = play.client.server_status().expect("told");
    assert_eq!(
        (status.model.as_str(), status.is_connected, status.is_leader),
        ("clustered", true, false)
    );
    assert_eq!(status.index, Some(7));
    play.lose();
    assert_eq!(play.client.server_status(), None);
}
