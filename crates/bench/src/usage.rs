//! The CPU time and memory of a process, from `/proc/PID`.

use std::fs;
use std::io;

/// Returns the CPU time of all threads of a process, in microseconds.
///
/// The kernel counts the time of the whole process, including ended threads, in ticks of 10 ms, and
/// the time of each running thread in nanoseconds. The result is the sum of the threads' times. But
/// if threads have ended, so that the sum is too small, the result is the time of the whole
/// process.
pub(crate) fn cpu_us(pid: u32) -> io::Result<f64> {
    let whole_us = whole_cpu_us(pid)? as f64;
    let mut sum_us = 0.0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = match fs::read_to_string(entry?.path().join("schedstat")) {
            Ok(text) => text,
            // Either the kernel has no scheduler statistics, or the thread has just ended.
            Err(_) => return Ok(whole_us),
        };
        sum_us += spent_us(&text);
    }
    let is_whole = (sum_us - whole_us).abs() < COARSE_US;
    Ok(if is_whole { sum_us } else { whole_us })
}

/// A running thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The CPU time so far, in microseconds.
    pub(crate) cpu_us: f64,
}

/// Returns the threads of a process; none on a kernel without scheduler statistics.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        let read = |file| fs::read_to_string(entry.path().join(file));
        // A thread may have ended just now.
        let (Ok(name), Ok(spent)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        threads.push(Thread {
            id: entry.file_name().to_string_lossy().into_owned(),
            name: name.trim_end().to_owned(),
            cpu_us: spent_us(&spent),
        });
    }
    Ok(threads)
}

/// Returns the first figure of `schedstat`, the time on a CPU in nanoseconds, converted to
/// microseconds.
fn spent_us(schedstat: &str) -> f64 {
    let spent_ns = schedstat.split_ascii_whitespace().next();
    spent_ns.map_or(f64::NAN, |spent| {
        spent.parse().map_or(f64::NAN, |spent: f64| spent / 1e3)
    })
}

/// Returns the CPU time of the calling thread so far, in microseconds; NaN on a kernel without
/// scheduler statistics.
pub(crate) fn thread_cpu_us() -> f64 {
    spent_us(&fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default())
}

fn whole_cpu_us(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses. The name may contain any character, so
    // fields are counted after the last parenthesis. utime and stime are fields 14 and 15.
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

/// The maximum error of the time of the whole process, in microseconds: user and system time are
/// each rounded down to a tick.
pub(crate) const COARSE_US: f64 = 3.0 * 1e6 / TICKS_PER_SECOND as f64;

/// The kernel's clock rate in user space (`USER_HZ`), which is 100 on all supported architectures.
const TICKS_PER_SECOND: u64 = 100;

/// Resident memory, in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The current size.
    pub(crate) resident_mib: f64,
    /// The largest size so far.
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
    fn usage_of_this_process_can_be_read() {
        let memory = super::memory(std::process::id()).unwrap();
        assert!(memory.resident_mib > 0.0 && memory.peak_mib >= memory.resident_mib);
        super::cpu_us(std::process::id()).unwrap();
    }
}
