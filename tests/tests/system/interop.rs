//! Runs the interop suites of `tests/interop` against our binaries, with one test for each peer.
//!
//! A suite is a separate program (see `tests/interop/README.md`). This file only tells it which
//! binaries to use, and shows its output if it fails. With `CORVID_REFERENCE=1`, the suites are
//! tested themselves with the reference's programs. If the peer of a suite is not installed, this
//! is reported on standard error in a way that the test runner does not capture, and the test
//! passes.

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use corvid_tests::{binary, limited};

/// The environment variable that names each program under test.
const PROGRAMS: [(&str, &str); 6] = [
    ("OVSDB_SERVER_UNDER_TEST", "ovsdb-server"),
    ("OVSDB_CLIENT_UNDER_TEST", "ovsdb-client"),
    ("OVSDB_TOOL_UNDER_TEST", "ovsdb-tool"),
    ("OVS_APPCTL_UNDER_TEST", "ovs-appctl"),
    ("OVSDB_IDLC_UNDER_TEST", "ovsdb-idlc"),
    ("CORVID_UNDER_TEST", "corvid"),
];

/// The exit status of a suite whose peer is missing.
const SKIPPED: i32 = 77;

/// Runs `tests/interop/PEER/run ARGUMENTS`.
fn run(peer: &str, arguments: &[&str]) {
    run_with(peer, arguments, &[]);
}

/// Runs a suite with our Python package `ovs` instead of the original.
fn run_on_our_ovs(peer: &str) {
    let site = crate::python::site();
    let folder = site.path().to_str().expect("a folder of text");
    let variables = [("OVS_UNDER_TEST", folder), ("PYTHONDONTWRITEBYTECODE", "1")];
    run_with(peer, &[], &variables);
}

/// Runs a suite with additional environment variables.
pub(crate) fn run_with(peer: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("interop")
        .join(peer)
        .join("run");
    let mut command = Command::new("python3");
    command.args(["-X", "faulthandler"]);
    command.arg(&driver).args(arguments);
    command.envs(variables.iter().copied());
    for (variable, program) in PROGRAMS {
        if env::var_os("CORVID_REFERENCE").is_some() {
            command.env_remove(variable);
            continue;
        }
        let path = binary::bin(program);
        assert!(
            path.is_file(),
            "{} is not there: build the programs first (make test does)",
            path.display()
        );
        command.env(variable, path);
    }
    let output = limited::output(&mut command)
        .unwrap_or_else(|error| panic!("python3 {}: {error}", driver.display()));
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => println!("{text}{errors}"),
        Some(SKIPPED) => {
            let said = text.lines().filter(|line| !line.starts_with("ok "));
            let said = said.collect::<Vec<_>>().join("\n");
            // The runner only captures the output of the macros. This line must be seen.
            let _ = writeln!(std::io::stderr(), "\n{said}");
        }
        _ => {
            // The failures come last, because the reader of a shortened log sees its end.
            let failed = text.lines().filter(|line| line.starts_with("FAILED"));
            let failed = failed.collect::<Vec<_>>().join("\n");
            panic!("{peer} failed ({}):\n{text}{errors}{failed}", output.status)
        }
    }
}

macro_rules! peers {
    ($($test:ident $peer:literal $arguments:expr;)*) => {
        const PEERS: &[&str] = &[$($peer),*];
        $(
            #[test]
            fn $test() {
                run($peer, $arguments);
            }
        )*
    };
}

peers! {
    ovs_vsctl "ovs-vsctl" &[];
    ovn_nbctl_and_ovn_sbctl "ovn-ctl" &[];
    ovn_northd "ovn-northd" &[];
    ovn_ctl_with_three_nodes "ovn-cluster" &[];
    ovn_ctl_with_relays "ovn-relay" &[];
    ovsdb_client_of_the_packages "ovsdb-client" &[];
    our_ovsdb_client "tools" &["client"];
    our_corvid "database-commands" &[];
    our_ovsdb_tool "tools" &["tool"];
    our_ovs_appctl "tools" &["appctl"];
    files "files" &[];
    start_lines_of_ovs_ctl "stock-scripts" &["ovs", "foreground", "status", "supervisor"];
    start_lines_of_ovn_ctl "stock-scripts" &["ovn"];
    ovs_ctl_and_ovn_ctl "stock-scripts" &["scripts", "upgrade", "unit"];
    ovs_ctl_with_certificates "stock-scripts" &["ovs-tls"];
    ovn_ctl_with_northd "stock-scripts" &["northd"];
    ovn_ctl_with_certificates "stock-scripts" &["ovn-tls"];
    ovs_vswitchd "ovs-vswitchd" &[];
    python3_openvswitch "python3-openvswitch" &[];
    python_packages "python-packages" &[];
    python_types_by_mypy "python-types" &["mypy"];
    python_types_by_pyright "python-types" &["pyright"];
    go_libovsdb "go-libovsdb" &[];
    tls "tls" &[];
    starts_and_processes "command-lines" &["starts", "daemons", "row-remotes"];
    control_commands_and_logs "command-lines" &["channel", "log-forms", "messages", "syslog"];
    options_of_clients_and_tools "command-lines" &["client", "tools"];
}

/// Suites that need our Python packages, or that compare our `ovs` with the original.
const ON_OUR_OVS: [&str; 3] = ["green-threads", "ovs-python", "ovsdbapp"];

#[test]
fn ovs_for_python_is_as_the_original() {
    run_on_our_ovs("ovs-python");
}

#[test]
fn ovsdbapp_on_the_original_ovs_and_on_ours() {
    run_on_our_ovs("ovsdbapp");
}

#[test]
fn green_threads_of_eventlet_and_gevent() {
    run_on_our_ovs("green-threads");
}

#[test]
fn programs_for_python3_openvswitch_on_our_ovs() {
    run_on_our_ovs("python3-openvswitch");
}

#[test]
fn every_suite_is_run() {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
    for entry in std::fs::read_dir(&folders).expect("the interop folder is readable") {
        let path = entry.expect("the interop folder is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.join("run").is_file() {
            assert!(
                PEERS.contains(&&*name) || ON_OUR_OVS.contains(&&*name),
                "{name} has a suite but no test here"
            );
        }
    }
}
