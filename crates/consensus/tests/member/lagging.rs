//! Members that lag after a compaction: entries for those that lack few, a snapshot for those that
//! lack more.

use corvid_consensus::KeptEntries;
use corvid_log::cluster::{Index, Sid};

use crate::cluster::{Cluster, sid};

/// Crashes a follower, commits this many entries, and has all others rewrite their files. Returns
/// the leader and the follower.
fn behind_a_compaction(cluster: &mut Cluster, entries: u64) -> (Sid, Sid) {
    let leader = cluster.await_leader();
    cluster.run(500);
    let mut others = (1..=3).map(sid).filter(|other| *other != leader);
    let late = others.next().expect("a follower");
    let third = others.next().expect("another");
    cluster.crash(late);
    cluster.write(leader, entries);
    cluster.run_until("commits", 10_000, |cluster| {
        cluster.committed.len() as u64 >= entries
    });
    cluster.run(1000);
    for sid in [leader, third] {
        let before = snapshot(cluster, sid);
        cluster.compact(sid);
        cluster.run_until("the new file", 1000, |cluster| {
            snapshot(cluster, sid) > before
        });
    }
    (leader, late)
}

fn snapshot(cluster: &Cluster, sid: Sid) -> Index {
    let meta = cluster.nodes[&sid].disk.meta.as_ref();
    meta.expect("a snapshot").index
}

fn log_bytes(cluster: &Cluster, sid: Sid) -> u64 {
    let member = cluster.nodes[&sid].member.as_ref().expect("running");
    member.status(cluster.now_ms).log_bytes
}

fn snapshots_sent(cluster: &Cluster) -> usize {
    let lines = cluster.nodes.values().flat_map(|node| &node.lines);
    lines
        .filter(|(_, line)| line.contains("sending snapshot"))
        .count()
}

#[test]
fn a_member_that_lags_gets_entries_from_behind_the_compaction() {
    let mut cluster = Cluster::new(3, 21);
    let (leader, late) = behind_a_compaction(&mut cluster, 500);
    let before = snapshot(&cluster, late);
    assert!(snapshot(&cluster, leader) > before.next());
    assert!(log_bytes(&cluster, leader) > 500 * 50, "entries are kept");
    cluster.start(late);
    cluster.await_equal();
    assert_eq!(snapshots_sent(&cluster), 0);
    assert_eq!(snapshot(&cluster, late), before);
    // No member lacks them any longer.
    cluster.run(2000);
    assert_eq!(log_bytes(&cluster, leader), 0);
}

#[test]
fn another_leader_has_them_too() {
    let mut cluster = Cluster::new(3, 22);
    let (leader, late) = behind_a_compaction(&mut cluster, 500);
    cluster.cut(leader);
    cluster.start(late);
    cluster.run_until("another leader", 10_000, |cluster| {
        cluster.leader().is_some_and(|now| now != leader)
    });
    cluster.cuts.clear();
    cluster.await_equal();
    assert_eq!(snapshots_sent(&cluster), 0);
}

#[test]
fn a_member_that_lacks_more_than_is_kept_gets_the_snapshot() {
    for kept in [
        KeptEntries::NONE,
        KeptEntries {
            count_max: 400,
            ..KeptEntries::DEFAULT
        },
        KeptEntries {
            bytes_max: 20_000,
            ..KeptEntries::DEFAULT
        },
    ] {
        let mut cluster = Cluster::keeping(3, 23, kept);
        let (leader, late) = behind_a_compaction(&mut cluster, 500);
        assert!(log_bytes(&cluster, leader) <= kept.bytes_max);
        cluster.start(late);
        cluster.await_equal();
        assert_eq!(snapshots_sent(&cluster), 1, "{kept:?}");
        assert_eq!(snapshot(&cluster, late), snapshot(&cluster, leader));
    }
}

#[test]
fn a_member_that_starts_again_has_what_its_file_has() {
    let mut cluster = Cluster::new(3, 24);
    let (leader, late) = behind_a_compaction(&mut cluster, 500);
    for sid in (1..=3).map(sid).filter(|other| *other != late) {
        cluster.crash(sid);
        cluster.start(sid);
        assert_eq!(
            log_bytes(&cluster, sid),
            0,
            "{sid} leads: {}",
            sid == leader
        );
    }
    cluster.start(late);
    cluster.await_equal();
    assert_eq!(snapshots_sent(&cluster), 1);
}

#[test]
fn a_snapshot_that_could_not_be_read_is_sent_when_it_can() {
    let mut cluster = Cluster::keeping(3, 25, KeptEntries::NONE);
    let (leader, late) = behind_a_compaction(&mut cluster, 50);
    cluster
        .nodes
        .get_mut(&leader)
        .expect("a server")
        .failing_reads = 2;
    cluster.start(late);
    cluster.await_equal();
    assert_eq!(cluster.nodes[&leader].failing_reads, 0);
}
