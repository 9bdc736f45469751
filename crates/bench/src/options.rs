//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::allocators::Build;
use crate::target::Target;
use crate::workload::{Scale, Workload};
use crate::workloads;

/// Measures OVSDB servers under load: throughput, latency, CPU time and memory
#[derive(Parser)]
#[command(version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure two servers in turn (A B A B), and print the ratios next to their aims
    Compare(Compare),
    /// Measure one server
    Run(RunOne),
    /// Measure the run time and memory of servers with several memory allocators
    Allocators(Allocators),
    /// Measure OVN on two servers; the same as `compare --workloads ovn`
    Ovn(Ovn),
    /// Measure client libraries on one server: ours, and the reference's for C and for Python
    Clients(Clients),
    /// Measure the console, next to `ovsdb-client monitor` and a plain client
    Console(ConsoleOptions),
    /// Measure the history of a database: keeping it and reading it
    History(HistoryOptions),
    /// Run as the client process that `clients` measures
    #[command(hide = true)]
    Hold(Hold),
    /// List all workloads
    List,
    /// Write the database file that a workload starts with, for a server that is measured at an
    /// address
    Prepare(Prepare),
    /// Write a database file with a history of commits, in the format of the reference
    Generate(Generate),
}

#[derive(Args)]
pub(crate) struct Compare {
    /// The first server, which the aims apply to: a program with the command line of ovsdb-server,
    /// unix:PATH, or tcp:HOST:PORT. A server at an address loses all rows; its CPU time and memory
    /// are not measured, and workloads that need a file with rows or control commands fail
    pub(crate) ours: Target,
    /// The server to compare with
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

/// The options of a measurement.
#[derive(Args)]
pub(crate) struct Measure {
    /// Workloads, separated by commas [default: all]
    #[arg(long, short, value_delimiter = ',', value_parser = workloads::find)]
    pub(crate) workloads: Vec<&'static dyn Workload>,
    /// Runs of each workload on each server; medians are reported
    #[arg(long, short, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// The size of the workloads
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
    /// Write the figures of every run to this file, as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Write plots to this folder, as SVG
    #[arg(long)]
    pub(crate) plots: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Allocators {
    /// A build of our server with one allocator, as NAME=PROGRAM; the build named system is also
    /// measured with other allocators preloaded
    #[arg(long)]
    pub(crate) ours: Vec<Build>,
    /// A server that uses the system's allocator; it is measured with that one and with others
    /// preloaded
    #[arg(long)]
    pub(crate) reference: Option<PathBuf>,
    /// Workloads, separated by commas
    #[arg(long, short, value_delimiter = ',', value_parser = workloads::find, default_values = ["update1", "update2", "insert", "queue", "size"])]
    pub(crate) workloads: Vec<&'static dyn Workload>,
    /// Runs of each workload; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// The size of the workloads
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Ovn {
    /// The first server, a program with the command line of ovsdb-server [default: the one beside
    /// this program]
    pub(crate) ours: Option<Target>,
    /// The server to compare with
    #[arg(default_value = "/usr/sbin/ovsdb-server")]
    pub(crate) reference: Target,
    /// Runs on each server; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// The number of single ports that are added
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Clients {
    /// The server for all clients, a program with the command line of ovsdb-server
    pub(crate) server: PathBuf,
    /// Runs of each measurement; medians are reported
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// The size of the databases
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct ConsoleOptions {
    /// The server, a program with the command line of ovsdb-server; corvid-console and ovsdb-client
    /// are in its folder
    pub(crate) server: PathBuf,
    /// The size of the tables
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
    /// Measure one part only: table, network, viewers, moments or server
    #[arg(long)]
    pub(crate) only: Option<String>,
}

#[derive(Args)]
pub(crate) struct HistoryOptions {
    /// The server, a program with the command line of ovsdb-server; ovsdb-tool is in its folder
    pub(crate) server: PathBuf,
    /// The number of commits and segments
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
    /// Measure one part only: keeping, reading or segments
    #[arg(long)]
    pub(crate) only: Option<String>,
}

#[derive(Args)]
pub(crate) struct Hold {
    /// unix:PATH
    pub(crate) remote: String,
    /// A file with the schema
    pub(crate) schema: PathBuf,
}

#[derive(Args)]
pub(crate) struct Prepare {
    #[arg(value_parser = workloads::find)]
    pub(crate) workload: &'static dyn Workload,
    /// The file to write
    pub(crate) file: PathBuf,
    /// The size of the workload
    #[arg(long, short, value_enum, default_value_t = Scale::Small)]
    pub(crate) scale: Scale,
}

#[derive(Args)]
pub(crate) struct Generate {
    /// The file to write
    pub(crate) file: PathBuf,
    /// Number of rows
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) rows: u32,
    /// Number of times that each row is written: first inserted, then modified
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) versions: u32,
    /// Rows in each transaction
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rows_per_record: u32,
}
