//! `condition-change`: a client changes a condition of 3,000 clauses on 200,000 rows.
//!
//! In OVN, the clauses name datapaths. The first port of a network on a host adds one clause; a
//! restart replaces all clauses.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::conditions;
use crate::client_pool::ClientPool;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Workload};

pub(crate) struct ConditionChange;

const CLAUSES: usize = 3_000;
/// The aim for the time of a change, in ms.
const AIM: Aim = Aim::AtMost(10.0);
/// The number of repetitions, and their time limit. CPU time is counted in ticks of 10 ms, so a
/// single change is too short to be measured.
const REPEATS: usize = 40;
const REPEAT_FOR: Duration = Duration::from_secs(5);

impl Workload for ConditionChange {
    fn name(&self) -> &'static str {
        "condition-change"
    }

    fn about(&self) -> &'static str {
        "200,000 rows; a client with a condition of 3,000 clauses adds one, then replaces all (12,000 rows each time)"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let rows: usize = 200_000;
        let values = rows / 2;
        let mut pool = ClientPool::new()?;
        pool.connect(server.address())?;
        conditions::fill(&mut pool, rows, values)?;
        let client = pool.connect(server.address())?;
        let monitor = format!(
            r#"{{"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","number","options"],"where":{}}}]}},"00000000-0000-0000-0000-000000000000"],"id":"m"}}"#,
            clauses(0, CLAUSES)
        );
        pool.call(client, [Arc::from(monitor.into_bytes())], |_| {})?;

        run.show("adding one clause");
        let pair = [change(0, CLAUSES + 1), change(0, CLAUSES)];
        let more = measure(&server, &mut pool, client, &pair)?;
        run.show("replacing all clauses");
        let pair = [change(CLAUSES, CLAUSES), change(0, CLAUSES)];
        let others = measure(&server, &mut pool, client, &pair)?;
        Ok(vec![
            Figure::lower("one clause more, server CPU", "ms", more.cpu_ms)
                .digits(2)
                .aim(AIM),
            Figure::lower("one clause more, until the reply", "ms", more.reply_ms).digits(2),
            Figure::lower("all clauses replaced, server CPU", "ms", others.cpu_ms).digits(2),
            Figure::lower(
                "all clauses replaced, until the reply",
                "ms",
                others.reply_ms,
            )
            .digits(2),
        ])
    }
}

/// The cost of one change.
struct Cost {
    cpu_ms: f64,
    reply_ms: f64,
}

/// Changes the condition back and forth.
fn measure(
    server: &Server,
    pool: &mut ClientPool,
    client: usize,
    pair: &[Arc<[u8]>; 2],
) -> Result<Cost, Error> {
    let (began, interval) = (Instant::now(), server.measure_cpu()?);
    let mut changes = 0;
    let mut waited = Duration::ZERO;
    while changes < 2 || (changes < REPEATS && began.elapsed() < REPEAT_FOR) {
        let sent = Instant::now();
        pool.call(client, [pair[changes % 2].clone()], |_| {})?;
        waited += sent.elapsed();
        // A server may send the update after the reply to the change. The reply to this request
        // comes after both.
        let echo = requests::echo(0).into_bytes();
        pool.call(client, [Arc::from(echo)], |_| {})?;
        changes += 1;
    }
    Ok(Cost {
        cpu_ms: interval.end()? / 1e3 / changes as f64,
        reply_ms: waited.as_secs_f64() * 1e3 / changes as f64,
    })
}

fn change(first: usize, count: usize) -> Arc<[u8]> {
    format!(
        r#"{{"method":"monitor_cond_change","params":["m","m",{{"Item":[{{"where":{}}}]}}],"id":"c"}}"#,
        clauses(first, count)
    )
    .into_bytes()
    .into()
}

/// Returns a condition of `count` clauses.
fn clauses(first: usize, count: usize) -> String {
    let mut text = "[".to_owned();
    for number in first..first + count {
        let comma = if number == first { "" } else { "," };
        let _ = write!(text, r#"{comma}["number","==",{number}]"#);
    }
    text.push(']');
    text
}
