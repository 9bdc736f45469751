//! Which servers are suitable.

use corvid_session::{Failure, Options};
use expect_test::expect;

use crate::play::{Play, SERVER_ROW, id, server_row};

const LEADER: &str = r#""connected":true,"leader":true,"index":10"#;
const FOLLOWER: &str = r#""connected":true,"leader":false,"index":10"#;

/// The verdict of a newly connected client on a row: why it left the server, or `None` if it stays
/// connected.
fn verdict(row: &str, leader_only: bool) -> Option<Failure> {
    let mut play = Play::new();
    play.client.set_leader_only(0, leader_only);
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(row);
    let left = play.take().contains("disconnect");
    assert_eq!(left, play.client.last_failure().is_some());
    play.client.last_failure().cloned()
}

#[test]
fn unfit_servers_are_left() {
    let no_schema =
        |model: &str| format!(r#"{{"name":"D","model":"{model}","connected":true,"leader":true}}"#);
    for (row, leader_only, failure) in [
        (server_row("clustered", LEADER), true, None),
        (server_row("clustered", FOLLOWER), false, None),
        (
            server_row("clustered", FOLLOWER),
            true,
            Some(Failure::NotLeader),
        ),
        (
            server_row("clustered", r#""connected":false,"leader":true"#),
            false,
            Some(Failure::Disconnected),
        ),
        (no_schema("clustered"), false, Some(Failure::NoSchema)),
        (server_row("relay", FOLLOWER), false, None),
        (server_row("relay", LEADER), true, Some(Failure::NotLeader)),
        (
            server_row("relay", r#""connected":false"#),
            false,
            Some(Failure::Disconnected),
        ),
        (no_schema("relay"), false, Some(Failure::NoSchema)),
        (server_row("standalone", r#""leader":false"#), true, None),
        (no_schema("standalone"), true, Some(Failure::NoSchema)),
        (
            server_row("standalone", LEADER).replace(r#""name":"D""#, r#""name":"E""#),
            true,
            Some(Failure::NoSuchDatabase),
        ),
    ] {
        assert_eq!(verdict(&row, leader_only), failure, "{row}");
    }
}

/// A client that monitors a clustered database; its trace is empty.
fn clustered(remotes: &str) -> Play {
    let mut play = Play::new();
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, remotes, true);
    play.connect();
    play.go_to_contents(&server_row("clustered", LEADER));
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.take();
    play
}

fn server_update(play: &mut Play, row: &str) {
    let params = format!(r#"[["monid","_Server"],{{"Database":{{"{SERVER_ROW}":{row}}}}}]"#);
    play.notify("update2", &params);
}

#[test]
fn a_server_that_becomes_unfit_is_left_at_once() {
    let mut play = clustered("tcp:a:1,tcp:b:1");
    server_update(&mut play, r#"{"modify":{"leader":false}}"#);
    expect![[r#"
        * disconnected
        disconnect
        connect tcp:b:1
    "#]]
    .assert_eq(&play.take());
    // The next server is asked for the changes since the client's last transaction.
    play.connect();
    play.go_to_contents(&server_row("clustered", LEADER));
    assert!(play.take().contains(&id(5)));

    for row in [
        r#"{"modify":{"connected":false}}"#,
        r#"{"modify":{"index":9}}"#,
        r#"{"delete":null}"#,
    ] {
        let mut play = clustered("tcp:a:1,tcp:b:1");
        server_update(&mut play, row);
        assert!(play.take().ends_with("connect tcp:b:1\n"), "{row}");
    }
}

#[test]
fn a_server_that_is_left_hands_over_no_contents() {
    let mut play = Play::new();
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
    play.connect();
    play.go_to_contents(&server_row("clustered", LEADER));
    play.take();
    // Both arrive in one read: the server loses its leadership, and then come the contents.
    let contents = play.reply_text(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    let update = format!(
        r#"{{"id":null,"method":"update2","params":[["monid","_Server"],{{"Database":{{"{SERVER_ROW}":{{"modify":{{"leader":false}}}}}}}}]}}"#
    );
    play.bytes(&(update + &contents));
    expect![[r#"
        * disconnected
        disconnect
        connect tcp:b:1
    "#]]
    .assert_eq(&play.take());
    assert_eq!(play.client.last_failure(), Some(&Failure::NotLeader));
}

#[test]
fn leadership_matters_only_where_it_is_asked_for() {
    let mut play = clustered("tcp:a:1,tcp:b:1");
    play.client.set_leader_only(0, false);
    server_update(&mut play, r#"{"modify":{"leader":false}}"#);
    assert_eq!(play.take(), "");
    play.client.set_leader_only(0, true);
    assert!(play.take().ends_with("connect tcp:b:1\n"));
}

#[test]
fn nobody_goes_back_in_time() {
    let mut play = clustered("tcp:a:1,tcp:b:1");
    server_update(&mut play, r#"{"modify":{"index":20}}"#);
    play.lose();
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(&server_row("clustered", LEADER));
    assert_eq!(play.client.last_failure(), Some(&Failure::Stale));
    play.take();
    play.client.reset_index_min();
    play.wait_for_connect();
    play.connect();
    play.go_to_contents(&server_row("clustered", LEADER));
    assert!(play.take().contains("monitor_cond_since"));
}

#[test]
fn a_cluster_is_chosen_by_the_beginning_of_its_id() {
    for (cid, is_found) in [
        ("6731fef6-afef-4e54-bb8b-892b04777101", true),
        ("6731FEF6", true),
        ("6731aaaa", false),
    ] {
        let mut play = Play::new();
        play.client
            .set_remote(0, &format!("tcp:a:1,cid:{cid}"), true);
        play.connect();
        let members = format!(r#"{LEADER},"cid":["uuid","6731fef6-afef-4e54-bb8b-892b04777101"]"#);
        play.go_to_contents(&server_row("clustered", &members));
        assert_eq!(
            play.take().contains("monitor_cond_since"),
            is_found,
            "{cid}"
        );
    }
    // A server without `_Server` cannot prove that it belongs to the cluster.
    let mut play = Play::new();
    play.client.set_cluster_id(0, Some("6731".to_owned()));
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.refuse(r#""unknown method""#);
    assert_eq!(play.client.last_failure(), Some(&Failure::NoCluster));
}

/// The lines are the reference's.
#[test]
fn the_log_says_why_a_server_is_left() {
    let no_schema =
        |model: &str| format!(r#"{{"name":"D","model":"{model}","connected":true,"leader":true}}"#);
    let away = r#""connected":false,"leader":true"#;
    for (row, line) in [
        (
            server_row("clustered", FOLLOWER),
            "tcp:a:1: clustered database server is not cluster leader; trying another server",
        ),
        (
            server_row("clustered", away),
            "tcp:a:1: clustered database server is disconnected from cluster; trying another server",
        ),
        (
            no_schema("clustered"),
            "tcp:a:1: clustered database server has not yet joined cluster; trying another server",
        ),
        (
            server_row("relay", LEADER),
            "tcp:a:1: relay database server cannot be a leader; trying another server",
        ),
        (
            server_row("relay", away),
            "tcp:a:1: relay database server is disconnected from the relay source; trying another server",
        ),
        (
            no_schema("relay"),
            "tcp:a:1: relay database server has not yet connected to the relay source; trying another server",
        ),
        (
            server_row("standalone", LEADER).replace(r#""name":"D""#, r#""name":"E""#),
            "tcp:a:1: server does not have D database",
        ),
    ] {
        let mut play = Play::new();
        play.shows_log = true;
        play.client.set_remote(0, "tcp:a:1", true);
        play.connect();
        play.go_to_contents(&row);
        let trace = play.take();
        assert!(trace.contains(&format!("* log: {line}\n")), "{trace}");
    }
}

#[test]
fn a_relay_stays_at_a_relay_that_has_lost_its_source_where_no_other_is_better() {
    let mut options = Options::new("D", 1);
    options.stays_at_lost_relays = true;
    let mut play = Play::with(options);
    play.client.set_leader_only(0, false);
    play.client.set_shuffle_remotes(false);
    play.client.set_remote(0, "tcp:a:1,tcp:b:1", true);
    let relay = |is: bool| server_row("relay", &format!(r#""connected":{is}"#));
    play.connect();
    play.go_to_contents(&relay(true));
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.take();
    // The other remote may be better, but is not.
    server_update(&mut play, r#"{"modify":{"connected":false}}"#);
    assert!(play.take().ends_with("connect tcp:b:1\n"));
    assert!(!play.client.is_at_lost_relay());
    play.connect();
    play.go_to_contents(&relay(false));
    assert!(!play.take().contains("disconnect"));
    assert!(play.client.is_at_lost_relay());
    // After a while the client looks at the first remote again.
    play.wait(1999);
    assert_eq!(play.take(), "");
    play.wait(1);
    assert!(play.take().ends_with("connect tcp:a:1\n"));
    play.connect();
    play.go_to_contents(&relay(false));
    assert!(play.client.is_at_lost_relay());
    play.take();
    server_update(&mut play, r#"{"modify":{"connected":true}}"#);
    assert!(play.take().contains("monitor_cond_since"));
    assert!(!play.client.is_at_lost_relay());
    play.reply(&format!(r#"[true,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.take();
    assert!(play.client.is_monitoring());
}

#[test]
fn a_relay_with_one_source_is_told_when_that_has_everything_again() {
    let mut options = Options::new("D", 1);
    options.stays_at_lost_relays = true;
    let mut play = Play::with(options);
    play.client.set_leader_only(0, false);
    play.client.set_probe_interval(Some(0));
    play.client.set_remote(0, "tcp:a:1", true);
    play.connect();
    play.go_to_contents(&server_row("relay", r#""connected":true"#));
    play.reply(&format!(r#"[false,"{}",{{}}]"#, id(5)));
    play.reply("{}");
    play.take();
    server_update(&mut play, r#"{"modify":{"connected":false}}"#);
    assert_eq!(play.take(), "", "it stays, and monitors");
    play.wait(60_000);
    assert!(play.client.is_at_lost_relay() && play.client.is_monitoring());
    play.take();
    server_update(&mut play, r#"{"modify":{"connected":true}}"#);
    assert!(
        play.take().contains("echo"),
        "what comes before the answer counts"
    );
    assert!(play.client.is_at_lost_relay());
    play.reply("[]");
    assert!(!play.client.is_at_lost_relay());
}
