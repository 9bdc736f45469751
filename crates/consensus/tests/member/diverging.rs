//! Members whose committed log contradicts their leader's, because files of a majority lost their
//! ends. They stop and say so, and nothing is acknowledged that a majority's files do not have.

use corvid_consensus::KeptEntries;
use corvid_consensus::member::{Connected, FileState};
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_rpc::Level;

use crate::cluster::{Cluster, sid};
use crate::disk::Disk;

fn commit(cluster: &mut Cluster, count: u64) {
    let leader = cluster.await_leader();
    let eids = cluster.write(leader, count);
    assert_eq!(eids.len() as u64, count);
    cluster.run_until("commit", 10_000, |cluster| {
        eids.iter().all(|eid| cluster.known.contains(eid))
    });
}

fn crash_all(cluster: &mut Cluster) {
    for number in 1..=3 {
        // The last commit index is not synced. A member that forgets it does not know its last
        // entries to be committed.
        let node = cluster.nodes.get_mut(&sid(number)).expect("a server");
        node.disk.synced = node.disk.records.len();
        cluster.crash(sid(number));
    }
}

fn last_committed(cluster: &Cluster) -> Index {
    let last = cluster.committed.keys().next_back();
    *last.expect("a commit")
}

fn state(cluster: &Cluster, sid: Sid) -> (Connected, FileState) {
    let member = cluster.nodes[&sid].member.as_ref().expect("running");
    let status = member.status(cluster.now_ms);
    (status.connected, status.file)
}

fn term(cluster: &Cluster, sid: Sid) -> Term {
    let member = cluster.nodes[&sid].member.as_ref().expect("running");
    member.status(cluster.now_ms).term
}

/// Checks that the member has stopped for good: with a reason, and without serving.
fn assert_stopped(cluster: &Cluster, sid: Sid) {
    let node = &cluster.nodes[&sid];
    let reason = node.failed.as_ref().expect("it has failed");
    assert!(reason.contains("this member has committed"), "{reason}");
    assert!(reason.contains("Keep its file"), "{reason}");
    assert!(
        node.lines
            .iter()
            .any(|line| *line == (Level::Error, reason.clone()))
    );
    let stopped = (Connected::Failed(reason.clone()), FileState::Diverged);
    assert_eq!(state(cluster, sid), stopped);
    assert!(!node.is_connected, "_Server says so");
    assert_eq!(node.replica.leads, None);
    assert!(matches!(node.replica.follows, None | Some((_, None))));
}

fn await_stopped(cluster: &mut Cluster, sid: Sid) {
    cluster.run_until("the end of the member", 10_000, |cluster| {
        cluster.nodes[&sid].failed.is_some()
    });
    assert_stopped(cluster, sid);
}

/// All have five commits more than the copies to which two of them go back. The third member, whose
/// log has everything, is not running.
fn two_tails_lost(seed: u64, kept: KeptEntries) -> (Cluster, Sid) {
    let mut cluster = Cluster::keeping(3, seed, kept);
    cluster.counts_copies = true;
    commit(&mut cluster, 5);
    cluster.await_equal();
    cluster.run(1000);
    let last = last_committed(&cluster);
    let whole = sid(1 + u8::try_from(seed % 3).expect("small"));
    let losers = (1..=3).map(sid).filter(|other| *other != whole);
    let copies: Vec<Disk> = losers.map(|sid| cluster.nodes[&sid].disk.clone()).collect();
    commit(&mut cluster, 5);
    cluster.await_equal();
    cluster.run(1000);
    crash_all(&mut cluster);
    cluster.go_back(&copies, last);
    cluster.nodes.get_mut(&whole).expect("a server").is_astray = true;
    for disk in &copies {
        cluster.start(disk.sid);
    }
    (cluster, whole)
}

fn other_than(leader: Sid, whole: Sid) -> Sid {
    let mut others = (1..=3).map(sid).filter(|it| ![leader, whole].contains(it));
    others.next().expect("a third")
}

#[test]
fn a_member_whose_log_its_leader_does_not_have_stops_and_acknowledges_nothing() {
    for seed in 0..30 {
        let (mut cluster, whole) = two_tails_lost(seed, KeptEntries::DEFAULT);
        // Both more and fewer entries than were lost.
        commit(&mut cluster, 1 + seed % 8);
        cluster.start(whole);
        await_stopped(&mut cluster, whole);
        let leader = cluster.await_leader();
        let other = other_than(leader, whole);
        cluster.crash(other);
        cluster.run(100);
        let eids = cluster.write(leader, 3);
        cluster.run(5000);
        let is_done = |cluster: &Cluster, eid: &Eid| cluster.known.contains(eid);
        assert!(
            !eids.iter().any(|eid| is_done(&cluster, eid)),
            "one file has it"
        );
        cluster.start(other);
        commit(&mut cluster, 3);
        assert_stopped(&cluster, whole);
    }
}

