//! The workloads of single-row transactions: ten connections insert or update rows, with one or
//! more requests in flight each. The workloads differ in the contents of the table, the number of
//! requests in flight and the watchers.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::load::Load;
use crate::workload::{Run, Scale, Workload};

/// One of these workloads.
pub(crate) struct Steady {
    name: &'static str,
    about: &'static str,
    load: fn(Scale) -> Load,
    rate: Aim,
    /// The aim for the server's CPU time.
    cpu: Aim,
    /// The aim for resident memory at the end.
    memory: Aim,
}

/// The aim for the CPU time of a transaction without watchers.
const CPU: Aim = Aim::RatioAtMost(1.0 / 3.0);
/// The aim for the memory with many rows.
const MEMORY: Aim = Aim::RatioAtMost(0.5);

/// The base of the workloads below, which replace parts of it.
const UNAIMED: Steady = Steady {
    name: "",
    about: "",
    load: |_| Load::of_updates(0),
    rate: Aim::None,
    cpu: Aim::None,
    memory: Aim::None,
};

pub(super) const INSERT: Steady = Steady {
    name: "insert",
    about: "10 connections insert single rows into an empty table, one request in flight each",
    load: |scale| Load::of_inserts(scale.pick(10_000, 25_000)),
    cpu: CPU,
    memory: MEMORY,
    ..UNAIMED
};

pub(super) const UPDATE1: Steady = Steady {
    name: "update1",
    about: "10 connections update single rows of 1,000, one request in flight each",
    load: |scale| Load::of_updates(scale.pick(10_000, 25_000)),
    cpu: CPU,
    ..UNAIMED
};

pub(super) const UPDATE2: Steady = Steady {
    name: "update2",
    about: "10 connections update single rows of 200,000, one request in flight each",
    load: |scale| Load {
        rows: 200_000,
        ..Load::of_updates(scale.pick(10_000, 25_000))
    },
    cpu: CPU,
    memory: MEMORY,
    ..UNAIMED
};

pub(super) const PIPELINED: Steady = Steady {
    name: "pipelined",
    about: "update1 with 8 requests in flight on each connection",
    load: |scale| Load {
        depth: 8,
        ..Load::of_updates(scale.pick(10_000, 25_000))
    },
    ..UNAIMED
};

pub(super) const MONITORED: Steady = Steady {
    name: "monitored",
    about: "update1 while 100 connections monitor the whole table; ends when all have seen all",
    load: |scale| Load {
        monitors: 100,
        ..Load::of_updates(scale.pick(1_000, 2_500))
    },
    ..UNAIMED
};

pub(super) const DURABLE: Steady = Steady {
    name: "durable",
    about: "insert, and each transaction waits for the disk",
    load: |scale| Load {
        is_durable: true,
        ..Load::of_inserts(scale.pick(500, 2_000))
    },
    rate: Aim::RatioAtLeast(3.0),
    ..UNAIMED
};

impl Workload for Steady {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let outcome = (self.load)(run.scale).drive(run)?;
        let mut figures = vec![
            outcome.rate().aim(self.rate),
            outcome.cpu().aim(self.cpu),
            outcome.resident().aim(self.memory),
            outcome.peak(),
        ];
        figures.extend(outcome.latencies());
        Ok(figures)
    }
}
