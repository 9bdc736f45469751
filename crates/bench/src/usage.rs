//! What a process has used, from `/proc/PID`.

use std::fs;
use std::io;

/// CPU time of all threads of a process, in microseconds.
///
/// The kernel counts the whole process, ended threads included, in ticks of 10 ms, and each thread that lives in nanoseconds.
/// The sum of these is taken, unless ended threads are missing in it.
pub(crate) fn cpu_us(pid: u32) -> io::Result<f64> {
    let whole_us = whole_cpu_us(pid)? as f64;
    let mut sum_ns = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = match fs::read_to_string(entry?.path().join("schedstat")) {
            Ok(text) => text,
            // Kernels without scheduler statistics, and a thread that has just ended.
            Err(_) => return Ok(whole_us),
        };
        let spent = text.split_ascii_whitespace().next();
        sum_ns += spent.map_or(0, |spent| spent.parse::<u64>().unwrap_or(0));
    }
    let sum_us = sum_ns as f64 / 1e3;
    // User and system time are each cut to a tick.
    let is_whole = (sum_us - whole_us).abs() < 3.0 * 1e6 / TICKS_PER_SECOND as f64;
    Ok(if is_whole { sum_us } else { whole_us })
}

/// CPU time of the calling thread so far, microseconds; not a number on a kernel without scheduler statistics.
pub(crate) fn thread_cpu_us() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent_ns = text.split_ascii_whitespace().next();
    spent_ns.map_or(f64::NAN, |spent| {
        spent.parse().map_or(f64::NAN, |spent: f64| spent / 1e3)
    })
}

fn whole_cpu_us(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses, which may hold anything; utime and stime are fields 14, 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut times = fields
        .split_ascii_whitespace()
        .skip(11)
        .map_while(|field| field.parse::<u64>().ok());
    match (times.next(), times.next()) {
        (Some(user), Some(system)) => Ok((user + system) * 1_000_000 / TICKS_PER_SECOND),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// What user space is told of the kernel's clock (`USER_HZ`): 100 on every architecture that we run on.
const TICKS_PER_SECOND: u64 = 100;

/// Resident memory, MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Now.
    pub(crate) resident_mib: f64,
    /// At most so far.
    pub(crate) peak_mib: f64,
}

pub(crate) fn memory(pid: u32) -> io::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    };
    match (field("VmRSS:"), field("VmHWM:")) {
        (Some(resident_mib), Some(peak_mib)) => Ok(Memory {
            resident_mib,
            peak_mib,
        }),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_own_usage_can_be_read() {
        let memory = super::memory(std::process::id()).unwrap();
        assert!(memory.resident_mib > 0.0 && memory.peak_mib >= memory.resident_mib);
        super::cpu_us(std::process::id()).unwrap();
    }
}
