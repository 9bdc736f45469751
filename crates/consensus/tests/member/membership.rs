//! Joining, leaving, kicking; snapshots for members that are far behind.

use corvid_consensus::member::{Command, Connected, FileState, Phase, Role};
use corvid_consensus::{Input, KeptEntries, PeerMessage};
use corvid_log::cluster::{Index, Sid, Term};

use crate::cluster::{Cluster, sid};
use crate::disk::Disk;

fn is_member(cluster: &Cluster, number: u8) -> bool {
    let node = &cluster.nodes[&sid(number)];
    let Some(member) = &node.member else {
        return false;
    };
    let status = member.status(cluster.now_ms);
    let listed = status
        .servers
        .iter()
        .filter(|peer| peer.phase == Phase::Stable);
    status.connected == Connected::Member && listed.count() > 0
}

fn members(cluster: &Cluster, number: u8) -> usize {
    let node = &cluster.nodes[&sid(number)];
    let status = node
        .member
        .as_ref()
        .map(|member| member.status(cluster.now_ms));
    status.map_or(0, |status| status.servers.len())
}

#[test]
fn servers_join_one_by_one_and_take_part() {
    let mut cluster = Cluster::new(1, 1);
    let leader = cluster.await_leader();
    cluster.write(leader, 20);
    cluster.run(100);
    for number in 2..=3 {
        cluster.join(number);
        cluster.run_until("admission", 20_000, |cluster| is_member(cluster, number));
    }
    cluster.run_until("one list", 5000, |cluster| {
        (1..=3).all(|number| members(cluster, number) == 3)
    });
    cluster.write(leader, 5);
    cluster.run_until("commits", 5000, |cluster| cluster.committed.len() == 25);
    cluster.await_equal();
    // The joiners vote: without the first member they elect one of themselves.
    cluster.crash(leader);
    cluster.run_until("another leader", 10_000, |cluster| {
        cluster.leader().is_some()
    });
    cluster.start(leader);
    cluster.await_equal();
}

#[test]
fn joiners_are_admitted_while_leaders_change_and_processes_end() {
    for seed in 0..20 {
        println!("CORVID_SEED={seed}");
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        cluster.write(leader, 50);
        cluster.run(100);
        cluster.compact(leader);
        cluster.join(4);
        let ms = cluster.random(1500);
        cluster.run(ms);
        if seed % 2 == 0 {
            cluster.command(leader, Command::TransferLeadership(None));
        } else {
            cluster.crash(sid(4));
            cluster.run(50);
            cluster.start(sid(4));
        }
        cluster.run_until("admission", 30_000, |cluster| is_member(cluster, 4));
        cluster.run_until("one list", 5000, |cluster| {
            (1..=4).all(|number| members(cluster, number) == 4)
        });
        cluster.await_equal();
    }
}

