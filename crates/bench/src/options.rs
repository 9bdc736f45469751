//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::storage::Trial;
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
    /// Measure how two servers treat their files, and print all ratios beside what is aimed at
    Storage(Storage),
    /// Write a database file with a history of commits, as the reference records them
    Generate(Generate),
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
    /// Workloads, separated by commas: insert, update1, update2, pipelined, monitored, durable
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

impl Default for Load {
    /// What the command line says when it says nothing, with one workload and one round.
    fn default() -> Load {
        Load {
            workloads: vec![Kind::Insert],
            rounds: 1,
            connections: 10,
            transactions: 25_000,
            rows: 200_000,
            depth: 8,
            monitors: 100,
            json: false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Storage {
    /// The first server, which the ratios and aims speak of
    pub(crate) ours: PathBuf,
    /// The server it is compared with
    pub(crate) reference: PathBuf,
    /// Workloads, separated by commas: stall, open, small, durable, tool
    #[arg(long, short, value_delimiter = ',', default_values = ["stall", "open", "small", "durable", "tool"])]
    pub(crate) workloads: Vec<Trial>,
    /// How often each server is measured with each workload; medians are reported
    #[arg(long, short, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Rows of the database that `stall` compacts under load
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) stall_rows: u32,
    /// Rows, each written twice, of the file of `open` and `tool`
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) open_rows: u32,
    /// Rows that one transaction of that file writes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rows_per_record: u32,
    /// Transactions, over 1,000 rows, of the file of `small`
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) small_transactions: u32,
    /// Connections of `durable`
    #[arg(long, short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: u32,
    /// Transactions of each connection of `durable`
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) durable_transactions: u32,
    /// The ovsdb-tool of the first server, unless it is beside it or in ../bin
    #[arg(long)]
    pub(crate) our_tool: Option<PathBuf>,
    /// The ovsdb-tool of the second server, unless it is beside it or in ../bin
    #[arg(long)]
    pub(crate) reference_tool: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
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
