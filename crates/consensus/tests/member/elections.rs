//! Elections, replication and leadership without disk faults.

use crate::cluster::{Cluster, sid};
use corvid_consensus::member::{Command, Role};
use corvid_log::cluster::{Index, Sid};

#[test]
fn a_single_member_elects_itself_at_once_and_commits() {
    let mut cluster = Cluster::new(1, 1);
    let leader = cluster.await_leader();
    assert!(cluster.now_ms < 1050, "{}", cluster.now_ms);
    let eids = cluster.write(leader, 5);
    assert_eq!(eids.len(), 5);
    cluster.run_until("commit", 1000, |cluster| {
        cluster.nodes[&leader].replica.acknowledged.len() == 5
    });
    assert_eq!(cluster.nodes[&leader].replica.applied[0].0, Index(3));
    // The file begins as the reference's does: vote, leader, the empty entry, its commit.
    let text = String::from_utf8_lossy(&cluster.nodes[&leader].disk.records).into_owned();
    let bodies: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .take(4)
        .collect();
    assert_eq!(
        bodies,
        [
            r#"{"term":1,"vote":"01010101-0101-0101-0101-010101010100"}"#,
            r#"{"term":1,"leader":"01010101-0101-0101-0101-010101010100"}"#,
            r#"{"term":1,"index":2}"#,
            r#"{"commit_index":2}"#
        ]
    );
}

#[test]
fn three_members_elect_one_and_agree() {
    let mut cluster = Cluster::new(3, 2);
    let leader = cluster.await_leader();
    for _ in 0..20 {
        assert_eq!(cluster.write(leader, 10).len(), 10);
        cluster.run(3);
    }
    cluster.run_until("commits", 5000, |cluster| cluster.committed.len() == 200);
    cluster.await_equal();
    for node in cluster.nodes.values() {
        node.disk.recover();
    }
}

#[test]
fn followers_forward_and_see_their_transactions_committed() {
    let mut cluster = Cluster::new(3, 3);
    let leader = cluster.await_leader();
    cluster.run(2000);
    let mut sent = 0;
    for number in 1..=3 {
        if sid(number) != leader {
            sent += cluster.write(sid(number), 50).len();
        }
    }
    assert_eq!(sent, 100);
    cluster.run_until("commits", 5000, |cluster| cluster.committed.len() == 100);
    cluster.await_equal();
}

#[test]
fn another_member_leads_after_a_crash_and_nothing_is_lost() {
    let mut cluster = Cluster::new(3, 4);
    let leader = cluster.await_leader();
    cluster.write(leader, 30);
    cluster.run(50);
    let acknowledged = cluster.nodes[&leader].replica.acknowledged.clone();
    assert_eq!(acknowledged.len(), 30);
    cluster.write(leader, 30);
    cluster.crash(leader);
    cluster.run_until("leader", 10_000, |cluster| cluster.leader().is_some());
    cluster.start(leader);
    cluster.await_equal();
    let all: Vec<_> = cluster.committed.values().collect();
    assert!(acknowledged.iter().all(|eid| all.contains(&eid)));
}

#[test]
fn an_isolated_leader_stops_leading_and_comes_back_without_an_election() {
    let mut cluster = Cluster::new(3, 5);
    let leader = cluster.await_leader();
    cluster.run(500);
    cluster.cut(leader);
    cluster.write(leader, 3);
    cluster.run_until("stepping down", 1110, |cluster| {
        cluster.nodes[&leader].replica.leads.is_none()
    });
    cluster.run(60_000);
    let others = cluster.await_leader();
    let term = cluster.nodes[&others].replica.leads;
    cluster.cuts.clear();
    cluster.run(5000);
    assert_eq!(cluster.leader(), Some(others));
    assert_eq!(cluster.nodes[&others].replica.leads, term);
    assert_eq!(cluster.role(leader), Some(Role::Follower));
    cluster.await_equal();
}