#[test]
fn members_leave_also_the_leader() {
    let mut cluster = Cluster::new(3, 3);
    let leader = cluster.await_leader();
    cluster.run(1500);
    assert_eq!(cluster.reply(leader, Command::Leave), Ok(String::new()));
    cluster.run_until("leaving", 10_000, |cluster| cluster.nodes[&leader].has_left);
    let left = String::from_utf8_lossy(&cluster.nodes[&leader].disk.records).into_owned();
    assert!(left.contains(r#""note":"left""#), "{left}");
    let next = cluster.await_leader();
    cluster.run_until("one list", 5000, |cluster| {
        members(cluster, next.0.0[0]) == 2
    });
    cluster.write(next, 5);
    cluster.run_until("commits", 5000, |cluster| cluster.committed.len() == 5);
}

#[test]
fn a_member_is_kicked_by_any_member_and_told_when_it_returns() {
    let mut cluster = Cluster::new(3, 4);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let others: Vec<_> = (1..=3).map(sid).filter(|other| *other != leader).collect();
    let error = |text: &str| Err(text.to_owned());
    assert_eq!(
        cluster.reply(leader, Command::Kick("nobody".to_owned())),
        error("unknown server")
    );
    assert_eq!(
        cluster.reply(leader, Command::Kick(String::new())),
        error("unknown server")
    );
    cluster.crash(others[0]);
    cluster.run(100);
    let name = others[0].0.to_string();
    assert_eq!(
        cluster.reply(others[1], Command::Kick(name[..4].to_owned())),
        Ok("sent removal request to leader".to_owned())
    );
    cluster.run_until("one list", 5000, |cluster| {
        members(cluster, leader.0.0[0]) == 2
    });
    cluster.start(others[0]);
    cluster.run_until("leaving", 20_000, |cluster| {
        cluster.nodes[&others[0]].has_left
    });
    assert_eq!(cluster.leader(), Some(leader));
}

#[test]
fn a_removal_that_leaves_no_majority_alive_is_refused() {
    let mut cluster = Cluster::new(3, 5);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let others: Vec<_> = (1..=3).map(sid).filter(|other| *other != leader).collect();
    cluster.crash(others[0]);
    cluster.run(500);
    let name = others[1].0.to_string();
    let refusal = cluster
        .reply(leader, Command::Kick(name))
        .expect_err("a refusal");
    assert!(
        refusal.ends_with("failed (only 1 of the 2 remaining members would be alive and caught up, fewer than the 2 that must agree)"),
        "{refusal}"
    );
}

#[test]
fn a_leader_that_cannot_be_spared_is_not_kicked() {
    let mut cluster = Cluster::new(3, 5);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let others: Vec<_> = (1..=3).map(sid).filter(|other| *other != leader).collect();
    cluster.crash(others[0]);
    cluster.run(500);
    let reason = "failed (only 1 of the 2 remaining members would be alive and caught up, fewer than the 2 that must agree)";
    let kick = || Command::Kick(leader.0.to_string());
    let refusal = cluster.reply(leader, kick()).expect_err("a refusal");
    assert!(
        refusal.starts_with("request via unixctl to remove ") && refusal.ends_with(reason),
        "{refusal}"
    );
    // Through another member: that one learns it from the leader.
    let reply = cluster.reply(others[1], kick());
    assert_eq!(reply, Ok("sent removal request to leader".to_owned()));
    cluster.run(500);
    let lines = &cluster.nodes[&others[1]].lines;
    assert!(
        lines.iter().any(|(_, line)| line.ends_with(reason)),
        "{lines:#?}"
    );
    // A refused kick is over: the leader stays once it could be spared.
    cluster.start(others[0]);
    cluster.run(10_000);
    assert_eq!(cluster.leader(), Some(leader));
    for number in 1..=3 {
        assert!(is_member(&cluster, number) && members(&cluster, number) == 3);
    }
    assert_eq!(cluster.reply(leader, kick()), Ok(String::new()));
    cluster.run_until("leaving", 10_000, |cluster| cluster.nodes[&leader].has_left);
}

#[test]
fn the_only_member_is_not_kicked() {
    let mut cluster = Cluster::new(1, 5);
    let leader = cluster.await_leader();
    let kick = Command::Kick(leader.0.to_string());
    let refusal = cluster.reply(leader, kick).expect_err("a refusal");
    assert!(refusal.ends_with("failed (empty)"), "{refusal}");
    assert!(is_member(&cluster, 1));
}

#[test]
fn a_member_far_behind_gets_a_snapshot_in_chunks() {
    let mut cluster = Cluster::keeping(3, 6, KeptEntries::NONE);
    let leader = cluster.await_leader();
    cluster.run(500);
    let late = (1..=3)
        .map(sid)
        .find(|other| *other != leader)
        .expect("another");
    cluster.crash(late);
    for _ in 0..40 {
        cluster.write(leader, 1000);
        cluster.run(30);
    }
    cluster.run(1000);
    let number = (1..=3)
        .map(sid)
        .find(|other| *other != leader && *other != late);
    for sid in [leader, number.expect("a third")] {
        cluster.compact(sid);
    }
    cluster.run(100);
    let meta = cluster.nodes[&leader]
        .disk
        .meta
        .clone()
        .expect("a snapshot");
    assert!(
        meta.index > Index(40_000) && meta.body_bytes > 1_000_000,
        "{meta:?}"
    );
    cluster.start(late);
    cluster.run_until("the snapshot", 20_000, |cluster| {
        cluster.nodes[&late]
            .disk
            .meta
            .as_ref()
            .is_some_and(|found| found.index == meta.index)
    });
    cluster.write(leader, 3);
    cluster.run(1000);
    cluster.await_equal();
    // Its file is complete enough to start again.
    cluster.crash(late);
    cluster.start(late);
    cluster.run(1000);
    cluster.await_equal();
}

#[test]
fn a_file_that_takes_no_records_is_written_again_while_its_member_leaves() {
    let mut cluster = Cluster::new(1, 6);
    let leader = cluster.await_leader();
    assert_eq!(cluster.reply(leader, Command::Leave), Ok(String::new()));
    let node = cluster.nodes.get_mut(&leader).expect("a server");
    node.disk.is_poisoned = true;
    cluster.write(leader, 1);
    cluster.run_until("commits", 10_000, |cluster| cluster.committed.len() == 1);
}

#[test]
fn the_last_member_remembers_that_the_other_one_has_left() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(2, seed);
        let leader = cluster.await_leader();
        let other = if leader == sid(1) { sid(2) } else { sid(1) };
        cluster.run(1500);
        assert_eq!(cluster.reply(other, Command::Leave), Ok(String::new()));
        cluster.run_until("leaving", 10_000, |cluster| cluster.nodes[&other].has_left);
        cluster.crash(leader);
        cluster.start(leader);
        cluster.run_until("a leader", 10_000, |cluster| {
            cluster.leader() == Some(leader)
        });
    }
}

