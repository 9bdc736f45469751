//! Clustered databases that real processes serve: clusters of one member and of three.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corvid_tests::binary;
use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{
    add, await_rows, insert, numbers, others, schema, started, three,
};
use corvid_tests::peer;
use corvid_tests::random::Random;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

/// Checks that our `ovsdb-tool check-cluster`, and the reference's if it is installed, find nothing
/// wrong in the files of these members.
fn check_files(cluster: &Cluster, members: &[usize]) {
    check_files_except(cluster, members, |_| false);
}

/// Like [`check_files`], but the tools may print lines that `is_expected` accepts.
fn check_files_except(cluster: &Cluster, members: &[usize], is_expected: fn(&str) -> bool) {
    let programs = [
        Some(binary::bin("ovsdb-tool")),
        binary::reference("ovsdb-tool"),
    ];
    for program in programs.into_iter().flatten() {
        let files = members.iter().map(|member| cluster.file(*member));
        let output = Command::new(&program)
            .arg("check-cluster")
            .args(files)
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.lines().all(is_expected),
            "{}: {said}",
            program.display()
        );
    }
}

#[test]
fn a_cluster_of_one_keeps_its_commits_through_crashes() {
    let mut cluster = Cluster::created(&schema()).expect("made");
    for start in 0..3 {
        cluster.start().expect("started");
        cluster.leader_among(&[0]).expect("a leader");
        let mut client = cluster.connect(0).expect("a connection");
        let found = numbers(&mut client).expect("rows");
        assert_eq!(found, (0..start * 10).collect(), "after start {start}");
        for n in start * 10..(start + 1) * 10 {
            add(&mut client, n).expect("inserted");
        }
        let row = cluster.row(0).expect("a row");
        assert_eq!(row["model"], json!("clustered"), "{row}");
        assert_eq!(row["connected"], json!(true), "{row}");
        let sid = cluster.control(0, "cluster/sid", &["D"]).expect("an id");
        assert_eq!(row["sid"], json!(["uuid", sid.trim()]), "{row}");
        let cid = cluster.control(0, "cluster/cid", &["D"]).expect("an id");
        assert_eq!(row["cid"], json!(["uuid", cid.trim()]), "{row}");
        cluster.member(0).kill();
    }
    check_files(&cluster, &[0]);
}

#[test]
fn a_client_that_monitors_a_member_sees_its_own_commits() {
    let (mut cluster, _) = started(Cluster::created(&schema()).expect("made"));
    let mut client = cluster.connect(0).expect("a connection");
    let monitor = json!(["D", "m", {"T": [{"columns": ["n"]}]}]);
    let reply = client.call("monitor", &monitor).expect("a reply");
    assert_eq!(reply["result"], json!({}), "{reply}");
    let request = json!({"id": 1, "method": "transact", "params": insert(7, "one")});
    client.send(request.to_string().as_bytes()).expect("sent");
    let mut messages = Vec::new();
    while messages.len() < 2 {
        match client.receive(Duration::from_secs(30)).expect("received") {
            corvid_tests::client::Received::Text(text) => {
                messages.push(serde_json::from_slice::<Value>(&text).expect("JSON"));
            }
            other => panic!("{other:?} after {messages:?}"),
        }
    }
    assert_eq!(messages[0]["method"], json!("update"), "{messages:?}");
    assert_eq!(messages[1]["id"], json!(1), "{messages:?}");
    cluster.member(0).stop().expect("stopped");
}

#[test]
fn three_members_take_writes_and_survive_the_death_of_their_leader() {
    let (mut cluster, leader) = three();
    let followers = others(leader);
    let mut expected = BTreeSet::new();
    let mut n = 0;
    for (count, member) in [(20, leader), (20, followers[0]), (20, followers[1])] {
        let mut client = cluster.connect(member).expect("a connection");
        for _ in 0..count {
            add(&mut client, n).unwrap_or_else(|error| {
                panic!(
                    "insert through {member}: {error}\n{}",
                    cluster.member(member).said()
                )
            });
            expected.insert(n);
            n += 1;
        }
        // A session that stays at a member reads its own writes.
        assert_eq!(numbers(&mut client).expect("rows"), expected, "at {member}");
    }
    await_rows(&cluster, &[0, 1, 2], &expected);
    cluster.member(leader).kill();
    let (next, took) = cluster.leader_among(&followers).expect("a new leader");
    assert!(took < Duration::from_secs(30), "{took:?}");
    let mut client = cluster.connect(next).expect("a connection");
    assert_eq!(
        numbers(&mut client).expect("rows"),
        expected,
        "at the new leader"
    );
    for _ in 0..20 {
        add(&mut client, n).expect("inserted");
        expected.insert(n);
        n += 1;
    }
    cluster.member(leader).start().expect("started again");
    await_rows(&cluster, &[leader], &expected);
    for member in 0..3 {
        cluster.member(member).stop().expect("stopped");
    }
}

