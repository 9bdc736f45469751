//! Counting the instructions of one path with valgrind's callgrind.
//!
//! This program starts itself under the instrument. There it prepares the path's inputs, runs the path until its memory is
//! warm, and then once more inside [`measured`], the only function whose instructions (and those of what it calls) count.
//! The environment is empty but for the allocator's settings, so that equal programs give equal counts.
//!
//! The instrument shows programs a processor of its own (no AVX-512, no SHA instructions), the same on every machine that
//! has AVX2: so the figures hold on all of those.

use std::fs;
use std::hint::black_box;
use std::path::Path as FilePath;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::paths::{self, Path};

/// The word by which this program is told to be measured.
pub(crate) const WORD: &str = "be-measured";

/// No second arena, and nothing that is done because time has passed: freed memory is neither given back nor moved between caches.
const ALLOCATOR: &str =
    "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1,tcache_gc_incr_bytes:1099511627776";

/// How often a path is gone before it is measured, as a multiple of how often it is measured.
const WARMING: usize = 1;

/// Runs the path of that name; called in the process that is measured.
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

/// The instrument knows it by name.
#[inline(never)]
fn measured(step: &mut dyn FnMut(), times: usize) {
    for _ in 0..black_box(times) {
        step();
    }
}

/// Instructions of going a path once.
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

/// The sum that the instrument's file ends with.
fn sum(text: &str) -> Option<u64> {
    let last = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?;
    last.trim().parse().ok()
}

/// Whether counts here can be compared with the checked-in ones; else why not.
pub(crate) fn is_possible() -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err("this is no optimised build; use `make guard`".into());
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

/// The programs whose versions move counts.
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
    fn the_sum_is_found() {
        let text = "events: Ir\nfn=(1) f\n12 7\n\ntotals: 1234\n";
        assert_eq!(sum(text), Some(1234));
        assert_eq!(sum("events: Ir\n"), None);
    }

    #[test]
    fn every_path_can_be_gone() {
        for path in paths::ALL {
            let mut step = (path.prepare)(3);
            (0..3).for_each(|_| step());
        }
    }
}
