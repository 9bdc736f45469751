//! Log lines about messages that have no effect, and about elections.

use corvid_consensus::member::Role;
use corvid_consensus::{Input, PeerMessage};
use corvid_log::cluster::{Index, Sid, Term};
use corvid_rpc::Level;

use crate::cluster::{Cluster, sid};

fn follower(leader: Sid) -> Sid {
    let mut others = (1..=3).map(sid).filter(|other| *other != leader);
    others.next().expect("a follower")
}

fn term(cluster: &Cluster, sid: Sid) -> Term {
    let member = cluster.nodes[&sid].member.as_ref().expect("running");
    member.status(cluster.now_ms).term
}

/// The lines that a message adds to the log of a member.
fn remarks(
    cluster: &mut Cluster,
    to: Sid,
    from: Sid,
    message: PeerMessage,
) -> Vec<(Level, String)> {
    let before = cluster.nodes[&to].lines.len();
    cluster.input(to, Input::Peer { from, message });
    cluster.nodes[&to].lines[before..].to_vec()
}

fn request(term: u64, is_prevote: bool) -> PeerMessage {
    PeerMessage::Vote {
        term: Term(term),
        last_index: Index(2),
        last_term: Term(1),
        commit: Index(1),
        commit_term: Term(1),
        is_prevote,
        is_transfer: false,
    }
}

#[test]
fn vote_requests_that_a_healthy_leadership_makes_vain_are_told_of() {
    for is_prevote in [true, false] {
        let mut cluster = Cluster::new(3, 31);
        let leader = cluster.await_leader();
        cluster.run(1500);
        let (one, own) = (follower(leader), term(&cluster, leader));
        let other = (1..=3).map(sid).find(|it| ![leader, one].contains(it));
        let other = other.expect("a third");
        let later = request(own.0 + 1, is_prevote);
        assert_eq!(
            remarks(&mut cluster, leader, other, later.clone()),
            [(
                Level::Warn,
                "ignoring vote request received as leader".to_owned()
            )]
        );
        let lines = remarks(&mut cluster, one, other, later);
        let [(Level::Warn, line)] = &lines[..] else {
            panic!("{lines:?}");
        };
        let ms = line
            .strip_prefix("ignoring vote request received after only ")
            .and_then(|rest| rest.strip_suffix(" ms (minimum election time is 1000 ms)"));
        let ms: u64 = ms.and_then(|ms| ms.parse().ok()).expect("a time");
        assert!(ms < 400, "{ms}");
        // The message has changed nothing.
        cluster.run(2000);
        assert_eq!(cluster.leader(), Some(leader));
        assert_eq!(term(&cluster, one), own);
    }
}

#[test]
fn messages_of_terms_that_are_over_are_told_of() {
    let mut cluster = Cluster::new(3, 32);
    let first = cluster.await_leader();
    cluster.run(500);
    cluster.crash(first);
    let leader = cluster.await_leader();
    cluster.run(500);
    let own = term(&cluster, leader);
    let reply = PeerMessage::HeartbeatReply {
        term: Term(1),
        commit: Index(1),
    };
    let name = follower(leader);
    assert_eq!(
        remarks(&mut cluster, leader, name, reply),
        [(
            Level::Info,
            format!(
                "rejecting term 1 < current term {own} received in heartbeat_result message from server {name}"
            )
        )]
    );
    let stale = request(1, false);
    let lines = remarks(&mut cluster, leader, name, stale);
    assert!(
        lines[0].1.contains("received in request_vote message"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 1);
}

#[test]
fn an_election_is_told_of_step_by_step() {
    let mut cluster = Cluster::new(3, 33);
    let leader = cluster.await_leader();
    cluster.run(500);
    let lines: Vec<&str> = cluster.nodes[&leader]
        .lines
        .iter()
        .filter(|(level, _)| *level != Level::Debug)
        .map(|(_, line)| line.as_str())
        .collect();
    let own = term(&cluster, leader);
    let before = own.0 - 1;
    assert!(
        lines[0].starts_with(&format!("term {before}: ")),
        "{lines:?}"
    );
    assert!(
        lines[0].ends_with(" ms timeout expired, starting election (pre-vote)"),
        "{lines:?}"
    );
    assert_eq!(lines[1], format!("term {own}: starting election (vote)"));
    // The pre-vote was won with the first answer.
    let late = lines[2].strip_prefix("ignoring pre-vote reply from server ");
    let is_late = late
        .is_some_and(|rest| rest.ends_with(&format!(" during the actual election on term {own}.")));
    assert!(is_late, "{lines:?}");
    assert_eq!(
        lines[3],
        format!("term {own}: elected leader by 2+ of 3 servers")
    );
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(cluster.role(leader), Some(Role::Leader));
}

#[test]
fn the_election_of_the_only_member_is_told_of() {
    let mut cluster = Cluster::new(1, 34);
    let leader = cluster.await_leader();
    let lines = &cluster.nodes[&leader].lines;
    assert_eq!(
        lines[0].1, "term 1: 1000 ms timeout expired, starting election (vote)",
        "{lines:?}"
    );
    assert_eq!(lines[1].1, "term 1: elected leader by 1+ of 1 servers");
}

#[test]
fn timeouts_are_counted_from_the_last_message_of_the_leader() {
    let mut cluster = Cluster::new(3, 35);
    let leader = cluster.await_leader();
    cluster.run(20_000);
    cluster.crash(leader);
    cluster.await_leader();
    let lines = cluster.nodes.values().flat_map(|node| &node.lines);
    let mut times = lines.filter_map(|(_, line)| {
        let (_, rest) = line.split_once(": ")?;
        rest.split_once(" ms timeout expired")?
            .0
            .parse::<u64>()
            .ok()
    });
    assert!(times.all(|ms| ms <= 2200), "{}", cluster.describe());
}