#[test]
fn servers_join_a_cluster_and_get_its_contents() {
    let mut cluster = Cluster::created(&schema()).expect("made");
    let joiner = cluster.add_joining().expect("made");
    cluster.member(joiner).start().expect("started");
    let mut client = cluster.connect(joiner).expect("a connection");
    let listed = client.call("list_dbs", &json!([])).expect("a reply");
    assert_eq!(listed["result"], json!(["D", "_Server"]), "{listed}");
    for (method, params) in [("get_schema", json!(["D"])), ("transact", insert(1, "x"))] {
        let reply = client.call(method, &params).expect("a reply");
        let details = format!(
            "{method} request specifies database D which is not yet available because it has not completed joining its cluster"
        );
        let error = json!({"error": "database not available", "details": details});
        assert_eq!(reply["error"], error, "{reply}");
    }
    let row = cluster.row(joiner).expect("a row");
    assert_eq!(row["connected"], json!(false), "{row}");
    assert_eq!(row["schema"], json!(["set", []]), "{row}");
    let zero = json!(["uuid", "00000000-0000-0000-0000-000000000000"]);
    assert_eq!(row["cid"], zero, "{row}");
    let status = cluster.status(joiner).expect("a status");
    assert!(status.contains("\nStatus: joining cluster\n"), "{status}");
    assert!(status.contains("\nCluster ID: not yet known\n"), "{status}");
    let refused = |command: &str| {
        let outcome = cluster.control(joiner, command, &["D"]);
        outcome.expect_err("refused").to_string()
    };
    assert_eq!(refused("cluster/cid").trim(), "cluster id not yet known");
    let refused = refused("ovsdb-server/compact");
    let expected = "ovsdb error: cannot store a snapshot while joining cluster";
    assert_eq!(refused.trim(), expected);

    cluster.member(0).start().expect("started");
    cluster.leader_among(&[0]).expect("a leader");
    let mut first = cluster.connect(0).expect("a connection");
    for n in 0..50 {
        add(&mut first, n).expect("inserted");
    }
    let third = cluster.add_joining().expect("made");
    cluster.member(third).start().expect("started");
    let expected: BTreeSet<i64> = (0..50).collect();
    for member in [joiner, third] {
        await_rows(&cluster, &[member], &expected);
        let holds = || {
            cluster
                .row(member)
                .is_ok_and(|row| row["connected"] == json!(true))
        };
        cluster
            .wait_until("shown in _Server", holds)
            .expect("in time");
        let status = cluster.status(member).expect("a status");
        assert!(status.contains("\nStatus: cluster member\n"), "{status}");
        assert_eq!(status.matches(" at unix:").count(), 3, "{status}");
    }
    // The cluster continues without its first member.
    cluster.member(0).kill();
    cluster.leader_among(&[joiner, third]).expect("a leader");
    let mut client = cluster.connect(third).expect("a connection");
    add(&mut client, 50).expect("inserted");
}

