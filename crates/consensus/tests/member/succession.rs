//! Elections before the timeout: the process of the leader is gone, or only seems to be.

use crate::cluster::{Cluster, sid};
use corvid_consensus::Input;
use corvid_consensus::member::Role;
use corvid_log::cluster::Sid;

/// Time without a leader after its process was killed, ms.
fn time_without_a_leader(count: u8, seed: u64, refuses: bool, disk_delay_ms: u64) -> u64 {
    let mut cluster = Cluster::new(count, seed);
    cluster.refuses = refuses;
    for node in cluster.nodes.values_mut() {
        node.disk_delay_ms = disk_delay_ms;
    }
    let leader = cluster.await_leader();
    cluster.run(3000);
    cluster.write(leader, 20);
    cluster.run(seed % 7);
    let killed_ms = cluster.now_ms;
    cluster.crash(leader);
    cluster.run_until("leader", 10_000, |cluster| cluster.leader().is_some());
    let elapsed_ms = cluster.now_ms - killed_ms;
    cluster.start(leader);
    cluster.await_equal();
    elapsed_ms
}

#[test]
fn a_leader_whose_process_is_gone_is_replaced_without_a_wait() {
    for count in [3, 5, 7] {
        for disk_delay_ms in [2, 20] {
            let times = (0..20).map(|seed| time_without_a_leader(count, seed, true, disk_delay_ms));
            let mut times: Vec<u64> = times.collect();
            times.sort_unstable();
            assert!(
                times[10] < 150 + 4 * disk_delay_ms,
                "{count} members: {times:?}"
            );
            assert!(times[19] < 600, "{count} members: {times:?}");
        }
    }
    // A machine without power refuses nothing.
    assert!(time_without_a_leader(3, 1, false, 2) > 900);
}

fn followers(leader: Sid) -> Vec<Sid> {
    (1..=3).map(sid).filter(|other| *other != leader).collect()
}

#[test]
fn a_follower_that_alone_has_lost_the_leader_disturbs_nobody() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        cluster.run(3000);
        let term = cluster.nodes[&leader].replica.leads;
        let lost = followers(leader)[usize::from(seed % 2 == 0)];
        cluster.input(lost, Input::PeerDown(leader));
        cluster.input(lost, Input::PeerRefused(leader));
        cluster.run(30);
        // A heartbeat, over a connection that the leader made.
        cluster.input(lost, Input::PeerUp(leader));
        cluster.run(2000);
        assert_eq!(cluster.nodes[&leader].replica.leads, term, "seed {seed}");
        assert_eq!(cluster.role(lost), Some(Role::Follower));
        cluster.write(lost, 10);
        cluster.await_equal();
    }
}

#[test]
fn a_leader_that_is_connected_is_not_gone() {
    let mut cluster = Cluster::new(3, 3);
    let leader = cluster.await_leader();
    cluster.run(3000);
    let term = cluster.nodes[&leader].replica.leads;
    for follower in followers(leader) {
        cluster.input(follower, Input::PeerRefused(leader));
    }
    cluster.run(300);
    assert_eq!(cluster.nodes[&leader].replica.leads, term);
    // The end of a server that does not lead changes nothing either.
    let [one, other] = followers(leader)[..] else {
        panic!("two followers")
    };
    cluster.input(one, Input::PeerDown(other));
    cluster.input(one, Input::PeerRefused(other));
    cluster.run(300);
    assert_eq!(cluster.nodes[&leader].replica.leads, term);
    let lines = &cluster.nodes[&one].lines;
    assert!(!lines.iter().any(|(_, line)| line.contains("is gone")));
}
