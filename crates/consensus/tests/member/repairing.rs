//! Members whose files are damaged in the middle: the cluster heals them, and no election misses
//! entries that they have acknowledged.

use corvid_consensus::member::{Command, Connected, FileState};
use corvid_consensus::{Input, PeerMessage};
use corvid_log::cluster::{Eid, Index, Kind, Record, Servers, Sid, SnapshotMeta, Term};
use corvid_rpc::Level;

use crate::cluster::{Cluster, address, sid};

/// Clients of the leader commit this many transactions.
fn commit(cluster: &mut Cluster, count: u64) -> Vec<Eid> {
    let leader = cluster.await_leader();
    let eids = cluster.write(leader, count);
    assert!(!eids.is_empty());
    cluster.run_until("commit", 10_000, |cluster| {
        eids.iter().all(|eid| cluster.known.contains(eid))
    });
    eids
}

fn connected(cluster: &Cluster, sid: Sid) -> Connected {
    let member = cluster.nodes[&sid].member.as_ref().expect("it runs");
    member.status(cluster.now_ms).connected
}

fn await_healed(cluster: &mut Cluster, sid: Sid) {
    cluster.run_until("healing", 30_000, |cluster| {
        connected(cluster, sid) == Connected::Member && !cluster.nodes[&sid].disk.is_damaged
    });
}

fn follower(cluster: &mut Cluster) -> Sid {
    let leader = cluster.await_leader();
    (1..=3)
        .map(sid)
        .find(|sid| *sid != leader)
        .expect("a follower")
}

fn has_line(cluster: &Cluster, sid: Sid, text: &str) -> bool {
    let mut lines = cluster.nodes[&sid].lines.iter();
    lines.any(|(level, line)| *level == Level::Warn && line.contains(text))
}

#[test]
fn a_damaged_member_is_healed_and_votes_again() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(3, seed);
        commit(&mut cluster, 20);
        cluster.await_equal();
        let victim = follower(&mut cluster);
        cluster.damage(victim);
        commit(&mut cluster, 5);
        cluster.start(victim);
        assert!(!cluster.nodes[&victim].is_connected);
        assert_eq!(connected(&cluster, victim), Connected::Repairing(None));
        assert!(has_line(&cluster, victim, "is damaged"));
        await_healed(&mut cluster, victim);
        assert!(has_line(
            &cluster,
            victim,
            "takes part in its cluster again"
        ));
        cluster.await_equal();
        // Now its vote is needed.
        let leader = cluster.await_leader();
        cluster.crash(leader);
        cluster.run_until("another leader", 30_000, |cluster| {
            cluster.leader().is_some_and(|other| other != leader)
        });
        commit(&mut cluster, 5);
        cluster.start(leader);
        cluster.await_equal();
    }
}

#[test]
fn an_entry_that_a_damaged_member_has_lost_is_not_voted_away() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(3, seed);
        commit(&mut cluster, 3);
        cluster.await_equal();
        let leader = cluster.await_leader();
        let others: Vec<Sid> = (1..=3).map(sid).filter(|it| *it != leader).collect();
        let (behind, victim) = (others[0], others[1]);
        cluster.cut(behind);
        // Only the leader and the victim have them.
        let eids = commit(&mut cluster, 3);
        cluster.crash(leader);
        cluster.damage(victim);
        cluster.cuts.clear();
        cluster.start(victim);
        cluster.run(20_000);
        assert_eq!(cluster.leader(), None, "nobody has the entries");
        assert!(matches!(
            connected(&cluster, victim),
            Connected::Repairing(_)
        ));
        cluster.start(leader);
        await_healed(&mut cluster, victim);
        cluster.await_equal();
        let applied = &cluster.nodes[&victim].replica.applied;
        let has = |eid: &Eid| applied.iter().any(|(_, known)| known == eid);
        assert!(eids.iter().all(has));
    }
}

