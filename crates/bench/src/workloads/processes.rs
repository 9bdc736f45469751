//! `processes`: a process for each transaction, as scripts do: some shells run `ovsdb-client transact` one after the other while
//! 100 connections monitor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::error::{Error, joined};
use crate::figure::Figure;
use crate::northbound;
use crate::stage::Stage;
use crate::target::Target;
use crate::tool;
use crate::workload::{Run, Scale, Workload};

/// Monitoring connections.
const MONITORS: usize = 100;

/// See the head of this file.
pub(crate) struct Processes;

impl Workload for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn about(&self) -> &'static str {
        "8 shells (full: 50) make 800 ports (full: 30,000), each with an ovsdb-client of its own; 100 monitors"
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
        let mut stage = Stage::new(run)?;
        stage.prepare(northbound::topology(), |_| {})?;
        stage.watch(MONITORS, &northbound::monitor())?;
        let address = stage.server().address().clone();
        let (target, next) = (address.to_string(), AtomicU32::new(0));
        let (spell, began) = (stage.server().spell()?, Instant::now());
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
                // Without it the watchers would wait for ever, so it is sent after a failure too.
                address.ask(northbound::marker(0).text())?;
                outcomes.into_iter().collect::<Result<(), Error>>()
            });
            let heard = stage.hear();
            joined(end)?;
            heard
        })?;
        let elapsed = began.elapsed().as_secs_f64();
        let cpu_us = spell.end()?;
        let ports = f64::from(ports);
        Ok(vec![
            Figure::higher("rate", "processes/s", ports / elapsed),
            Figure::lower("server CPU", "us/txn", cpu_us / ports),
            Figure::lower("memory", "MiB", stage.server().memory()?.resident_mib),
        ])
    }
}

/// One process.
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
