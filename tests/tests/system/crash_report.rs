//! The log of a server that dies of a fault contains addresses, functions and lines, as far as the
//! program has them, and nothing prevents its successor from serving.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::daemon::Daemon;
use tempfile::TempDir;

/// The time limit for a condition to become true on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The line before the functions.
const FUNCTIONS: &str = "functions at these addresses:";

fn wait_for(what: &str, daemon: &Daemon, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_there() {
        assert!(Instant::now() < deadline, "{what}\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a server and kills it with a fault signal. Waits until no process writes to the log any
/// more, and returns the text that follows the addresses.
fn report_of(program: &Path) -> String {
    let home = TempDir::new().expect("a directory");
    let daemon = Daemon::start(program, home.path(), &["--no-dbs"]).expect("a server");
    let pid = daemon.pid().expect("a number");
    // When a server answers, it has started its threads, and its main thread waits when the signal
    // arrives.
    daemon.control("version", &[]).expect("a reply");
    Daemon::signal(pid, "SEGV").expect("a server");
    // A forked copy of the process may appear while processes are being listed. In this case it is
    // in the next list.
    let log_file = home.path().join("server.log");
    let is_free = || writers_of(&log_file).is_empty() && writers_of(&log_file).is_empty();
    wait_for("the end", &daemon, is_free);
    let log = daemon.log();
    let (_, report) = log
        .split_once("\nSIGSEGV detected, backtrace:\n")
        .unwrap_or_else(|| panic!("no addresses: {log}"));
    let addresses = report.lines().filter(|line| line.contains("(+0x"));
    assert!(addresses.count() > 1, "{log}");
    report.to_owned()
}

/// Returns the processes that have a file open.
fn writers_of(file: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("processes");
    let has_open = |process: &PathBuf| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten();
        let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets.any(|target| target == *file)
    };
    processes
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(has_open)
        .collect()
}

#[test]
fn a_crash_logs_functions_and_lines() {
    let report = report_of(&binary::bin("ovsdb-server"));
    let (_, functions) = report
        .split_once(&format!("{FUNCTIONS}\n"))
        .unwrap_or_else(|| panic!("no functions: {report}"));
    // The main thread was waiting in its loop when the signal came.
    for (function, file) in [
        ("turn", "unixctl/server.rs:"),
        ("run", "server/src/main_loop.rs:"),
    ] {
        let is_told = |line: &str| line.contains(function) && line.contains(file);
        assert!(functions.lines().any(is_told), "{function}: {functions}");
    }
}

/// Packages do not contain line tables, so that they are smaller. A fully stripped program only has
/// addresses.
#[test]
fn a_stripped_program_logs_the_names_it_has() {
    let program = binary::bin("ovsdb-server");
    let home = TempDir::new().expect("a directory");
    let stripped = home.path().join("ovsdb-server");
    let strip = |option: &str| {
        let mut command = Command::new("strip");
        command.arg(option).arg("-o").arg(&stripped).arg(&program);
        command.status().is_ok_and(|status| status.success())
    };
    if !strip("--strip-debug") {
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: strip is not installed");
        return;
    }
    let report = report_of(&stripped);
    // At least the handler is a separate function, however much is inlined.
    let handler = "   0: corvid_shell::crash::last_line\n";
    assert!(report.contains(handler), "{report}");
    assert!(!report.contains("main_loop.rs:"), "{report}");
    assert!(strip("--strip-all"));
    let report = report_of(&stripped);
    let own: Vec<&str> = report
        .lines()
        .skip_while(|line| *line != FUNCTIONS)
        .filter(|line| line.contains("corvid") || line.ends_with(": main"))
        .collect();
    assert_eq!(own, [""; 0], "{report}");
}

/// While functions are being looked for, the next server can already use the same addresses and
/// files.
#[test]
fn the_successor_finds_addresses_and_files_free() {
    let home = TempDir::new().expect("a directory");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let remote = format!("--remote=ptcp:{}:127.0.0.1", address.port());
    let program = binary::bin("ovsdb-server");
    let arguments = ["--monitor", "--no-dbs", &remote];
    let daemon = Daemon::start(&program, home.path(), &arguments).expect("a server");
    let pid = daemon.pid().expect("a number");
    wait_for("a listener", &daemon, || {
        TcpStream::connect(address).is_ok()
    });
    Daemon::signal(pid, "SEGV").expect("a server");
    wait_for("a successor", &daemon, || {
        daemon.pid().is_some_and(|now| now != pid)
    });
    wait_for("a listener", &daemon, || {
        TcpStream::connect(address).is_ok()
    });
    wait_for("functions", &daemon, || daemon.log().contains(FUNCTIONS));
    let log = daemon.log();
    assert!(!log.contains("Address already in use"), "{log}");
}