#[test]
fn operators_move_the_leadership_change_the_timer_and_compact() {
    let (mut cluster, leader) = three();
    let mut client = cluster.connect(leader).expect("a connection");
    for n in 0..200 {
        add(&mut client, n).expect("inserted");
    }
    for arguments in [["D", "3000"], ["X", "2000"], ["D", "50"]] {
        let outcome = cluster.control(leader, "cluster/change-election-timer", &arguments);
        outcome.expect_err("refused");
    }
    let reply = cluster.control(leader, "cluster/change-election-timer", &["D", "2000"]);
    let reply = reply.expect("accepted");
    assert_eq!(reply.trim(), "change of election timer initiated.");
    let holds = || {
        (0..3).all(|member| {
            let status = cluster.status(member).unwrap_or_default();
            status.contains("\nElection timer: 2000\n")
        })
    };
    cluster
        .wait_until("every member has the timer", holds)
        .expect("in time");

    for member in 0..3 {
        let before = std::fs::metadata(cluster.file(member))
            .expect("a file")
            .len();
        cluster
            .control(member, "ovsdb-server/compact", &["D"])
            .expect("compacted");
        let after = std::fs::metadata(cluster.file(member))
            .expect("a file")
            .len();
        assert!(after < before, "{member}: {before} bytes, then {after}");
    }
    let (still, _) = cluster.leader_among(&[leader]).expect("the same leader");
    assert_eq!(still, leader);

    let next = (leader + 1) % 3;
    cluster.move_leadership(next).expect("transferred");
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 200).expect("inserted");
    for member in 0..3 {
        cluster.member(member).stop().expect("stopped");
    }
    cluster.start().expect("started again");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let mut client = cluster.connect(leader).expect("a connection");
    assert_eq!(numbers(&mut client).expect("rows"), (0..=200).collect());
}

/// A member that is told to crash ends immediately, and the cluster continues without it.
#[test]
fn a_leader_that_crashes_between_log_and_peers_loses_nothing_that_was_acknowledged() {
    let (mut cluster, leader) = three();
    let mut client = cluster.connect(leader).expect("a connection");
    for n in 0..10 {
        add(&mut client, n).expect("inserted");
    }
    let refusal = cluster.control(leader, "cluster/failure-test", &["nonsense"]);
    let refusal = refusal.expect_err("refused").to_string();
    assert_eq!(refusal.trim(), "unknown test scenario");
    let scenario = "crash-after-sending-append-request";
    let reply = cluster.control(leader, "cluster/failure-test", &[scenario]);
    assert_eq!(reply.expect("a reply").trim(), "test engaged");
    // The reply never comes, although the followers may have the entry.
    let outcome = add(&mut client, 10);
    assert!(outcome.is_err(), "{outcome:?}");
    let others = others(leader);
    cluster.leader_among(&others).expect("a new leader");
    // The others elect a leader within milliseconds, perhaps before the system has reaped the dead.
    cluster.member(leader).await_end().expect("in time");
    let said = cluster.member(leader).said();
    assert!(
        said.contains("Raft test: crash after sending append_request."),
        "{said}"
    );
    let mut found = Vec::new();
    for member in others {
        let mut client = cluster.connect(member).expect("a connection");
        add(&mut client, 20 + member).expect("inserted");
        found.push(numbers(&mut client).expect("rows"));
    }
    for n in 0..10 {
        assert!(
            found.iter().all(|found| found.contains(&n)),
            "{n}: {found:?}"
        );
    }
}

#[test]
fn members_leave_and_are_removed() {
    let (cluster, leader) = three();
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, 1).expect("inserted");
    let others = others(leader);
    let refusal = cluster.control(leader, "cluster/kick", &["D", "unix:nobody"]);
    let refusal = refusal.expect_err("refused").to_string();
    assert_eq!(refusal.trim(), "unknown server");
    let reply = cluster.control(leader, "cluster/kick", &["D", &cluster.address(others[0])]);
    assert_eq!(reply.expect("accepted").trim(), "started removal");
    let holds = || cluster.row(others[0]).is_ok_and(|row| row.is_null());
    cluster
        .wait_until("its database is removed", holds)
        .expect("in time");
    let refusal = cluster
        .status(others[0])
        .expect_err("no member")
        .to_string();
    assert_eq!(refusal.trim(), "unknown cluster");
    cluster
        .control(others[1], "cluster/leave", &["D"])
        .expect("accepted");
    let holds = || cluster.row(others[1]).is_ok_and(|row| row.is_null());
    cluster
        .wait_until("the other has left", holds)
        .expect("in time");
    add(&mut client, 2).expect("inserted");
    assert_eq!(numbers(&mut client).expect("rows"), BTreeSet::from([1, 2]));
    let status = cluster.status(leader).expect("a status");
    assert_eq!(status.matches(" at unix:").count(), 1, "{status}");
    // The file of a server that has left is never opened again.
    let file = cluster.file(others[0]).display().to_string();
    let refusal = cluster.control(others[0], "ovsdb-server/add-db", &[&file]);
    let refusal = refusal.expect_err("refused").to_string();
    assert!(
        refusal.contains("indicates server has left the cluster"),
        "{refusal}"
    );
}

