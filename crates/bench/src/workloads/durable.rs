//! `durable`: insert, and each transaction waits for the disk.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Durable;

impl Workload for Durable {
    fn name(&self) -> &'static str {
        "durable"
    }

    fn about(&self) -> &'static str {
        "insert, and each transaction waits for the disk"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load {
            is_durable: true,
            ..Load::of_inserts(run.pick(500, 2_000))
        };
        let outcome = load.drive(run)?;
        let mut figures = vec![
            outcome.rate().aim(Aim::RatioAtLeast(3.0)),
            outcome.cpu(),
            outcome.resident(),
            outcome.peak(),
        ];
        figures.extend(outcome.latencies());
        Ok(figures)
    }
}
