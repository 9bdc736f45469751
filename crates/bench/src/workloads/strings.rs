//! `strings`: rows with 500 pairs of 100-byte strings are delivered to many monitors. A minimal
//! program that delivers the same amount shows the limit.

use std::sync::Arc;
use std::time::Instant;

use crate::client_pool::{Action, ClientPool, Kind};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::limit;
use crate::requests;
use crate::workload::{Run, Workload};

pub(crate) struct Strings;

/// The number of pairs of one row.
const PAIRS: usize = 500;
/// The number of connections that insert, with one request in flight each.
const WRITERS: usize = 10;
/// The number of monitors for the main figures.
const MONITORS: usize = 100;

impl Workload for Strings {
    fn name(&self) -> &'static str {
        "strings"
    }

    fn about(&self) -> &'static str {
        "10 connections insert rows of 500 pairs of 100-byte strings (100 KB); 10 to 1,000 monitors receive them"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let pools: &[usize] = run.pick(&[10, MONITORS], &[10, MONITORS, 250, 1000]);
        let mut figures = Vec::new();
        for &monitors in pools {
            run.show(&format!("{monitors} monitors"));
            // Every number of monitors gets the same total number of bytes, up to 5,000 rows.
            let deliveries = run.pick(20_000, 500_000);
            let rows = (deliveries / monitors).clamp(WRITERS, 5_000);
            figures.extend(measure(run, monitors, rows)?);
        }
        Ok(figures)
    }
}

/// Inserts `rows` rows while `monitors` clients watch.
fn measure(run: &Run<'_>, monitors: usize, rows: usize) -> Result<Vec<Figure>, Error> {
    let server = run.start()?;
    let template = Template::new();
    let mut pool = ClientPool::new()?;
    let writers = pool.connect_many(server.address(), WRITERS)?;
    let watchers = pool.connect_many(server.address(), monitors)?;
    let monitor: Arc<[u8]> = requests::monitor().get(0).into();
    pool.call_all(watchers.clone(), |_| monitor.clone(), |_, _| {})?;
    let (bytes, interval) = (pool.received_bytes(), server.measure_cpu()?);
    let began = Instant::now();

    let mut sent = 0;
    for writer in writers.clone() {
        pool.send(writer, template.insert(sent))?;
        sent += 1;
    }
    let mut answered = 0;
    pool.run(|arrival| {
        if !writers.contains(&arrival.client) {
            return Action::Wait;
        }
        answered += 1;
        if sent < rows {
            sent += 1;
            return Action::Send(template.insert(sent - 1));
        }
        if answered == rows {
            Action::Stop
        } else {
            Action::Wait
        }
    })?;
    pool.expect_marker();
    pool.send(writers.start, requests::marker().get(0).into())?;
    let mut left = monitors;
    pool.run(|arrival| {
        let is_marker = arrival.kind == Kind::Marker && watchers.contains(&arrival.client);
        left -= usize::from(is_marker);
        if left == 0 {
            Action::Stop
        } else {
            Action::Wait
        }
    })?;

    let seconds = began.elapsed().as_secs_f64();
    let cpu_us = interval.end()?;
    let megabytes = (pool.received_bytes() - bytes) as f64 / 1e6;
    let peak_mib = server.memory()?.peak_mib;
    drop((pool, server));
    let limit = limit::broadcast(monitors, &template.update(), rows)?;

    let rate = megabytes / seconds;
    let (rate_aim, share_aim) = if monitors == MONITORS {
        (Aim::RatioAtLeast(4.0), Aim::AtLeast(0.8))
    } else {
        (Aim::None, Aim::None)
    };
    let figures = [
        Figure::higher("delivered", "MB/s", rate)
            .digits(0)
            .aim(rate_aim),
        Figure::plain("limit program", "MB/s", limit.rate).digits(0),
        Figure::higher("delivered / limit", "", rate / limit.rate)
            .digits(2)
            .aim(share_aim),
        Figure::lower("server CPU", "us/MB", cpu_us / megabytes).digits(0),
        Figure::plain("limit program CPU", "us/MB", limit.cpu_us).digits(0),
        Figure::lower("peak memory", "MiB", peak_mib),
    ];
    Ok(figures
        .into_iter()
        .map(|figure| figure.at("monitors", monitors as f64))
        .collect())
}

/// The text of the pairs. Only one number in it differs between rows.
struct Template {
    pairs: Vec<u8>,
    /// The positions of that number, which has eight digits.
    numbers: Vec<usize>,
}

const DIGITS: usize = 8;

impl Template {
    fn new() -> Template {
        let mut template = Template {
            pairs: br#"["map",["#.to_vec(),
            numbers: Vec::new(),
        };
        for pair in 0..PAIRS {
            template
                .pairs
                .extend_from_slice(if pair == 0 { b"[\"" } else { b",[\"" });
            template.string(pair, b'k');
            template.pairs.extend_from_slice(b"\",\"");
            template.string(pair, b'v');
            template.pairs.extend_from_slice(b"\"]");
        }
        template.pairs.extend_from_slice(b"]]");
        template
    }

    /// Appends a string of 100 bytes: the number of the pair, the number of the row, and filler.
    fn string(&mut self, pair: usize, fill: u8) {
        self.pairs
            .extend_from_slice(format!("{pair:03}-").as_bytes());
        self.numbers.push(self.pairs.len());
        self.pairs.extend_from_slice(&[b'0'; DIGITS]);
        self.pairs.resize(self.pairs.len() + 88, fill);
    }

    /// Returns the pairs of row `number` between two texts.
    fn fill(&self, before: &str, number: usize, after: &str) -> Arc<[u8]> {
        let mut text = Vec::with_capacity(before.len() + self.pairs.len() + after.len());
        text.extend_from_slice(before.as_bytes());
        let start = text.len();
        text.extend_from_slice(&self.pairs);
        let digits = format!("{number:08}");
        for at in &self.numbers {
            text[start + at..start + at + DIGITS].copy_from_slice(&digits.as_bytes()[..DIGITS]);
        }
        text.extend_from_slice(after.as_bytes());
        text.into()
    }

    /// Returns the request that inserts row `number`.
    fn insert(&self, number: usize) -> Arc<[u8]> {
        let before = format!(
            r#"{{"method":"transact","params":["Bench",{{"op":"insert","table":"Item","row":{{"name":"group-{number:08}","options":"#
        );
        self.fill(&before, number, &format!(r#"}}}}],"id":{number}}}"#))
    }

    /// Returns the update that a monitor receives for such a row.
    fn update(&self) -> Arc<[u8]> {
        let before = r#"{"id":null,"method":"update2","params":["m",{"Item":{"00000000-0000-4000-8000-000000000000":{"insert":{"name":"group-00000000","options":"#;
        self.fill(before, 0, "}}}}]}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_json::Value;

    #[test]
    fn row_has_500_unique_pairs() {
        let template = Template::new();
        let text = template.insert(7);
        Value::parse(&text).unwrap();
        Value::parse(&template.update()).unwrap();
        assert!((100_000..110_000).contains(&text.len()), "{}", text.len());
        assert_ne!(template.insert(1), template.insert(2));
    }
}
