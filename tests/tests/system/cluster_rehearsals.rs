//! Every scenario of `cluster/failure-test` (docs/spec/distribution.md 1.12), in processes that
//! serve clients.

use std::collections::BTreeSet;
use std::time::Duration;

use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{add, await_rows, numbers_at, others, schema, started, three};

/// Starts a cluster of three with row 0. Returns it with its leader and its followers.
fn with_row() -> (Cluster, usize, Vec<usize>) {
    let (cluster, leader) = three();
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 0).expect("inserted");
    (cluster, leader, others(leader))
}

fn engage(cluster: &Cluster, member: usize, scenario: &str) {
    let reply = cluster.control(member, "cluster/failure-test", &[scenario]);
    assert_eq!(reply.expect("a reply").trim(), "test engaged", "{scenario}");
    // The member's thread handles this after the command, so its reply shows that the scenario is
    // in force.
    cluster.status(member).expect("a status");
}

fn clear(cluster: &Cluster, member: usize) {
    let reply = cluster.control(member, "cluster/failure-test", &["clear"]);
    assert_eq!(reply.expect("a reply").trim(), "test dismissed");
}

/// Waits until the member has ended with this text.
fn await_crash(cluster: &mut Cluster, member: usize, text: &str) {
    cluster.member(member).await_end().expect(text);
    let said = cluster.member(member).said();
    let line = format!("|EMER|Raft test: {text}\n");
    assert!(said.contains(&line), "{said}");
    assert!(
        said.contains(&format!("ovsdb-server: Raft test: {text}\n")),
        "{said}"
    );
}

/// Restarts a crashed member, and waits until all members have exactly these rows.
fn recover(cluster: &mut Cluster, member: usize, expected: &BTreeSet<i64>) {
    cluster.member(member).start().expect("started again");
    await_rows(cluster, &[0, 1, 2], expected);
}

/// Makes the leader crash at the point of the scenario while a row is written. Returns whether the
/// row exists afterwards.
fn is_kept_by_crash_of_leader(scenario: &str, text: &str) -> bool {
    let (mut cluster, leader, others) = with_row();
    engage(&cluster, leader, scenario);
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect_err("no reply");
    await_crash(&mut cluster, leader, text);
    let (next, _) = cluster.leader_among(&others).expect("a new leader");
    let found = numbers_at(&cluster, next).expect("rows");
    assert!(found.contains(&0), "{found:?}");
    recover(&mut cluster, leader, &found);
    found.contains(&1)
}

#[test]
fn leader_crashes_around_its_append_requests() {
    let is_kept = is_kept_by_crash_of_leader(
        "crash-before-sending-append-request",
        "crash before sending append_request.",
    );
    assert!(!is_kept, "no other member had the entry");
    let is_kept = is_kept_by_crash_of_leader(
        "crash-after-sending-append-request",
        "crash after sending append_request.",
    );
    assert!(is_kept, "the others have the entry");
}

#[test]
fn leader_crashes_around_its_answer_to_a_forwarded_transaction() {
    for (scenario, text) in [
        (
            "crash-before-sending-execute-command-reply",
            "crash before sending execute_command_reply",
        ),
        (
            "crash-after-sending-execute-command-reply",
            "crash after sending execute_command_reply.",
        ),
    ] {
        let (mut cluster, leader, others) = with_row();
        engage(&cluster, leader, scenario);
        let mut client = cluster.connect(others[0]).expect("a connection");
        // The session stays at its member, so it gets its reply, if necessary from the next leader,
        // and the row exists once.
        add(&mut client, 1).expect("inserted");
        await_crash(&mut cluster, leader, text);
        recover(&mut cluster, leader, &BTreeSet::from([0, 1]));
    }
}

