//! The scenarios of `cluster/failure-test` that a member provokes itself (docs/spec/distribution.md
//! 1.12).

use corvid_consensus::member::{Command, Phase, Rehearsal};
use corvid_log::cluster::Sid;

use crate::cluster::{Cluster, sid};

fn rehearse(cluster: &mut Cluster, member: Sid, rehearsal: Rehearsal) {
    let reply = cluster.reply(member, Command::Rehearse(rehearsal));
    assert_eq!(reply, Ok(String::new()));
}

fn has_line(cluster: &Cluster, member: Sid, text: &str) -> bool {
    cluster.nodes[&member]
        .lines
        .iter()
        .any(|line| line.1.contains(text))
}

/// How long this member, which no longer hears anybody, waits before it stands for election, ms.
fn election_after_ms(cluster: &mut Cluster, member: Sid) -> u64 {
    let elections = |cluster: &Cluster| {
        let node = &cluster.nodes[&member];
        let member = node.member.as_ref().expect("it runs");
        member.status(cluster.now_ms).elections
    };
    let (since_ms, before) = (cluster.now_ms, elections(cluster));
    cluster.run_until("election", 10_000, |cluster| elections(cluster) > before);
    cluster.now_ms - since_ms
}

#[test]
fn a_delayed_member_stands_for_election_later_by_the_timer() {
    for seed in 0..20 {
        println!("CORVID_SEED={seed}");
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        cluster.run(3000);
        let others: Vec<Sid> = (1..=3).map(sid).filter(|sid| *sid != leader).collect();
        rehearse(&mut cluster, others[0], Rehearsal::DelayElections);
        cluster.crash(leader);
        cluster.crash(others[1]);
        // The last heartbeat may be a third of the timer old.
        let waited_ms = election_after_ms(&mut cluster, others[0]);
        assert!((1650..3150).contains(&waited_ms), "{waited_ms}");
        let waited_ms = election_after_ms(&mut cluster, others[0]);
        assert!((1990..3150).contains(&waited_ms), "{waited_ms}");
        // The timeout that was drawn is discarded.
        rehearse(&mut cluster, others[0], Rehearsal::None);
        let waited_ms = election_after_ms(&mut cluster, others[0]);
        assert!(waited_ms < 2150, "{waited_ms}");
    }
}

#[test]
fn a_forced_election_does_not_disturb_a_healthy_cluster() {
    for seed in 0..20 {
        println!("CORVID_SEED={seed}");
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        cluster.run(1000);
        let follower = sid(1 + leader.0.0[0] % 3);
        let state = |cluster: &Cluster, member: Sid| {
            let node = &cluster.nodes[&member];
            node.member
                .as_ref()
                .expect("it runs")
                .status(cluster.now_ms)
        };
        let before = state(&cluster, follower);
        rehearse(&mut cluster, follower, Rehearsal::ForceElection);
        let line = format!("term {}: starting election (pre-vote)", before.term);
        assert!(
            has_line(&cluster, follower, &line),
            "{}",
            cluster.describe()
        );
        let after = state(&cluster, follower);
        assert_eq!(after.elections, before.elections + 1);
        cluster.run(2000);
        assert_eq!(cluster.leader(), Some(leader));
        let after = state(&cluster, follower);
        assert_eq!((after.term, after.leader), (before.term, Some(leader)));
        rehearse(&mut cluster, leader, Rehearsal::ForceElection);
        cluster.run(2000);
        assert_eq!(cluster.leader(), Some(leader), "a leader ignores it");
        // Without a leader it does not wait for the timeout.
        cluster.crash(leader);
        let lost_ms = cluster.now_ms;
        cluster.run(1000);
        while cluster.leader().is_none() {
            rehearse(&mut cluster, follower, Rehearsal::ForceElection);
            cluster.run(50);
            assert!(cluster.now_ms < lost_ms + 5000, "{}", cluster.describe());
        }
    }
}

#[test]
fn a_leader_hands_over_when_it_begins_to_add_a_server() {
    for seed in 0..20 {
        println!("CORVID_SEED={seed}");
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        cluster.write(leader, 10);
        cluster.run(500);
        rehearse(&mut cluster, leader, Rehearsal::TransferAfterStartingToAdd);
        cluster.join(4);
        cluster.run_until("another leader", 10_000, |cluster| {
            cluster.leader().is_some_and(|now| now != leader)
        });
        let line = "failed (lost leadership)";
        assert!(has_line(&cluster, leader, line), "{}", cluster.describe());
        // It happens once, and the next leader admits the joiner.
        cluster.run_until("admission", 30_000, |cluster| {
            let servers = (1..=4).map(|number| {
                let node = &cluster.nodes[&sid(number)];
                let status = node
                    .member
                    .as_ref()
                    .map(|member| member.status(cluster.now_ms));
                status.map_or(0, |status| {
                    let stable = |peer: &&_| -> bool {
                        let peer: &corvid_consensus::member::PeerStatus = peer;
                        peer.phase == Phase::Stable
                    };
                    status.servers.iter().filter(stable).count()
                })
            });
            servers.min() == Some(4)
        });
    }
}
