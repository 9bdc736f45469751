//! `update1`: 10 connections update single rows of 1,000, one request in flight each.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Update1;

impl Workload for Update1 {
    fn name(&self) -> &'static str {
        "update1"
    }

    fn about(&self) -> &'static str {
        "10 connections update single rows of 1,000, one request in flight each"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load::of_updates(run.pick(10_000, 25_000));
        let outcome = load.drive(run)?;
        let mut figures = vec![
            outcome.rate(),
            outcome.cpu().aim(Aim::RatioAtMost(1.0 / 3.0)),
            outcome.resident(),
            outcome.peak(),
        ];
        figures.extend(outcome.latencies());
        Ok(figures)
    }
}