#[test]
fn follower_crashes_around_a_forwarded_transaction() {
    for (scenario, text, expected) in [
        (
            "crash-before-sending-execute-command-request",
            "crash before sending execute_command_request",
            BTreeSet::from([0, 2]),
        ),
        (
            "crash-after-sending-execute-command-request",
            "crash after sending execute_command_request",
            BTreeSet::from([0, 1, 2]),
        ),
    ] {
        let (mut cluster, leader, others) = with_row();
        engage(&cluster, others[0], scenario);
        let mut client = cluster.connect(others[0]).expect("a connection");
        add(&mut client, 1).expect_err("no reply");
        await_crash(&mut cluster, others[0], text);
        let holds =
            || numbers_at(&cluster, leader).is_ok_and(|rows| rows.len() + 1 == expected.len());
        cluster
            .wait_until("the leader has executed it", holds)
            .expect("in time");
        let mut client = cluster.connect(leader).expect("a connection");
        add(&mut client, 2).expect("inserted");
        recover(&mut cluster, others[0], &expected);
    }
}

#[test]
fn follower_crashes_when_it_gets_entries() {
    let (mut cluster, leader, others) = with_row();
    engage(
        &cluster,
        others[0],
        "crash-after-receiving-append-request-update",
    );
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect("the others are a majority");
    let text = "crash after receiving append_request with update.";
    await_crash(&mut cluster, others[0], text);
    recover(&mut cluster, others[0], &BTreeSet::from([0, 1]));
}

#[test]
fn joining_server_crashes_when_it_has_its_snapshot() {
    let (mut cluster, _) = started(Cluster::created(&schema()).expect("made"));
    let mut client = cluster.connect(0).expect("a connection");
    add(&mut client, 0).expect("inserted");
    engage(&cluster, 0, "stop-raft-rpc");
    let joiner = cluster.add_joining().expect("made");
    cluster.member(joiner).start().expect("started");
    engage(
        &cluster,
        joiner,
        "crash-before-sending-install-snapshot-reply",
    );
    clear(&cluster, 0);
    let text = "crash before sending install_snapshot_reply";
    await_crash(&mut cluster, joiner, text);
    // The file is still that of a joining server.
    let file = std::fs::read_to_string(cluster.file(joiner)).expect("a file");
    assert!(file.contains("\"remote_addresses\""), "{file}");
    cluster.member(joiner).start().expect("started again");
    await_rows(&cluster, &[joiner], &BTreeSet::from([0]));
}

/// Returns how many elections a member has begun according to its log.
fn elections(cluster: &mut Cluster, member: usize) -> usize {
    let log = cluster.member(member).log();
    log.matches("timeout expired, starting election").count()
}

