//! The memory allocator: has it give unused pages back to the system, and tells how much memory it holds.
//!
//! jemalloc gives pages back some time after they were freed, but by itself it looks at the time only when a thread allocates or frees.
//! A thread that frees much and then sleeps keeps those pages for as long as it sleeps. Background threads of the allocator purge for
//! threads that sleep. Threads do not survive a fork, so [`give_back`] is called once the process is the one that serves.
//!
//! Called by `run` and by the metrics. Other allocators than jemalloc tell nothing and are left alone.

/// The environment's settings of the allocator.
#[cfg(feature = "jemalloc")]
const SETTINGS: &str = "_RJEM_MALLOC_CONF";

/// Has freed memory given back to the system whichever threads are at work. `background_thread:false` in the environment
/// (`_RJEM_MALLOC_CONF`) prevents it, for comparisons.
#[cfg(feature = "jemalloc")]
pub(crate) fn give_back() {
    use corvid_shell::vlog::{self, Module};

    let settings = std::env::var(SETTINGS).unwrap_or_default();
    if settings
        .split(',')
        .any(|setting| setting == "background_thread:false")
    {
        return;
    }
    if let Err(error) = tikv_jemalloc_ctl::background_thread::write(true) {
        let line = format_args!("memory is given back late: no background threads ({error})");
        vlog::info(Module::Memory, line);
    }
}

/// Other allocators do as they do.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn give_back() {}

/// Bytes by kind.
#[cfg(feature = "jemalloc")]
pub(crate) fn figures() -> Vec<(&'static str, u64)> {
    use tikv_jemalloc_ctl::{epoch, stats};

    // Its figures are of the moment at which the epoch was last advanced.
    if epoch::advance().is_err() {
        return Vec::new();
    }
    let kinds = [
        ("allocated", stats::allocated::read()),
        ("active", stats::active::read()),
        ("metadata", stats::metadata::read()),
        ("resident", stats::resident::read()),
        ("mapped", stats::mapped::read()),
        ("retained", stats::retained::read()),
    ];
    let known = |(kind, bytes): (&'static str, tikv_jemalloc_ctl::Result<usize>)| {
        Some((kind, bytes.ok()? as u64))
    };
    let mut figures: Vec<_> = kinds.into_iter().filter_map(known).collect();
    let of = |wanted| figures.iter().find(|(kind, _)| *kind == wanted);
    if let (Some((_, resident)), Some((_, allocated))) = (of("resident"), of("allocated")) {
        figures.push(("kept", resident.saturating_sub(*allocated)));
    }
    figures
}

/// Other allocators tell nothing.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn figures() -> Vec<(&'static str, u64)> {
    Vec::new()
}
