//! `corvid-bench`: a load generator for OVSDB servers, which reports throughput, latency, CPU time
//! and memory.
//!
//! A server is a program with the reference's command line, or an address. So any implementation
//! and any version can be measured, alone or in turn with another one (A B A B). The load comes
//! from a single thread, so that on a machine with two cores the server has a whole core. The
//! benchmark does not depend on how a server works inside.

mod allocators;
mod client_pool;
mod clients;
mod cloud;
mod cluster;
mod connection;
mod console;
mod cpu_interval;
mod database_file;
mod driver;
mod error;
mod figure;
mod harness;
mod history;
mod latency_probe;
mod limit;
mod load;
mod northbound;
mod northd;
mod options;
mod plot;
mod progress;
mod relay;
mod report;
mod requests;
mod rounds;
mod server;
mod slow_disk;
mod stream;
mod target;
mod tool;
mod usage;
mod workload;
mod workloads;

use std::fs;
use std::process::ExitCode;
use std::slice;
use std::time::Instant;

use corvid_shell::output;

use clap::Parser;
use database_file::History;
use error::Error;
use options::{Command, CommandLine, Measure};
use rounds::Plan;
use target::Target;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match run(&line.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error_line(format_args!("corvid-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command to its end.
fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Compare(compare) => {
            let targets = [compare.ours.clone(), compare.reference.clone()];
            measure(&targets, &compare.measure)
        }
        Command::Run(run) => measure(slice::from_ref(&run.server), &run.measure),
        Command::Allocators(options) => {
            output::report_text(allocators::table(options)?);
            Ok(())
        }
        Command::Ovn(ovn) => {
            let ours = ovn.ours.clone().map_or_else(beside_this_program, Ok)?;
            let measure_ovn = Measure {
                workloads: vec![&workloads::OVN],
                rounds: ovn.rounds,
                scale: ovn.scale,
                json: None,
                plots: None,
            };
            measure(&[ours, ovn.reference.clone()], &measure_ovn)
        }
        Command::Clients(options) => clients::measure(options),
        Command::Console(options) => console::measure(options),
        Command::History(options) => history::measure(options),
        Command::Hold(hold) => clients::hold(&hold.remote, &hold.schema),
        Command::List => {
            for workload in workloads::ALL {
                output::report(format_args!("{:16} {}", workload.name(), workload.about()));
            }
            Ok(())
        }
        Command::Prepare(prepare) => prepare.workload.prepare(prepare.scale, &prepare.file),
        Command::Generate(generate) => {
            let history = History {
                rows: generate.rows,
                versions: generate.versions,
                rows_per_record: generate.rows_per_record,
            };
            Ok(database_file::write(&generate.file, history)?)
        }
    }
}

/// Returns the server in the folder of this program.
fn beside_this_program() -> Result<Target, Error> {
    let path = std::env::current_exe()?.with_file_name("ovsdb-server");
    Ok(Target::Program(target::Program::plain(path)))
}

fn measure(targets: &[Target], options: &Measure) -> Result<(), Error> {
    let plan = Plan {
        workloads: if options.workloads.is_empty() {
            workloads::ALL
        } else {
            &options.workloads
        },
        targets,
        rounds: options.rounds,
        scale: options.scale,
    };
    let head = report::head(targets, options.scale, options.rounds);
    let is_comparison = targets.len() > 1;
    if !is_comparison {
        output::report_text(head.clone());
    }
    let began = Instant::now();
    let (mut outcomes, mut failed) = (Vec::new(), Vec::new());
    let mut table = String::new();
    rounds::measure(&plan, |workload, outcome| {
        let lines = match outcome {
            Ok(outcome) => {
                let lines = report::lines(&outcome);
                outcomes.push(outcome);
                lines
            }
            Err(error) => {
                failed.push(workload.name());
                format!("{:16} FAILED: {error}\n", workload.name())
            }
        };
        // The table of a comparison is printed at its end, after the list of the worst figures.
        // Until then these lines show the progress.
        if is_comparison {
            output::error_text(&lines);
        } else {
            output::report_text(lines.clone());
        }
        table.push_str(&lines);
    });
    if is_comparison {
        output::report_text(report::worse(&outcomes));
        output::report_text(head);
        output::report_text(table);
    }
    output::report(format_args!(
        "\ntotal time {}",
        report::seconds(began.elapsed())
    ));
    if let Some(file) = &options.json {
        let text = report::json(&outcomes, targets, options.scale, options.rounds);
        fs::write(file, text)?;
    }
    if let Some(directory) = &options.plots {
        plot::write(&outcomes, directory)?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Error::Failed(failed.join(", ")))
    }
}