#[test]
fn a_leader_that_commits_its_own_removal_tells_the_others_before_it_goes() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(2, seed);
        let leader = cluster.await_leader();
        let other = if leader == sid(1) { sid(2) } else { sid(1) };
        cluster.run(1500);
        // The other member gets the list that removes it, and may lead before that list is
        // committed.
        cluster.cuts.insert((other, leader));
        cluster.command(leader, Command::Kick(other.0.to_string()));
        cluster.run(300);
        cluster.crash(leader);
        cluster.start(leader);
        cluster.cuts.clear();
        cluster.run_until("one is alone", 30_000, |cluster| {
            cluster.nodes[&other].has_left && cluster.leader() == Some(leader)
        });
    }
}

#[test]
fn a_leader_that_ends_behind_its_own_removal_lets_the_others_go_on() {
    let mut hits = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(2, seed);
        let leader = cluster.await_leader();
        let other = if leader == sid(1) { sid(2) } else { sid(1) };
        cluster.run(1500);
        // The other member gets the list that removes it, and is elected before that list is
        // committed.
        cluster.cuts.insert((other, leader));
        cluster.command(leader, Command::Kick(other.0.to_string()));
        cluster.run(300);
        cluster.crash(leader);
        cluster.start(leader);
        cluster.cuts.clear();
        let end_ms = cluster.now_ms + 10_000;
        while cluster.role(other) == Some(Role::Follower) && cluster.now_ms < end_ms {
            cluster.step();
        }
        while cluster.role(other) == Some(Role::Candidate) {
            cluster.step();
        }
        if cluster.role(other) != Some(Role::Leader) {
            continue;
        }
        // It commits its own removal and cannot tell the others.
        cluster.cuts.insert((other, leader));
        cluster.run(100);
        hits += usize::from(members(&cluster, other.0.0[0]) == 1);
        cluster.crash(other);
        cluster.run(100);
        cluster.cuts.clear();
        cluster.start(other);
        cluster.run_until("one is alone", 30_000, |cluster| {
            cluster.nodes[&other].has_left && cluster.leader() == Some(leader)
        });
    }
    assert!(hits > 5, "{hits}");
}

