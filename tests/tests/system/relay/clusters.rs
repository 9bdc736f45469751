//! Relays of clusters: the leader dies under load, members join and leave, and nothing is lost.

use std::thread;
use std::time::Duration;

use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{self, DATABASE, numbers, schema};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Corvid;

use super::faults::{Load, rows};
use super::node::{Node, await_contents, implementations, relay_of};

/// Returns the remotes of all members.
fn remotes(cluster: &Cluster) -> String {
    let sockets = cluster.members().iter().map(Process::socket);
    let remotes: Vec<String> = sockets
        .map(|socket| format!("unix:{}", socket.display()))
        .collect();
    remotes.join(",")
}

fn relay(remotes: &str) -> Node {
    let relay = relay_of(Corvid, DATABASE, remotes);
    await_contents(&relay, DATABASE);
    relay
}

#[test]
fn no_write_is_lost_or_doubled_when_the_leader_of_the_source_dies_under_load() {
    for of in implementations() {
        let mut cluster = Cluster::joined(of, 3, &schema()).expect("a cluster");
        let first = relay(&remotes(&cluster));
        let other = relay(&remotes(&cluster));
        let second = relay(&first.remote());
        let sockets = [&first, &second, &other].map(|node| node.process.socket());
        let all = [0, 1, 2];
        let written = Load::new(sockets).run(|load| {
            for _ in 0..3 {
                // A restarted member knows from its file that a write was executed, but does not
                // know the result. If the outcome of a write from before the restart were still
                // open, the reply would be `canceled`. So every such write gets its outcome before
                // the next leader dies.
                if of == Corvid {
                    load.await_progress_of_each();
                } else {
                    load.await_progress();
                }
                let (leader, _) = cluster.leader_among(&all).expect("a leader");
                cluster.member(leader).kill();
                load.await_progress();
                cluster.member(leader).start().expect("started");
                cluster.leader_among(&all).expect("a leader");
            }
            load.await_progress();
        });
        println!("{of:?}: {} outcomes are not known", written.unknown());
        if of == Corvid {
            assert_eq!(written.unknown(), 0, "each write is answered truly");
        }
        let nodes = [&first, &second, &other];
        let members = all.map(|member| -> Box<dyn FnMut() -> _> {
            let cluster = &cluster;
            Box::new(move || numbers(&mut cluster.connect(member).ok()?).ok())
        });
        let at = nodes.map(|node| -> Box<dyn FnMut() -> _> { Box::new(|| rows(node)) });
        written.check(at.into_iter().chain(members).collect());
    }
}

/// A relay leaves a member that has lost its cluster, and continues with another member.
#[test]
fn a_relay_leaves_a_member_without_a_cluster() {
    let (mut cluster, _) = numbered_rows::three();
    // Only members 0 and 1 are sources. The relay uses one of them, and the two other members are
    // then paused.
    let sources: Vec<String> = remotes(&cluster)
        .split(',')
        .take(2)
        .map(str::to_owned)
        .collect();
    let relay = relay(&sources.join(","));
    numbered_rows::add(&mut relay.client(), 1).expect("inserted");
    let log = relay.process.log();
    let connected = sources
        .iter()
        .position(|source| log.contains(&format!("{source}: connected")))
        .expect("it is connected");
    let apart = [0, 1, 2].into_iter().filter(|member| *member != connected);
    for member in apart.clone() {
        cluster.pause(member, true).expect("paused");
    }
    cluster
        .wait_until("the member has lost its cluster", || {
            cluster
                .row(connected)
                .is_ok_and(|row| row["connected"] == false)
        })
        .expect("in time");
    for member in apart {
        cluster.pause(member, false).expect("continued");
    }
    numbered_rows::add(&mut relay.client(), 2).expect("inserted");
    let log = relay.process.log();
    assert!(
        log.contains(
            "clustered database server is disconnected from cluster; trying another server"
        ),
        "{log}"
    );
    cluster.member(connected).kill();
    thread::sleep(Duration::from_millis(10));
    numbered_rows::add(&mut relay.client(), 3).expect("inserted");
    assert_eq!(rows(&relay), Some((1..4).collect()));
}
