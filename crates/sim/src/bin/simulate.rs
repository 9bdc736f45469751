//! The simulator as a program.
//!
//! `simulate [SUBJECT] [--seeds N] [--from S] [--threads T]` runs many seeds of one simulation: the
//! server, clients with two servers, members of clusters, or whole servers of clusters. With
//! `--seed S [--trace | --until STEP]` it runs one seed. `simulate --replay DIR` replays recordings
//! of a real server. `simulate --relay-tree` runs the study of relays.

use std::fmt::Debug;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use corvid_log::storage::StorageRequest;
use corvid_service::message::{Control, Piece, ToDatabase};
use corvid_service::pump::Output;
use corvid_service::recording::{Replay, ReplayEvent};
use corvid_shell::output;
use corvid_sim::relay_tree::{self, COSTS, Plan, plot};
use corvid_sim::world::seeds::{Range, Runs, Simulation, Tracing, run_seed, run_seeds, run_until};
use corvid_sim::{clients, cluster, server, whole_cluster};

const USAGE: &str = "\
usage: simulate [SUBJECT] [--seeds N] [--from S] [--threads T]   run N seeds (2000), beginning with S (0), on T threads (one a core)
       simulate [SUBJECT] --seed S [--trace]                     run one seed; --trace prints a line for each event
       simulate [SUBJECT] --seed S --until STEP                  the same, and stop after the event with that number
       simulate --replay DIR                                     replay the recordings of a server in DIR
       simulate --relay-tree [--tree-clients N] [--seed S] [--out FILE]   study many clients (10000) below a tree of relays
SUBJECT is --clients, clients of two servers or of a cluster's relays; --cluster, the members of a cluster; --whole-clusters, whole servers of a cluster with
their clients; --relays, three of them with relays in two levels. Without it a server, its storage and its disk are simulated.";

/// Maximum number of characters of an input or output that are printed.
const SHOWN_CHARS: usize = 2000;

/// Maximum number of failures that are printed as they happen.
const SHOWN: u64 = 20;

/// Number of runs between two progress reports on a terminal.
const PROGRESS_EVERY: u64 = 500;

/// Number of runs between two progress reports in a file.
const LOGGED_EVERY: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
enum Subject {
    Server,
    Clients,
    Cluster,
    WholeClusters,
    Relays,
}

struct Options {
    subject: Subject,
    seeds: u64,
    from: u64,
    threads: Option<usize>,
    seed: Option<u64>,
    is_traced: bool,
    /// The number of the last event.
    until: Option<u64>,
    /// The directory of the recordings.
    replay: Option<String>,
    is_relay_tree: bool,
    /// Number of clients of the tree of relays.
    tree_clients: usize,
    /// The file for the plot.
    out: Option<String>,
}

fn parse() -> Option<Options> {
    let mut options = Options {
        subject: Subject::Server,
        seeds: 2000,
        from: 0,
        threads: None,
        seed: None,
        is_traced: false,
        until: None,
        replay: None,
        is_relay_tree: false,
        tree_clients: 10_000,
        out: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--clients" => options.subject = Subject::Clients,
            "--cluster" => options.subject = Subject::Cluster,
            "--whole-clusters" => options.subject = Subject::WholeClusters,
            "--relays" => options.subject = Subject::Relays,
            "--seeds" => options.seeds = words.next()?.parse().ok()?,
            "--from" => options.from = words.next()?.parse().ok()?,
            "--threads" => options.threads = Some(words.next()?.parse().ok()?),
            "--seed" => options.seed = Some(words.next()?.parse().ok()?),
            "--trace" => options.is_traced = true,
            "--until" => options.until = Some(words.next()?.parse().ok()?),
            "--relay-tree" => options.is_relay_tree = true,
            "--tree-clients" => options.tree_clients = words.next()?.parse().ok()?,
            "--out" => options.out = Some(words.next()?),
            "--replay" => options.replay = Some(words.next()?),
            _ => return None,
        }
    }
    // An event has a number within the run of one seed.
    (options.until.is_none() || options.seed.is_some()).then_some(options)
}

fn main() -> ExitCode {
    match parse() {
        Some(Options {
            replay: Some(directory),
            ..
        }) => replay(&directory),
        Some(options) if options.is_relay_tree => study(&options),
        Some(options) => match options.subject {
            Subject::Server => simulate::<server::Summary>(&options),
            Subject::Clients => simulate::<clients::Summary>(&options),
            Subject::Cluster => simulate::<cluster::Summary>(&options),
            Subject::WholeClusters => simulate::<whole_cluster::Summary>(&options),
            Subject::Relays => simulate::<whole_cluster::RelaySummary>(&options),
        },
        None => {
            output::error_line(USAGE);
            ExitCode::FAILURE
        }
    }
}

