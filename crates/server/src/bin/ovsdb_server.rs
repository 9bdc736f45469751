//! `ovsdb-server`: serves OVSDB databases.

use corvid_server::options::CommandLine;
use corvid_shell::{args, program};

// Without both features, the program uses the system's allocator.
#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let line = args::from_env();
    program::init(line.first().map_or("ovsdb-server", String::as_str).as_ref());
    let line = CommandLine::parse(&line);
    if let Some(directory) = &line.replay {
        program::exit(i32::from(!corvid_server::replay_all(directory)));
    }
    if line.is_check {
        corvid_server::check_config::run(&line);
    } else {
        corvid_server::main_loop::run(line);
    }
}
