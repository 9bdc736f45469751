//! Files of cluster members that are damaged, or that the disk does not accept. The member reports
//! this in its log, in `cluster/status` and in its metrics, and the other members continue. Where
//! it is possible, the member recovers without an operator.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{add_with, await_rows, numbers_at, others, schema, started};
use corvid_tests::{http, troubled_disk};
use serde_json::json;

/// Error numbers of the operating system.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Starts three members with metrics, and waits for a leader.
fn cluster() -> (Cluster, usize) {
    let options = ["--metrics-listen=unix:http".into()];
    let cluster = Cluster::over("tcp", "127.0.0.1", 3, &options, &schema());
    started(cluster.expect("made"))
}

fn add(client: &mut Client, n: i64) {
    add_with(client, n, &"0123456789".repeat(10)).expect("inserted");
}

fn add_all(cluster: &Cluster, member: usize, numbers: std::ops::Range<i64>) {
    let mut client = cluster.connect(member).expect("a connection");
    numbers.for_each(|n| add(&mut client, n));
}

/// Whether a member's metrics say that its file is in this state.
fn is_file(cluster: &Cluster, member: usize, state: &str) -> bool {
    let folder = cluster.file(member);
    let folder = folder.parent().expect("it lies in a folder");
    let page = http::get(&folder.join("http"), "/metrics", "text/plain").expect("an answer");
    let sample = format!("corvid_cluster_file_state{{database=\"D\",state=\"{state}\"}} 1");
    page.body.contains(&sample)
}

fn has_status(cluster: &Cluster, member: usize, text: &str) -> bool {
    let line = format!("Status: {text}\n");
    cluster.status(member).is_ok_and(|it| it.contains(&line))
}

/// Flips a bit of the byte that follows the last occurrence of `text` in the first half of a file.
fn rot(file: &Path, text: &str) {
    let mut bytes = fs::read(file).expect("it is there");
    let middle = bytes.len() / 2;
    let mut places = bytes[..middle].windows(text.len());
    let place = places.rposition(|window| window == text.as_bytes());
    let place = place.expect("the text is there") + text.len();
    bytes[place + 20] ^= 1;
    fs::write(file, bytes).expect("written");
}

