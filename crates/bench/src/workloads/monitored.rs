//! `monitored`: update1 while 100 connections monitor the whole table; ends when all have seen all.

use crate::error::Error;
use crate::figure::Figure;
use crate::load::Load;
use crate::workload::{Run, Workload};

/// See the head of this file.
pub(crate) struct Monitored;

impl Workload for Monitored {
    fn name(&self) -> &'static str {
        "monitored"
    }

    fn about(&self) -> &'static str {
        "update1 while 100 connections monitor the whole table; ends when all have seen all"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load {
            monitors: 100,
            ..Load::of_updates(run.pick(1_000, 2_500))
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
