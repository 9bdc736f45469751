//! Changes of a cluster's members and leader under load: a server joins while the leader is killed,
//! a member is removed while it is down, and the leadership is transferred on purpose. Also servers
//! of the other implementation, which are rejected and do no harm.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use corvid_tests::binary;
use corvid_tests::client::Received;
use corvid_tests::cluster::{Cluster, LIMIT, LONG_TIMER};
use corvid_tests::ledger::{self, DATABASE};
use corvid_tests::load::{Load, Outcome, Run, problem, wait};
use corvid_tests::peer;
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation;

use crate::cluster_faults::{all, fail, rounds};

/// The time between two requests of a writer.
const PACE: Duration = Duration::from_millis(10);
/// The number of rows of 10 kB that a joining server downloads.
const FILLERS: usize = 5_000;
const FILLER_BYTES: usize = 10_000;
/// The maximum duration of an exit, which does not wait for anybody.
const EXIT: Duration = Duration::from_secs(8);
/// The number of planned transfers. A single one may take longer, if the machine does something
/// else at that time.
const TRANSFERS: usize = 5;

/// Runs `play` on a cluster of three members under load.
fn play(
    test: &str,
    fillers: usize,
    play: impl FnOnce(&mut Cluster, &mut Load, &mut Random) -> Outcome<()>,
) {
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let mut cluster =
        Cluster::joined(Implementation::Corvid, 3, &ledger::schema(1)).expect("a cluster");
    let mut load = Load::new(&cluster, seed).expect("writers");
    load.set_pace(PACE);
    if fillers > 0 {
        let (leader, _) = cluster.leader_among(&all(3)).expect("a leader");
        let mut client = cluster.connect(leader).expect("a connection");
        ledger::fill(&mut client, fillers, FILLER_BYTES).expect("filled");
        load.expect_fillers(fillers);
    }
    if let Err(problem) = play(&mut cluster, &mut load, &mut Random::new(seed)) {
        fail(cluster, &format!("{test}, seed {seed}"), &problem);
    }
    println!("{} transactions", load.count());
}

#[test]
fn server_joins_while_the_leader_is_killed() {
    play("a joiner", FILLERS, |cluster, load, random| {
        for _ in 0..rounds(1) {
            joiner(cluster, load, random)?;
        }
        Ok(())
    });
}

fn joiner(cluster: &mut Cluster, load: &mut Load, random: &mut Random) -> Outcome<()> {
    // The joining server knows the address of the first member, which is not killed.
    cluster.move_leadership(1).map_err(problem)?;
    let joiner = cluster.add_joining().map_err(problem)?;
    let delay = Duration::from_micros(random.below(300_000));
    load.during(cluster, |run| {
        run.progress(&all(3))?;
        run.cluster.member(joiner).start().map_err(problem)?;
        let began = Instant::now();
        thread::sleep(delay);
        let had_joined = has_joined(run, joiner);
        run.kill(1);
        run.progress(&[0, 2])?;
        if !wait(LIMIT, || has_joined(run, joiner)) {
            return Err("the server does not join".to_owned());
        }
        println!(
            "joined after {:?}; the leader was killed after {delay:?}, the server had joined: {had_joined}",
            began.elapsed()
        );
        Ok(())
    })?;
    load.compare(cluster, &[0, 1, 2, joiner])?;
    // The next round must begin with three members again.
    cluster
        .control(joiner, "cluster/leave", &[DATABASE])
        .map_err(problem)?;
    let left = || cluster.status(joiner).is_err();
    cluster
        .wait_until("the server leaves", left)
        .map_err(problem)?;
    cluster.remove_last();
    Ok(())
}

fn has_joined(run: &Run<'_>, joiner: usize) -> bool {
    let row = run.cluster.row(joiner);
    row.is_ok_and(|row| row["connected"] == true)
}

#[test]
fn member_that_was_removed_while_it_was_down_is_told_and_disturbs_nobody() {
    play("a removal", 0, |cluster, load, _| {
        cluster.move_leadership(0).map_err(problem)?;
        let address = cluster.address(2);
        load.leave_out(2);
        load.during(cluster, |run| {
            run.progress(&all(3))?;
            run.kill(2);
            run.cluster
                .control(0, "cluster/kick", &[DATABASE, &address])
                .map_err(problem)?;
            let removed = wait(LIMIT, || {
                let status = run.cluster.status(1).unwrap_or_default();
                status.matches(" at unix:").count() == 2
            });
            if !removed {
                return Err("the member is not removed".to_owned());
            }
            let term = term(run.cluster, 0)?;
            run.cluster.member(2).start().map_err(problem)?;
            if !wait(LIMIT, || run.cluster.status(2).is_err()) {
                return Err("the member that was removed does not learn it".to_owned());
            }
            run.progress(&[0, 1])?;
            match self::term(run.cluster, 0)? == term {
                true => Ok(()),
                false => Err("the member that was removed caused an election".to_owned()),
            }
        })
    });
}

#[test]
fn leader_without_a_majority_exits_although_a_commit_is_pending() {
    let mut cluster =
        Cluster::joined(Implementation::Corvid, 3, &ledger::schema(1)).expect("a cluster");
    let (leader, _) = cluster.leader_among(&all(3)).expect("a leader");
    for member in all(3).into_iter().filter(|member| *member != leader) {
        cluster.member(member).kill();
    }
    let mut client = cluster.connect(leader).expect("a connection");
    let insert = json!({"op": "insert", "table": "Filler", "row": {"number": 1}});
    let request = json!({"id": 1, "method": "transact", "params": [DATABASE, insert]});
    client.send(request.to_string().as_bytes()).expect("sent");
    let answer = client.receive(Duration::from_millis(100)).expect("open");
    assert_eq!(answer, Received::Nothing);
    let began = Instant::now();
    cluster.member(leader).stop().expect("stopped");
    assert!(began.elapsed() < EXIT, "{:?}", began.elapsed());
}

