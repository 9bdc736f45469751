//! `insert`: 10 connections insert single rows into an empty table, one request in flight each.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Insert;

impl Workload for Insert {
    fn name(&self) -> &'static str {
        "insert"
    }

    fn about(&self) -> &'static str {
        "10 connections insert single rows into an empty table, one request in flight each"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load::of_inserts(run.pick(10_000, 25_000));
        let outcome = load.drive(run)?;
        let mut figures = vec![
            outcome.rate(),
            outcome.cpu().aim(Aim::RatioAtMost(1.0 / 3.0)),
            outcome.resident().aim(Aim::RatioAtMost(0.5)),
            outcome.peak(),
        ];
        figures.extend(outcome.latencies());
        Ok(figures)
    }
}
