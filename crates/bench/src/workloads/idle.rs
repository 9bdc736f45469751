//! `idle`: what a connection that monitors, and is idle, costs in memory.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::conditions;
use crate::crowd::Crowd;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Workload};

/// See the module.
pub(crate) struct Idle;

const CONNECTIONS: usize = 1_000;
const ROWS: usize = 1_000;
/// Memory counts as settled when it has not changed for so long, or after the second.
const SETTLED_AFTER: Duration = Duration::from_millis(1_500);
const SETTLE_AT_MOST: Duration = Duration::from_secs(8);

impl Workload for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn about(&self) -> &'static str {
        "resident memory of each of 1,000 connections that monitor 1,000 rows and have received them"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let mut crowd = Crowd::new()?;
        crowd.connect(server.address())?;
        conditions::fill(&mut crowd, ROWS, ROWS)?;
        // The first monitor makes what all of them share.
        let monitor: Arc<[u8]> = requests::monitor().get(0).into();
        crowd.call(0, [monitor.clone()], |_| {})?;
        let before = settled_mib(&server)?;
        run.say("connecting");
        let clients = crowd.connect_many(server.address(), CONNECTIONS)?;
        let echo: Arc<[u8]> = requests::echo(0).into_bytes().into();
        crowd.call_all(clients.clone(), |_| echo.clone(), |_, _| {})?;
        let connected = settled_mib(&server)?;
        crowd.call_all(clients, |_| monitor.clone(), |_, _| {})?;
        let monitoring = settled_mib(&server)?;
        let each_kib = |mib: f64| (mib - before) * 1024.0 / CONNECTIONS as f64;
        Ok(vec![
            Figure::lower("memory of a connection", "KiB", each_kib(connected)),
            Figure::lower(
                "memory of a monitoring connection",
                "KiB",
                each_kib(monitoring),
            )
            .aim(Aim::AtMost(20.0)),
        ])
    }
}

/// Resident memory when it changes no more: freed memory is given back after a while.
fn settled_mib(server: &Server) -> Result<f64, Error> {
    let began = Instant::now();
    let (mut mib, mut since) = (server.memory()?.resident_mib, Instant::now());
    while since.elapsed() < SETTLED_AFTER && began.elapsed() < SETTLE_AT_MOST {
        thread::sleep(Duration::from_millis(100));
        let now = server.memory()?.resident_mib;
        if (now - mib).abs() > f64::EPSILON {
            (mib, since) = (now, Instant::now());
        }
    }
    Ok(mib)
}
