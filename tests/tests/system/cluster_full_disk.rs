//! The disk of one member of a cluster, a follower or the leader, fills up under load. The others
//! continue, and nothing that was acknowledged is lost. The member accepts writes again when there
//! is room, even if it was restarted while the disk was full.
//!
//! `CORVID_CLUSTER_SEED` and `CORVID_CLUSTER_ROUNDS` have the same meaning as in `cluster_faults`.

use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::cluster::{Cluster, LIMIT};
use corvid_tests::ledger;
use corvid_tests::load::{Load, Outcome, problem, wait};
use corvid_tests::random::{self, Random};
use corvid_tests::small_disk::{SmallDisk, on_disk_of};

use crate::cluster_faults::{all, fail, rounds};

/// The member whose file is on the small disk.
const MEMBER: usize = 1;
/// The time between two requests of a writer.
const PACE: Duration = Duration::from_millis(10);
/// The time limit for the others to accept writes after the disk has become full, and for the
/// member after there is room again.
const RECOVERY: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    leads: bool,
    restarts: bool,
}

const CASES: [Case; 4] = [
    Case {
        leads: false,
        restarts: false,
    },
    Case {
        leads: true,
        restarts: false,
    },
    Case {
        leads: false,
        restarts: true,
    },
    Case {
        leads: true,
        restarts: true,
    },
];

#[test]
fn a_member_whose_disk_is_full_stops_nobody_and_recovers() {
    let test = "cluster_full_disk::a_member_whose_disk_is_full_stops_nobody_and_recovers";
    // The contents grow with each round, and a compaction needs room for them twice.
    let megabytes = 12 + rounds(CASES.len() as u64);
    on_disk_of(test, &format!("{megabytes}m"), play);
}

fn play(disk: &SmallDisk) {
    let seed = random::seed("CORVID_CLUSTER_SEED");
    let mut random = Random::new(seed);
    let schema = ledger::schema(1);
    let folder = disk.file("");
    let mut cluster = Cluster::with_disk(3, MEMBER, &folder, &schema).expect("a cluster");
    cluster.start().expect("started");
    let mut load = Load::new(&cluster, seed).expect("writers");
    load.set_pace(PACE);
    for round in 0..rounds(CASES.len() as u64) {
        let case = CASES[usize::try_from(round).unwrap_or(0) % CASES.len()];
        if let Err(problem) = self::round(disk, &mut cluster, &mut load, case, &mut random) {
            let what = format!("round {round} ({case:?}), seed {seed}");
            fail(cluster, &what, &problem);
        }
    }
    println!("{} transactions", load.count());
}

fn round(
    disk: &SmallDisk,
    cluster: &mut Cluster,
    load: &mut Load,
    case: Case,
    random: &mut Random,
) -> Outcome<()> {
    let (leader, _) = cluster.leader_among(&all(3)).map_err(problem)?;
    let wanted = match case.leads {
        true => MEMBER,
        false => (MEMBER + 1) % 3,
    };
    if leader != wanted && (case.leads || leader == MEMBER) {
        cluster.move_leadership(wanted).map_err(problem)?;
    }
    // The small disk has room for the contents of a few rounds only, so the file is compacted.
    cluster
        .control(MEMBER, "ovsdb-server/compact", &[ledger::DATABASE])
        .map_err(problem)?;
    let complaints = |cluster: &mut Cluster| {
        let log = cluster.member(MEMBER).log();
        log.matches("No space left on device").count()
    };
    let complained = complaints(cluster);
    load.during(cluster, |run| {
        run.progress(&all(3))?;
        disk.take_all_but(random.below(20_000)).map_err(problem)?;
        let full = Instant::now();
        let others = [(MEMBER + 1) % 3, (MEMBER + 2) % 3];
        // After a few records, each of several blocks, the next one no longer fits.
        for _ in 0..3 {
            run.progress(&others)?;
        }
        if full.elapsed() > RECOVERY {
            return Err(format!("the others went on after {:?}", full.elapsed()));
        }
        if complaints(run.cluster) == complained {
            return Err("the disk was never full".to_owned());
        }
        let is_told = wait(LIMIT, || {
            let text = run
                .cluster
                .control(MEMBER, "ovsdb-server/status", &["--json"]);
            text.is_ok_and(|text| text.contains(r#""file_error":"No space left on device""#))
        });
        if !is_told {
            return Err("the status does not tell why the file takes no records".to_owned());
        }
        if case.restarts {
            run.kill(MEMBER);
            run.cluster.member(MEMBER).launch().map_err(problem)?;
            thread::sleep(Duration::from_millis(500));
            run.progress(&others)?;
        }
        disk.give_back().map_err(problem)?;
        let room = Instant::now();
        if !case.restarts {
            run.progress(&[MEMBER])?;
        }
        let caught_up = wait(LIMIT, || {
            run.cluster
                .row(MEMBER)
                .is_ok_and(|row| row["connected"] == true)
        });
        if !caught_up || room.elapsed() > RECOVERY {
            return Err(format!("the member recovered after {:?}", room.elapsed()));
        }
        Ok(())
    })
}
