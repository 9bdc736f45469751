//! The program `ovsdb-tool`: [`corvid_tools::tool::main`] with an allocator.

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    corvid_tools::tool::main()
}
