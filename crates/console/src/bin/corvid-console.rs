//! The program `corvid-console`: [`corvid_console::main`] with an allocator.

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    // Otherwise a thread that has freed the rows of a large table, and then sleeps, keeps their
    // memory. Without this thread of the allocator the memory returns later.
    #[cfg(feature = "jemalloc")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    corvid_console::main()
}
