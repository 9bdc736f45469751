//! Rounds: each server in turn with each workload, a fresh process and database every time.

use std::path::Path;

use crate::error::Error;
use crate::figure::{self, Figure};
use crate::progress::Progress;
use crate::target::Target;
use crate::workload::{Run, Scale, Workload};

/// The results of one workload.
pub(crate) struct Outcome {
    pub(crate) workload: &'static dyn Workload,
    /// For each server, in the order given, every run. None is empty.
    pub(crate) runs: Vec<Vec<Vec<Figure>>>,
}

impl Outcome {
    /// The medians of a server.
    pub(crate) fn medians(&self, server: usize) -> Vec<Figure> {
        figure::medians(&self.runs[server])
    }
}

/// What to measure.
pub(crate) struct Plan<'a> {
    pub(crate) workloads: &'a [&'static dyn Workload],
    pub(crate) targets: &'a [Target],
    pub(crate) rounds: u32,
    pub(crate) scale: Scale,
}

/// Measures every workload with every server: A B A B, so that what else the machine does meets both alike. `done` is given
/// each workload and its results, or why there are none, when it is through; a workload that fails leaves the others alone.
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
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("prepared.db");
    progress.say(format!("{} preparation", workload.name()));
    workload.prepare(plan.scale, &file)?;
    let mut runs = vec![Vec::new(); plan.targets.len()];
    for _ in 0..plan.rounds {
        for (target, runs) in plan.targets.iter().zip(&mut runs) {
            progress.say(format!("{} {target}", workload.name()));
            runs.push(once(workload, plan.scale, target, &file, progress)?);
            progress.step();
        }
    }
    Ok(Outcome { workload, runs })
}

fn once(
    workload: &dyn Workload,
    scale: Scale,
    target: &Target,
    file: &Path,
    progress: &Progress,
) -> Result<Vec<Figure>, Error> {
    workload.drive(&Run {
        scale,
        target,
        file,
        progress,
    })
}
