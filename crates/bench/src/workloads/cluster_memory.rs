//! `cluster-memory`: the memory of the members of a cluster with a large database.

use std::thread;
use std::time::Duration;

use super::cluster_compact::rows;
use crate::cluster;
use crate::database_file::History;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::server::Server;
use crate::usage::Memory;
use crate::workload::{Run, Scale, Workload};

/// The time that members get to release the memory that only loading and joining needed.
const MEMORY_RELEASE: Duration = Duration::from_secs(5);

pub(crate) struct MemoryOfMembers;

impl Workload for MemoryOfMembers {
    fn name(&self) -> &'static str {
        "cluster-memory"
    }

    fn about(&self) -> &'static str {
        "memory of 3 members with 200,000 rows (full: 1,000,000) that nobody changes"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let members = cluster::start(run)?;
        thread::sleep(MEMORY_RELEASE);
        let memories: Result<Vec<Memory>, Error> = members.iter().map(Server::memory).collect();
        let memories = memories?;
        let (leader, followers) = memories.split_at(1);
        let most =
            |of: &[Memory], figure: fn(&Memory) -> f64| of.iter().map(figure).fold(0.0, f64::max);
        let (resident, peak) = (|it: &Memory| it.resident_mib, |it: &Memory| it.peak_mib);
        let half = Aim::RatioAtMost(0.5);
        Ok(vec![
            Figure::lower("memory of the leader", "MiB", most(leader, resident)).aim(half),
            Figure::lower("memory of a follower", "MiB", most(followers, resident)).aim(half),
            Figure::lower("peak memory of the leader", "MiB", most(leader, peak)),
            Figure::lower("peak memory of a follower", "MiB", most(followers, peak)),
        ])
    }
}