#[test]
fn a_snapshot_through_the_last_acknowledged_entry_is_enough() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(3, seed);
        commit(&mut cluster, 5);
        cluster.await_equal();
        let victim = follower(&mut cluster);
        let leader = cluster.await_leader();
        cluster.compact(leader);
        cluster.run(1000);
        cluster.damage(victim);
        cluster.start(victim);
        // The leader already counted the member as having all of it. It must notice that the
        // snapshot has arrived although the index is not new.
        await_healed(&mut cluster, victim);
        cluster.run(1000);
        let status = cluster.nodes[&leader].member.as_ref().expect("it runs");
        let status = status.status(cluster.now_ms);
        let peer = status.servers.iter().find(|server| server.sid == victim);
        assert_eq!(peer.expect("a member").snapshot, None);
        let third = (1..=3).map(sid).find(|it| ![leader, victim].contains(it));
        cluster.crash(third.expect("three members"));
        commit(&mut cluster, 5);
    }
}

#[test]
fn a_snapshot_that_lacks_what_was_acknowledged_is_not_taken() {
    let mut cluster = Cluster::new(3, 6);
    commit(&mut cluster, 5);
    cluster.await_equal();
    let victim = follower(&mut cluster);
    let leader = cluster.await_leader();
    cluster.damage(victim);
    // The leader's own offers do not arrive.
    cluster.cut(victim);
    cluster.start(victim);
    let listed = (1..=3).map(|number| format!(r#""{}":"{}""#, sid(number).0, address(sid(number))));
    let listed: Vec<String> = listed.collect();
    let servers = format!("{{{}}}", listed.join(","));
    let offer = |index: u64| PeerMessage::SnapshotOffer {
        term: Term(50),
        snapshot: SnapshotMeta {
            index: Index(index),
            term: Term(1),
            eid: Eid(corvid_data::Uuid([7; 16])),
            servers: Servers::decode(servers.as_bytes()).expect("servers"),
            election_timer_ms: 1000,
            body_bytes: 100,
        },
    };
    let last = cluster.committed.keys().next_back().expect("entries").0;
    for (index, expected) in [
        (last - 1, Connected::Repairing(None)),
        (last, Connected::Repairing(Some((0, 100)))),
    ] {
        let message = offer(index);
        cluster.input(
            victim,
            Input::Peer {
                from: leader,
                message,
            },
        );
        assert_eq!(connected(&cluster, victim), expected, "through {index}");
    }
}

#[test]
fn a_damaged_member_of_a_later_term_is_healed_in_a_later_one() {
    let mut cluster = Cluster::new(3, 5);
    commit(&mut cluster, 5);
    let victim = follower(&mut cluster);
    cluster.crash(victim);
    let node = cluster.nodes.get_mut(&victim).expect("a server");
    Record::new(Kind::Term(Term(9))).append(&mut node.disk.records);
    node.disk.synced = node.disk.records.len();
    cluster.damage(victim);
    cluster.start(victim);
    await_healed(&mut cluster, victim);
    commit(&mut cluster, 1);
    let member = cluster.nodes[&victim].member.as_ref().expect("it runs");
    assert!(member.status(cluster.now_ms).term > Term(9));
}

#[test]
fn an_idle_leader_appends_what_the_end_of_a_damaged_file_has_room_for() {
    for room in [1, 2, 1700] {
        let mut cluster = Cluster::new(3, room);
        commit(&mut cluster, 5);
        cluster.await_equal();
        let victim = follower(&mut cluster);
        cluster.damage(victim);
        let node = cluster.nodes.get_mut(&victim).expect("a server");
        node.disk.room_at_end = room;
        cluster.start(victim);
        let last = cluster.committed.keys().next_back().expect("entries").0;
        await_healed(&mut cluster, victim);
        let leader = cluster.await_leader();
        let member = cluster.nodes[&leader].member.as_ref().expect("it runs");
        assert_eq!(
            member.status(cluster.now_ms).log_end,
            Index(last + room + 1),
            "no more than that"
        );
        commit(&mut cluster, 3);
        cluster.await_equal();
    }
}

#[test]
fn healing_begins_again_after_a_crash() {
    for seed in 0..40 {
        let mut cluster = Cluster::new(3, seed);
        commit(&mut cluster, 10);
        let victim = follower(&mut cluster);
        cluster.damage(victim);
        for _ in 0..6 {
            cluster.start(victim);
            let ms = cluster.random(80);
            cluster.run(ms);
            cluster.crash(victim);
            let leader = cluster.await_leader();
            cluster.compact(leader);
        }
        cluster.start(victim);
        await_healed(&mut cluster, victim);
        commit(&mut cluster, 3);
        cluster.await_equal();
    }
}

#[test]
fn most_members_are_damaged_and_say_so() {
    let mut cluster = Cluster::new(3, 1);
    commit(&mut cluster, 10);
    cluster.await_equal();
    // A running leader would heal them in the moment before it notices that it has no majority.
    let victims = [cluster.await_leader(), follower(&mut cluster)];
    for victim in victims {
        cluster.damage(victim);
    }
    for victim in victims {
        cluster.start(victim);
    }
    cluster.run(30_000);
    assert_eq!(cluster.leader(), None);
    for victim in victims {
        assert!(has_line(&cluster, victim, "no leader offers"));
        assert_eq!(connected(&cluster, victim), Connected::Repairing(None));
    }
}

#[test]
fn a_member_that_is_removed_while_it_is_damaged_is_told() {
    let mut cluster = Cluster::new(3, 2);
    commit(&mut cluster, 10);
    let victim = follower(&mut cluster);
    cluster.damage(victim);
    let leader = cluster.await_leader();
    cluster.run(3000);
    let kick = Command::Kick(address(victim));
    assert_eq!(
        cluster.reply(leader, kick),
        Ok("started removal".to_owned())
    );
    cluster.run(3000);
    cluster.start(victim);
    let refusal = cluster.reply(victim, Command::Leave);
    assert!(refusal.is_err());
    cluster.run_until("the news", 10_000, |cluster| {
        cluster.nodes[&victim].has_left
    });
}

#[test]
fn a_removed_damaged_member_is_told_though_it_does_not_know_the_leader() {
    let mut cluster = Cluster::new(3, 2);
    commit(&mut cluster, 10);
    let victim = follower(&mut cluster);
    cluster.damage(victim);
    let leader = cluster.await_leader();
    cluster.run(3000);
    let removal = cluster.reply(leader, Command::Kick(address(victim)));
    assert_eq!(removal, Ok("started removal".to_owned()));
    cluster.join(4);
    cluster.run_until("admission", 30_000, |cluster| {
        connected(cluster, sid(4)) == Connected::Member
    });
    commit(&mut cluster, 1);
    let transfer = Command::TransferLeadership(Some(address(sid(4))));
    cluster.reply(leader, transfer).expect("begun");
    cluster.run_until("transfer", 30_000, |cluster| {
        cluster.leader() == Some(sid(4))
    });
    cluster.start(victim);
    cluster.run_until("the news", 10_000, |cluster| {
        cluster.nodes[&victim].has_left
    });
}

#[test]
fn a_file_that_changes_while_its_member_runs_is_written_again_from_memory() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(3, seed);
        commit(&mut cluster, 10);
        cluster.await_equal();
        let leader = cluster.await_leader();
        cluster.compact(leader);
        cluster.run(500);
        cluster.input(leader, Input::FileDamaged);
        let line = |(level, text): &(Level, String)| {
            *level == Level::Error && text.contains("bytes of the file have changed")
        };
        assert!(cluster.nodes[&leader].lines.iter().any(line));
        cluster.run(3000);
        let member = cluster.nodes[&leader].member.as_ref().expect("it runs");
        assert_eq!(member.status(cluster.now_ms).file, FileState::Intact);
        let third = (1..=3).map(sid).find(|it| *it != leader);
        cluster.crash(third.expect("three members"));
        commit(&mut cluster, 5);
    }
}

#[test]
fn a_damaged_member_does_not_keep_a_leader_alone() {
    let mut cluster = Cluster::new(3, 4);
    commit(&mut cluster, 10);
    let victim = follower(&mut cluster);
    let leader = cluster.await_leader();
    let third = (1..=3).map(sid).find(|it| ![leader, victim].contains(it));
    cluster.damage(victim);
    cluster.crash(third.expect("three members"));
    // Its requests reach the leader, whose answers are lost. The requests must not count as signs
    // of a majority.
    cluster.cuts.insert((leader, victim));
    // The leader checks once per election timer; at the first check it still has messages from
    // before.
    cluster.run(1000);
    assert!(cluster.nodes[&leader].replica.leads.is_some());
    cluster.start(victim);
    cluster.run(1500);
    assert_eq!(cluster.leader(), None);
}
