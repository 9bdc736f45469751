//! Cables between the members of a cluster are cut under load, in one or both directions, and
//! mended again. The majority continues, a leader without a majority reports within an election
//! period that it is no longer the leader, and after the cables are mended every member accepts
//! writes within a time limit.
//!
//! `CORVID_CLUSTER_SEED` and `CORVID_CLUSTER_ROUNDS` have the same meaning as in `cluster_faults`.

use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::cluster::{Cluster, LIMIT};
use corvid_tests::ledger;
use corvid_tests::load::{Load, Outcome, Run, problem, wait};
use corvid_tests::network::{Network, in_own_network};
use corvid_tests::random::{self, Random};

use crate::cluster_faults::{all, fail, rounds};

/// The election timer. Twice this time is the longest election timeout.
const TIMER: Duration = Duration::from_secs(1);
/// The time after which a leader that does not reach a majority must no longer be the leader. It
/// consists of its timer, one tick of it, and the pauses of a busy machine. The simulation checks
/// the time itself.
const STEP_DOWN: Duration = Duration::from_secs(6);
/// The time after which every member must accept writes again. A connection that was cut for a
/// while may take as long again until it sends.
const RECOVERY: Duration = Duration::from_secs(15);

/// The way in which members are cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The leader is cut off from all others.
    Leader { sends: bool, receives: bool },
    /// A follower is cut off from all others.
    Follower { sends: bool, receives: bool },
    /// The cable between the leader and one follower is cut, from the leader to the follower, back,
    /// or both.
    Cable { there: bool, back: bool },
    /// The leader is repeatedly cut off.
    Flapping,
    /// The leader is cut off together with all members except for a majority.
    Split,
}

/// Clusters of three members begin with the first cuts, clusters of five with the last ones. With
/// many rounds both use all of them.
const CUTS: [Cut; 11] = [
    Cut::Leader {
        sends: true,
        receives: true,
    },
    Cut::Follower {
        sends: true,
        receives: true,
    },
    Cut::Flapping,
    Cut::Leader {
        sends: false,
        receives: true,
    },
    Cut::Cable {
        there: true,
        back: true,
    },
    Cut::Follower {
        sends: false,
        receives: true,
    },
    Cut::Split,
    Cut::Leader {
        sends: true,
        receives: false,
    },
    Cut::Cable {
        there: true,
        back: false,
    },
    Cut::Follower {
        sends: true,
        receives: false,
    },
    Cut::Cable {
        there: false,
        back: true,
    },
];

/// The time between two requests of a writer.
const PACE: Duration = Duration::from_millis(5);

/// The longest times of a run.
#[derive(Debug, Default)]
struct Figures {
    step_down: Duration,
    majority: Duration,
    recovery: Duration,
}

#[test]
fn three_members_whose_cables_are_cut_lose_nothing_and_recover() {
    let test = "cluster_partitions::three_members_whose_cables_are_cut_lose_nothing_and_recover";
    in_own_network(test, 3, |network| play(network, 0, 6));
}

#[test]
fn five_members_whose_cables_are_cut_lose_nothing_and_recover() {
    let test = "cluster_partitions::five_members_whose_cables_are_cut_lose_nothing_and_recover";
    in_own_network(test, 5, |network| play(network, 6, 5));
}

fn play(network: &Network, first: u64, default: u64) {
    let size = network.size();
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::in_network(network, &ledger::schema(1)).expect("a cluster");
    cluster.start().expect("started");
    let mut load = Load::new(&cluster, seed).expect("writers");
    load.set_pace(PACE);
    let mut figures = Figures::default();
    for round in 0..rounds(default) {
        let cut = CUTS[usize::try_from(first + round).unwrap_or(0) % CUTS.len()];
        let outcome = self::round(
            network,
            &mut cluster,
            &mut load,
            cut,
            &mut random,
            &mut figures,
        );
        if let Err(problem) = outcome {
            let what = format!("round {round} ({cut:?}) of {size} members, seed {seed}");
            fail(cluster, &what, &problem);
        }
    }
    println!("{size} members: {} transactions, {figures:?}", load.count());
}

