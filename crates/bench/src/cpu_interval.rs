//! The measured intervals of a server, in which the CPU time of each thread is measured.
//!
//! A workload begins an interval before the measured work and ends it after the work. All intervals
//! of a server add up in its [`CpuUsage`], from which reports list the busy threads. A server at an
//! address has no CPU usage.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::Error;
use crate::usage;

/// The CPU time of a server's threads in all measured intervals.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuUsage {
    wall_us: f64,
    /// The CPU time by thread name, in us. Threads with the same name are added up.
    threads: BTreeMap<String, f64>,
}

/// The name under which all threads that have ended are counted.
const ENDED: &str = "(ended)";

/// Threads that used less than this part of a core are not listed.
const SHARE_MIN: f64 = 0.01;

impl CpuUsage {
    /// Whether there was an interval of a process that the benchmark started.
    pub(crate) fn is_known(&self) -> bool {
        self.wall_us > 0.0
    }

    /// Returns the length of all intervals, in us.
    pub(crate) fn wall_us(&self) -> f64 {
        self.wall_us
    }

    /// Returns the names of threads with the part of a core that each used, the busiest first.
    pub(crate) fn shares(&self) -> Vec<(&str, f64)> {
        let share = |(name, cpu_us): (_, &f64)| (name, cpu_us / self.wall_us);
        let names = self
            .threads
            .iter()
            .map(|(name, cpu_us)| (name.as_str(), cpu_us));
        let mut shares: Vec<_> = names
            .map(share)
            .filter(|(_, share)| *share >= SHARE_MIN)
            .collect();
        shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        shares
    }
}

/// The sum of a server's intervals, which is shared by all who measure it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTotals(Arc<Mutex<CpuUsage>>);

impl CpuTotals {
    /// Returns the sum so far.
    pub(crate) fn cpu_usage(&self) -> CpuUsage {
        let busy = self.0.lock();
        busy.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
pub(crate) struct CpuInterval {
    /// The server's process id, if the benchmark started it.
    pid: Option<u32>,
    cpu_totals: CpuTotals,
    began: Instant,
    cpu_us: f64,
    threads: Vec<usage::Thread>,
}

impl CpuInterval {
    /// Begins an interval of the server with the process id `pid`.
    pub(crate) fn begin(pid: Option<u32>, cpu_totals: &CpuTotals) -> Result<CpuInterval, Error> {
        let threads = pid.map_or(Ok(Vec::new()), usage::threads)?;
        Ok(CpuInterval {
            pid,
            cpu_totals: cpu_totals.clone(),
            cpu_us: pid.map_or(Ok(f64::NAN), usage::cpu_us)?,
            threads,
            began: Instant::now(),
        })
    }

    /// Returns an interval that began with the start of the process.
    pub(crate) fn since_start(
        pid: Option<u32>,
        cpu_totals: &CpuTotals,
        began: Instant,
    ) -> CpuInterval {
        CpuInterval {
            pid,
            cpu_totals: cpu_totals.clone(),
            began,
            cpu_us: pid.map_or(f64::NAN, |_| 0.0),
            threads: Vec::new(),
        }
    }

    /// Ends the interval. Returns the CPU time of all threads in microseconds; NaN for a server at
    /// an address.
    pub(crate) fn end(self) -> Result<f64, Error> {
        let wall_us = self.began.elapsed().as_secs_f64() * 1e6;
        let Some(pid) = self.pid else {
            return Ok(f64::NAN);
        };
        let cpu_us = usage::cpu_us(pid)?;
        let mut busy = self
            .cpu_totals
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        busy.wall_us += wall_us;
        let mut left_us = cpu_us - self.cpu_us;
        for thread in usage::threads(pid)? {
            let before = self.threads.iter().find(|before| before.id == thread.id);
            let spent_us = thread.cpu_us - before.map_or(0.0, |before| before.cpu_us);
            *busy.threads.entry(thread.name).or_default() += spent_us;
            left_us -= spent_us;
        }
        // The rest is the time of threads that have ended. Only the coarse time of the whole
        // process includes it.
        if left_us > usage::COARSE_US {
            *busy.threads.entry(ENDED.to_owned()).or_default() += left_us;
        }
        Ok(cpu_us - self.cpu_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_this_process_has_its_threads() {
        // On a busy machine, 30 ms may pass without any CPU time of this process.
        let began = Instant::now();
        loop {
            let cpu_totals = CpuTotals::default();
            let interval =
                CpuInterval::begin(Some(std::process::id()), &cpu_totals).expect("an interval");
            let turn = Instant::now();
            while turn.elapsed().as_millis() < 30 {}
            let cpu_us = interval.end().expect("CPU time");
            let busy = cpu_totals.cpu_usage();
            let all: f64 = busy.shares().iter().map(|(_, share)| share).sum();
            if cpu_us > 0.0 && all > 0.0 {
                break;
            }
            assert!(began.elapsed().as_secs() < 60, "{cpu_us} us, {busy:?}");
        }
    }

    #[test]
    fn server_at_an_address_has_no_cpu_usage() {
        let cpu_totals = CpuTotals::default();
        let interval = CpuInterval::begin(None, &cpu_totals).expect("an interval");
        assert!(interval.end().expect("no error").is_nan());
        assert!(cpu_totals.cpu_usage().shares().is_empty());
    }
}
