//! `condition-change`: a client that monitors by 3,000 clauses changes its condition, over 200,000 rows.
//!
//! In the field the clauses name datapaths: one more when the first port of a network appears on a host, others altogether
//! after a restart.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::conditions;
use crate::crowd::Crowd;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Workload};

/// See the module.
pub(crate) struct ConditionChange;

const CLAUSES: usize = 3_000;
/// The most that a change may take, ms.
const AIM: Aim = Aim::AtMost(10.0);
/// Changes are repeated so often, because CPU time is counted in steps of 10 ms, or for so long.
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
        let mut crowd = Crowd::new()?;
        crowd.connect(server.address())?;
        conditions::fill(&mut crowd, rows, values)?;
        let client = crowd.connect(server.address())?;
        let monitor = format!(
            r#"{{"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","number","options"],"where":{}}}]}},"00000000-0000-0000-0000-000000000000"],"id":"m"}}"#,
            clauses(0, CLAUSES)
        );
        crowd.call(client, [Arc::from(monitor.into_bytes())], |_| {})?;

        run.say("one clause more");
        let pair = [change(0, CLAUSES + 1), change(0, CLAUSES)];
        let more = measure(&server, &mut crowd, client, &pair)?;
        run.say("all clauses replaced");
        let pair = [change(CLAUSES, CLAUSES), change(0, CLAUSES)];
        let others = measure(&server, &mut crowd, client, &pair)?;
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

/// What one change costs.
struct Cost {
    cpu_ms: f64,
    reply_ms: f64,
}

/// Changes to and fro.
fn measure(
    server: &Server,
    crowd: &mut Crowd,
    client: usize,
    pair: &[Arc<[u8]>; 2],
) -> Result<Cost, Error> {
    let (began, spell) = (Instant::now(), server.spell()?);
    let mut changes = 0;
    let mut waited = Duration::ZERO;
    while changes < 2 || (changes < REPEATS && began.elapsed() < REPEAT_FOR) {
        let sent = Instant::now();
        crowd.call(client, [pair[changes % 2].clone()], |_| {})?;
        waited += sent.elapsed();
        // Where the update comes after the reply it comes before this one.
        let echo = requests::echo(0).into_bytes();
        crowd.call(client, [Arc::from(echo)], |_| {})?;
        changes += 1;
    }
    Ok(Cost {
        cpu_ms: spell.end()? / 1e3 / changes as f64,
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

/// A condition of so many clauses.
fn clauses(first: usize, count: usize) -> String {
    let mut text = "[".to_owned();
    for number in first..first + count {
        let comma = if number == first { "" } else { "," };
        let _ = write!(text, r#"{comma}["number","==",{number}]"#);
    }
    text.push(']');
    text
}
