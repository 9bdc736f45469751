//! Members that have installed a snapshot ask the others which of their transactions it contains.

use corvid_consensus::{Finding, KeptEntries};
use corvid_log::cluster::{Eid, Sid};

use crate::cluster::{Cluster, sid};

/// A follower has forwarded transactions, which the leader executes. It is cut off before it learns
/// that, and by then the others have only a snapshot. Returns the leader, the other follower, the
/// one that is cut off, and the transactions.
fn left_behind(seed: u64) -> (Cluster, [Sid; 3], Vec<Eid>) {
    let mut cluster = Cluster::keeping(3, seed, KeptEntries::NONE);
    let leader = cluster.await_leader();
    cluster.run(3000);
    let mut followers = (1..=3).map(sid).filter(|other| *other != leader);
    let (other, cut) = (
        followers.next().expect("one"),
        followers.next().expect("two"),
    );
    let eids = cluster.write(cut, 3);
    assert_eq!(eids.len(), 3);
    // Messages to it are lost; messages from it arrive.
    for from in [leader, other] {
        cluster.cuts.insert((from, cut));
    }
    cluster.run_until("entries", 1000, |cluster| {
        let mut applied = cluster.nodes[&other].replica.applied.iter();
        applied.any(|(_, eid)| *eid == eids[2])
    });
    cluster.cut(cut);
    cluster.write(leader, 50);
    cluster.run(100);
    (cluster, [leader, other, cut], eids)
}

fn compact_and_heal(cluster: &mut Cluster, members: &[Sid]) {
    for member in members {
        cluster.compact(*member);
    }
    cluster.run(100);
    cluster.cuts.clear();
}

fn await_findings(cluster: &mut Cluster, member: Sid) -> Vec<(Eid, Finding)> {
    cluster.run_until("findings", 20_000, |cluster| {
        !cluster.nodes[&member].replica.findings.is_empty()
    });
    cluster.nodes[&member].replica.findings.clone()
}

fn each(eids: &[Eid], finding: Finding) -> Vec<(Eid, Finding)> {
    eids.iter().map(|eid| (*eid, finding)).collect()
}

#[test]
fn transactions_in_a_snapshot_are_found_with_their_outcomes() {
    for seed in 0..8 {
        let (mut cluster, [leader, other, cut], eids) = left_behind(seed);
        let outcomes = cluster.nodes[&cut].replica.outcomes;
        compact_and_heal(&mut cluster, &[leader, other]);
        let findings = await_findings(&mut cluster, cut);
        assert_eq!(findings, each(&eids, Finding::Committed), "seed {seed}");
        cluster.run(1000);
        assert!(cluster.nodes[&cut].replica.outcomes >= outcomes + 3);
        cluster.await_equal();
    }
}

#[test]
fn outcomes_outlive_the_leadership_while_the_process_of_the_leader_lives() {
    for seed in 0..8 {
        let (mut cluster, [leader, other, cut], eids) = left_behind(seed);
        let command = corvid_consensus::member::Command::TransferLeadership(None);
        assert!(cluster.reply(leader, command).is_ok());
        cluster.run(500);
        assert_eq!(cluster.leader(), Some(other));
        cluster.write(other, 50);
        cluster.run(100);
        let outcomes = cluster.nodes[&cut].replica.outcomes;
        compact_and_heal(&mut cluster, &[leader, other]);
        let findings = await_findings(&mut cluster, cut);
        assert_eq!(findings, each(&eids, Finding::Committed), "seed {seed}");
        cluster.run(1000);
        assert_eq!(cluster.nodes[&cut].replica.outcomes, outcomes + 3);
    }
}

#[test]
fn a_search_ends_when_no_member_that_is_left_knows_more() {
    for seed in 0..8 {
        let (mut cluster, [leader, other, cut], eids) = left_behind(seed);
        // The outcomes are lost with the leader, and the other member has not seen the entries one
        // by one.
        cluster.compact(other);
        cluster.run(100);
        cluster.crash(leader);
        cluster.crash(other);
        cluster.start(other);
        cluster.cuts.clear();
        cluster.run_until("a snapshot", 20_000, |cluster| {
            let mut applied = cluster.nodes[&cut].replica.applied.iter();
            applied.any(|(_, eid)| *eid == eids[2])
        });
        let findings = await_findings(&mut cluster, cut);
        assert_eq!(findings, each(&eids, Finding::Unknown), "seed {seed}");
    }
}

#[test]
fn transactions_that_never_happened_are_absent() {
    for seed in 0..8 {
        let mut cluster = Cluster::keeping(3, seed, KeptEntries::NONE);
        let leader = cluster.await_leader();
        cluster.run(3000);
        let mut followers = (1..=3).map(sid).filter(|other| *other != leader);
        let cut = followers.next().expect("one");
        let other = followers.next().expect("two");
        cluster.cut(cut);
        let eids = cluster.write(cut, 3);
        assert_eq!(eids.len(), 3);
        cluster.run(500);
        cluster.write(leader, 50);
        cluster.run(100);
        compact_and_heal(&mut cluster, &[leader, other]);
        let findings = await_findings(&mut cluster, cut);
        assert_eq!(findings, each(&eids, Finding::Absent), "seed {seed}");
        cluster.run(1000);
        cluster.await_equal();
    }
}
