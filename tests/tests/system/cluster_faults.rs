//! Members of a cluster are repeatedly killed, paused and power-cycled under load. Nothing that was
//! acknowledged is lost, nothing happens twice, and all members have equal contents afterwards.
//!
//! Each member has its own writers, which stay connected to it. A writer whose member survives gets
//! a reply to every transaction, and each of its transactions exists exactly once. A writer whose
//! member is killed may have a few unanswered transactions, of which only the first ones may have
//! been committed.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_CLUSTER_SEED` | the seed of a run to be repeated; the timing of threads and kills still differs |
//! | `CORVID_CLUSTER_ROUNDS` | the number of faults for each size of a cluster |
//! | `CORVID_REFERENCE=1` | tests members of the reference, which execute some transactions twice |

use std::thread;
use std::time::Duration;

use corvid_tests::cluster::Cluster;
use corvid_tests::ledger;
use corvid_tests::load::{Load, Outcome, problem};
use corvid_tests::random::{self, Random};
use corvid_tests::server::Implementation;

/// The default number of faults for each size of a cluster.
const ROUNDS: u64 = 10;
/// The duration of a pause, which is longer than the longest election timeout, by default 2 s.
const PAUSE: Duration = Duration::from_millis(2_500);

/// The time between two requests of a writer.
const PACE: Duration = Duration::from_millis(2);

/// The fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillLeader,
    KillFollower,
    PauseLeader,
    PauseFollower,
    PowerCycle,
}

const FAULTS: [Fault; 5] = [
    Fault::KillLeader,
    Fault::PauseLeader,
    Fault::KillFollower,
    Fault::PowerCycle,
    Fault::PauseFollower,
];

/// Returns the number of rounds of a test.
pub(crate) fn rounds(default: u64) -> u64 {
    std::env::var("CORVID_CLUSTER_ROUNDS").map_or(default, |text| {
        text.parse().expect("CORVID_CLUSTER_ROUNDS is a number")
    })
}

/// Returns the numbers of all members.
pub(crate) fn all(size: usize) -> Vec<usize> {
    (0..size).collect()
}

/// Ends a test that has found a fault. The files and the seed are kept for a repetition.
pub(crate) fn fail(cluster: Cluster, what: &str, problem: &str) -> ! {
    let said = cluster.said();
    panic!(
        "{what}, files in {}:\n{problem}\n{said}",
        cluster.keep().display()
    )
}

#[test]
fn three_members_lose_nothing_and_execute_nothing_twice() {
    play(3);
}

#[test]
fn five_members_lose_nothing_and_execute_nothing_twice() {
    play(5);
}

fn play(size: usize) {
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let implementation = Implementation::from_env();
    let mut cluster = Cluster::joined(implementation, size, &ledger::schema(1)).expect("a cluster");
    let mut load = Load::new(&cluster, seed).expect("writers");
    load.set_pace(PACE);
    let mut random = Random::new(seed);
    for round in 0..rounds(ROUNDS) {
        let fault = FAULTS[usize::try_from(round).unwrap_or(0) % FAULTS.len()];
        if let Err(problem) = self::round(&mut cluster, &mut load, fault, &mut random) {
            let what = format!("round {round} ({fault:?}) of {size} members, seed {seed}");
            fail(cluster, &what, &problem);
        }
    }
    println!("{size} members: {} transactions", load.count());
}

/// Applies load, causes a fault, applies load to the other members, ends the fault and compares the
/// contents.
fn round(cluster: &mut Cluster, load: &mut Load, fault: Fault, random: &mut Random) -> Outcome<()> {
    let size = cluster.members().len();
    let (leader, _) = cluster.leader_among(&all(size)).map_err(problem)?;
    let other = (leader + 1 + usize::try_from(random.below(size as u64 - 1)).unwrap_or(0)) % size;
    let delay = Duration::from_micros(random.below(200_000));
    load.during(cluster, |run| {
        run.progress(&all(size))?;
        thread::sleep(delay);
        match fault {
            Fault::KillLeader => run.kill(leader),
            Fault::KillFollower => run.kill(other),
            Fault::PowerCycle => {
                all(size).into_iter().for_each(|member| run.kill(member));
                return Ok(());
            }
            Fault::PauseLeader | Fault::PauseFollower => {
                let paused = match fault {
                    Fault::PauseLeader => leader,
                    _ => other,
                };
                run.cluster.pause(paused, true).map_err(problem)?;
                let outcome = run.progress(&all(size));
                thread::sleep(PAUSE);
                run.cluster.pause(paused, false).map_err(problem)?;
                return outcome;
            }
        }
        run.progress(&all(size))
    })
}

#[test]
fn the_demonstration_kills_a_leader_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = corvid_tests::binary::bin("corvid-demo");
    // In the second pass the files already exist.
    for _ in 0..2 {
        let output = std::process::Command::new(&program)
            .arg("--cluster")
            .arg(folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("a program");
        let said = String::from_utf8_lossy(&output.stdout);
        let problems = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && problems.is_empty(),
            "{said}{problems}"
        );
        assert_eq!(said.matches("\n  written-").count(), 2, "{said}");
    }
}
