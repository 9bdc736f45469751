//! `update2`: 10 connections update single rows of 200,000, one request in flight each.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Update2;

impl Workload for Update2 {
    fn name(&self) -> &'static str {
        "update2"
    }

    fn about(&self) -> &'static str {
        "10 connections update single rows of 200,000, one request in flight each"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load {
            rows: 200_000,
            ..Load::of_updates(run.pick(10_000, 25_000))
        };
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