#[test]
fn elections_are_delayed_and_forced_and_get_no_votes() {
    let (mut cluster, leader, others) = with_row();
    // Each waits for at least twice the timer since the last heartbeat.
    for member in &others {
        engage(&cluster, *member, "delay-election");
    }
    cluster.member(leader).kill();
    let (next, waited) = cluster.leader_among(&others).expect("a new leader");
    // The last heartbeat may have been sent up to a third of the timer before the leader ends. On a
    // busy machine, this takes a while.
    assert!(waited > Duration::from_millis(1300), "{waited:?}");
    for member in &others {
        clear(&cluster, *member);
    }
    cluster.member(leader).start().expect("started again");

    // A healthy cluster is not disturbed by a follower that stands for election.
    let holds = || {
        cluster
            .status(leader)
            .is_ok_and(|it| !it.contains("Leader: unknown"))
    };
    cluster.wait_until("it follows", holds).expect("in time");
    let before = cluster.status(leader).expect("a status");
    assert!(!before.contains("Last Election started"), "{before}");
    engage(&cluster, leader, "force-election");
    let holds = || {
        let status = cluster.status(leader).unwrap_or_default();
        status.contains("Last Election started") && status.contains("Role: follower")
    };
    cluster
        .wait_until("it follows again", holds)
        .expect("in time");
    let log = cluster.member(leader).log();
    assert!(log.contains(": starting election (pre-vote)"), "{log}");
    assert!(cluster.leads(next).expect("a row"), "{}", cluster.said());

    // Without requests for votes, no member can be elected.
    let voters = self::others(next);
    for member in &voters {
        engage(&cluster, *member, "dont-send-vote-request");
    }
    let before: Vec<usize> = voters
        .iter()
        .map(|it| elections(&mut cluster, *it))
        .collect();
    cluster.member(next).kill();
    for (member, before) in voters.iter().zip(before) {
        for _ in 0..6000 {
            if elections(&mut cluster, *member) >= before + 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(elections(&mut cluster, *member) >= before + 2);
        assert!(!cluster.leads(*member).expect("a row"));
    }
    for member in &voters {
        clear(&cluster, *member);
    }
    cluster.leader_among(&voters).expect("a new leader");
}

#[test]
fn leader_whose_traffic_stops_is_replaced_and_follows_later() {
    let (cluster, leader, others) = with_row();
    engage(&cluster, leader, "stop-raft-rpc");
    let (next, _) = cluster.leader_among(&others).expect("a new leader");
    let holds = || cluster.leads(leader).is_ok_and(|leads| !leads);
    cluster
        .wait_until("it stops leading", holds)
        .expect("in time");
    // Its clients are served from the contents that it has.
    let found = numbers_at(&cluster, leader).expect("rows");
    assert_eq!(found, BTreeSet::from([0]));
    let mut client = cluster.connect(next).expect("a connection");
    add(&mut client, 1).expect("inserted");
    assert_eq!(numbers_at(&cluster, leader).expect("rows"), found);
    clear(&cluster, leader);
    await_rows(&cluster, &[leader], &BTreeSet::from([0, 1]));
}

#[test]
fn leader_hands_over_at_once_after_an_entry_and_when_it_adds_a_server() {
    let (mut cluster, leader, _) = with_row();
    engage(&cluster, leader, "transfer-leadership");
    let (leader, _) = cluster.leader_among(&others(leader)).expect("a new leader");

    engage(
        &cluster,
        leader,
        "transfer-leadership-after-sending-append-request",
    );
    assert!(cluster.leads(leader).expect("a row"));
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect("the client gets its reply");
    let (leader, _) = cluster.leader_among(&others(leader)).expect("a new leader");
    // The transfer happens only once.
    for n in 2..9 {
        let mut client = cluster.connect(leader).expect("a connection");
        add(&mut client, n).expect("inserted");
    }
    assert!(cluster.leads(leader).expect("a row"));

    // The scenario also applies to a member that the server serves later.
    for member in 0..3 {
        engage(
            &cluster,
            member,
            "transfer-leadership-after-starting-to-add",
        );
    }
    let file = cluster.file(leader).display().to_string();
    cluster
        .control(leader, "ovsdb-server/remove-db", &["D"])
        .expect("removed");
    cluster.leader_among(&others(leader)).expect("a new leader");
    cluster
        .control(leader, "ovsdb-server/add-db", &[&file])
        .expect("added");
    let joiner = cluster.add_joining().expect("made");
    cluster.member(joiner).start().expect("started");
    // Each member transfers the leadership once, and the joining server is nevertheless admitted.
    await_rows(&cluster, &[joiner], &(0..9).collect());
    let said: Vec<String> = (0..3).map(|it| cluster.member(it).said()).collect();
    let handed_over = "failed (lost leadership)";
    assert!(
        said.iter().any(|said| said.contains(handed_over)),
        "{said:?}"
    );
}

#[test]
fn cleared_crash_does_not_happen() {
    let (mut cluster, leader, _) = with_row();
    engage(&cluster, leader, "crash-before-sending-append-request");
    clear(&cluster, leader);
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect("inserted");
    // The second scenario replaces the first one.
    engage(&cluster, leader, "crash-before-sending-append-request");
    engage(&cluster, leader, "stop-raft-rpc");
    clear(&cluster, leader);
    add(&mut client, 2).expect("inserted");
    assert!(!cluster.member(leader).has_ended());
    // A scenario remains in force while an election is forced.
    engage(&cluster, leader, "crash-before-sending-append-request");
    engage(&cluster, leader, "force-election");
    add(&mut client, 3).expect_err("no reply");
    await_crash(&mut cluster, leader, "crash before sending append_request.");
}
