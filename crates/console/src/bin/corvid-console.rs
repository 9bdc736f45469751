//! The program `corvid-console`: [`corvid_console::main`] with an allocator.

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    corvid_console::main()
}
