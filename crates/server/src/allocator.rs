//! The memory allocator: makes it return unused pages to the system, and reads its statistics.
//!
//! jemalloc returns pages some time after they were freed, but by default it checks the time only
//! when a thread allocates or frees. A thread that frees much memory and then sleeps keeps those
//! pages while it sleeps. Background threads of the allocator purge for sleeping threads. Threads
//! do not survive a fork, so [`give_back`] is called in the process that serves.
//!
//! Called by the main loop and by the metrics. Allocators other than jemalloc keep their defaults
//! and have no statistics.

/// The environment variable with the allocator's settings.
#[cfg(feature = "jemalloc")]
const SETTINGS: &str = "_RJEM_MALLOC_CONF";

/// Starts background threads that return freed memory to the system. `background_thread:false` in
/// the environment (`_RJEM_MALLOC_CONF`) prevents that, for comparisons.
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
        let line = format_args!(
            "freed memory is returned to the system late: the allocator cannot start its background threads ({error})"
        );
        vlog::info(Module::Memory, line);
    }
}

/// Does nothing: other allocators keep their defaults.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn give_back() {}

/// The allocator's statistics: bytes by kind.
#[cfg(feature = "jemalloc")]
pub(crate) fn figures() -> Vec<(&'static str, u64)> {
    use tikv_jemalloc_ctl::{epoch, stats};

    // The statistics are those at the last advance of the epoch.
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
        figures.push(("unused", resident.saturating_sub(*allocated)));
    }
    figures
}

/// Returns nothing: other allocators have no statistics.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn figures() -> Vec<(&'static str, u64)> {
    Vec::new()
}
