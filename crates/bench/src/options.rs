//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::allocators::Build;
use crate::target::Target;
use crate::workload::{Scale, Workload};
use crate::workloads;

/// Load on OVSDB servers: transactions per second, server CPU time, memory and latency.
#[derive(Parser)]
#[command(version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure two servers in turn (A B A B) and print the ratios beside what is aimed at
    Compare(Compare),
    /// Measure one server
    Run(RunOne),
    /// Measure servers under several allocators: duration and memory
    Allocators(Allocators),
    /// Measure what OVN makes of two servers, as `compare --workloads ovn` does
    Ovn(Ovn),
    /// Measure client libraries, all over one server: ours beside the reference's for C and for Python
    Clients(Clients),
    /// Be a client of ours that is measured
    #[command(hide = true)]
    Hold(Hold),
    /// Name all workloads
    List,
    /// Write the database file that a workload starts with, for a server that will be measured at its address
    Prepare(Prepare),
    /// Write a database file with a history of commits, as the reference records them
    Generate(Generate),
}

#[derive(Args)]
pub(crate) struct Compare {
    /// The first server, which the ratios and aims speak of: a program with the command line of ovsdb-server, unix:PATH, or
    /// tcp:HOST:PORT. What listens at an address loses all rows, its CPU time and memory are not known, and
    /// workloads that begin with a file of rows or control the server refuse it
    pub(crate) ours: Target,
    /// The server that it is compared with
    pub(crate) reference: Target,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

#[derive(Args)]
pub(crate) struct RunOne {
    /// A program with the command line of ovsdb-server, unix:PATH, or tcp:HOST:PORT
    pub(crate) server: Target,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

/// What is done to each server.
#[derive(Args)]
pub(crate) struct Measure {
    /// Workloads, separated by commas; all of them if none is named
    #[arg(long, short, value_delimiter = ',', value_parser = workloads::find)]
    pub(crate) workloads: Vec<&'static dyn Workload>,
    /// How often each server is measured with each workload; medians are reported
    #[arg(long, short, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How large the workloads are
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
    /// Write every run to this file, as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Write plots into this folder, as SVG
    #[arg(long)]
    pub(crate) plots: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Allocators {
    /// A build of our server with one allocator: jemalloc=PROGRAM; a build named system is also measured with other allocators
    /// loaded before it
    #[arg(long)]
    pub(crate) ours: Vec<Build>,
    /// A server that uses the system's allocator, measured with that and with others loaded before it
    #[arg(long)]
    pub(crate) reference: Option<PathBuf>,
    /// Workloads, separated by commas
    #[arg(long, short, value_delimiter = ',', value_parser = workloads::find, default_values = ["update1", "update2", "insert", "queue", "size"])]
    pub(crate) workloads: Vec<&'static dyn Workload>,
    /// How often each is measured; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How large the workloads are
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Ovn {
    /// The first server, a program with the command line of ovsdb-server; the one beside this program if none is named
    pub(crate) ours: Option<Target>,
    /// The server that it is compared with
    #[arg(default_value = "/usr/sbin/ovsdb-server")]
    pub(crate) reference: Target,
    /// How often each server is measured; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How many single ports are added
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Clients {
    /// The program that serves all of them, with the command line of ovsdb-server
    pub(crate) server: PathBuf,
    /// How often everything is measured; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How large the databases are
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Hold {
    /// unix:PATH
    pub(crate) remote: String,
    /// A file that holds the schema
    pub(crate) schema: PathBuf,
}

#[derive(Args)]
pub(crate) struct Prepare {
    #[arg(value_parser = workloads::find)]
    pub(crate) workload: &'static dyn Workload,
    /// The file to write
    pub(crate) file: PathBuf,
    /// How large the workload is
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Generate {
    /// The file to write
    pub(crate) file: PathBuf,
    /// Rows of its only table
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) rows: u32,
    /// How often each row is written: inserted, then modified
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) versions: u32,
    /// Rows that one transaction writes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rows_per_record: u32,
}
