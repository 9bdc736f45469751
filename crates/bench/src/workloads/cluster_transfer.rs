//! `cluster-transfer`: the leadership is transferred on purpose, while a client of the leader and a
//! client of another member write.
//!
//! A server without `cluster/transfer-leadership` is made to compact its file instead: the
//! reference transfers the leadership before it compacts.

use std::thread;
use std::time::Duration;

use super::stall;
use crate::cluster;
use crate::database_file::History;
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure, middle};
use crate::latency_probe::{self, Latencies, Phase};
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

/// How long the clients write before the command, and after it is done.
const AROUND: Duration = Duration::from_millis(500);
/// The number of rows of the database.
const ROWS: u32 = 1_000;

pub(crate) struct Transfer;

impl Workload for Transfer {
    fn name(&self) -> &'static str {
        "cluster-transfer"
    }

    fn about(&self) -> &'static str {
        "the leadership of a cluster of 3 is handed over: the longest transaction of clients of two members"
    }

    fn history(&self, _scale: Scale) -> History {
        History::of_rows(ROWS)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let mut members = cluster::start(run)?;
        let name = cluster::name(run)?;
        let (mut times, mut errors, mut changes) = (Vec::new(), 0, 0.0);
        let rounds = run.pick(5, 15);
        for _ in 0..rounds {
            cluster::lead_first(&mut members, &name)?;
            let term = cluster::term(&members[0], &name)?;
            let [at_leader, at_other] = transfer(&members, &name)?;
            changes += f64::from(cluster::term(&members[0], &name)? > term);
            let mut longest = 0.0_f64;
            for outcome in [at_leader, at_other] {
                match outcome {
                    Ok(latencies) => {
                        longest = longest.max(latencies.during.max() as f64 / 1e6);
                    }
                    Err(Error::Refused(_) | Error::Closed) => errors += 1,
                    Err(error) => return Err(error),
                }
            }
            times.push(longest);
        }
        let longest = times.iter().copied().fold(0.0, f64::max);
        Ok(vec![
            Figure::lower("median time without writes", "ms", middle(times)).digits(1),
            Figure::lower("longest time without writes", "ms", longest)
                .digits(1)
                .aim(Aim::AtMost(100.0)),
            Figure::lower("errors of clients", "", f64::from(errors))
                .digits(0)
                .aim(Aim::AtMost(0.0)),
            Figure::plain("hand-overs", "", changes).digits(0),
        ])
    }
}

/// Transfers the leadership away from the first member. Returns the latencies of a client of that
/// member and of a client of another member.
fn transfer(members: &[Server], name: &str) -> Result<[Result<Latencies, Error>; 2], Error> {
    let phase = Phase::default();
    thread::scope(|scope| {
        let [at_leader, at_other] = [0, 1].map(|member: usize| {
            let (address, phase) = (members[member].address(), &phase);
            // Each client updates its own rows.
            let update = move |number: u64| stall::update(2 * number + member as u64, ROWS);
            scope.spawn(move || latency_probe::run(address, phase, update))
        });
        thread::sleep(AROUND);
        phase.begin();
        let outcome = hand_over(&members[0], name);
        thread::sleep(AROUND);
        phase.end();
        let outcomes = [joined(at_leader), joined(at_other)];
        outcome.map(|()| outcomes)
    })
}

fn hand_over(leader: &Server, name: &str) -> Result<(), Error> {
    match leader.control("cluster/transfer-leadership", &[name]) {
        Err(Error::Refused(_)) => {
            leader.control("ovsdb-server/compact", &[name])?;
        }
        other => {
            other?;
        }
    }
    Ok(())
}
