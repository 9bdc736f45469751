//! `corvid-demo [DIRECTORY]`: serves the default database at once and says how to talk to it. Behind `make run`.

use std::path::PathBuf;

use corvid_os::{dirs, program};
use corvid_server::demo;
use corvid_server::options::CommandLine;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The port that OVSDB clients try by themselves.
const PORT: u16 = 6640;

fn main() {
    program::init("ovsdb-server".as_ref());
    let directory = std::env::args_os()
        .nth(1)
        .map_or_else(|| dirs::run().join("corvid-demo"), PathBuf::from);
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    if let Err(error) = std::fs::create_dir_all(&directory) {
        program::fatal_error(
            format_args!("{}: cannot be made", directory.display()),
            &error,
        );
    }
    let databases = demo::prepare(&directory).unwrap_or_else(|error| program::fatal(error));
    let socket = directory.join("db.sock");
    introduce(&databases, &socket.display().to_string());
    let mut line = vec![
        "ovsdb-server".to_owned(),
        format!("--remote=punix:{}", socket.display()),
        format!("--remote=ptcp:{PORT}:127.0.0.1"),
        format!("--unixctl={}", directory.join("ovsdb-server.ctl").display()),
        "-vconsole:err".to_owned(),
    ];
    line.extend(databases.iter().map(|(_, path)| path.display().to_string()));
    corvid_server::run::run(CommandLine::parse(&line));
}

fn introduce(databases: &[(String, PathBuf)], socket: &str) {
    let has = |wanted: &str| databases.iter().any(|(name, _)| name == wanted);
    println!(
        "Corvid serves {}.\n",
        databases
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    );
    println!("  unix:{socket}");
    println!("  tcp:127.0.0.1:{PORT}\n");
    println!("Try, in another terminal:\n");
    let client = sibling("ovsdb-client");
    println!("  {client} dump unix:{socket} Inventory Device name role labels");
    println!("  {client} monitor unix:{socket} Inventory Device name,labels");
    println!(
        "  {client} transact unix:{socket} '[\"Inventory\",{{\"op\":\"mutate\",\"table\":\"Device\",\
         \"where\":[[\"name\",\"==\",\"web-1\"]],\"mutations\":[[\"labels\",\"insert\",[\"map\",[[\"rack\",\"b11\"]]]]]}}]'"
    );
    if has("Open_vSwitch") {
        println!("  ovs-vsctl --db=unix:{socket} --no-wait -- add-br br0 -- add-port br0 p1");
    }
    if has("OVN_Northbound") {
        println!("  ovn-nbctl --db=unix:{socket} ls-add sw0 -- lsp-add sw0 port0 -- show");
    }
    println!("\nCtrl-C ends it; the databases stay where they are and are served again next time.");
}

/// A program that was built beside this one, else its name.
fn sibling(name: &str) -> String {
    let beside = std::env::current_exe()
        .ok()
        .map(|exe| exe.with_file_name(name));
    beside
        .filter(|path| path.exists())
        .map_or_else(|| name.to_owned(), |path| path.display().to_string())
}
