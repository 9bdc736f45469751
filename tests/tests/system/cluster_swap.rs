//! The files of a cluster are used by both implementations in turn: all members of one are stopped,
//! those of the other are started on the same files, and back. Before each exchange, the
//! implementation that runs compacts, converts, or changes the members or the election timer. After
//! each step, contents are equal and complete, and `check-cluster` of both implementations finds
//! nothing wrong.
//!
//! Our members are stopped under load. Those of the reference are stopped after the load, because
//! they execute some transactions twice when their leader ends.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use corvid_tests::binary;
use corvid_tests::cluster::{Cluster, without_ephemeral};
use corvid_tests::ledger::{self, DATABASE};
use corvid_tests::load::{Load, Outcome, problem};
use corvid_tests::peer;
use corvid_tests::random;
use corvid_tests::server::Implementation;

use crate::cluster_faults::{all, fail};

/// The time between two requests of a writer.
const PACE: Duration = Duration::from_millis(5);
/// The number of members with writers. A fourth member joins and leaves.
const SIZE: usize = 3;

/// The work of an operator while one of the implementations runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    Compact,
    Timer(u32),
    Convert,
    Join,
    Leave,
}

const TURNS: [&[Work]; 5] = [
    &[Work::Nothing],
    &[Work::Compact, Work::Timer(1_500)],
    &[Work::Join, Work::Timer(2_000)],
    &[Work::Convert, Work::Leave],
    &[Work::Compact],
];

#[test]
fn files_of_the_reference_change_hands_and_return() {
    play(Implementation::Reference);
}

#[test]
fn files_of_ours_change_hands_and_return() {
    play(Implementation::Corvid);
}

fn play(first: Implementation) {
    if binary::reference("ovsdb-server").is_none() {
        return peer::say_skipped("the reference is not installed: no files change hands");
    }
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let mut cluster = Cluster::joined(first, SIZE, &ledger::schema(1)).expect("a cluster");
    let mut load = Load::new(&cluster, seed).expect("writers");
    load.set_pace(PACE);
    let mut side = first;
    for (number, works) in TURNS.iter().enumerate() {
        if let Err(problem) = turn(&mut cluster, &mut load, side, works) {
            let what = format!("turn {number} ({side:?}: {works:?}), first {first:?}, seed {seed}");
            fail(cluster, &what, &problem);
        }
        side = other(side);
    }
    println!("{} transactions", load.count());
}

/// Releases of the reference before 3.2 cannot read the record of a conversion without data.
fn options(side: Implementation) -> &'static [&'static str] {
    match side {
        Implementation::Corvid => &["--disable-file-no-data-conversion"],
        Implementation::Reference => &[],
    }
}

fn other(side: Implementation) -> Implementation {
    match side {
        Implementation::Corvid => Implementation::Reference,
        Implementation::Reference => Implementation::Corvid,
    }
}

/// Applies load and does the work with one implementation, stops it, checks the files, starts the
/// other implementation and compares the contents.
fn turn(
    cluster: &mut Cluster,
    load: &mut Load,
    side: Implementation,
    works: &[Work],
) -> Outcome<()> {
    let size = cluster.members().len();
    cluster.leader_among(&all(size)).map_err(problem)?;
    load.compare(cluster, &all(SIZE))?;
    for work in works {
        // Sessions end when the schema changes, so nobody may write at that time.
        if *work == Work::Convert {
            self::work(cluster, *work)?;
        }
    }
    // The reference may answer transactions that it forwards in any order.
    load.set_depth_max(match side {
        Implementation::Corvid => usize::MAX,
        Implementation::Reference => 1,
    });
    load.during(cluster, |run| {
        match side {
            Implementation::Corvid => all(SIZE)
                .iter()
                .try_for_each(|&member| run.progress(&[member]))?,
            // The reference commits one transaction at a time, and those of a follower may
            // repeatedly lose against others.
            Implementation::Reference => run.progress(&all(SIZE))?,
        }
        for work in works.iter().filter(|work| **work != Work::Convert) {
            self::work(run.cluster, *work)?;
            run.progress(&all(SIZE))?;
        }
        if side == Implementation::Reference {
            return Ok(());
        }
        change_hands(run.cluster, side)?;
        let rest = all(run.cluster.members().len());
        rest.into_iter().for_each(|member| run.expect_end(member));
        Ok(())
    })?;
    if side == Implementation::Reference {
        change_hands(cluster, side)?;
        cluster.start().map_err(problem)?;
    }
    load.compare(cluster, &all(SIZE))
}