fn term(cluster: &Cluster, member: usize) -> Outcome<String> {
    let status = cluster.status(member).map_err(problem)?;
    let line = status.lines().find(|line| line.starts_with("Term: "));
    line.map(str::to_owned).ok_or(status)
}

#[test]
fn planned_transfer_is_short_and_no_client_gets_an_error() {
    play("a transfer", 0, |cluster, load, _| {
        let (leader, _) = cluster.leader_among(&all(3)).map_err(problem)?;
        cluster.slow_elections(leader, DATABASE).map_err(problem)?;
        load.during(cluster, |run| {
            let mut waits = Vec::new();
            for number in 0..TRANSFERS {
                run.progress(&all(3))?;
                let (leader, _) = run.cluster.leader_among(&all(3)).map_err(problem)?;
                let _ = run.longest_wait(&all(3));
                run.cluster
                    .move_leadership((leader + 1 + number % 2) % 3)
                    .map_err(problem)?;
                for member in 0..3 {
                    run.progress(&[member])?;
                }
                waits.push(run.longest_wait(&all(3)));
            }
            waits.sort_unstable();
            println!("longest waits of clients: {waits:?}");
            match waits[TRANSFERS / 2] < LONG_TIMER / 4 {
                true => Ok(()),
                false => Err(format!("clients waited {waits:?}")),
            }
        })
    });
}

/// Whether a member logs that the other side cannot be its peer.
fn refuses(cluster: &Cluster, member: usize) -> bool {
    cluster.members()[member].log().contains(REFUSAL)
}

const REFUSAL: &str = "cannot be a member of this cluster";

#[test]
fn servers_of_the_other_implementation_are_refused_and_harm_nothing() {
    if binary::reference("ovsdb-server").is_none() {
        return peer::say_skipped("the reference is not installed: no live mix");
    }
    play("a live mix", 0, |cluster, load, _| {
        // A member of the reference is started on the file of one of our members.
        cluster.move_leadership(0).map_err(problem)?;
        load.during(cluster, |run| {
            run.progress(&all(3))?;
            run.kill(2);
            let theirs = Implementation::Reference.server_binary().map_err(problem)?;
            run.cluster.member(2).replace_program(&theirs);
            run.cluster.member(2).start().map_err(problem)?;
            if !wait(LIMIT, || refuses(run.cluster, 0) || refuses(run.cluster, 1)) {
                return Err("nobody refuses the other implementation".to_owned());
            }
            for _ in 0..5 {
                run.progress(&[0, 1])?;
            }
            let ours = Implementation::Corvid.server_binary().map_err(problem)?;
            run.cluster.member(2).kill();
            run.cluster.member(2).replace_program(&ours);
            Ok(())
        })
    });
}

#[test]
fn server_of_the_reference_does_not_join_members_of_ours() {
    if binary::reference("ovsdb-server").is_none() {
        return peer::say_skipped("the reference is not installed: no live mix");
    }
    play("a joiner of the reference", 0, |cluster, load, _| {
        let lists = |cluster: &Cluster| -> Outcome<Vec<Vec<String>>> {
            let list = |member| cluster.servers(member).map_err(problem);
            all(3).into_iter().map(list).collect()
        };
        let before = lists(cluster)?;
        let joiner = cluster
            .add_joining_of(Implementation::Reference)
            .map_err(problem)?;
        load.during(cluster, |run| {
            run.progress(&all(3))?;
            run.cluster.member(joiner).start().map_err(problem)?;
            if !wait(LIMIT, || refuses(run.cluster, 0)) {
                return Err("nobody refuses the joiner".to_owned());
            }
            // The server keeps trying to join.
            for _ in 0..5 {
                run.progress(&all(3))?;
            }
            let status = run.cluster.status(joiner).map_err(problem)?;
            if !status.contains("Status: joining cluster") {
                return Err(format!("the joiner says: {status}"));
            }
            run.cluster.member(joiner).kill();
            match lists(run.cluster)? == before && before[0].len() == 3 {
                true => Ok(()),
                false => Err(format!("{before:?}, then {:?}", lists(run.cluster))),
            }
        })
    });
}

#[test]
fn server_of_ours_does_not_join_members_of_the_reference() {
    if binary::reference("ovsdb-server").is_none() {
        return peer::say_skipped("the reference is not installed: no live mix");
    }
    let mut cluster =
        Cluster::joined(Implementation::Reference, 3, &ledger::schema(1)).expect("a cluster");
    let before = cluster.servers(0).expect("a list");
    assert_eq!(before.len(), 3, "{before:?}");
    let joiner = cluster
        .add_joining_of(Implementation::Corvid)
        .expect("made");
    cluster.member(joiner).start().expect("started");
    // A member of the reference ignores a server that does not know its cluster yet and uses
    // another protocol.
    let line = "the peer did not identify itself, disconnecting. If it is a member of a cluster, it runs another program";
    let refused = || cluster.members()[joiner].log().contains(line);
    cluster.wait_until("refused", refused).expect("in time");
    for (fillers, member) in [(1, 0), (2, 1), (3, 2)] {
        let mut client = cluster.connect(member).expect("a connection");
        ledger::fill(&mut client, fillers, 9).expect("it goes on");
        assert_eq!(cluster.servers(member).expect("a list"), before);
    }
    let status = cluster.status(joiner).expect("it runs");
    assert!(status.contains("Status: joining cluster"), "{status}");
}