#[test]
fn a_member_that_has_stopped_stays_so_when_it_is_started_again() {
    let (mut cluster, whole) = two_tails_lost(40, KeptEntries::DEFAULT);
    commit(&mut cluster, 2);
    cluster.start(whole);
    await_stopped(&mut cluster, whole);
    cluster.run(100);
    crash_all(&mut cluster);
    // The two members that could tell are not running.
    for _ in 0..2 {
        let node = cluster.nodes.get_mut(&whole).expect("a server");
        let before = node.failed.take();
        cluster.start(whole);
        assert_stopped(&cluster, whole);
        assert_eq!(cluster.nodes[&whole].failed, before);
        cluster.run(10_000);
        cluster.crash(whole);
    }
    let notes = String::from_utf8_lossy(&cluster.nodes[&whole].disk.records);
    assert_eq!(notes.matches("log diverged").count(), 1);
}

#[test]
fn a_note_that_a_full_disk_refused_is_written_later() {
    let (mut cluster, whole) = two_tails_lost(41, KeptEntries::DEFAULT);
    commit(&mut cluster, 2);
    cluster.start(whole);
    let leader = cluster.await_leader();
    // It answers the leader once its term is stored, and gets an append then.
    cluster.run_until("the term", 5000, |cluster| {
        term(cluster, whole) == term(cluster, leader)
    });
    cluster
        .nodes
        .get_mut(&whole)
        .expect("a server")
        .disk
        .is_full = true;
    await_stopped(&mut cluster, whole);
    cluster.run(5000);
    let has_note = |cluster: &Cluster| {
        String::from_utf8_lossy(&cluster.nodes[&whole].disk.records).contains("log diverged")
    };
    assert!(!has_note(&cluster));
    cluster
        .nodes
        .get_mut(&whole)
        .expect("a server")
        .disk
        .is_full = false;
    cluster.run_until("the note", 10_000, has_note);
}

/// The leader has forgotten the entries that could be compared, and offers its snapshot.
#[test]
fn a_snapshot_of_another_log_counts_for_nothing() {
    for seed in 50..80 {
        let (mut cluster, whole) = two_tails_lost(seed, KeptEntries::NONE);
        // Its snapshot ends before the lost entries, among them, or after them.
        commit(&mut cluster, 1 + seed % 10);
        cluster.run(1000);
        let leader = cluster.await_leader();
        cluster.compact(leader);
        cluster.run(1000);
        commit(&mut cluster, seed % 3 + 1);
        cluster.start(whole);
        cluster.run(5000);
        if cluster.nodes[&whole].failed.is_some() {
            assert_stopped(&cluster, whole);
        } else {
            // The snapshot has replaced its log: nothing of the log is left.
            let replica = |sid| &cluster.nodes[&sid].replica.applied;
            assert_eq!(replica(whole), replica(cluster.leader().expect("a leader")));
        }
        let leader = cluster.await_leader();
        cluster.crash(other_than(leader, whole));
        cluster.write(leader, 3);
        cluster.run(5000);
    }
}

/// Only one file goes back. But of the other two members, one was behind and the other is not
/// running.
#[test]
fn one_file_restored_one_behind_and_one_dead_acknowledge_nothing_twice() {
    for seed in 0..30 {
        let mut cluster = Cluster::new(3, seed);
        cluster.counts_copies = true;
        commit(&mut cluster, 5);
        cluster.await_equal();
        cluster.run(1000);
        let last = last_committed(&cluster);
        let leader = cluster.await_leader();
        let others: Vec<Sid> = (1..=3).map(sid).filter(|it| *it != leader).collect();
        let (behind, restored) = (others[0], others[1]);
        let copy = cluster.nodes[&restored].disk.clone();
        cluster.cut(behind);
        commit(&mut cluster, 1 + seed % 6);
        cluster.run(1000);
        crash_all(&mut cluster);
        cluster.cuts.clear();
        cluster.go_back(&[copy], last);
        cluster.nodes.get_mut(&leader).expect("a server").is_astray = true;
        cluster.start(behind);
        cluster.start(restored);
        commit(&mut cluster, 1 + seed % 5);
        cluster.start(leader);
        await_stopped(&mut cluster, leader);
        let now = cluster.await_leader();
        cluster.crash(other_than(now, leader));
        cluster.write(now, 3);
        cluster.run(5000);
    }
}

/// Two histories, and elections at any moment: nothing is acknowledged that only one file has.
#[test]
fn two_histories_in_any_order_of_starts_acknowledge_nothing_with_one_copy() {
    for seed in 100..160 {
        let (mut cluster, whole) = two_tails_lost(seed, KeptEntries::DEFAULT);
        commit(&mut cluster, 1 + seed % 8);
        let mut number = 0;
        for _ in 0..30 {
            number = (number + 1 + cluster.random(2)) % 3;
            let victim = sid(1 + u8::try_from(number).expect("small"));
            match cluster.random(4) {
                0 => cluster.crash(victim),
                1 => cluster.compact(victim),
                _ => cluster.start(victim),
            }
            // A member without the lost entries can lead only with the other's vote.
            for writer in (1..=3).map(sid).filter(|it| *it != whole) {
                cluster.write(writer, 1);
            }
            let ms = cluster.random(3000);
            cluster.run(ms);
        }
    }
}