#[test]
fn configured_members_are_served_removed_and_served_again() {
    let (cluster, _) = started(Cluster::created(&schema()).expect("made"));
    let mut client = cluster.connect(0).expect("a connection");
    add(&mut client, 1).expect("inserted");
    let file = cluster.file(0).display().to_string();
    for _ in 0..3 {
        let again = cluster.control(0, "ovsdb-server/add-db", &[&file]);
        let again = again.expect_err("refused").to_string();
        assert!(again.contains("already open"), "{again}");
        cluster
            .control(0, "ovsdb-server/remove-db", &["D"])
            .expect("removed");
        let refusal = cluster.status(0).expect_err("unknown").to_string();
        assert_eq!(refusal.trim(), "unknown cluster");
        cluster
            .control(0, "ovsdb-server/add-db", &[&file])
            .expect("added");
        cluster.leader_among(&[0]).expect("a leader");
    }
    let mut client = cluster.connect(0).expect("a connection");
    assert_eq!(numbers(&mut client).expect("rows"), BTreeSet::from([1]));
    let status = cluster.control(0, "ovsdb-server/get-db-storage-status", &["D"]);
    assert_eq!(status.expect("a status").trim(), "status: ok");
    let usage = cluster.control(0, "memory/show", &[]).expect("an answer");
    assert!(usage.contains("raft-log:"), "{usage}");
    let status = cluster.control(0, "ovsdb-server/sync-status", &[]);
    assert_eq!(status.expect("a status").trim(), "state: active");
}

/// The number of times that a member is killed in the test below.
const DEATHS: usize = 6;

/// Inserts rows at one member until it is told to stop. The numbers of the rows are unique to this
/// writer, and it connects again when the member dies. Returns the numbers whose insertion was
/// acknowledged. Each number is tried only once, because a transaction without a reply may have
/// been executed.
fn write_until(is_done: &AtomicBool, socket: &Path, writer: i64) -> Vec<i64> {
    let mut acknowledged = Vec::new();
    let mut next = writer * 1_000_000;
    while !is_done.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(socket) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        while !is_done.load(Ordering::Relaxed) {
            next += 1;
            match add(&mut client, next) {
                Ok(()) => acknowledged.push(next),
                Err(_) => break,
            }
        }
    }
    acknowledged
}

#[test]
fn acknowledged_rows_are_there_exactly_once_after_members_died_under_load() {
    let seed = corvid_tests::random::seed("CORVID_SEED");
    let mut random = Random::new(seed);
    let (mut cluster, _) = three();
    let is_done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3)
        .map(|member| {
            let (is_done, socket) = (is_done.clone(), cluster.member(member).socket());
            let writer = i64::try_from(member).expect("small");
            std::thread::spawn(move || write_until(&is_done, &socket, writer))
        })
        .collect();
    for _ in 0..DEATHS {
        std::thread::sleep(Duration::from_millis(200 + random.below(300)));
        let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
        let victim = match random.one_in(2) {
            true => leader,
            false => usize::try_from(random.below(3)).expect("small"),
        };
        cluster.member(victim).kill();
        cluster
            .leader_among(&others(victim))
            .expect("a leader of those that live");
        cluster.member(victim).start().expect("started again");
    }
    is_done.store(true, Ordering::Relaxed);
    let acknowledged: BTreeSet<i64> = writers
        .into_iter()
        .flat_map(|writer| writer.join().expect("no panic"))
        .collect();
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let mut client = cluster.connect(leader).expect("a connection");
    add(&mut client, -1).expect("inserted");
    // This fails if a number exists twice.
    let found = numbers(&mut client).expect("rows");
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    await_rows(&cluster, &[0, 1, 2], &found);
    for member in 0..3 {
        cluster.member(member).stop().expect("stopped");
    }
    // A new leader may replace entries that a killed one wrote and never committed. The tools
    // report that, and it is a fault only if the file's own server led at that time.
    check_files_except(&cluster, &[0, 1, 2], |line| {
        line.contains(" truncates log from ") && !line.contains("while server is leader")
    });
    println!("{} acknowledged, {} found", acknowledged.len(), found.len());
}

