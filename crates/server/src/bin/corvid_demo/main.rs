//! `corvid-demo [DIRECTORY]`: creates the example databases in DIRECTORY, prints how to connect to
//! them, and becomes their server (`make run`). `corvid-demo --cluster [DIRECTORY]` demonstrates a
//! cluster instead ([`cluster`]; `make cluster`).
//!
//! The demo runs the other programs from its own directory, as a script would, and links none of
//! them, so it adds little to a build. `Inventory` is a small network inventory with a few rows.
//! Empty databases of Open vSwitch and OVN are created if their packages have installed the
//! schemas, so that their command-line tools can be tried.

mod cluster;
mod options;
mod programs;
mod running;

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_shell::{args, output, program};

use options::Options;
use programs::{about, sibling, tool};

const SCHEMA: &str = include_str!("../../demo/inventory.ovsschema");
const ROWS: &str = include_str!("../../demo/rows.json");

/// Schemas that packages install, with the names of their databases.
const INSTALLED: [(&str, &str); 3] = [
    ("Open_vSwitch", "/usr/share/openvswitch/vswitch.ovsschema"),
    ("OVN_Northbound", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("OVN_Southbound", "/usr/share/ovn/ovn-sb.ovsschema"),
];

/// The default port of OVSDB clients.
const PORT: u16 = 6640;

fn main() {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let options = Options::parse(&args::from_env());
    let outcome = directory(options.directory).and_then(|directory| {
        if options.is_cluster {
            cluster::run(&directory)
        } else {
            serve(&directory).map(|never| match never {})
        }
    });
    match outcome {
        Ok(()) => program::exit(0),
        Err(error) => {
            // Some of these errors have several lines.
            output::error_line(format_args!("{}: {error}", program::prefix()));
            program::exit(1)
        }
    }
}

/// Creates the directory for all files. The returned path is absolute.
fn directory(directory: PathBuf) -> Result<PathBuf, String> {
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    fs::create_dir_all(&directory).map_err(|error| about(&directory, &error))?;
    Ok(directory)
}

/// Serves the databases. Returns only an error: on success this process becomes `ovsdb-server`.
fn serve(directory: &Path) -> Result<std::convert::Infallible, String> {
    running::refuse(directory, directory)?;
    let names = make_missing(directory)?;
    let socket = directory.join("db.sock").display().to_string();
    let has_port = TcpListener::bind(("127.0.0.1", PORT)).is_ok();
    introduce(&names, &socket, has_port);
    let mut command = Command::new(sibling("ovsdb-server"));
    if has_port {
        command.arg(format!("--remote=ptcp:{PORT}:127.0.0.1"));
    }
    let error = command
        .arg(format!("--remote=punix:{socket}"))
        .arg(format!(
            "--unixctl={}",
            directory.join("ovsdb-server.ctl").display()
        ))
        .arg("-vconsole:warn")
        .args(names.iter().map(|name| file(directory, name)))
        .exec();
    Err(about(&sibling("ovsdb-server"), &error))
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.db"))
}

/// Creates the missing database files, and returns the names of all databases.
///
/// A file is created in a scratch directory and renamed when it is complete, so an interrupted
/// start leaves no incomplete file.
fn make_missing(directory: &Path) -> Result<Vec<&'static str>, String> {
    let schema = directory.join("inventory.ovsschema");
    fs::write(&schema, SCHEMA).map_err(|error| about(&schema, &error))?;
    let mut sources = vec![("Inventory", schema)];
    for (name, path) in INSTALLED {
        if Path::new(path).exists() {
            sources.push((name, PathBuf::from(path)));
        }
    }
    let scratch = directory.join("new");
    for (name, schema) in &sources {
        let path = file(directory, name);
        if path.exists() {
            continue;
        }
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir(&scratch).map_err(|error| about(&scratch, &error))?;
        let made = file(&scratch, name);
        tool(
            Command::new(sibling("ovsdb-tool"))
                .arg("create")
                .arg(&made)
                .arg(schema),
        )?;
        if *name == "Inventory" {
            tool(
                Command::new(sibling("ovsdb-tool"))
                    .arg("transact")
                    .arg(&made)
                    .arg(ROWS),
            )?;
        }
        fs::rename(&made, &path).map_err(|error| about(&path, &error))?;
        fs::remove_dir_all(&scratch).map_err(|error| about(&scratch, &error))?;
    }
    Ok(sources.into_iter().map(|(name, _)| name).collect())
}

/// Commands of `corvid` that the demo suggests, in this order: each shows what the ones before did.
const INVENTORY: [(&str, &str); 5] = [
    ("--columns=name,role,labels list Device", "the rows"),
    ("set Device web-1 labels:rack=b11", "a change"),
    ("diff HEAD~1 HEAD", "what it changed"),
    ("revert HEAD", "undone"),
    ("", "a shell: Tab completes, help helps"),
];

fn introduce(names: &[&str], socket: &str, has_port: bool) {
    output::report(format_args!("Corvid serves {}.\n", names.join(", ")));
    output::report(format_args!("  unix:{socket}"));
    if has_port {
        output::report(format_args!("  tcp:127.0.0.1:{PORT}\n"));
    } else {
        output::report(format_args!(
            "  (another program has port {PORT}, so there is no tcp:)\n"
        ));
    }
    output::report(format_args!("Try, in another terminal:\n"));
    let corvid = format!(
        "{} unix:{socket} --database=Inventory",
        sibling("corvid").display()
    );
    for (words, about) in INVENTORY {
        output::report(format_args!("  {corvid} {words:<38} # {about}"));
    }
    let client = sibling("ovsdb-client").display().to_string();
    output::report(format_args!(
        "  {client} monitor unix:{socket} Inventory Device name,labels"
    ));
    if names.contains(&"Open_vSwitch") {
        output::report(format_args!(
            "  ovs-vsctl --db=unix:{socket} --no-wait -- --may-exist add-br br0 -- --may-exist add-port br0 p1"
        ));
    }
    if names.contains(&"OVN_Northbound") {
        output::report(format_args!(
            "  ovn-nbctl --db=unix:{socket} --may-exist ls-add sw0 -- --may-exist lsp-add sw0 port0 -- show"
        ));
    }
    output::report(format_args!(
        "\nCtrl-C ends it; the databases stay where they are and are served again next time."
    ));
}
