//! The agreement between programs in C and the library: versions, sizes of structs, rejected builds
//! and the names of the reference. Also conditions that only the server rejects.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use corvid_tests::binary;
use serde_json::{Value, json};

use super::{
    build_test, compile, generate, has, library, package, run, run_test, run_to_ok,
    run_with_server, server, skip, zoo,
};

#[test]
fn versions_and_sizes_of_structs_are_checked() {
    run_test("abi", true);
    assert!(
        fs::read_to_string(package().join("include/corvid.h"))
            .expect("the header")
            .contains(&format!(
                "#define CORVID_VERSION \"{}\"\n",
                env!("CARGO_PKG_VERSION")
            )),
        "the version in cbindgen.toml is not that of the workspace"
    );
}

/// This does not need a compiler for 32 bits: the test defines what such a compiler would define.
#[test]
fn a_system_of_32_bits_is_refused() {
    if library().is_none() {
        return;
    }
    let output = Command::new("cc")
        .args([
            "-fsyntax-only",
            "-U__SIZEOF_POINTER__",
            "-D__SIZEOF_POINTER__=4",
        ])
        .arg(package().join("include/corvid.h"))
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("libcorvid is for 64-bit systems"), "{said}");
}

/// A build that aborts on panic is rejected when it is compiled, not only when it panics.
#[test]
fn a_build_that_aborts_on_panic_is_refused() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    if Command::new(&rustc).arg("--version").output().is_err() {
        skip("the refusal of builds that abort on panic: there is no rustc");
        return;
    }
    for (panic, is_refused) in [("abort", true), ("unwind", false)] {
        let dir = tempfile::tempdir().expect("a folder");
        let output = Command::new(&rustc)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
            .args(["-C", &format!("panic={panic}")])
            .arg("--out-dir")
            .arg(dir.path())
            .arg(package().join("src/platform.rs"))
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), !is_refused, "{said}");
        assert_eq!(
            said.contains("use the profile `bindings`"),
            is_refused,
            "{said}"
        );
    }
}

/// A server may reject a condition although the client could not know that it is wrong. Here a
/// proxy rejects the first condition in the server's place.
#[test]
fn a_refused_condition_is_told() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build_test(dir.path(), "condition_refusal", None);
    let server = server();
    let socket = dir.path().join("proxy.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let upstream = server.socket().to_owned();
    let proxy = std::thread::spawn(move || refuse_first_condition(&listener, &upstream));
    let remote = format!("unix:{}", socket.display());
    run_to_ok(Command::new(&program).arg(zoo()).arg(remote));
    proxy.join().expect("the proxy ends with its connection");
}

/// Forwards the messages of one connection in both directions, but answers the first
/// `monitor_cond_change` with an error.
fn refuse_first_condition(listener: &UnixListener, upstream: &Path) {
    let (mut client, _) = listener.accept().expect("a connection");
    let mut server = UnixStream::connect(upstream).expect("the server");
    let (mut from_server, mut to_client) = (
        server.try_clone().expect("a descriptor"),
        client.try_clone().expect("a descriptor"),
    );
    let back = std::thread::spawn(move || io::copy(&mut from_server, &mut to_client));
    let mut is_refused = false;
    let requests = client.try_clone().expect("a descriptor");
    for request in serde_json::Deserializer::from_reader(requests).into_iter::<Value>() {
        let Ok(request) = request else { break };
        if request["method"] == json!("monitor_cond_change") && !is_refused {
            is_refused = true;
            let reply = json!({
                "id": request["id"], "result": null, "error": {"error": "resources exhausted"},
            });
            client
                .write_all(reply.to_string().as_bytes())
                .expect("sent");
        } else {
            server
                .write_all(request.to_string().as_bytes())
                .expect("sent");
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
    let _ = back.join();
    assert!(is_refused, "no condition came");
}

/// `names.list` contains the names.
#[test]
fn programs_use_every_name_of_the_reference() {
    let read = |name: &str| fs::read_to_string(package().join("tests").join(name)).expect(name);
    let programs = read("names.c") + &read("values.c");
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: BTreeSet<&str> = programs.split(|letter| !is_part(letter)).collect();
    let list = read("names.list");
    let names = list.lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = names.filter(|name| !words.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Tests every name that the sources of OVN and Open vSwitch use, in C and in C++.
#[test]
fn every_name_of_the_reference_is_there() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let source = [package().join("tests/names.c")];
    let run_names = |program: &Path| {
        let log = dir.path().join("names.log");
        let _ = fs::remove_file(&log);
        run_to_ok(Command::new(program).arg(log));
    };
    let program = dir.path().join("names");
    compile("cc", &source, &["-std=c11", "-D_GNU_SOURCE"], &program);
    run_names(&program);
    if !has("c++") {
        skip("the names of the reference in C++: there is no c++");
        return;
    }
    for standard in ["-std=c++11", "-std=c++20"] {
        compile("c++", &source, &[standard], &program);
        run_names(&program);
    }
}

/// Tests the values of any column as text and in transactions, and the session, by the names of the
/// reference.
#[test]
fn values_of_any_column_are_read_and_written() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    generate(dir.path());
    let include = dir.path().to_str().expect("a path");
    // The generated source is C.
    let object = dir.path().join("zoo-idl.o");
    let generated = dir.path().join("zoo-idl.c");
    let flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-DCORVID_IDL_COMPAT",
        "-I",
        include,
    ];
    run(Command::new("cc")
        .args(flags)
        .args([
            "-g",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-c",
            "-I",
        ])
        .arg(package().join("include"))
        .arg(&generated)
        .arg("-o")
        .arg(&object));
    let sources = [package().join("tests/values.c"), object];
    let program = dir.path().join("values");
    compile("cc", &sources, &flags, &program);
    run_with_server(&program, "zoo");
    if has("c++") {
        // A compiler other than g++ would take the source for C because of its name.
        let source = dir.path().join("values.cpp");
        fs::copy(&sources[0], &source).expect("copied");
        let sources = [source, sources[1].clone()];
        compile("c++", &sources, &["-std=c++11", "-I", include], &program);
        run_with_server(&program, "zoo");
    } else {
        skip("values in C++: there is no c++");
    }
}

/// Annotations with a function, comments and code become members that follow the rows.
#[test]
fn synthetic_columns_follow_the_rows() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let tool = binary::bin("ovsdb-idlc");
    let merged = run(Command::new(&tool)
        .arg("annotate")
        .arg(zoo())
        .arg(package().join("tests/synthetic.ann")));
    let idl = dir.path().join("zoo.json");
    fs::write(&idl, merged.stdout).expect("written");
    run(Command::new(&tool).arg("c").arg(&idl).arg(dir.path()));
    let program = dir.path().join("synthetic");
    let sources = [
        package().join("tests/synthetic.c"),
        dir.path().join("zoo-idl.c"),
    ];
    let include = dir.path().to_str().expect("a path");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-I", include];
    compile("cc", &sources, &flags, &program);
    run_with_server(&program, "zoo");
}