/// Time for which a leader keeps leading after it stops reaching anybody, or hearing anybody, ms.
fn time_to_step_down(count: u8, seed: u64, sends: bool, receives: bool) -> u64 {
    let mut cluster = Cluster::new(count, seed);
    let leader = cluster.await_leader();
    let running_ms = 500 + cluster.random(2000);
    cluster.run(running_ms);
    // As many others stay connected as do not make a majority with it.
    let others = (1..=count).map(sid).filter(|other| *other != leader);
    for other in others.skip(usize::from(count - 1) / 2 - 1) {
        if !sends {
            cluster.cuts.insert((leader, other));
        }
        if !receives {
            cluster.cuts.insert((other, leader));
        }
    }
    let cut_ms = cluster.now_ms;
    cluster.write(leader, 3);
    cluster.run_until("stepping down", 3000, |cluster| {
        cluster.nodes[&leader].replica.leads.is_none()
    });
    assert_eq!(cluster.role(leader), Some(Role::Follower));
    let elapsed_ms = cluster.now_ms - cut_ms;
    cluster.cuts.clear();
    cluster.await_leader();
    cluster.await_equal();
    elapsed_ms
}

#[test]
fn a_leader_without_a_majority_steps_down_within_an_election_period() {
    for count in [3, 5] {
        for (sends, receives) in [(false, false), (true, false), (false, true)] {
            for seed in 0..10 {
                let ms = time_to_step_down(count, seed, sends, receives);
                // An answer may be in flight, and counts from the tick before it arrives.
                assert!(
                    (600..=1110).contains(&ms),
                    "{count} {sends} {receives} {seed}: {ms} ms"
                );
            }
        }
    }
}

/// Cuts off all answers to a leader for some time, after it has sent an entry of 40 MiB. Its
/// followers may read it for 640 ms longer than an election period. Returns whether the leader
/// still leads.
fn leads_after_a_long_entry(silence_ms: u64) -> bool {
    let mut cluster = Cluster::new(3, 11);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let term = cluster.nodes[&leader].replica.leads;
    cluster.write_long(leader, 40);
    for other in (1..=3).map(sid).filter(|other| *other != leader) {
        cluster.cuts.insert((other, leader));
    }
    cluster.run(silence_ms);
    cluster.cuts.clear();
    let leads = cluster.nodes[&leader].replica.leads == term;
    cluster.await_leader();
    cluster.await_equal();
    leads
}

#[test]
fn followers_that_read_a_long_entry_are_not_taken_for_dead() {
    assert!(leads_after_a_long_entry(1400));
    assert!(!leads_after_a_long_entry(1900));
}

#[test]
fn a_leader_that_reaches_a_bare_majority_goes_on() {
    let mut cluster = Cluster::new(5, 8);
    cluster.delay_max_ms = 200;
    let leader = cluster.await_leader();
    cluster.run(1500);
    let term = cluster.nodes[&leader].replica.leads;
    let others = (1..=5).map(sid).filter(|other| *other != leader);
    for other in others.skip(2) {
        cluster.crash(other);
    }
    cluster.run(60_000);
    assert_eq!(cluster.nodes[&leader].replica.leads, term);
}

#[test]
fn leadership_is_transferred_on_command() {
    let mut cluster = Cluster::new(3, 6);
    let leader = cluster.await_leader();
    cluster.write(leader, 10);
    cluster.run(2000);
    let began_ms = cluster.now_ms;
    assert_eq!(
        cluster.reply(leader, Command::TransferLeadership(None)),
        Ok(String::new())
    );
    cluster.run_until("another leader", 1000, |cluster| {
        cluster.leader().is_some_and(|sid| sid != leader)
    });
    assert!(
        cluster.now_ms - began_ms < 100,
        "{}",
        cluster.now_ms - began_ms
    );
    assert!(cluster.nodes[&leader].replica.leads.is_none());
}

