//! What a process has used, from `/proc/PID`.

use std::fs;
use std::io;

/// CPU time of all threads of a process, ended ones included, in microseconds. The kernel counts in ticks of 10 ms.
pub(crate) fn cpu_us(pid: u32) -> io::Result<u64> {
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
