//! `idle`: the memory of an idle connection with a monitor.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::conditions;
use crate::client_pool::ClientPool;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Workload};

pub(crate) struct Idle;

const CONNECTIONS: usize = 1_000;
const ROWS: usize = 1_000;
/// Memory is read when it has not changed for the first of these times, and after the second at the
/// latest.
const STABLE_AFTER: Duration = Duration::from_millis(1_500);
const STABLE_AT_MOST: Duration = Duration::from_secs(8);

impl Workload for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn about(&self) -> &'static str {
        "resident memory of each of 1,000 connections that monitor 1,000 rows and have received them"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let mut pool = ClientPool::new()?;
        pool.connect(server.address())?;
        conditions::fill(&mut pool, ROWS, ROWS)?;
        // The first monitor creates the data that all monitors share. It must not count as memory
        // of the others.
        let monitor: Arc<[u8]> = requests::monitor().get(0).into();
        pool.call(0, [monitor.clone()], |_| {})?;
        let before = stable_mib(&server)?;
        run.show("connecting");
        let clients = pool.connect_many(server.address(), CONNECTIONS)?;
        let echo: Arc<[u8]> = requests::echo(0).into_bytes().into();
        pool.call_all(clients.clone(), |_| echo.clone(), |_, _| {})?;
        let connected = stable_mib(&server)?;
        pool.call_all(clients, |_| monitor.clone(), |_, _| {})?;
        let monitoring = stable_mib(&server)?;
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

/// Returns the resident memory once it no longer changes, because allocators release freed memory
/// with a delay.
fn stable_mib(server: &Server) -> Result<f64, Error> {
    let began = Instant::now();
    let (mut mib, mut since) = (server.memory()?.resident_mib, Instant::now());
    while since.elapsed() < STABLE_AFTER && began.elapsed() < STABLE_AT_MOST {
        thread::sleep(Duration::from_millis(100));
        let now = server.memory()?.resident_mib;
        if (now - mib).abs() > f64::EPSILON {
            (mib, since) = (now, Instant::now());
        }
    }
    Ok(mib)
}