/// Runs the study of relays: trees of different depth, at several rates of commits.
fn study(options: &Options) -> ExitCode {
    let trees: [(&str, &[usize]); 4] = [
        ("no relay", &[]),
        ("4 relays", &[4]),
        ("4, 16 relays", &[4, 16]),
        ("4, 16, 64 relays", &[4, 16, 64]),
    ];
    let mut outcomes = Vec::new();
    for rate in [5, 50, 500] {
        for (name, relays) in trees {
            let plan = Plan {
                relays: relays.to_vec(),
                clients: options.tree_clients,
                observers: 4,
                commits: 200,
                rate,
                seed: options.seed.unwrap_or(1),
            };
            match relay_tree::run(&plan, &COSTS) {
                Ok(levels) => outcomes.push((format!("{name}, {rate} commits/s"), levels)),
                Err(problem) => {
                    output::error_line(format_args!("{name}: {problem}"));
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    output::report_text(plot::table(&outcomes));
    if let Some(path) = &options.out
        && let Err(error) = std::fs::write(path, plot::svg(&outcomes))
    {
        output::error_line(format_args!("{path}: {error}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Replays each recording in a directory, and prints a line for each input and output of its
/// database.
fn replay(directory: &str) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            output::error_line(format_args!("{directory}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|name| name == "recording"));
    paths.sort();
    for path in &paths {
        output::report(path.display());
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                output::error_line(format_args!("{}: {error}", path.display()));
                status = ExitCode::FAILURE;
                continue;
            }
        };
        let mut show = |summary: ReplayEvent<'_>| match summary {
            ReplayEvent::Batch(number) => output::report(format_args!("batch {number}")),
            ReplayEvent::Input(input) => {
                output::report(format_args!("  <- {}", brief(&input_text(input))));
            }
            ReplayEvent::Output(output) => {
                output::report(format_args!("  -> {}", brief(&output_text(output))));
            }
        };
        let problem = match Replay::open(&bytes) {
            Ok(mut replay) => replay.run(&mut show).problem,
            Err(damage) => Some(damage.0),
        };
        if let Some(problem) = problem {
            output::error_line(format_args!("{}: {problem}", path.display()));
            status = ExitCode::FAILURE;
        }
    }
    if paths.is_empty() {
        output::error_line(format_args!("{directory}: no recordings"));
        status = ExitCode::FAILURE;
    }
    status
}

fn input_text(input: &ToDatabase) -> String {
    match input {
        ToDatabase::Request(request) => {
            let params = String::from_utf8_lossy(request.params());
            let (session, method) = (request.session.0, request.method.name());
            format!("session {session:x}: {method} {params}")
        }
        ToDatabase::Control(Control::Transact(params)) => {
            format!("the server: transact {}", String::from_utf8_lossy(params))
        }
        other => format!("{other:?}"),
    }
}

fn output_text(output: &Output) -> String {
    let deliver = match output {
        Output::Deliver(deliver) => deliver,
        Output::Store(stores) => {
            let shown: Vec<String> = stores.iter().map(store_text).collect();
            return format!("storage: {}", shown.join("; "));
        }
        other => return format!("{other:?}"),
    };
    let mut text = format!("session {:x}:", deliver.session.0);
    for piece in &deliver.pieces {
        let bytes = match piece {
            Piece::Message(bytes) => bytes.clone(),
            Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes(),
        };
        text += " ";
        text += &String::from_utf8_lossy(&bytes);
    }
    text
}

fn store_text(store: &StorageRequest) -> String {
    match store {
        StorageRequest::Append {
            position,
            record,
            durable,
        } => {
            let how = if *durable { "durable " } else { "" };
            let record = record.to_slice();
            let record = String::from_utf8_lossy(&record);
            format!("{how}record {}: {}", position.0, record.trim_end())
        }
        other => format!("{other:?}"),
    }
}

/// Returns the first characters of a text.
fn brief(shown: &str) -> String {
    shown.chars().take(SHOWN_CHARS).collect()
}

fn simulate<P: Simulation + Debug>(options: &Options) -> ExitCode {
    if let (Some(seed), Some(until)) = (options.seed, options.until) {
        return match run_until::<P>(seed, until) {
            Ok(Some(summary)) => {
                output::report(format_args!("{summary:?}"));
                ExitCode::SUCCESS
            }
            Ok(None) => {
                output::report(format_args!("stopped after event {until}"));
                ExitCode::SUCCESS
            }
            Err(failure) => {
                output::error_line(failure);
                ExitCode::FAILURE
            }
        };
    }
    if let Some(seed) = options.seed {
        let tracing = match options.is_traced {
            true => Tracing::Printed,
            false => Tracing::Hashed,
        };
        return match run_seed::<P>(seed, tracing) {
            Ok(summary) => {
                output::report(format_args!("{summary:?}"));
                ExitCode::SUCCESS
            }
            Err(failure) => {
                output::error_line(failure);
                ExitCode::FAILURE
            }
        };
    }
    let count = options.seeds;
    let began = Instant::now();
    let shown = AtomicU64::new(0);
    let is_terminal = std::io::stderr().is_terminal();
    let mut range = Range::new(options.from, count);
    range.threads = options.threads.unwrap_or(range.threads);
    let runs = run_seeds::<P>(range, |done, failure| {
        if let Some(failure) = failure
            && shown.fetch_add(1, Ordering::Relaxed) < SHOWN
        {
            output::error_line(failure);
        }
        let every = if is_terminal {
            PROGRESS_EVERY
        } else {
            LOGGED_EVERY
        };
        if done % every == 0 {
            let seconds = began.elapsed().as_secs_f64();
            let rate = done as f64 / seconds.max(0.001);
            let left = (count - done) as f64 / rate;
            let progress =
                format!("{done} of {count} seeds, {rate:.0} in a second, {left:.0} s left ");
            match is_terminal {
                true => output::overwritten_line(progress),
                false => output::error_line(progress),
            }
        }
    });
    let Runs {
        summary, failures, ..
    } = runs;
    let seconds = began.elapsed().as_secs_f64();
    output::report(format_args!(
        "{count} seeds from {} in {seconds:.0} s: {summary:#?}",
        options.from
    ));
    if failures.is_empty() {
        output::report(format_args!("none of {count} seeds fails"));
        return ExitCode::SUCCESS;
    }
    let seeds: Vec<String> = failures.iter().map(|it| it.seed.to_string()).collect();
    output::error_line(format_args!(
        "{} of {count} seeds fail: {}",
        failures.len(),
        seeds.join(", ")
    ));
    ExitCode::FAILURE
}