/// A client of the previous leader waits for the first entry of the new one. The commit of that
/// entry may become known with the answer of one follower, which gets the next append at once. The
/// other follower must not have to wait for a heartbeat.
#[test]
fn all_members_soon_know_the_first_commit_of_a_new_leader() {
    for seed in 0..40 {
        let mut cluster = Cluster::new(3, 1_000 + seed);
        let leader = cluster.await_leader();
        cluster.write(leader, 10);
        cluster.run(2000);
        let before = commit_of(&mut cluster, leader);
        assert_eq!(
            cluster.reply(leader, Command::TransferLeadership(None)),
            Ok(String::new())
        );
        cluster.run_until("a commit of another leader", 1000, |cluster| {
            cluster.leader().is_some_and(|sid| sid != leader)
        });
        let next = cluster.leader().expect("a leader");
        let commit = commit_of(&mut cluster, next);
        assert!(commit > before);
        cluster.run(20);
        for number in 1..=3 {
            assert!(
                commit_of(&mut cluster, sid(number)) >= commit,
                "seed {seed}"
            );
        }
    }
}

fn commit_of(cluster: &mut Cluster, sid: Sid) -> Index {
    let now_ms = cluster.now_ms;
    let node = cluster.nodes.get_mut(&sid).expect("a server");
    node.member.as_mut().expect("running").status(now_ms).commit
}

#[test]
fn the_election_timer_changes_on_all_members() {
    let mut cluster = Cluster::new(3, 7);
    cluster.run_until("a leader", 5000, |cluster| {
        (1..=3).any(|number| cluster.role(sid(number)) == Some(Role::Leader))
    });
    // It leads, although its database does not know yet.
    assert_eq!(cluster.leader(), None);
    let leader = (1..=3)
        .map(sid)
        .find(|sid| cluster.role(*sid) == Some(Role::Leader))
        .expect("a leader");
    assert_eq!(
        cluster.reply(leader, Command::ChangeElectionTimer(900)),
        Ok("change of election timer initiated.".to_owned())
    );
    cluster.run(1500);
    assert_eq!(
        cluster.reply(leader, Command::ChangeElectionTimer(1000)),
        Ok("change of election timer initiated.".to_owned())
    );
    cluster.run(1500);
    let follower = (1..=3)
        .map(sid)
        .find(|other| *other != leader)
        .expect("another");
    let mut change = |sid, timer_ms| cluster.reply(sid, Command::ChangeElectionTimer(timer_ms));
    let error = |text: &str| Err(text.to_owned());
    assert_eq!(
        change(follower, 1500),
        error("election timer must be changed through leader.")
    );
    assert_eq!(
        change(leader, 1000),
        Ok("change election timer to current value.".to_owned())
    );
    assert_eq!(
        change(leader, 0),
        error("election timer must be between 100 and 600000, in msec.")
    );
    assert_eq!(
        change(leader, 2001),
        error("election timer increase should not exceed the current value x 2.")
    );
    assert_eq!(
        change(leader, 2000),
        Ok("change of election timer initiated.".to_owned())
    );
    assert_eq!(
        change(leader, 1900),
        error("election timer change pending.")
    );
    cluster.run(2000);
    for node in cluster.nodes.values() {
        let status = node.member.as_ref().expect("running").status(0);
        assert_eq!(status.election_timer_ms, 2000);
    }
    assert_eq!(cluster.nodes[&leader].replica.timer_ms, Some(2000));
}

#[test]
fn slow_disks_cost_no_leadership() {
    let mut cluster = Cluster::new(3, 31);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let term = cluster.nodes[&leader].replica.leads;
    for node in cluster.nodes.values_mut() {
        node.disk_delay_ms = 3000;
    }
    cluster.write(leader, 1);
    cluster.run(8000);
    assert_eq!(cluster.nodes[&leader].replica.leads, term);
    cluster.await_equal();
    assert_eq!(cluster.committed.len(), 1);
}
