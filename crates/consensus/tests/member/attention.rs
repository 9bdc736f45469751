//! Members that are silent, and members that stand still: reported once when that begins, and once
//! when it ends.

use corvid_log::cluster::Sid;
use corvid_rpc::Level;

use crate::cluster::{Cluster, sid};

fn lines(cluster: &Cluster, of: Sid, level: Level, part: &str) -> usize {
    let lines = cluster.nodes[&of].lines.iter();
    lines
        .filter(|(its, line)| *its == level && line.contains(part))
        .count()
}

fn silent_ms(cluster: &Cluster, of: Sid, peer: Sid) -> u64 {
    let status = cluster.nodes[&of].member.as_ref().expect("running");
    let status = status.status(cluster.now_ms);
    let mut servers = status.servers.iter();
    servers
        .find(|it| it.sid == peer)
        .expect("a member")
        .silent_ms
}

#[test]
fn a_member_that_is_down_is_told_of_once_by_every_other() {
    let mut cluster = Cluster::new(3, 61);
    let leader = cluster.await_leader();
    cluster.run(40_000);
    for of in (1..=3).map(sid) {
        assert_eq!(lines(&cluster, of, Level::Warn, "has been silent for"), 0);
        for peer in (1..=3).map(sid) {
            assert!(silent_ms(&cluster, of, peer) < 2000, "{of} of {peer}");
        }
    }
    let dead = (1..=3)
        .map(sid)
        .find(|it| *it != leader)
        .expect("a follower");
    let others: Vec<Sid> = (1..=3).map(sid).filter(|it| *it != dead).collect();
    cluster.crash(dead);
    cluster.run(20_000);
    for of in &others {
        assert_eq!(lines(&cluster, *of, Level::Warn, "has been silent for"), 0);
        assert!((19_000..21_500).contains(&silent_ms(&cluster, *of, dead)));
    }
    cluster.run(1_800_000);
    for of in &others {
        assert_eq!(lines(&cluster, *of, Level::Warn, "has been silent for"), 1);
        assert!(silent_ms(&cluster, *of, dead) > 1_800_000);
    }
    cluster.start(dead);
    cluster.run(10_000);
    for of in &others {
        assert_eq!(lines(&cluster, *of, Level::Info, "is back"), 1);
        assert!(silent_ms(&cluster, *of, dead) < 2000);
    }
}

/// The member's connections stay open, but it says nothing.
#[test]
fn a_leader_tells_of_a_member_that_is_connected_and_silent() {
    let mut cluster = Cluster::new(3, 62);
    let leader = cluster.await_leader();
    cluster.run(1000);
    let silent = (1..=3)
        .map(sid)
        .find(|it| *it != leader)
        .expect("a follower");
    cluster.cuts.insert((silent, leader));
    cluster.run(40_000);
    assert_eq!(
        lines(&cluster, leader, Level::Warn, "has been silent for"),
        1
    );
    cluster.cuts.clear();
    cluster.run(10_000);
    let now = cluster.await_leader();
    assert!(silent_ms(&cluster, now, silent) < 2000);
}

#[test]
fn a_member_that_stands_still_is_told_of_by_itself_and_by_its_leader() {
    let mut cluster = Cluster::new(3, 63);
    let leader = cluster.await_leader();
    cluster.run(1000);
    let still = (1..=3)
        .map(sid)
        .find(|it| *it != leader)
        .expect("a follower");
    let is_full = |cluster: &mut Cluster, is_full| {
        let node = cluster.nodes.get_mut(&still).expect("a server");
        node.disk.is_full = is_full;
    };
    is_full(&mut cluster, true);
    // In an idle cluster there is nothing to catch up with.
    cluster.run(60_000);
    assert_eq!(lines(&cluster, still, Level::Warn, "is stalled"), 0);
    for _ in 0..40 {
        cluster.write(leader, 1);
        cluster.run(1000);
    }
    assert_eq!(cluster.leader(), Some(leader));
    let status = |cluster: &Cluster| {
        let member = cluster.nodes[&still].member.as_ref().expect("running");
        member.status(cluster.now_ms)
    };
    assert!(status(&cluster).is_still && status(&cluster).index_age_ms > 30_000);
    assert_eq!(
        lines(&cluster, still, Level::Warn, "this member is stalled"),
        1
    );
    assert_eq!(lines(&cluster, leader, Level::Warn, "is stalled"), 1);
    is_full(&mut cluster, false);
    cluster.await_equal();
    cluster.run(3000);
    assert!(!status(&cluster).is_still && status(&cluster).index_age_ms == 0);
    assert_eq!(
        lines(&cluster, still, Level::Info, "makes progress again"),
        1
    );
    assert_eq!(
        lines(&cluster, leader, Level::Info, "makes progress again"),
        1
    );
}
