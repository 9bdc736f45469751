//! The system's figures for this process: time, memory, file descriptors, threads. Linux only; a
//! figure that cannot be read is absent.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// The figures at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessFigures {
    /// CPU time spent so far, in user and kernel mode, seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// When the process began, seconds since the Unix epoch.
    pub(crate) started_seconds: Option<f64>,
    /// Resident memory, bytes.
    pub(crate) resident_bytes: Option<u64>,
    /// Address space, bytes.
    pub(crate) virtual_bytes: Option<u64>,
    /// The number of threads.
    pub(crate) threads: Option<u64>,
    /// The number of open file descriptors.
    pub(crate) open_descriptors: Option<u64>,
    /// The limit of open file descriptors.
    pub(crate) descriptors_max: Option<u64>,
}

impl ProcessFigures {
    /// Reads the figures.
    #[must_use]
    pub(crate) fn read() -> ProcessFigures {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (ticks, page) = (clock_ticks_per_second(), page_size() as u64);
        let mut figures = parse(&stat, &system, ticks, page);
        // The listing's own descriptor is not counted.
        figures.open_descriptors = fs::read_dir("/proc/self/fd")
            .ok()
            .map(|entries| entries.count().saturating_sub(1) as u64);
        figures.descriptors_max = getrlimit(Resource::Nofile).current;
        figures
    }
}

/// The name of the program that a process executes, 15 bytes at most; `None`: the process has
/// ended.
pub(crate) fn program_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name));
    Some(name.into_owned())
}

/// Reads `/proc/self/stat` (proc(5)) with the boot time of `/proc/stat`.
fn parse(stat: &str, system: &str, ticks: u64, page: u64) -> ProcessFigures {
    // The name in parentheses may contain any character, including parentheses.
    let fields: Vec<u64> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // The manual numbers fields from one. The first field here is the manual's third, the state.
    let field = |number: usize| fields.get(number - 3).copied();
    let seconds = |count: u64| count as f64 / ticks as f64;
    let boot = system
        .lines()
        .find_map(|line| line.strip_prefix("btime "))
        .and_then(|text| text.trim().parse::<f64>().ok());
    let cpu = field(14).zip(field(15)).map(|(user, kernel)| user + kernel);
    let started = field(22).map(seconds);
    ProcessFigures {
        cpu_seconds: cpu.map(seconds),
        started_seconds: started.zip(boot).map(|(after, boot)| boot + after),
        resident_bytes: field(24).map(|pages| pages * page),
        virtual_bytes: field(23),
        threads: field(20),
        ..ProcessFigures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_skipped() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 3000 8192 5 18446744073709551615";
        let figures = parse(stat, "cpu 1\nbtime 1000\n", 100, 4096);
        assert_eq!(figures.cpu_seconds, Some(2.0));
        assert_eq!(figures.started_seconds, Some(1030.0));
        assert_eq!(figures.threads, Some(9));
        assert_eq!(figures.virtual_bytes, Some(8192));
        assert_eq!(figures.resident_bytes, Some(5 * 4096));
        assert_eq!(parse("", "", 100, 4096), ProcessFigures::default());
    }

    #[test]
    fn this_process_has_all_figures() {
        let figures = ProcessFigures::read();
        assert!(figures.started_seconds.is_some_and(|at| at > 1.6e9));
        assert!(figures.resident_bytes.is_some_and(|bytes| bytes > 100_000));
        assert!(figures.threads.is_some_and(|count| count >= 1));
        assert!(figures.open_descriptors <= figures.descriptors_max);
    }
}
