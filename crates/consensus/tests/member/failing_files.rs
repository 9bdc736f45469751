//! Members whose files accept no records for some time.

use corvid_consensus::Input;
use corvid_consensus::member::{Command, FileState};
use corvid_log::cluster::{Index, Sid};

use crate::cluster::{Cluster, Node, sid};

fn node(cluster: &mut Cluster, sid: Sid) -> &mut Node {
    cluster.nodes.get_mut(&sid).expect("a server")
}

fn snapshot(cluster: &Cluster, sid: Sid) -> Index {
    let meta = cluster.nodes[&sid].disk.meta.as_ref();
    meta.map_or(Index(0), |meta| meta.index)
}

/// Returns the leader and a member that does not lead.
fn follower(cluster: &mut Cluster) -> (Sid, Sid) {
    let leader = cluster.await_leader();
    cluster.run(1500);
    let mut others = (1..=3).map(sid).filter(|other| *other != leader);
    (leader, others.next().expect("another"))
}

#[test]
fn records_behind_a_new_file_are_not_written_twice_when_the_first_append_to_it_fails() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(3, seed);
        let (leader, follower) = follower(&mut cluster);
        cluster.write(leader, 5);
        cluster.run(200);
        // A sync fails, and later the disk is full: the new file gets entries that are committed
        // while it is being written.
        node(&mut cluster, follower).disk.is_poisoned = true;
        node(&mut cluster, follower).disk.is_full = true;
        let before = snapshot(&cluster, follower);
        cluster.write(leader, 3);
        cluster.run_until("a new file", 5000, |cluster| {
            snapshot(cluster, follower) > before
        });
        cluster.run(20);
        node(&mut cluster, follower).disk.is_full = false;
        cluster.run(3000);
        // Its file opens.
        cluster.crash(follower);
        cluster.start(follower);
        cluster.write(leader, 1);
        cluster.run(500);
        cluster.await_equal();
    }
}

#[test]
fn a_timeout_that_begins_no_election_is_forgotten_when_the_leader_is_heard_again() {
    let mut cluster = Cluster::new(3, 7);
    let (leader, follower) = follower(&mut cluster);
    // The follower cannot stand for election: it knows that a new list of members is committed, and
    // cannot store it.
    node(&mut cluster, follower).disk.is_full = true;
    cluster.join(4);
    cluster.run(3000);
    cluster.cut(follower);
    cluster.run(8000);
    assert!(!cluster.nodes[&follower].is_connected, "it hears no leader");
    cluster.cuts.clear();
    node(&mut cluster, follower).disk.is_full = false;
    cluster.run_until("a connected row", 3000, |cluster| {
        cluster.nodes[&follower].is_connected
    });
    cluster.run(5000);
    assert!(
        cluster
            .reply(leader, Command::TransferLeadership(None))
            .is_ok()
    );
    cluster.await_equal();
}

#[test]
fn a_follower_that_can_store_nothing_is_not_connected_while_it_lacks_commits() {
    let mut cluster = Cluster::new(3, 8);
    let (leader, follower) = follower(&mut cluster);
    cluster.write(leader, 3);
    cluster.run(500);
    node(&mut cluster, follower).disk.is_full = true;
    cluster.run(3000);
    assert!(
        cluster.nodes[&follower].is_connected,
        "it lacks nothing, so its clients stay"
    );
    cluster.write(leader, 3);
    cluster.run_until("a row that is not connected", 3000, |cluster| {
        !cluster.nodes[&follower].is_connected
    });
    cluster.run(5000);
    assert!(
        !cluster.nodes[&follower].is_connected,
        "as long as that lasts"
    );
    node(&mut cluster, follower).disk.is_full = false;
    cluster.run_until("a connected row", 5000, |cluster| {
        cluster.nodes[&follower].is_connected
    });
    cluster.await_equal();
}

/// Checks that its file accepts new records now, and opens.
fn check_stores(cluster: &mut Cluster, leader: Sid, follower: Sid) {
    cluster.write(leader, 3);
    cluster.run(3000);
    let other = (1..=3).map(sid).find(|it| ![leader, follower].contains(it));
    cluster.crash(other.expect("a third"));
    // The follower's acknowledgements are needed now.
    let known = cluster.known.len();
    let leader = cluster.await_leader();
    cluster.write(leader, 2);
    cluster.run_until("acknowledged entries", 10_000, |cluster| {
        cluster.known.len() >= known + 2
    });
    cluster.crash(follower);
    cluster.start(follower);
    cluster.start(other.expect("a third"));
    cluster.await_equal();
}

const MEBIBYTE: usize = 1024 * 1024;

/// Has the disk of this member too little room for another entry of a mebibyte, and half of that.
fn fill(cluster: &mut Cluster, sid: Sid) {
    let disk = &mut node(cluster, sid).disk;
    disk.size = Some(disk.body.len() + disk.records.len() + MEBIBYTE / 2);
}

fn file_state(cluster: &Cluster, sid: Sid) -> FileState {
    let member = cluster.nodes[&sid].member.as_ref().expect("it runs");
    member.status(cluster.now_ms).file
}

