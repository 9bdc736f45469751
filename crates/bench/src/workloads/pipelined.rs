//! `pipelined`: update1 with 8 requests in flight on each connection.

use crate::error::Error;
use crate::figure::Figure;
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Pipelined;

impl Workload for Pipelined {
    fn name(&self) -> &'static str {
        "pipelined"
    }

    fn about(&self) -> &'static str {
        "update1 with 8 requests in flight on each connection"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load {
            depth: 8,
            ..Load::of_updates(run.pick(10_000, 25_000))
        };
        let outcome = load.drive(run)?;
        let mut figures = vec![
            outcome.rate(),
            outcome.cpu(),
            outcome.resident(),
            outcome.peak(),
        ];
        figures.extend(outcome.latencies());
        Ok(figures)
    }
}
