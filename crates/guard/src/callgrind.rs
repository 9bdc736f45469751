//! Counts the instructions of one path with valgrind's callgrind.
//!
//! This program starts itself under callgrind. The child prepares the inputs of the path, runs the
//! path until its memory is warm, and then runs it inside [`measured`]. Only the instructions of
//! that function and of the functions that it calls are counted. The environment contains only the
//! settings of the allocator, so equal programs give equal counts.
//!
//! Valgrind emulates a processor without AVX-512 and SHA instructions, which is the same on every
//! machine that has AVX2. So the figures are valid on all of these machines.

use std::fs;
use std::hint::black_box;
use std::path::Path as FilePath;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::paths::{self, Path};

/// The command with which this program starts itself under callgrind.
pub(crate) const WORD: &str = "be-measured";

/// The allocator uses one arena and does no work that depends on time: freed memory is neither
/// returned to the system nor moved between caches.
const ALLOCATOR: &str =
    "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1,tcache_gc_incr_bytes:1099511627776";

/// The number of runs before the measurement, as a multiple of the measured runs.
const WARMING: usize = 1;

/// Runs the path with the given name. Called in the measured process.
pub(crate) fn be_measured(name: &str) -> Result<(), Error> {
    let path = paths::ALL.iter().find(|path| path.name == name);
    let path = path.ok_or_else(|| Error::NoPath(name.to_owned()))?;
    let warming = WARMING * path.times;
    let mut step = (path.prepare)(warming + path.times);
    for _ in 0..warming {
        step();
    }
    measured(&mut *step, path.times);
    Ok(())
}

/// Callgrind finds this function by its name.
#[inline(never)]
fn measured(step: &mut dyn FnMut(), times: usize) {
    for _ in 0..black_box(times) {
        step();
    }
}

/// Returns the number of instructions of one run of a path.
pub(crate) fn count(path: &Path) -> Result<u64, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-guard-").tempdir()?;
    let counts = directory.path().join("counts");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--toggle-collect=corvid_guard::callgrind::measured*")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(std::env::current_exe()?)
        .args([WORD, path.name])
        .env_clear()
        .env("_RJEM_MALLOC_CONF", ALLOCATOR)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Instrument {
            path: path.name,
            log,
        });
    }
    let all = sum(&fs::read_to_string(counts)?).filter(|all| *all > 0);
    let all = all.ok_or(Error::Nothing(path.name))?;
    Ok(all / path.times as u64)
}

/// Returns the sum at the end of callgrind's file.
fn sum(text: &str) -> Option<u64> {
    let last = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?;
    last.trim().parse().ok()
}

/// Checks whether counts on this machine can be compared with the checked-in ones. The error is the
/// reason why they cannot.
pub(crate) fn is_possible() -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err("this is not an optimised build; use `make guard`".into());
    }
    if !has_avx2() {
        return Err("the figures are those of x86-64 with AVX2, which this machine has not".into());
    }
    match version_of("valgrind") {
        Some(_) => Ok(()),
        None => Err("valgrind is not installed".into()),
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// Returns the versions of the programs that influence the counts.
pub(crate) fn tools() -> String {
    let versions = ["rustc", "valgrind"].map(|program| {
        version_of(program).unwrap_or_else(|| format!("{program} of unknown version"))
    });
    versions.join(", ")
}

fn version_of(program: &str) -> Option<String> {
    let output = Command::new(FilePath::new(program))
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_is_found() {
        let text = "events: Ir\nfn=(1) f\n12 7\n\ntotals: 1234\n";
        assert_eq!(sum(text), Some(1234));
        assert_eq!(sum("events: Ir\n"), None);
    }

    #[test]
    fn every_path_runs() {
        for path in paths::ALL {
            let mut step = (path.prepare)(3);
            (0..3).for_each(|_| step());
        }
    }
}
