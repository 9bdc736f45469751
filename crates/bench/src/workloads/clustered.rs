//! Three members of a cluster on this machine: single-row updates by connections to the leader or
//! to all members, and the time without a leader after the leader is killed. The CPU time is that
//! of all members; the memory is that of the member that uses the most.

use std::time::{Duration, Instant};

use crate::cluster::{self, MEMBERS};
use crate::error::Error;
use crate::figure::{Aim, Figure, middle};
use crate::harness::Harness;
use crate::load::Load;
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

/// A steady load on a cluster.
pub(crate) struct Clustered {
    name: &'static str,
    about: &'static str,
    load: fn(Scale) -> Load,
    /// Whether writers connect to all members in turn, instead of only to the leader.
    is_spread: bool,
    rate: Aim,
    p50: Aim,
    p99: Aim,
}

/// The base of the workloads below, without aims.
const UNAIMED: Clustered = Clustered {
    name: "",
    about: "",
    load: |_| Load::of_updates(0),
    is_spread: false,
    rate: Aim::None,
    p50: Aim::None,
    p99: Aim::None,
};

pub(super) const TEN: Clustered = Clustered {
    name: "cluster",
    about: "update1 on the leader of a cluster of 3",
    load: |scale| Load::of_updates(scale.pick(1_000, 5_000)),
    rate: Aim::RatioAtLeast(6.0),
    ..UNAIMED
};

pub(super) const HUNDRED: Clustered = Clustered {
    name: "cluster-100",
    about: "100 connections to the leader of a cluster of 3, one request in flight each",
    load: |scale| Load {
        writers: 100,
        ..Load::of_updates(scale.pick(200, 1_000))
    },
    rate: Aim::RatioAtLeast(12.0),
    ..UNAIMED
};

pub(super) const PIPELINED: Clustered = Clustered {
    name: "cluster-pipelined",
    about: "10 connections to the leader of a cluster of 3, 32 requests in flight each",
    load: |scale| Load {
        depth: 32,
        ..Load::of_updates(scale.pick(2_000, 10_000))
    },
    ..UNAIMED
};

pub(super) const ONE: Clustered = Clustered {
    name: "cluster-one",
    about: "one connection to the leader of a cluster of 3, one request in flight",
    load: |scale| Load {
        writers: 1,
        ..Load::of_updates(scale.pick(1_000, 5_000))
    },
    p50: Aim::RatioAtMost(1.0),
    p99: Aim::RatioAtMost(0.5),
    ..UNAIMED
};

pub(super) const SPREAD: Clustered = Clustered {
    name: "cluster-spread",
    about: "30 connections to all members of a cluster of 3, one request in flight each",
    load: |scale| Load {
        writers: 30,
        ..Load::of_updates(scale.pick(200, 1_000))
    },
    is_spread: true,
    rate: Aim::RatioAtLeast(10.0),
    ..UNAIMED
};

impl Workload for Clustered {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let mut harness = Harness::of_servers(run, cluster::start(run)?)?;
        let connect = if self.is_spread {
            Harness::connect_to_all
        } else {
            Harness::connect
        };
        let outcome = (self.load)(run.scale).drive_with(&mut harness, connect)?;
        let [p50, p99, p999] = outcome.latencies();
        Ok(vec![
            outcome.rate().aim(self.rate),
            outcome.cpu().aim(Aim::RatioAtMost(0.125)),
            outcome.resident().aim(Aim::RatioAtMost(0.5)),
            outcome.peak(),
            p50.aim(self.p50),
            p99.aim(self.p99),
            p999,
        ])
    }
}

/// The workload in which the leader is killed.
pub(super) struct Failover;

impl Workload for Failover {
    fn name(&self) -> &'static str {
        "cluster-failover"
    }

    fn about(&self) -> &'static str {
        "the leader of a cluster of 3 is killed: the time until a transaction succeeds at another member"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let times: Result<Vec<f64>, Error> = (0..run.pick(5, 15)).map(|_| failover(run)).collect();
        let mut times = times?;
        times.sort_by(f64::total_cmp);
        let longest = times.last().copied().unwrap_or(f64::NAN);
        Ok(vec![
            Figure::lower("median time without a leader", "ms", middle(times))
                .digits(0)
                .aim(Aim::RatioAtMost(0.6)),
            Figure::lower("longest time without a leader", "ms", longest).digits(0),
        ])
    }
}

/// Sends a transaction to each of the two other members as soon as the leader is killed. Returns
/// the time from its end to the first reply, in ms.
fn failover(run: &Run<'_>) -> Result<f64, Error> {
    let mut members = cluster::start(run)?;
    let leader = members.swap_remove(0);
    assert_eq!(members.len(), MEMBERS - 1);
    let fill = requests::fill(1);
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    drop(leader);
    std::thread::scope(|scope| {
        let (sender, replies) = std::sync::mpsc::channel();
        for member in &members {
            let (sender, text) = (sender.clone(), fill.text());
            scope.spawn(move || {
                // The second insertion of the same name is rejected. Either reply shows that there
                // is a leader.
                let reply = Server::address(member).request(text);
                let _ = sender.send((began.elapsed(), reply));
            });
        }
        let (elapsed, reply) = replies.recv().map_err(|_| Error::Closed)?;
        reply?;
        Ok(elapsed.as_secs_f64() * 1e3)
    })
}