fn change_hands(cluster: &mut Cluster, side: Implementation) -> Outcome<()> {
    let size = cluster.members().len();
    // A fourth member that has left does not serve anything.
    let served: Vec<usize> = all(size)
        .into_iter()
        .filter(|&member| cluster.status(member).is_ok())
        .collect();
    if served.len() < size {
        cluster.remove_last();
    }
    for member in &served {
        cluster.member(*member).stop().map_err(problem)?;
    }
    for program in [
        binary::reference("ovsdb-tool"),
        Some(binary::bin("ovsdb-tool")),
    ] {
        let files = served.iter().map(|member| cluster.file(*member));
        let Some(program) = program else { continue };
        let said = peer::run(Command::new(program).arg("check-cluster").args(files));
        let said = said.map_err(problem)?;
        // A follower may have entries of a leader that was replaced. The tool mentions this.
        if said.lines().any(|line| !line.contains(" truncates log ")) {
            return Err(format!("check-cluster: {said}"));
        }
    }
    let next = other(side);
    cluster.swap(next, options(next)).map_err(problem)
}

fn work(cluster: &mut Cluster, work: Work) -> Outcome<()> {
    let members = all(SIZE);
    match work {
        Work::Nothing => Ok(()),
        Work::Compact => members.iter().try_for_each(|member| {
            cluster
                .control(*member, "ovsdb-server/compact", &[DATABASE])
                .map_err(problem)?;
            Ok(())
        }),
        Work::Timer(timer) => {
            let (leader, _) = cluster
                .leader_among(&all(cluster.members().len()))
                .map_err(problem)?;
            cluster
                .set_election_timer(leader, DATABASE, timer.into())
                .map_err(problem)
        }
        Work::Convert => {
            let mut client = cluster.connect(0).map_err(problem)?;
            client
                .call("set_db_change_aware", &json!([true]))
                .map_err(problem)?;
            let schema = without_ephemeral(&ledger::schema(2));
            let reply = client
                .call("convert", &json!([DATABASE, schema]))
                .map_err(problem)?;
            if reply["result"] != json!({}) {
                return Err(reply.to_string());
            }
            let holds = || {
                let has = |member: &usize| {
                    let row = cluster.row(*member);
                    row.is_ok_and(|row| row["schema"].to_string().contains("Extra"))
                };
                members.iter().all(has)
            };
            cluster
                .wait_until("every member has the schema", holds)
                .map_err(problem)
        }
        Work::Join => {
            let joiner = cluster.add_joining().map_err(problem)?;
            cluster.member(joiner).start().map_err(problem)?;
            let holds = || {
                cluster
                    .row(joiner)
                    .is_ok_and(|row| row["connected"] == true)
            };
            cluster
                .wait_until("a fourth member joins", holds)
                .map_err(problem)
        }
        Work::Leave => {
            cluster
                .control(SIZE, "cluster/leave", &[DATABASE])
                .map_err(problem)?;
            let holds = || {
                let gone = |member: &usize| {
                    let status = cluster.status(*member);
                    status.is_ok_and(|status| status.matches(" at unix:").count() == SIZE)
                };
                members.iter().all(gone) && cluster.status(SIZE).is_err()
            };
            cluster
                .wait_until("the fourth member leaves", holds)
                .map_err(problem)
        }
    }
}
