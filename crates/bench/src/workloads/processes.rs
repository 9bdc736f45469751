//! `processes`: a process for each transaction, as in scripts. Several shells run
//! `ovsdb-client transact` one after another, while 100 connections monitor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::error::{Error, joined};
use crate::figure::Figure;
use crate::harness::Harness;
use crate::northbound;
use crate::target::Target;
use crate::tool;
use crate::workload::{Run, Scale, Workload};

/// The number of monitoring connections.
const MONITORS: usize = 100;

pub(crate) struct Processes;

impl Workload for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn about(&self) -> &'static str {
        "8 shells (full: 50) create 800 ports (full: 30,000), with one ovsdb-client process for each; 100 monitors"
    }

    fn prepare(&self, _: Scale, file: &Path) -> Result<(), Error> {
        northbound::create(file)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let Target::Program(program) = run.target else {
            return Err(Error::NeedsProgram);
        };
        let client = tool::beside(&program.path, "ovsdb-client")?;
        let (shells, ports) = (run.pick(8, 50), run.pick(800, 30_000));
        let mut harness = Harness::new(run)?;
        harness.prepare(northbound::topology(), |_| {})?;
        harness.watch(MONITORS, &northbound::monitor())?;
        let address = harness.server().address().clone();
        let (target, next) = (address.to_string(), AtomicU32::new(0));
        let (interval, began) = (harness.server().measure_cpu()?, Instant::now());
        let shell = || -> Result<(), Error> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= ports {
                    return Ok(());
                }
                transact(&client, &target, number)?;
            }
        };
        thread::scope(|scope| {
            let shells: Vec<_> = (0..shells).map(|_| scope.spawn(shell)).collect();
            let end = scope.spawn(|| {
                let outcomes: Vec<_> = shells.into_iter().map(joined).collect();
                // The marker is sent even after a failure, because the watchers wait for it.
                address.request(northbound::marker(0).text())?;
                outcomes.into_iter().collect::<Result<(), Error>>()
            });
            let heard = harness.await_marker();
            joined(end)?;
            heard
        })?;
        let elapsed = began.elapsed().as_secs_f64();
        let cpu_us = interval.end()?;
        let ports = f64::from(ports);
        Ok(vec![
            Figure::higher("rate", "processes/s", ports / elapsed),
            Figure::lower("server CPU", "us/txn", cpu_us / ports),
            Figure::lower("memory", "MiB", harness.server().memory()?.resident_mib),
        ])
    }
}

/// Runs one process and waits for its end.
fn transact(client: &Path, address: &str, number: u32) -> Result<(), Error> {
    let transaction = format!(
        r#"["OVN_Northbound",{}]"#,
        northbound::port_operations(number)
    );
    let status = Command::new(client)
        .args(["transact", address, &transaction])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| Error::Start {
            program: client.to_owned(),
            source,
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Refused(format!("{}: {status}", client.display())))
    }
}
