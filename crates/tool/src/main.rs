//! `ovsdb-tool`: offline work on database files. Thin: it parses the command line, and each command puts together the log
//! codec, the engine and the shell. Exit status: 0 done, 1 error, 2 "the answer is no" (storage.md 13).

mod cluster_header;
mod commands;
mod database;
mod failure;
mod options;
mod replacement;
mod schema_file;
mod uuids;

use std::process::ExitCode;

use corvid_os::program;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let line: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    program::init(std::env::args_os().next().unwrap_or_default().as_os_str());
    let options = options::Options::parse(&line);
    match commands::run(&options) {
        Ok(answer) => answer.into(),
        Err(failure) => program::fatal(failure),
    }
}
