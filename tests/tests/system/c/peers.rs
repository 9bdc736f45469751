//! Programs of the reference whose sources are unchanged, with our client library: `ovs-vswitchd`
//! and `ovs-vsctl`. The command line names our header, and `ovsdb-idlc` generates the code. Their
//! interop suites test them.
//!
//! They need the reference's sources, built with `make lib/libopenvswitch.la lib/libsflow.la
//! ofproto/libofproto.la`, in the folder that `CORVID_OPENVSWITCH` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_tests::binary;

use super::migration::Foreign;
use super::{library, package, run, skip};
use crate::interop;

/// The files of the switch that read rows, including those of libopenvswitch.
const SWITCH: [&str; 4] = [
    "vswitchd/bridge.c",
    "vswitchd/ovs-vswitchd.c",
    "vswitchd/system-stats.c",
    "lib/dpdk-stub.c",
];

/// Such files of the control utility.
const CONTROL: [&str; 2] = ["utilities/ovs-vsctl.c", "lib/db-ctl-base.c"];

/// Generates the code for the database of the switch, in the subfolder `lib` of a folder.
fn generate(folder: &Path, dir: &Path) {
    let tool = binary::bin("ovsdb-idlc");
    let merged = run(Command::new(&tool)
        .arg("annotate")
        .arg(folder.join("vswitchd/vswitch.ovsschema"))
        .arg(folder.join("lib/vswitch-idl.ann")));
    let idl = dir.join("vswitch.json");
    fs::write(&idl, merged.stdout).expect("written");
    fs::create_dir(dir.join("lib")).expect("a folder");
    for (verb, name) in [
        ("c-idl-header", "lib/vswitch-idl.h"),
        ("c-idl-source", "lib/vswitch-idl.c"),
    ] {
        let made = run(Command::new(&tool).arg(verb).arg(&idl));
        fs::write(dir.join(name), made.stdout).expect("written");
    }
}

/// Compiles a program of the reference and links it with our library.
fn build(foreign: &Foreign, dir: &Path, sources: &[PathBuf], archives: &[PathBuf], program: &Path) {
    let library = library().expect("it was asked for before");
    let headers = package().join("include");
    run(Command::new("cc")
        .args([
            "-g",
            "-O1",
            "-std=gnu11",
            "-fno-strict-aliasing",
            "-Wall",
            "-Werror",
        ])
        .args([
            "-D_GNU_SOURCE",
            "-DHAVE_CONFIG_H",
            "-DCORVID_WITH_OPENVSWITCH",
        ])
        .args(["-include", "config.h", "-include", "corvid-idl-compat.h"])
        // Otherwise, files in `lib` would find the header of the reference's generator in their own
        // folder.
        .args(["-include", "lib/vswitch-idl.h"])
        .arg("-I")
        .arg(headers)
        .arg("-I")
        .arg(dir)
        .arg("-I")
        .arg(dir.join("lib"))
        .args(&foreign.flags)
        .args(sources)
        .args(archives)
        .args(&foreign.files)
        .arg("-o")
        .arg(program)
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lcorvid", "-lpthread"])
        .args(&foreign.libraries));
}

#[test]
fn the_switch_and_its_control_utility_run_on_our_library() {
    if library().is_none() {
        return;
    }
    let reason = "ovs-vswitchd and ovs-vsctl on the library for C: CORVID_OPENVSWITCH is not the folder of the built sources of Open vSwitch";
    let Some((folder, foreign)) = Foreign::reference() else {
        return skip(reason);
    };
    let archives = [
        folder.join("ofproto/.libs/libofproto.a"),
        folder.join("lib/.libs/libsflow.a"),
    ];
    if !archives.iter().all(|archive| archive.is_file()) {
        return skip(reason);
    }
    let dir = tempfile::tempdir().expect("a folder");
    generate(&folder, dir.path());
    let peers = dir.path().join("peers");
    fs::create_dir(&peers).expect("a folder");
    for (name, sources) in [("ovs-vswitchd", &SWITCH[..]), ("ovs-vsctl", &CONTROL)] {
        let mut files: Vec<PathBuf> = sources.iter().map(|source| folder.join(source)).collect();
        files.push(dir.path().join("lib/vswitch-idl.c"));
        build(&foreign, dir.path(), &files, &archives, &peers.join(name));
    }
    let peers = peers.to_str().expect("a path");
    for suite in ["ovs-vsctl", "ovs-vswitchd"] {
        interop::run_with(suite, &[], &[("INTEROP_PEERS", peers)]);
    }
}