#[test]
fn a_member_whose_file_has_rotted_is_healed_by_its_cluster() {
    let (mut cluster, leader) = cluster();
    add_all(&cluster, leader, 0..50);
    let victim = (leader + 1) % 3;
    let third = (leader + 2) % 3;
    let all: BTreeSet<i64> = (0..50).collect();
    await_rows(&cluster, &[victim], &all);
    cluster.member(victim).kill();
    rot(&cluster.file(victim), "\"data\":[null,");
    let damaged = fs::read(cluster.file(victim)).expect("it is there");
    // While the member is alone it waits, reports this, and does not change anything.
    cluster.member(leader).kill();
    cluster.member(third).kill();
    cluster.member(victim).start().expect("started");
    assert!(has_status(
        &cluster,
        victim,
        "file damaged, waiting for a snapshot from the leader"
    ));
    let row = cluster.row(victim).expect("a row");
    assert_eq!(row["connected"], json!(false), "{row}");
    // Clients and operators are not told that the server is joining.
    let reason =
        "the file of this member is damaged and the leader of its cluster has not replaced it";
    let mut client = cluster.connect(victim).expect("a connection");
    let reply = client.call("transact", &json!(["D"])).expect("a reply");
    assert_eq!(
        reply["error"]["details"],
        format!(
            "transact request specifies database D which is not yet available because {reason}"
        )
    );
    let status = cluster.control(victim, "ovsdb-server/get-db-storage-status", &["D"]);
    assert_eq!(
        status.expect("a reply"),
        format!("status: ovsdb error: {reason}\n")
    );
    let refusal = cluster.control(victim, "ovsdb-server/compact", &["D"]);
    let refusal = refusal
        .expect_err("there is nothing to compact")
        .to_string();
    assert!(
        refusal.contains("cannot store a snapshot into a damaged file"),
        "{refusal}"
    );
    cluster
        .wait_until("the metric", || is_file(&cluster, victim, "damaged"))
        .expect("in time");
    let log = cluster.members()[victim].log();
    for line in [
        "have SHA-1 hash",
        "the file of this member is damaged: it does not vote, acknowledge or serve until its leader has sent it a snapshot",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
    assert_eq!(
        fs::read(cluster.file(victim)).expect("it is there"),
        damaged
    );
    cluster.member(leader).start().expect("started");
    cluster.member(third).start().expect("started");
    cluster
        .wait_until("healing", || {
            has_status(&cluster, victim, "cluster member") && is_file(&cluster, victim, "intact")
        })
        .expect("in time");
    let log = cluster.members()[victim].log();
    assert!(
        log.contains("which takes part in its cluster again"),
        "{log}"
    );
    await_rows(&cluster, &[victim], &all);
    // Now the cluster needs its vote and its acknowledgements.
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let gone = if leader == victim { third } else { leader };
    cluster.member(gone).kill();
    let rest = others(gone);
    let (leader, _) = cluster.leader_among(&rest).expect("a leader");
    add_all(&cluster, leader, 50..60);
    let all: BTreeSet<i64> = (0..60).collect();
    for member in &rest {
        await_rows(&cluster, &[*member], &all);
    }
    // The file opens again.
    cluster.member(victim).kill();
    cluster.member(victim).start().expect("started");
    cluster
        .wait_until("the file", || is_file(&cluster, victim, "intact"))
        .expect("in time");
}

#[test]
fn a_snapshot_that_has_rotted_is_not_sent_and_its_file_is_written_again() {
    let (mut cluster, leader) = cluster();
    add_all(&cluster, leader, 0..50);
    let victim = (leader + 1) % 3;
    let all: BTreeSet<i64> = (0..50).collect();
    await_rows(&cluster, &[victim], &all);
    cluster
        .control(leader, "ovsdb-server/compact", &["D"])
        .expect("compacted");
    cluster.member(victim).kill();
    rot(&cluster.file(victim), "\"data\":[null,");
    // The byte is changed in place, as a failing disk does.
    let file = cluster.file(leader);
    let bytes = fs::read(&file).expect("it is there");
    let place = bytes.windows(5).position(|it| it == b"45678");
    let place = place.expect("a row is there");
    let open = fs::OpenOptions::new().write(true).open(&file);
    open.expect("opened")
        .write_all_at(b"X", place as u64)
        .expect("written");
    cluster.member(victim).start().expect("started");
    cluster
        .wait_until("healing", || {
            has_status(&cluster, victim, "cluster member") && is_file(&cluster, victim, "intact")
        })
        .expect("in time");
    cluster
        .wait_until("the other file", || is_file(&cluster, leader, "intact"))
        .expect("in time");
    let log = cluster.members()[leader].log();
    assert!(log.contains("bytes of the file have changed"), "{log}");
    for member in [victim, leader] {
        cluster.member(member).kill();
        cluster.member(member).start().expect("started");
        cluster
            .wait_until("all rows", || {
                is_file(&cluster, member, "intact")
                    && numbers_at(&cluster, member).is_ok_and(|rows| rows == all)
            })
            .expect("in time");
    }
}

#[test]
fn a_member_whose_own_snapshot_has_rotted_is_healed_while_others_write() {
    let (mut cluster, leader) = cluster();
    add_all(&cluster, leader, 0..50);
    let victim = (leader + 1) % 3;
    let all: BTreeSet<i64> = (0..50).collect();
    await_rows(&cluster, &[victim], &all);
    cluster
        .control(victim, "ovsdb-server/compact", &["D"])
        .expect("compacted");
    // An entry after the snapshot shows where the log ends.
    add_all(&cluster, leader, 50..51);
    let all: BTreeSet<i64> = (0..51).collect();
    await_rows(&cluster, &[victim], &all);
    cluster.member(victim).kill();
    rot(&cluster.file(victim), "\"text\":\"012");
    cluster.member(victim).start().expect("started");
    add_all(&cluster, leader, 51..70);
    cluster
        .wait_until("healing", || {
            has_status(&cluster, victim, "cluster member") && is_file(&cluster, victim, "intact")
        })
        .expect("in time");
    let all: BTreeSet<i64> = (0..70).collect();
    await_rows(&cluster, &[victim], &all);
    let log = cluster.members()[victim].log();
    assert!(
        log.contains("which takes part in its cluster again"),
        "{log}"
    );
}

#[test]
fn a_file_that_hides_a_vote_is_refused_with_advice() {
    let (mut cluster, leader) = cluster();
    add_all(&cluster, leader, 0..5);
    let victim = (leader + 1) % 3;
    cluster.member(victim).kill();
    let file = cluster.file(victim);
    let mut bytes = fs::read(&file).expect("it is there");
    let vote = b"\"vote\":\"";
    let place = bytes.windows(vote.len()).rposition(|it| it == vote);
    let place = place.expect("it has voted");
    bytes[place..place + 30].fill(b'x');
    fs::write(&file, bytes).expect("written");
    let refused = cluster.member(victim).start().expect_err("refused");
    let text = refused.to_string();
    for part in [
        "a vote may have been among the damaged bytes",
        "cluster/kick at one of them, and join with a new file",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_member_whose_file_is_older_than_its_promises_stops_with_advice() {
    let (mut cluster, leader) = cluster();
    add_all(&cluster, leader, 0..5);
    let victim = (leader + 1) % 3;
    cluster.member(victim).kill();
    let old = fs::read(cluster.file(victim)).expect("it is there");
    cluster.member(victim).start().expect("started");
    add_all(&cluster, leader, 5..20);
    let all: BTreeSet<i64> = (0..20).collect();
    await_rows(&cluster, &[victim], &all);
    cluster.member(victim).kill();
    fs::write(cluster.file(victim), old).expect("written");
    cluster.member(victim).start().expect("started");
    cluster
        .wait_until("the end of the member", || {
            is_file(&cluster, victim, "lost")
                && cluster
                    .status(victim)
                    .is_ok_and(|text| text.contains("Status: failed: this member has acknowledged"))
        })
        .expect("in time");
    let row = cluster.row(victim).expect("a row");
    assert_eq!(row["connected"], json!(false), "{row}");
    let log = cluster.members()[victim].log();
    assert!(log.contains("cluster/kick at another member"), "{log}");
    // Following the advice helps.
    let sid = cluster
        .control(victim, "cluster/sid", &["D"])
        .expect("an id");
    cluster.member(victim).kill();
    let arguments = ["D", sid.trim()];
    cluster
        .control(leader, "cluster/kick", &arguments)
        .expect("kicked");
    add_all(&cluster, leader, 20..25);
}

/// Two of three files are replaced by older copies. The third member then has commits that no other
/// member has, and does not agree with the next leader.
#[test]
fn a_member_whose_leader_has_lost_its_commits_stops_and_says_so() {
    let (mut cluster, leader) = cluster();
    let members = [0, 1, 2];
    add_all(&cluster, leader, 0..5);
    await_rows(&cluster, &members, &(0..5).collect());
    let whole = (leader + 1) % 3;
    let losers = others(whole);
    let copy = |loser: &usize| fs::read(cluster.file(*loser)).expect("it is there");
    let copies: Vec<Vec<u8>> = losers.iter().map(copy).collect();
    add_all(&cluster, leader, 5..20);
    await_rows(&cluster, &members, &(0..20).collect());
    for member in members {
        cluster.member(member).kill();
    }
    for (loser, copy) in losers.iter().zip(copies) {
        fs::write(cluster.file(*loser), copy).expect("written");
        cluster.member(*loser).start().expect("started");
    }
    let (leader, _) = cluster.leader_among(&losers).expect("a leader");
    add_all(&cluster, leader, 100..102);
    // The member remains stopped even if nobody is left to tell it.
    for is_again in [false, true] {
        cluster.member(whole).start().expect("started");
        cluster
            .wait_until("the end of the member", || {
                is_file(&cluster, whole, "diverged")
                    && cluster.status(whole).is_ok_and(|text| {
                        text.contains("Status: failed: this member has committed entry")
                    })
            })
            .expect("in time");
        let row = cluster.row(whole).expect("a row");
        assert_eq!(row["connected"], json!(false), "{row}");
        let log = cluster.members()[whole].log();
        assert!(log.contains("Keep its file"), "{log}");
        cluster.member(whole).kill();
        if !is_again {
            for loser in &losers {
                cluster.member(*loser).kill();
            }
        }
    }
}

/// Makes the disk of this member fail as the variable says. It fails while the returned file
/// exists.
fn trouble(
    cluster: &mut Cluster,
    member: usize,
    variable: &str,
    number: i32,
) -> std::path::PathBuf {
    let file = cluster.file(member);
    let folder = file.parent().expect("it lies in a folder").to_owned();
    let (library, during) = (troubled_disk::library(&folder), folder.join("trouble"));
    let process = cluster.member(member);
    process.kill();
    process.set_variable("LD_PRELOAD", library);
    process.set_variable(troubled_disk::FILE, &file);
    process.set_variable(troubled_disk::WHILE, &during);
    process.set_variable(variable, number.to_string());
    process.start().expect("started");
    let is_member = |cluster: &Cluster| has_status(cluster, member, "cluster member");
    cluster
        .wait_until("a member", || is_member(cluster))
        .expect("in time");
    during
}

/// The disk of a follower, and then that of a leader, fails and recovers.
fn survive(variable: &str, number: i32, status: &str, state: &str, line: &str) {
    let (mut cluster, leader) = cluster();
    let victim = (leader + 1) % 3;
    let during = trouble(&mut cluster, victim, variable, number);
    let mut next = 0;
    for is_leader in [false, true] {
        if is_leader {
            cluster.move_leadership(victim).expect("handed over");
        }
        fs::write(&during, "").expect("written");
        // Its own client gets a reply only when the member has applied the transaction, for which
        // it needs its disk.
        let others = others(victim);
        let mut client = cluster.connect(victim).expect("a connection");
        let own = std::thread::spawn(move || add(&mut client, next));
        // A member whose disk has failed does not remain the leader.
        let (leader, _) = cluster.leader_among(&others).expect("a leader");
        add_all(&cluster, leader, next + 1..next + 10);
        next += 10;
        cluster
            .wait_until("the state", || {
                has_status(&cluster, victim, status) && is_file(&cluster, victim, state)
            })
            .expect("in time");
        let log = cluster.members()[victim].log();
        assert!(log.contains(line), "{line} in {log}");
        fs::remove_file(&during).expect("removed");
        cluster
            .wait_until("its recovery", || {
                has_status(&cluster, victim, "cluster member")
                    && is_file(&cluster, victim, "intact")
            })
            .expect("in time");
        own.join().expect("answered");
        let all: BTreeSet<i64> = (0..next).collect();
        await_rows(&cluster, &[victim], &all);
    }
    // Everything that the member has acknowledged since then is in its file.
    let gone = (victim + 1) % 3;
    cluster.member(gone).kill();
    let rest = others(gone);
    let (leader, _) = cluster.leader_among(&rest).expect("a leader");
    add_all(&cluster, leader, next..next + 5);
}

#[test]
fn a_member_whose_disk_is_full_goes_on_when_there_is_room() {
    survive(
        troubled_disk::WRITE_ERRNO,
        ENOSPC,
        "cluster member (writes to its file fail: check the disk)",
        "failing",
        "this member acknowledges nothing until writes to its file succeed again, and keeps retrying: check the disk",
    );
}

#[test]
fn a_member_whose_disk_fails_to_sync_writes_its_file_again() {
    survive(
        troubled_disk::SYNC_ERRNO,
        EIO,
        "cluster member (its file is being rewritten: a sync failed or its bytes changed)",
        "poisoned",
        "this member stores and acknowledges nothing until it has rewritten its file",
    );
}
