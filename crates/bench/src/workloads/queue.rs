//! `queue`: a table that is used as a queue. Ten requesters monitor it. Each of them sends a
//! request, then one producer rewrites all rows in one transaction. The next turn begins when every
//! requester has received the result.

use std::fmt::Write as _;
use std::time::Instant;

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::harness::Harness;
use crate::requests::{self, Requests};
use crate::workload::{Run, Workload};

/// The number of rows that a request rewrites.
const ROWS: u32 = 512;
/// The number of pairs in the map of each row.
const PAIRS: u32 = 256;
/// The number of requesters.
const REQUESTERS: usize = 10;

pub(crate) struct Queue;

impl Workload for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn about(&self) -> &'static str {
        "a producer rewrites 512 rows of a 256-pair map per request; 10 requesters monitor them"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let turns = run.pick(5, 50);
        let mut harness = Harness::new(run)?;
        let mut rows = Vec::new();
        harness.prepare(requests::fill(ROWS + 1), |reply| {
            rows.extend(requests::inserted_uuids(reply));
        })?;
        harness.connect(REQUESTERS)?;
        harness.request_each(&requests::monitor())?;
        // The first turn only writes the maps, and is not measured.
        harness.produce(production(0, &rows))?;
        let (mut elapsed, mut cpu_us) = (0.0, 0.0);
        for turn in 1..=turns {
            run.show(&format!("turn {turn} of {turns}"));
            let asked = (0..REQUESTERS).map(|requester| request(turn, &rows[requester]));
            let asking = harness.phase(asked.collect(), 1, None)?;
            let request = production(turn, &rows);
            let (interval, began) = (harness.server().measure_cpu()?, Instant::now());
            harness.produce(request)?;
            elapsed += (asking.elapsed + began.elapsed()).as_secs_f64();
            cpu_us += asking.cpu_us + interval.end()?;
        }
        let turns = f64::from(turns);
        Ok(vec![
            Figure::higher("rate", "txn/s", turns / elapsed)
                .digits(2)
                .aim(Aim::RatioAtLeast(15.0)),
            Figure::lower("server CPU", "ms/txn", cpu_us / 1e3 / turns),
            Figure::lower("peak memory", "MiB", harness.server().memory()?.peak_mib).digits(0),
        ])
    }
}

/// The request of a requester, which writes a number into its row.
fn request(turn: u32, row: &str) -> Requests {
    Requests::one(&format!(
        r#"{{"id":0,"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{row}"]]],"row":{{"number":{}}}}}]}}"#,
        1_000_000 + turn
    ))
}

/// Writes new maps into all rows except the last, and the marker into the last row.
fn production(turn: u32, rows: &[String]) -> Requests {
    let mut text = r#"{"id":0,"method":"transact","params":["Bench""#.to_owned();
    let Some((last, rows)) = rows.split_last() else {
        return Requests::default();
    };
    for (number, row) in rows.iter().enumerate() {
        let _ = write!(
            text,
            r#",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{row}"]]],"row":{{"options":["map",["#
        );
        for pair in 0..PAIRS {
            let comma = if pair == 0 { "" } else { "," };
            let _ = write!(
                text,
                r#"{comma}["key-{pair:03}","value-{turn}-{number}-{pair}"]"#
            );
        }
        text.push_str("]]}}");
    }
    let marker = String::from_utf8_lossy(requests::MARKER);
    let _ = write!(
        text,
        r#",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{last}"]]],"row":{{"name":"{marker}-{turn}"}}}}]}}"#
    );
    Requests::one(&text)
}
