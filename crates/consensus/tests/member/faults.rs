//! Random faults: members crash, disks fill up, messages are lost, doubled and late, files are
//! rewritten.

use crate::cluster::{Cluster, sid};

fn seeds() -> Vec<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    match number("CORVID_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("CORVID_CASES").unwrap_or(60)).collect(),
    }
}

#[test]
fn clusters_survive_random_faults() {
    for seed in seeds() {
        println!("CORVID_SEED={seed}");
        faults(seed);
    }
}

fn faults(seed: u64) {
    let count = if seed.is_multiple_of(3) { 5 } else { 3 };
    let mut cluster = Cluster::new(count, seed);
    cluster.delay_max_ms = 1 + cluster.random(40);
    for _ in 0..60 {
        let victim = sid(1 + u8::try_from(cluster.random(u64::from(count))).expect("small"));
        match cluster.random(15) {
            0 => cluster.crash(victim),
            1..=3 => cluster.start(victim),
            4 => cluster.cut(victim),
            5 | 6 => cluster.cuts.clear(),
            7 => cluster.loss = cluster.random(20),
            8 => cluster.doubled = cluster.random(20),
            9 => cluster.compact(victim),
            10 => set_full(&mut cluster, victim, true),
            11 => set_full(&mut cluster, victim, false),
            12 => {
                let delay_ms = cluster.random(200);
                cluster
                    .nodes
                    .get_mut(&victim)
                    .expect("a server")
                    .disk_delay_ms = delay_ms;
            }
            13 => {
                cluster
                    .nodes
                    .get_mut(&victim)
                    .expect("a server")
                    .disk
                    .is_poisoned = true;
            }
            _ => {
                // A majority whose files are damaged cannot be healed.
                let damaged = cluster.nodes.values().filter(|node| node.disk.is_damaged);
                if damaged.count() + 1 < usize::from(count).div_ceil(2) {
                    cluster.damage(victim);
                }
            }
        }
        for _ in 0..5 {
            let writer = sid(1 + u8::try_from(cluster.random(u64::from(count))).expect("small"));
            let writes = 1 + cluster.random(10);
            cluster.write(writer, writes);
            let ms = cluster.random(200);
            cluster.run(ms);
        }
    }
    heal(&mut cluster, count);
    let leader = cluster.await_leader();
    let eids = cluster.write(leader, 3);
    cluster.run_until("commit", 10_000, |cluster| {
        eids.iter().all(|eid| cluster.known.contains(eid))
    });
    cluster.await_equal();
    let applied: Vec<_> = cluster.committed.values().collect();
    for node in cluster.nodes.values() {
        for eid in &node.replica.acknowledged {
            assert!(applied.contains(&eid), "an acknowledged commit is lost");
        }
    }
}

fn set_full(cluster: &mut Cluster, victim: corvid_log::cluster::Sid, is_full: bool) {
    cluster
        .nodes
        .get_mut(&victim)
        .expect("a server")
        .disk
        .is_full = is_full;
}

fn heal(cluster: &mut Cluster, count: u8) {
    (cluster.loss, cluster.doubled) = (0, 0);
    cluster.cuts.clear();
    for number in 1..=count {
        set_full(cluster, sid(number), false);
        cluster
            .nodes
            .get_mut(&sid(number))
            .expect("a server")
            .disk_delay_ms = 2;
        cluster.start(sid(number));
    }
    cluster.run(10_000);
}
