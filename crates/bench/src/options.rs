//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::workload::Kind;

/// Load on OVSDB servers: transactions per second, server CPU time, memory and latency.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure two servers in turn (A B A B) and print the ratios
    Compare(Compare),
    /// Measure one server
    Run(Run),
}

impl Command {
    pub(crate) fn load(&self) -> &Load {
        match self {
            Command::Compare(compare) => &compare.load,
            Command::Run(run) => &run.load,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The first server, which the ratios speak of
    pub(crate) ours: PathBuf,
    /// The server it is compared with
    pub(crate) reference: PathBuf,
    #[command(flatten)]
    pub(crate) load: Load,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A program with the command line of ovsdb-server
    pub(crate) server: PathBuf,
    #[command(flatten)]
    pub(crate) load: Load,
}

/// What is done to each server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Load {
    /// Workloads, separated by commas: insert, update1, update2, pipelined, monitored
    #[arg(long, short, value_delimiter = ',', default_values = ["insert", "update1", "update2", "pipelined", "monitored"])]
    pub(crate) workloads: Vec<Kind>,
    /// How often each server is measured with each workload; medians are reported
    #[arg(long, short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Connections that send transactions
    #[arg(long, short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: u32,
    /// Transactions of each connection (`monitored`: a tenth)
    #[arg(long, short = 'n', default_value_t = 25_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) transactions: u32,
    /// Rows that update2 spreads over
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rows: u32,
    /// Requests in flight on each connection of `pipelined`
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) depth: u32,
    /// Monitoring connections of `monitored`
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) monitors: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