#[test]
fn a_member_whose_leave_was_not_answered_learns_that_it_has_left() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut cluster = Cluster::new(3, seed);
        let leader = cluster.await_leader();
        let other = [1, 2, 3].map(sid).into_iter().find(|sid| *sid != leader);
        let other = other.expect("another");
        cluster.run(1500);
        for number in [1, 2, 3] {
            cluster.cuts.insert((sid(number), other));
        }
        assert_eq!(cluster.reply(other, Command::Leave), Ok(String::new()));
        cluster.run(500);
        assert_eq!(members(&cluster, leader.0.0[0]), 2);
        assert!(!cluster.nodes[&other].has_left);
        if seed % 2 == 0 {
            cluster.crash(other);
            cluster.start(other);
        }
        if seed % 4 < 2 {
            cluster.compact(leader);
        }
        cluster.cuts.clear();
        cluster.run_until("leaving", 10_000, |cluster| cluster.nodes[&other].has_left);
        assert_eq!(cluster.leader(), Some(leader));
    }
}

#[test]
fn a_candidate_that_is_no_member_ends_no_leadership() {
    let mut cluster = Cluster::new(3, 9);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let term = cluster.nodes[&leader].replica.leads;
    for target in [1, 2, 3].map(sid) {
        let vote = PeerMessage::Vote {
            term: Term(1000),
            last_index: Index(1000),
            last_term: Term(999),
            commit: Index(1),
            commit_term: Term(1),
            is_prevote: false,
            is_transfer: true,
        };
        cluster.input(target, forged(sid(9), vote));
    }
    cluster.run(5000);
    assert_eq!(cluster.nodes[&leader].replica.leads, term);
}

#[test]
fn a_process_that_is_no_member_neither_stops_nor_removes_one() {
    let mut cluster = Cluster::new(3, 8);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let stranger = sid(9);
    for target in [1, 2, 3].map(sid) {
        cluster.input(
            leader,
            forged(stranger, PeerMessage::RemoveServer { server_id: target }),
        );
        let own = PeerMessage::RemoveServer { server_id: target };
        cluster.input(target, forged(stranger, own));
        let term = Term(1 << 20);
        let commit = Index(1 << 20);
        // A member that stops fails the test.
        cluster.input(
            target,
            forged(stranger, PeerMessage::Heartbeat { term, commit }),
        );
    }
    cluster.run(5000);
    assert!(cluster.nodes.values().all(|node| !node.has_left));
    let leader = cluster.await_leader();
    assert_eq!(cluster.write(leader, 3).len(), 3);
    cluster.await_equal();
}

#[test]
fn a_server_whose_id_begins_like_that_of_a_member_is_not_admitted() {
    let mut cluster = Cluster::new(3, 10);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let mut bytes = sid(2).0.0;
    bytes[15] = 0xee;
    let request = PeerMessage::AddServer {
        address: "tcp:10.1.0.9:6644".to_owned(),
        name: "T".to_owned(),
    };
    cluster.input(leader, forged(Sid(corvid_data::Uuid(bytes)), request));
    let lines = &cluster.nodes[&leader].lines;
    let text = "server id collides with that of another member; join with a new file";
    assert!(lines.iter().any(|(_, line)| line.contains(text)));
    assert_eq!(members(&cluster, leader.0.0[0]), 3);
}

