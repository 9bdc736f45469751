//! `strings`: rows of 500 pairs of 100-byte strings, delivered to many monitors, beside a bare program that delivers as much.

use std::sync::Arc;
use std::time::Instant;

use crate::crowd::{Act, Crowd, Kind};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::limit;
use crate::requests;
use crate::workload::{Run, Workload};

/// See the module.
pub(crate) struct Strings;

/// Pairs of one row.
const PAIRS: usize = 500;
/// Connections that insert, one request in flight each.
const WRITERS: usize = 10;
/// The number of monitors of which the issue speaks.
const MONITORS: usize = 100;

impl Workload for Strings {
    fn name(&self) -> &'static str {
        "strings"
    }

    fn about(&self) -> &'static str {
        "10 connections insert rows of 500 pairs of 100-byte strings (100 KB); 10 to 1,000 monitors receive them"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let crowds: &[usize] = run.pick(&[10, MONITORS], &[10, MONITORS, 250, 1000]);
        let mut figures = Vec::new();
        for &monitors in crowds {
            run.say(&format!("{monitors} monitors"));
            // As many bytes for every number of monitors, up to the 5,000 rows of the founding measurement.
            let deliveries = run.pick(20_000, 500_000);
            let rows = (deliveries / monitors).clamp(WRITERS, 5_000);
            figures.extend(measure(run, monitors, rows)?);
        }
        Ok(figures)
    }
}

/// Inserts so many rows while so many watch.
fn measure(run: &Run<'_>, monitors: usize, rows: usize) -> Result<Vec<Figure>, Error> {
    let server = run.start()?;
    let template = Template::new();
    let mut crowd = Crowd::new()?;
    let writers = crowd.connect_many(server.address(), WRITERS)?;
    let watchers = crowd.connect_many(server.address(), monitors)?;
    let monitor: Arc<[u8]> = requests::monitor().get(0).into();
    crowd.call_all(watchers.clone(), |_| monitor.clone(), |_, _| {})?;
    let (bytes, spell) = (crowd.received_bytes(), server.spell()?);
    let began = Instant::now();

    let mut sent = 0;
    for writer in writers.clone() {
        crowd.send(writer, template.insert(sent))?;
        sent += 1;
    }
    let mut answered = 0;
    crowd.run(|arrival| {
        if !writers.contains(&arrival.client) {
            return Act::Wait;
        }
        answered += 1;
        if sent < rows {
            sent += 1;
            return Act::Send(template.insert(sent - 1));
        }
        if answered == rows {
            Act::Stop
        } else {
            Act::Wait
        }
    })?;
    crowd.expect_marker();
    crowd.send(writers.start, requests::marker().get(0).into())?;
    let mut left = monitors;
    crowd.run(|arrival| {
        let is_marker = arrival.kind == Kind::Marker && watchers.contains(&arrival.client);
        left -= usize::from(is_marker);
        if left == 0 { Act::Stop } else { Act::Wait }
    })?;

    let seconds = began.elapsed().as_secs_f64();
    let cpu_us = spell.end()?;
    let megabytes = (crowd.received_bytes() - bytes) as f64 / 1e6;
    let peak_mib = server.memory()?.peak_mib;
    drop((crowd, server));
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

/// The text of the pairs, in which only a number changes from row to row.
struct Template {
    pairs: Vec<u8>,
    /// Where the number stands, eight digits each time.
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

    /// 100 bytes: which pair, which row, and the rest.
    fn string(&mut self, pair: usize, fill: u8) {
        self.pairs
            .extend_from_slice(format!("{pair:03}-").as_bytes());
        self.numbers.push(self.pairs.len());
        self.pairs.extend_from_slice(&[b'0'; DIGITS]);
        self.pairs.resize(self.pairs.len() + 88, fill);
    }

    /// The pairs of the row `number`, between two texts.
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

    /// The request that inserts the row `number`.
    fn insert(&self, number: usize) -> Arc<[u8]> {
        let before = format!(
            r#"{{"method":"transact","params":["Bench",{{"op":"insert","table":"Item","row":{{"name":"group-{number:08}","options":"#
        );
        self.fill(&before, number, &format!(r#"}}}}],"id":{number}}}"#))
    }

    /// What a monitor receives for such a row.
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
    fn a_row_has_500_pairs_of_its_own() {
        let template = Template::new();
        let text = template.insert(7);
        Value::parse(&text).unwrap();
        Value::parse(&template.update()).unwrap();
        assert!((100_000..110_000).contains(&text.len()), "{}", text.len());
        assert_ne!(template.insert(1), template.insert(2));
    }
}
