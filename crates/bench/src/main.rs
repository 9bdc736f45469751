//! `corvid-bench`: puts load on OVSDB servers and reports what it cost them.
//!
//! A server is a program with the reference's command line, so any implementation and any version can be measured, and two
//! of them side by side (A B A B). The load comes from one thread, so that on a machine of two cores the server has one
//! whole core, as it would not if the generator had threads of its own. Nothing here knows how a server works inside.

mod connection;
mod database_file;
mod driver;
mod error;
mod figures;
mod options;
mod progress;
mod report;
mod requests;
mod rounds;
mod server_process;
mod usage;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use options::{Command, CommandLine};

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let outcome = match &line.command {
        Command::Compare(compare) => {
            rounds::measure(&compare.load, &[&compare.ours, &compare.reference])
        }
        Command::Run(run) => rounds::measure(&run.load, &[&run.server]),
    };
    match outcome {
        Ok(results) => {
            let load = line.command.load();
            if load.json {
                println!("{}", report::json(&results, load));
            } else {
                print!("{}", report::table(&results, load));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("corvid-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
