//! The workloads: what is in the database before, who sends what, who watches.

use std::fmt;
use std::str::FromStr;

use crate::options::Load;

/// The name of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Single-row inserts into an empty database, one request in flight on each connection.
    Insert,
    /// Updates of single rows, found by `_uuid`, spread over 1,000 rows.
    Update1,
    /// The same over many rows.
    Update2,
    /// `Update1` with several requests in flight on each connection.
    Pipelined,
    /// `Update1` with connections that watch the whole table.
    Monitored,
    /// `Insert` with transactions that wait for the disk.
    Durable,
}

const NAMES: [(&str, Kind); 6] = [
    ("insert", Kind::Insert),
    ("update1", Kind::Update1),
    ("update2", Kind::Update2),
    ("pipelined", Kind::Pipelined),
    ("monitored", Kind::Monitored),
    ("durable", Kind::Durable),
];

/// Rows of the workloads that update few.
const FEW_ROWS: u32 = 1_000;
/// `monitored` sends this fraction of the transactions: each costs as many updates as there are monitors.
const MONITORED_PART: u32 = 10;

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
            .ok_or_else(|| format!("{name} is no workload"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, kind)| kind == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Inserts a row of its own.
    Insert,
    /// Updates a row that is there, by `_uuid`.
    Update,
}

/// One workload at its scale.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) operation: Operation,
    /// Rows inserted before the measurement.
    pub(crate) rows: u32,
    pub(crate) writers: u32,
    /// Of each writer.
    pub(crate) transactions: u32,
    /// Requests in flight of each writer.
    pub(crate) depth: usize,
    pub(crate) monitors: u32,
    /// Whether each transaction asks to be on the disk before it is answered.
    pub(crate) is_durable: bool,
}

impl Workload {
    pub(crate) fn new(kind: Kind, load: &Load) -> Workload {
        let base = Workload {
            operation: Operation::Update,
            rows: FEW_ROWS,
            writers: load.connections,
            transactions: load.transactions,
            depth: 1,
            monitors: 0,
            is_durable: false,
        };
        match kind {
            Kind::Insert => Workload {
                operation: Operation::Insert,
                rows: 0,
                ..base
            },
            Kind::Durable => Workload {
                operation: Operation::Insert,
                rows: 0,
                is_durable: true,
                ..base
            },
            Kind::Update1 => base,
            Kind::Update2 => Workload {
                rows: load.rows,
                ..base
            },
            Kind::Pipelined => Workload {
                depth: load.depth as usize,
                ..base
            },
            Kind::Monitored => Workload {
                monitors: load.monitors,
                transactions: load.transactions.div_ceil(MONITORED_PART),
                ..base
            },
        }
    }

    /// Transactions of all writers.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.writers) * u64::from(self.transactions)
    }
}
