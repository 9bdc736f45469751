//! `simulate [--seeds N] [--from S]` runs many seeds of the server's simulation; `simulate --seed S [--trace]` runs one.

use std::process::ExitCode;

use corvid_sim::server::seeds::{run_seed, run_seeds};

const USAGE: &str = "usage: simulate [--seeds N] [--from S] | --seed S [--trace]";

/// Failures shown.
const SHOWN: usize = 5;

struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    is_traced: bool,
}

fn parse() -> Option<Options> {
    let mut options = Options {
        seeds: 2000,
        from: 0,
        seed: None,
        is_traced: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
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
    let Some(options) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if let Some(seed) = options.seed {
        return match run_seed(seed, options.is_traced) {
            Ok(summary) => {
                println!("{summary:?}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        };
    }
    let (summary, failures) = run_seeds(options.from, options.seeds);
    println!("{} seeds: {summary:?}", options.seeds);
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
