//! What the allocator holds, where it tells.

/// Bytes by kind.
#[cfg(feature = "jemalloc")]
pub(super) fn allocator() -> Vec<(&'static str, u64)> {
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
    kinds.into_iter().filter_map(known).collect()
}

/// Other allocators tell nothing.
#[cfg(not(feature = "jemalloc"))]
pub(super) fn allocator() -> Vec<(&'static str, u64)> {
    Vec::new()
}
