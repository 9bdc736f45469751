//! Rounds: each workload runs on each server in turn, each time with a new process and a new
//! database.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cpu_interval::{CpuTotals, CpuUsage};
use crate::error::Error;
use crate::figure::{self, Figure};
use crate::progress::Progress;
use crate::target::Target;
use crate::workload::{Run, Scale, Workload};

/// The results of one workload.
pub(crate) struct Outcome {
    pub(crate) workload: &'static dyn Workload,
    /// The results of each server, in the order of the command line. Each server has at least one
    /// run.
    pub(crate) servers: Vec<OfServer>,
    /// The time it took to prepare the file that each run opens.
    pub(crate) preparation: Duration,
}

impl Outcome {
    /// Returns the medians of each server.
    pub(crate) fn medians(&self) -> Vec<Vec<Figure>> {
        self.servers.iter().map(OfServer::medians).collect()
    }
}

/// The results of one workload with one server.
#[derive(Default)]
pub(crate) struct OfServer {
    /// The figures of every run.
    pub(crate) runs: Vec<Vec<Figure>>,
    /// The time of all runs, including their preparation.
    pub(crate) took: Duration,
    cpu_totals: CpuTotals,
}

impl OfServer {
    pub(crate) fn medians(&self) -> Vec<Figure> {
        figure::medians(&self.runs)
    }

    /// Returns the CPU usage of the server's threads in all runs.
    pub(crate) fn cpu_usage(&self) -> CpuUsage {
        self.cpu_totals.cpu_usage()
    }

    /// Executes a run and adds its figures.
    pub(crate) fn run(
        &mut self,
        workload: &dyn Workload,
        scale: Scale,
        target: &Target,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), Error> {
        let began = Instant::now();
        self.runs.push(workload.drive(&Run {
            scale,
            target,
            file,
            progress,
            cpu_totals: &self.cpu_totals,
        })?);
        self.took += began.elapsed();
        progress.step();
        Ok(())
    }
}

/// The workloads and servers to measure.
pub(crate) struct Plan<'a> {
    pub(crate) workloads: &'a [&'static dyn Workload],
    pub(crate) targets: &'a [Target],
    pub(crate) rounds: u32,
    pub(crate) scale: Scale,
}

/// Measures every workload on every server in turn (A B A B), so that other load on the machine
/// affects all servers alike. `done` gets each workload with its results or its error. A workload
/// that fails does not prevent the others.
pub(crate) fn measure(
    plan: &Plan<'_>,
    mut done: impl FnMut(&'static dyn Workload, Result<Outcome, Error>),
) {
    let count = plan.workloads.len() * plan.rounds as usize * plan.targets.len();
    let progress = Progress::new(count as u64);
    for &workload in plan.workloads {
        let outcome = of_workload(workload, plan, &progress);
        progress.suspend(|| done(workload, outcome));
    }
}

fn of_workload(
    workload: &'static dyn Workload,
    plan: &Plan<'_>,
    progress: &Progress,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("prepared.db");
    progress.show(format!("{} preparation", workload.name()));
    workload.prepare(plan.scale, &file)?;
    let preparation = began.elapsed();
    let mut servers: Vec<OfServer> = plan.targets.iter().map(|_| OfServer::default()).collect();
    for _ in 0..plan.rounds {
        for (target, server) in plan.targets.iter().zip(&mut servers) {
            progress.show(format!("{} {target}", workload.name()));
            server.run(workload, plan.scale, target, &file, progress)?;
        }
    }
    Ok(Outcome {
        workload,
        servers,
        preparation,
    })
}