/// Applies load, cuts cables, applies load at the majority, mends the cables, applies load
/// everywhere and compares the contents.
fn round(
    network: &Network,
    cluster: &mut Cluster,
    load: &mut Load,
    cut: Cut,
    random: &mut Random,
    figures: &mut Figures,
) -> Outcome<()> {
    let size = network.size();
    let (leader, _) = cluster.leader_among(&all(size)).map_err(problem)?;
    let others: Vec<usize> = network.others(leader).collect();
    let other = others[usize::try_from(random.below(others.len() as u64)).unwrap_or(0)];
    let hold = Duration::from_micros(random.below(1_000_000));
    load.during(cluster, |run| {
        run.progress(&all(size))?;
        let outcome = cut_off(network, run, cut, (leader, other), random, figures);
        // While the majority continues, the others fall behind.
        if cut != Cut::Flapping {
            thread::sleep(hold);
        }
        network.heal().map_err(problem)?;
        outcome?;
        let healed = Instant::now();
        for member in 0..size {
            run.progress(&[member])?;
        }
        figures.recovery = figures.recovery.max(healed.elapsed());
        if healed.elapsed() > RECOVERY {
            return Err(format!("recovered after {:?}", healed.elapsed()));
        }
        Ok(())
    })
}

/// Cuts cables, and waits for what must happen while they are cut.
fn cut_off(
    network: &Network,
    run: &mut Run<'_>,
    cut: Cut,
    (leader, other): (usize, usize),
    random: &mut Random,
    figures: &mut Figures,
) -> Outcome<()> {
    let size = network.size();
    let majority: Vec<usize> = match cut {
        Cut::Leader { sends, receives } => {
            network.isolate(leader, sends, receives).map_err(problem)?;
            network.others(leader).collect()
        }
        Cut::Follower { sends, receives } => {
            network.isolate(other, sends, receives).map_err(problem)?;
            network.others(other).collect()
        }
        Cut::Cable { there, back } => {
            if there {
                network.cut(leader, other).map_err(problem)?;
            }
            if back {
                network.cut(other, leader).map_err(problem)?;
            }
            // The other member may be elected instead, so only the remaining members are sure to
            // continue.
            network
                .others(other)
                .filter(|member| *member != leader)
                .collect()
        }
        Cut::Flapping => {
            for _ in 0..4 {
                network.isolate(leader, true, true).map_err(problem)?;
                thread::sleep(Duration::from_millis(50 + random.below(400)));
                network.heal().map_err(problem)?;
                thread::sleep(Duration::from_millis(50 + random.below(400)));
            }
            all(size)
        }
        Cut::Split => {
            let minority: Vec<usize> = [leader]
                .into_iter()
                .chain(network.others(leader))
                .take(size - (size / 2 + 1))
                .collect();
            let rest: Vec<usize> = all(size)
                .into_iter()
                .filter(|member| !minority.contains(member))
                .collect();
            for from in &minority {
                for to in &rest {
                    network.cut(*from, *to).map_err(problem)?;
                    network.cut(*to, *from).map_err(problem)?;
                }
            }
            rest
        }
    };
    let began = Instant::now();
    let is_leaderless = matches!(cut, Cut::Leader { .. } | Cut::Split);
    if is_leaderless {
        let ended = wait(LIMIT, || !run.cluster.leads(leader).unwrap_or(true));
        let took = began.elapsed();
        figures.step_down = figures.step_down.max(took);
        if !ended || took > STEP_DOWN {
            return Err(format!("the leader that was cut off led for {took:?}"));
        }
        let answered = run.acknowledged(&[leader]);
        run.progress(&majority)?;
        figures.majority = figures.majority.max(began.elapsed());
        let hears = matches!(
            cut,
            Cut::Leader {
                receives: false,
                ..
            }
        );
        if !hears && run.acknowledged(&[leader]) > answered {
            return Err("the leader that was cut off acknowledged transactions".to_owned());
        }
        return Ok(());
    }
    run.progress(&majority)?;
    figures.majority = figures.majority.max(began.elapsed());
    // A follower that receives nothing must not disturb the others.
    thread::sleep(TIMER * 3 / 2);
    run.progress(&majority)
}