#[test]
fn a_compaction_makes_room_on_a_full_disk() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(3, seed);
        let (leader, follower) = follower(&mut cluster);
        let full = if seed % 2 == 0 { leader } else { follower };
        cluster.write_long(leader, 1);
        cluster.run(500);
        fill(&mut cluster, full);
        cluster.write_long(leader, 1);
        cluster.run(2500);
        assert_eq!(file_state(&cluster, full), FileState::Failing);
        // The new file fits because the entry that could not be stored is not in it.
        let before = snapshot(&cluster, full);
        cluster.compact(full);
        cluster.run_until("a file that takes records", 3000, |cluster| {
            file_state(cluster, full) == FileState::Intact
        });
        assert!(snapshot(&cluster, full) > before, "compacted");
        assert_eq!(cluster.nodes[&full].rejections, [""; 0]);
        // The file opens and has everything.
        cluster.crash(full);
        cluster.start(full);
        let leader = cluster.await_leader();
        cluster.write(leader, 1);
        cluster.run(500);
        cluster.await_equal();
    }
}

#[test]
fn a_file_that_makes_room_survives_crashes_and_failures() {
    for seed in 0..80 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(3, seed);
        let (leader, follower) = follower(&mut cluster);
        cluster.write_long(leader, 1);
        cluster.run(500);
        fill(&mut cluster, follower);
        cluster.write_long(leader, 1);
        cluster.run(300);
        cluster.compact(follower);
        let (before_ms, after_ms) = (cluster.random(15), cluster.random(100));
        cluster.run(before_ms);
        match seed % 4 {
            0 => cluster.crash(follower),
            1 => cluster.input(follower, Input::FilePoisoned),
            2 => cluster.crash(leader),
            _ => assert_eq!(cluster.write(leader, 3).len(), 3),
        }
        cluster.run(after_ms);
        node(&mut cluster, follower).disk.size = None;
        cluster.start(leader);
        cluster.start(follower);
        cluster.run(3000);
        cluster.crash(follower);
        cluster.start(follower);
        let leader = cluster.await_leader();
        cluster.write(leader, 1);
        cluster.run(500);
        cluster.await_equal();
    }
}

#[test]
fn a_new_file_that_does_not_fit_changes_nothing() {
    let mut cluster = Cluster::new(3, 3);
    let (leader, follower) = follower(&mut cluster);
    cluster.write(leader, 5);
    cluster.run(200);
    let disk = &mut node(&mut cluster, follower).disk;
    disk.size = Some(disk.body.len() + disk.records.len());
    cluster.write(leader, 5);
    cluster.run(500);
    let before = cluster.nodes[&follower].disk.records.clone();
    for _ in 0..3 {
        cluster.compact(follower);
        cluster.run(500);
        assert_eq!(file_state(&cluster, follower), FileState::Failing);
    }
    assert_eq!(cluster.nodes[&follower].disk.records, before);
    node(&mut cluster, follower).disk.size = None;
    cluster.run_until("a file that takes records", 3000, |cluster| {
        file_state(cluster, follower) == FileState::Intact
    });
    check_stores(&mut cluster, leader, follower);
}

#[test]
fn a_rejected_compaction_is_told_the_true_reason() {
    let mut cluster = Cluster::new(3, 5);
    let (leader, follower) = follower(&mut cluster);
    cluster.write(leader, 5);
    cluster.run(200);
    cluster.compact(follower);
    cluster.run(200);
    cluster.compact(follower);
    node(&mut cluster, follower).disk.is_full = true;
    cluster.write(leader, 5);
    cluster.run(5000);
    // The retry takes so long that the command arrives before its answer.
    node(&mut cluster, follower).disk_delay_ms = 5000;
    cluster.run(2100);
    cluster.compact(follower);
    let reasons = [
        "not storing a duplicate snapshot",
        "cannot store a snapshot while a failed write is repeated, try again",
    ];
    assert_eq!(cluster.nodes[&follower].rejections, reasons);
    let node = node(&mut cluster, follower);
    (node.disk.is_full, node.disk_delay_ms) = (false, 2);
    cluster.run(10_000);
    check_stores(&mut cluster, leader, follower);
}

#[test]
fn a_sync_that_fails_while_the_file_is_written_again_has_it_written_once_more() {
    let mut cluster = Cluster::new(3, 11);
    let (leader, follower) = follower(&mut cluster);
    cluster.write(leader, 5);
    cluster.run(200);
    cluster.compact(follower);
    cluster.input(follower, Input::FilePoisoned);
    check_stores(&mut cluster, leader, follower);
}

#[test]
fn a_sync_that_fails_during_a_swap_has_the_file_written_once_more() {
    let mut cluster = Cluster::new(3, 12);
    let (leader, follower) = follower(&mut cluster);
    cluster.write(leader, 5);
    cluster.run(200);
    let before = snapshot(&cluster, follower);
    cluster.compact(follower);
    cluster.run_until("a swap", 1000, |cluster| {
        snapshot(cluster, follower) > before
    });
    // The swap has not been answered yet.
    cluster.input(follower, Input::FilePoisoned);
    check_stores(&mut cluster, leader, follower);
}