#[test]
fn strangers_fill_no_table() {
    let mut cluster = Cluster::new(3, 10);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let stranger = |number: u32| {
        let mut bytes = [0xee; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Sid(corvid_data::Uuid(bytes))
    };
    for number in 1..=100 {
        let request = PeerMessage::AddServer {
            address: format!("tcp:10.1.0.{number}:6644"),
            name: "T".to_owned(),
        };
        cluster.input(leader, forged(stranger(number), request));
    }
    assert_eq!(members(&cluster, leader.0.0[0]), 3 + 64);
    let lines = |cluster: &Cluster, text: &str| {
        let lines = &cluster.nodes[&leader].lines;
        lines.iter().filter(|(_, line)| line.contains(text)).count()
    };
    assert_eq!(lines(&cluster, "(too many servers are being added)"), 36);
    let refused = "Restrict access to this port to members";
    for number in 1..=4000 {
        // Servers that come and go leave nothing behind in memory.
        cluster.input(leader, Input::PeerUp(stranger(1 << 24 | number)));
        cluster.input(leader, Input::PeerDown(stranger(1 << 24 | number)));
    }
    assert_eq!(lines(&cluster, refused), 0);
    for number in 1..=4000 {
        let (term, commit) = (Term(1), Index(0));
        let answer = PeerMessage::HeartbeatReply { term, commit };
        cluster.input(leader, forged(stranger(number), answer));
    }
    assert_eq!(lines(&cluster, refused), 1);
    assert_eq!(cluster.write(leader, 3).len(), 3);
    cluster.await_equal();
}

fn forged(from: Sid, message: PeerMessage) -> Input {
    Input::Peer { from, message }
}

#[test]
fn a_removal_that_waits_is_checked_again_when_its_turn_comes() {
    for die_meanwhile in [false, true] {
        let mut cluster = Cluster::new(5, 7);
        let leader = cluster.await_leader();
        cluster.run(1500);
        let others: Vec<_> = (1..=5).map(sid).filter(|other| *other != leader).collect();
        // The first removal is proposed at once; its commit takes a while.
        cluster.delay_max_ms = 400;
        for target in &others[..2] {
            let name = target.0.to_string();
            let reply = cluster.reply(leader, Command::Kick(name));
            assert_eq!(reply, Ok("started removal".to_owned()));
        }
        if die_meanwhile {
            cluster.crash(others[2]);
            cluster.crash(others[3]);
        }
        let left = if die_meanwhile { 4 } else { 3 };
        cluster.run_until("the lists", 10_000, |cluster| {
            members(cluster, leader.0.0[0]) == left
        });
        cluster.run(1000);
        assert_eq!(members(&cluster, leader.0.0[0]), left);
        let reason = "failed (only 1 of the 3 remaining members would be alive and caught up, fewer than the 2 that must agree)";
        let lines = &cluster.nodes[&leader].lines;
        let is_refused = lines.iter().any(|(_, line)| line.ends_with(reason));
        assert_eq!(is_refused, die_meanwhile, "{lines:#?}");
    }
}

#[test]
fn a_member_whose_file_is_put_back_to_the_one_it_joined_with_stops_and_says_why() {
    for seed in 0..20 {
        println!("CORVID_SEED={seed}");
        let mut cluster = Cluster::new(2, seed);
        let leader = cluster.await_leader();
        cluster.join(3);
        cluster.run_until("admission", 20_000, |cluster| is_member(cluster, 3));
        cluster.write(leader, 5);
        cluster.run(500);
        cluster.crash(sid(3));
        let remotes = cluster.nodes[&sid(3)].disk.remotes.clone();
        let node = cluster.nodes.get_mut(&sid(3)).expect("a server");
        node.disk = Disk::joining(sid(3), remotes);
        node.is_astray = true;
        cluster.start(sid(3));
        cluster.run_until("the end of its part", 5000, |cluster| {
            cluster.nodes[&sid(3)].failed.is_some()
        });
        let node = &cluster.nodes[&sid(3)];
        let text = node.failed.as_ref().expect("a reason");
        assert!(text.contains("but its log ends at 0: its file was lost"));
        assert!(text.contains("cluster/kick at another member"), "{text}");
        let member = node.member.as_ref().expect("it runs");
        let status = member.status(cluster.now_ms);
        assert_eq!(status.connected, Connected::Failed(text.clone()));
        assert_eq!(status.file, FileState::Lost);
        // It asks for nothing more, and does not vote.
        cluster.run(200);
        let count = |cluster: &Cluster| cluster.nodes[&leader].joiner_lines;
        let lines = count(&cluster);
        assert!(lines > 0, "its request was answered");
        cluster.run(5000);
        assert_eq!(count(&cluster), lines);
        cluster.crash(leader);
        cluster.run(10_000);
        assert_eq!(cluster.leader(), None);
    }
}
