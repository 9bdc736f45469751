//! `size`: the cost of rows that are inserted in transactions of 100 rows or more, and in a
//! separate transaction for each row.

use std::time::Instant;

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::harness::Harness;
use crate::limit;
use crate::load::Load;
use crate::requests;
use crate::workload::{Run, Workload};

/// The number of rows of a transaction, and the number of transactions, which is chosen so that
/// each point takes long enough to be measured.
const SIZES: [(u32, u32); 4] = [(100, 100), (1_000, 20), (10_000, 5), (100_000, 1)];
/// The largest transaction at full scale.
const LARGEST: (u32, u32) = (500_000, 1);

/// The number of requests in flight of a client that pipelines.
const PIPELINED: usize = 16;

pub(crate) struct Size;

impl Workload for Size {
    fn name(&self) -> &'static str {
        "size"
    }

    fn about(&self) -> &'static str {
        "100 to 100,000 rows (full: 500,000) in one transaction, and in a transaction each"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load {
            writers: 1,
            ..Load::of_inserts(run.pick(20_000, 100_000))
        };
        let aim = Aim::RatioAtMost(0.2);
        let mut figures = Vec::new();
        for in_flight in [1, PIPELINED] {
            let mut harness = Harness::new(run)?;
            harness.connect(1)?;
            let requests = requests::of_writer(&load, 0, &[]);
            let phase = harness.phase(vec![requests.clone()], in_flight, None)?;
            drop(harness);
            run.show("limit");
            let limit_us = limit::answers(&requests, in_flight)?;
            let figure = |name, value| {
                Figure::lower(name, "us/txn", value).at("in flight", in_flight as f64)
            };
            figures.extend([
                figure("one row a transaction, wall time", phase.wall_us_each()).aim(aim),
                Figure::plain("limit program, wall time", "us/txn", limit_us)
                    .at("in flight", in_flight as f64),
            ]);
        }
        let mut peak = 0.0_f64;
        let mut sizes = SIZES.to_vec();
        sizes.extend(run.pick(None, Some(LARGEST)));
        for (rows, times) in sizes {
            run.show(&format!("{rows} rows"));
            let mut harness = Harness::new(run)?;
            let mut elapsed = 0.0;
            for time in 0..times {
                let request = requests::insert_many(time * rows..(time + 1) * rows);
                let (interval, began) = (harness.server().measure_cpu()?, Instant::now());
                harness.prepare(request, |_| {})?;
                elapsed += began.elapsed().as_secs_f64();
                interval.end()?;
            }
            let each_us = elapsed * 1e6 / f64::from(rows * times);
            figures.push(
                Figure::lower("one transaction, wall time", "us/row", each_us)
                    .digits(2)
                    .at("rows", rows)
                    .aim(aim),
            );
            peak = peak.max(harness.server().memory()?.peak_mib);
        }
        figures.push(Figure::lower("peak memory", "MiB", peak));
        Ok(figures)
    }
}
