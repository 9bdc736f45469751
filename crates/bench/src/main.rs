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
mod storage;
mod usage;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use database_file::History;
use error::Error;
use options::{Command, CommandLine, Load};
use rounds::Outcome;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match run(&line.command) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("corvid-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command to its end: what it has to say.
fn run(command: &Command) -> Result<String, Error> {
    match command {
        Command::Compare(compare) => {
            let outcomes = rounds::measure(&compare.load, &[&compare.ours, &compare.reference])?;
            Ok(shown(&outcomes, &compare.load))
        }
        Command::Run(run) => Ok(shown(
            &rounds::measure(&run.load, &[&run.server])?,
            &run.load,
        )),
        Command::Storage(options) => {
            let outcomes = storage::measure(options)?;
            Ok(if options.json {
                format!("{}\n", storage::report::json(&outcomes, options))
            } else {
                storage::report::table(&outcomes, options)
            })
        }
        Command::Generate(generate) => {
            let history = History {
                rows: generate.rows,
                versions: generate.versions,
                rows_per_record: generate.rows_per_record,
            };
            database_file::write(&generate.file, history)?;
            Ok(String::new())
        }
    }
}

fn shown(outcomes: &[Outcome], load: &Load) -> String {
    if load.json {
        format!("{}\n", report::json(outcomes, load))
    } else {
        report::table(outcomes, load)
    }
}
