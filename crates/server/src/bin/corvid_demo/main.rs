//! `corvid-demo [DIRECTORY]`: creates the example databases in DIRECTORY, prints how to connect to
//! them, and becomes their server (`make run`). `corvid-demo --cluster [DIRECTORY]` demonstrates a
//! cluster instead ([`cluster`]; `make cluster`).
//!
//! The demo runs the other programs from its own directory, as a script would, and links none of
//! them, so it adds little to a build. `Inventory` is a small network inventory, `OVN_Northbound` a
//! small logical network that [changes](life) now and then. Empty databases of Open vSwitch and OVN
//! are created if their packages have installed the schemas, so that their command-line tools can
//! be tried.

mod child;
mod cluster;
mod databases;
mod life;
mod options;
mod programs;
mod running;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use corvid_shell::{args, output, program};

use databases::{are_installed, file};
use options::Options;
use programs::{about, sibling};

/// The default port of OVSDB clients.
const PORT: u16 = 6640;

/// The port of the console.
const CONSOLE_PORT: u16 = 8640;

fn main() {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let line = args::from_env();
    if let Err(error) = child::become_program(&line) {
        program::fatal(error);
    }
    if let [_, word, remote] = line.as_slice()
        && word == life::WORD
    {
        match life::run(remote) {
            Ok(never) => match never {},
            Err(error) => program::fatal(error),
        }
    }
    let options = Options::parse(&line);
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
    let names = databases::make_missing(directory)?;
    let socket = directory.join("db.sock").display().to_string();
    let control = directory.join("ovsdb-server.ctl").display().to_string();
    let has_port = is_free(PORT);
    let console = console(&names, &socket, &control);
    live(&socket)?;
    introduce(&names, &socket, has_port, console.as_deref());
    let mut command = Command::new(sibling("ovsdb-server"));
    if has_port {
        command.arg(format!("--remote=ptcp:{PORT}:127.0.0.1"));
    }
    let error = command
        .arg(format!("--remote=punix:{socket}"))
        .arg(format!("--unixctl={control}"))
        .arg("-vconsole:warn")
        .args(names.iter().map(|name| file(directory, name)))
        .exec();
    Err(about(&sibling("ovsdb-server"), &error))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Starts the console, and returns its address. `None`: it did not start, which its message says.
fn console(names: &[&str], socket: &str, control: &str) -> Option<String> {
    let port = if is_free(CONSOLE_PORT) {
        CONSOLE_PORT
    } else {
        0
    };
    let mut arguments = vec![format!("--listen=127.0.0.1:{port}")];
    for name in names {
        arguments.push(format!("{name}=unix:{socket}"));
        arguments.push(format!("{name}.database={name}"));
        arguments.push(format!("{name}.status=unix:{control}"));
    }
    let mut child = child::start("corvid-console", &arguments, Stdio::piped()).ok()?;
    let mut address = String::new();
    BufReader::new(child.stdout.take()?)
        .read_line(&mut address)
        .ok()?;
    let address = address.trim();
    (!address.is_empty()).then(|| address.to_owned())
}

/// Starts the changes of the network.
fn live(socket: &str) -> Result<(), String> {
    let arguments = [life::WORD.to_owned(), format!("unix:{socket}")];
    child::start("corvid-demo", &arguments, Stdio::null()).map(|_| ())
}

/// Commands of `corvid` that the demo suggests, in this order: each shows what the ones before did.
const INVENTORY: [(&str, &str); 5] = [
    ("--columns=name,role,labels list Device", "the rows"),
    ("set Device web-1 labels:rack=b11", "a change"),
    ("diff HEAD~1 HEAD", "what it changed"),
    ("revert HEAD", "undone"),
    ("", "a shell: Tab completes, help helps"),
];

fn introduce(names: &[&str], socket: &str, has_port: bool, console: Option<&str>) {
    if let Some(address) = console {
        output::report(format_args!("Look at it in a browser: {address}\n"));
    }
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
    if are_installed("OVN_Northbound") {
        output::report(format_args!(
            "  ovn-nbctl --db=unix:{socket} --may-exist ls-add sw0 -- --may-exist lsp-add sw0 port0 -- show"
        ));
    }
    output::report(format_args!(
        "\nCtrl-C ends it; the databases stay where they are and are served again next time."
    ));
}
