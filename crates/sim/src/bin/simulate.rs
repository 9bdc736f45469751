//! `simulate [--clients] [--seeds N] [--from S]` runs many seeds of the simulation of the server, or of clients beside servers;
//! `simulate [--clients] --seed S [--trace]` runs one.

use std::fmt::Debug;
use std::process::ExitCode;

use corvid_sim::seeds::{Play, run_seed, run_seeds};
use corvid_sim::{clients, server};

const USAGE: &str =
    "usage: simulate [--clients] [--seeds N] [--from S] | [--clients] --seed S [--trace]";

/// Failures shown.
const SHOWN: usize = 5;

struct Options {
    of_clients: bool,
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    is_traced: bool,
}

fn parse() -> Option<Options> {
    let mut options = Options {
        of_clients: false,
        seeds: 2000,
        from: 0,
        seed: None,
        is_traced: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--clients" => options.of_clients = true,
            "--seeds" => options.seeds = words.next()?.parse().ok()?,
            "--from" => options.from = words.next()?.parse().ok()?,
            "--seed" => options.seed = Some(words.next()?.parse().ok()?),
            "--trace" => options.is_traced = true,
            _ => return None,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    match parse() {
        Some(options) if options.of_clients => simulate::<clients::Summary>(&options),
        Some(options) => simulate::<server::Summary>(&options),
        None => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn simulate<P: Play + Debug>(options: &Options) -> ExitCode {
    if let Some(seed) = options.seed {
        return match run_seed::<P>(seed, options.is_traced) {
            Ok(seen) => {
                println!("{seen:?}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        };
    }
    let (seen, failures) = run_seeds::<P>(options.from, options.seeds);
    println!("{} seeds: {seen:?}", options.seeds);
    for failure in failures.iter().take(SHOWN) {
        eprintln!("{failure}");
    }
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!("{} of {} seeds fail", failures.len(), options.seeds);
        ExitCode::FAILURE
    }
}