#[test]
fn members_reach_each_other_over_tcp() {
    let (mut cluster, leader) = started(Cluster::over_tcp(3, &schema()).expect("made"));
    for member in 0..3 {
        let mut client = cluster.connect(member).expect("a connection");
        add(&mut client, member).expect("inserted");
    }
    let status = cluster.status(leader).expect("a status");
    assert_eq!(status.matches(" at tcp:127.0.0.1:").count(), 3, "{status}");
    // Standard clients find the leader.
    let remotes: Vec<String> = (0..3)
        .map(|member| format!("unix:{}", cluster.member(member).socket().display()))
        .collect();
    let select = r#"["D",{"op":"select","table":"T","where":[],"columns":["n"]}]"#;
    let programs = [
        Some(binary::bin("ovsdb-client")),
        binary::reference("ovsdb-client"),
    ];
    for program in programs.into_iter().flatten() {
        let output = Command::new(&program)
            .args(["--timeout=60", "query", &remotes.join(","), select])
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = (0..3).all(|n| said.contains(&format!("\"n\":{n}")));
        assert!(
            output.status.success() && all,
            "{}: {said}",
            program.display()
        );
        let output = Command::new(&program)
            .args(["--timeout=60", "wait", &remotes[leader], "D", "connected"])
            .output()
            .expect("started");
        assert!(output.status.success(), "{}", program.display());
    }
}

#[test]
fn refusals_of_cluster_commands_are_those_of_the_reference() {
    let commands: [(&str, &[&str]); 34] = [
        ("cluster/set-backlog-threshold", &["D", "50", "0"]),
        ("cluster/set-backlog-threshold", &["D", "49", "0"]),
        ("cluster/set-backlog-threshold", &["D", "500", "x"]),
        ("cluster/set-backlog-threshold", &["D", "x", "4096"]),
        ("cluster/set-backlog-threshold", &["D", "-1", "-1"]),
        (
            "cluster/set-backlog-threshold",
            &["D", "500", "18446744073709551615"],
        ),
        (
            "cluster/set-backlog-threshold",
            &["D", "500", "18446744073709551616"],
        ),
        ("cluster/set-backlog-threshold", &["D", " +500", " 4096"]),
        ("cluster/set-backlog-threshold", &["D", "500x", "0"]),
        (
            "cluster/set-backlog-threshold",
            &["D", "-18446744073709551567", "0"],
        ),
        ("cluster/set-backlog-threshold", &["X", "500", "4096"]),
        ("cluster/set-backlog-threshold", &["D", "500"]),
        ("cluster/change-election-timer", &["D", "1000"]),
        ("cluster/change-election-timer", &["D", "99"]),
        ("cluster/change-election-timer", &["D", "x"]),
        ("cluster/change-election-timer", &["D", "99x"]),
        ("cluster/change-election-timer", &["D", " 1000x"]),
        ("cluster/change-election-timer", &["D", "-1000"]),
        ("cluster/change-election-timer", &["D", "2001"]),
        ("cluster/change-election-timer", &["X", "1000"]),
        ("cluster/status", &["X"]),
        ("cluster/cid", &["X"]),
        ("cluster/sid", &["X"]),
        ("cluster/leave", &["X"]),
        ("cluster/kick", &["X", "0000"]),
        ("cluster/status", &[]),
        ("cluster/status", &["D", "x"]),
        ("cluster/cid", &[]),
        ("cluster/leave", &[]),
        ("cluster/kick", &["D"]),
        ("cluster/change-election-timer", &["D"]),
        ("cluster/failure-test", &["x"]),
        ("cluster/failure-test", &["delay-election"]),
        ("cluster/failure-test", &["clear"]),
    ];
    let replies = |implementation| {
        let cluster = Cluster::joined(implementation, 1, &schema()).expect("a cluster of one");
        cluster.leader_among(&[0]).expect("a leader");
        let reply = |(command, arguments): &(&str, &[&str])| {
            let outcome = cluster.control(0, command, arguments);
            let outcome = outcome.map_err(|error| error.to_string());
            format!("{command} {arguments:?}: {outcome:?}")
        };
        commands.iter().map(reply).collect::<Vec<String>>()
    };
    let ours = replies(Implementation::Corvid);
    if binary::reference("ovsdb-tool").is_none() {
        return peer::say_skipped("the reference is not installed: replies are not compared");
    }
    assert_eq!(ours, replies(Implementation::Reference));
}
