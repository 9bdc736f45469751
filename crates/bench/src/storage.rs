//! How a server treats its file: stalls while it compacts, time and memory to open, durable commits, the offline tool.
//!
//! Each workload is a list of named figures per run; servers take turns, and medians are compared with what is aimed at.
//! Called by `main`; [`report`] prints what [`measure`] returns.

mod aim;
mod open;
mod pulse;
pub(crate) mod report;
mod stall;
mod tool;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tempfile::TempDir;

use self::aim::Aim;
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figures;
use crate::options::{Load, Storage};
use crate::progress::Progress;
use crate::rounds;
use crate::workload::{Kind, Workload};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Latencies of clients while the server compacts a large database.
    Stall,
    /// Time and memory to open a file of rows written twice; compacting it; opening what that leaves.
    Open,
    /// Time and memory to open a file of many small transactions on few rows.
    Small,
    /// Single-row commits that wait for the disk.
    Durable,
    /// The offline tool's compaction of the file of [`Trial::Open`].
    Tool,
}

const NAMES: [(&str, Trial); 5] = [
    ("stall", Trial::Stall),
    ("open", Trial::Open),
    ("small", Trial::Small),
    ("durable", Trial::Durable),
    ("tool", Trial::Tool),
];

/// Rows of the file of many small transactions.
const FEW_ROWS: u32 = 1_000;
/// Rows in one transaction of the file that is opened only to be compacted.
const ROWS_PER_FILL: u32 = 1_000;

impl FromStr for Trial {
    type Err = String;

    fn from_str(name: &str) -> Result<Trial, String> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, trial)| *trial)
            .ok_or_else(|| format!("{name} is no storage workload"))
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, trial)| trial == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// What it is, with its unit.
    pub(crate) title: &'static str,
    pub(crate) value: f64,
    /// Digits after the point.
    pub(crate) digits: usize,
    /// What is aimed at, of the first server.
    pub(crate) aim: Aim,
}

impl Figure {
    fn new(title: &'static str, value: f64, digits: usize) -> Figure {
        Figure {
            title,
            value,
            digits,
            aim: Aim::None,
        }
    }

    fn aiming(self, aim: Aim) -> Figure {
        Figure { aim, ..self }
    }
}

/// The figures of one workload.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) trial: Trial,
    /// For each server, for each round, all figures, always in the same order.
    pub(crate) runs: Vec<Vec<Vec<Figure>>>,
}

impl Outcome {
    /// The figures of a server, each the median of its rounds.
    pub(crate) fn medians(&self, server: usize) -> Vec<Figure> {
        let rounds = &self.runs[server];
        let median = |(index, figure): (usize, &Figure)| {
            let values = rounds.iter().map(|figures| figures[index].value);
            Figure {
                value: figures::middle(values.collect()),
                ..*figure
            }
        };
        rounds[0].iter().enumerate().map(median).collect()
    }
}

/// Measures both servers in turn (A B A B).
pub(crate) fn measure(options: &Storage) -> Result<Vec<Outcome>, Error> {
    let servers = [&options.ours, &options.reference];
    let tools = [options.our_tool.clone(), options.reference_tool.clone()];
    let count = options.workloads.len() * options.rounds as usize * servers.len();
    let progress = Progress::new(count as u64);
    let mut files = Files::new()?;
    let mut outcomes = Vec::new();
    for &trial in &options.workloads {
        let mut runs = vec![Vec::new(); servers.len()];
        for _ in 0..options.rounds {
            for ((server, tool), runs) in servers.into_iter().zip(&tools).zip(&mut runs) {
                progress.say(format!("{trial} {}", server.display()));
                runs.push(run(trial, server, tool.as_deref(), options, &mut files)?);
                progress.step();
            }
        }
        outcomes.push(Outcome { trial, runs });
    }
    Ok(outcomes)
}

/// One run of one server.
fn run(
    trial: Trial,
    server: &Path,
    tool: Option<&Path>,
    options: &Storage,
    files: &mut Files,
) -> Result<Vec<Figure>, Error> {
    let twice = History {
        rows: options.open_rows,
        versions: 2,
        rows_per_record: options.rows_per_record,
    };
    match trial {
        Trial::Stall => {
            let history = History {
                rows: options.stall_rows,
                versions: 1,
                rows_per_record: ROWS_PER_FILL,
            };
            stall::measure(server, files.get(history)?, history.rows)
        }
        Trial::Open => open::measure(server, files.get(twice)?),
        Trial::Small => {
            let history = History {
                rows: FEW_ROWS,
                versions: options.small_transactions.div_ceil(FEW_ROWS),
                rows_per_record: 1,
            };
            open::measure_start(server, files.get(history)?)
        }
        Trial::Durable => durable(server, options),
        Trial::Tool => match tool {
            Some(tool) => tool::measure(tool, files.get(twice)?),
            None => tool::measure(&tool::of_server(server)?, files.get(twice)?),
        },
    }
}

/// Commits of single rows that wait for the disk, one in flight on each connection.
fn durable(server: &Path, options: &Storage) -> Result<Vec<Figure>, Error> {
    let load = Load {
        connections: options.connections,
        transactions: options.durable_transactions,
        ..Load::default()
    };
    let workload = Workload::new(Kind::Durable, &load);
    let figures = rounds::measure_once(server, &workload, |_| {})?;
    Ok(vec![
        Figure::new("commits/s", figures.rate, 0).aiming(Aim::RatioAtLeast(3.0)),
        Figure::new("latency p50, us", figures.p50_us, 0),
        Figure::new("latency p99, us", figures.p99_us, 0),
    ])
}

/// Database files, each made once, when it is first wanted.
struct Files {
    directory: TempDir,
    made: HashMap<History, PathBuf>,
}

impl Files {
    fn new() -> Result<Files, Error> {
        let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
        Ok(Files {
            directory,
            made: HashMap::new(),
        })
    }

    fn get(&mut self, history: History) -> Result<&Path, Error> {
        if !self.made.contains_key(&history) {
            let path = self
                .directory
                .path()
                .join(format!("{}.db", self.made.len()));
            database_file::write(&path, history)?;
            self.made.insert(history, path);
        }
        Ok(&self.made[&history])
    }
}
