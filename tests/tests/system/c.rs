//! `libcorvid`, the library for C: its header and its tests in C (`crates/capi/tests`). The tests
//! are compiled here with the library that was built together with this program, and run against
//! our server.
//!
//! On a machine without a C compiler, the tests are skipped and say so. If valgrind is installed,
//! the same programs are also run under it.

mod abi;
mod history;
mod migration;
mod peers;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use corvid_tests::server::{Implementation, Server, Setup};
use corvid_tests::{binary, limited, losing_proxy};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster_network::{make_identity, tls_options};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/capi")
}

/// Reports a skipped part in a way that the test runner does not capture.
fn skip(reason: &str) {
    let _ = writeln!(io::stderr(), "\nSKIPPED: {reason}");
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    command.stderr(Stdio::null()).status().is_ok()
}

fn run(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let output = limited::output(command);
    let output = output.unwrap_or_else(|error| panic!("{shown}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{shown}: {}\n{said}{text}",
        output.status
    );
    output
}

/// Returns a folder with the shared library, which is linked once for all tests of this program;
/// `None` if there is no compiler.
fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<TempDir>> = OnceLock::new();
    let made = LIBRARY.get_or_init(|| {
        if !has("cc") {
            skip("tests of the library for C: there is no cc");
            return None;
        }
        let archive = binary::beside_tests("libcorvid_c.a");
        assert!(
            archive.is_file(),
            "{} is not there: cargo build -p corvid-capi makes it (make test does)",
            archive.display()
        );
        let dir = tempfile::tempdir().expect("a folder");
        // Line tables are removed, because they would be most of the library.
        run(Command::new(package().join("link.sh"))
            .arg(&archive)
            .arg(dir.path())
            .env("CORVID_LINK_FLAGS", "-Wl,--strip-debug"));
        Some(dir)
    });
    made.as_ref().map(TempDir::path)
}

/// Compiles sources against the shared library. The compiler determines whether they are C or C++.
fn compile(compiler: &str, sources: &[PathBuf], flags: &[&str], program: &Path) {
    let library = library().expect("it was asked for before");
    run(Command::new(compiler)
        .args(["-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(package().join("include"))
        .arg("-I")
        .arg(package().join("tests"))
        .args(sources)
        .arg("-o")
        .arg(program)
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-lcorvid")
        .arg("-lpthread"));
}

/// Returns the path of a schema of the tests, `zoo` or `guild`.
fn schema(name: &str) -> PathBuf {
    package()
        .join("tests")
        .join(name)
        .with_extension("ovsschema")
}

fn zoo() -> PathBuf {
    schema("zoo")
}

/// Starts a server with an empty zoo.
fn server() -> Server {
    server_with("zoo", Vec::new())
}

/// Starts a server with an empty database.
fn server_with(name: &str, options: Vec<String>) -> Server {
    server_of(Implementation::Corvid, name, options)
}

fn server_of(implementation: Implementation, name: &str, options: Vec<String>) -> Server {
    let schema = fs::read_to_string(schema(name)).expect("the schema");
    let setup = Setup {
        databases: vec![serde_json::from_str(&schema).expect("JSON")],
        options,
        ..Setup::default()
    };
    Server::start(implementation, &setup).expect("a server")
}

/// Runs a program of the tests with the schema and a new server: first directly, and then under
/// valgrind.
fn run_with_server(program: &Path, name: &str) {
    let run_on_server = |command: &mut Command| {
        let server = server_with(name, Vec::new());
        let remote = format!("unix:{}", server.socket().display());
        run_to_ok(command.arg(schema(name)).arg(remote));
    };
    run_on_server(&mut Command::new(program));
    if has("valgrind") {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        command.args([
            "--errors-for-leak-kinds=definite,indirect",
            "--fair-sched=try",
        ]);
        run_on_server(command.arg(program));
    } else {
        skip("tests of the library for C under valgrind: it is not installed");
    }
}

/// Runs a program of the tests, which must print `ok` at its end.
fn run_to_ok(command: &mut Command) {
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.ends_with("ok\n"), "{said}");
}

/// Generates typed code for the zoo in a folder.
fn generate(dir: &Path) {
    generate_for("zoo", dir);
}

fn generate_for(name: &str, dir: &Path) {
    run(Command::new(binary::bin("ovsdb-idlc"))
        .arg("c")
        .arg(schema(name))
        .arg(dir));
}

fn run_test(name: &str, is_typed: bool) {
    if library().is_some() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = build_test(dir.path(), name, is_typed.then_some("zoo"));
        run_with_server(&program, "zoo");
    }
}

/// Runs a program that uses typed code for the guild.
fn run_guild_test(name: &str) {
    if library().is_some() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = build_test(dir.path(), name, Some("guild"));
        run_with_server(&program, "guild");
    }
}

/// Compiles a program of the tests in a folder, with typed code for a schema if it needs some.
fn build_test(dir: &Path, name: &str, typed: Option<&str>) -> PathBuf {
    let program = dir.join(name);
    let mut sources = vec![package().join("tests").join(name).with_extension("c")];
    if let Some(schema) = typed {
        generate_for(schema, dir);
        sources.push(dir.join(format!("{schema}-idl.c")));
    }
    let include = dir.to_str().expect("a path");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-I", include];
    compile("cc", &sources, &flags, &program);
    program
}

/// Starts a server that also listens with TLS. Returns it with its remote and the folder of the
/// certificates: `source` is that of the server, `relay` is that of its clients. `None` if there is
/// no program that makes certificates.
fn server_with_tls(name: &str) -> Option<(Server, String, TempDir)> {
    let dir = tempfile::tempdir().expect("a folder");
    if !make_identity(dir.path(), "source") || !make_identity(dir.path(), "relay") {
        skip("the library for C over TLS: openssl, which makes certificates, is not installed");
        return None;
    }
    let mut options = vec!["--remote=pssl:0:127.0.0.1".to_owned()];
    for option in tls_options(dir.path(), "source", "relay") {
        options.push(option.into_string().expect("text"));
    }
    let server = server_with(name, options);
    let remote = format!("ssl:127.0.0.1:{}", server.port().expect("a port"));
    Some((server, remote, dir))
}

/// This test does not run under valgrind, which considers everything as uninitialised that the
/// assembler code of the cryptography writes.
#[test]
fn clients_reach_a_server_by_tls() {
    if library().is_none() {
        return;
    }
    let Some((_server, remote, files)) = server_with_tls("zoo") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(build_test(dir.path(), "tls", Some("zoo")));
    run_to_ok(command.arg(zoo()).arg(remote).arg(files.path()));
}

#[test]
fn typed_rows_follow_the_database() {
    run_test("typed", true);
}

#[test]
fn a_change_that_cannot_be_made_fails_its_transaction() {
    run_guild_test("refused");
}

#[test]
fn rows_and_strings_stay_as_long_as_they_may_be_read() {
    run_guild_test("last_values");
}

/// Tests the functions that read maps, in the header for programs of the reference's library.
#[test]
fn maps_are_read_as_by_the_reference() {
    if library().is_some() {
        let dir = tempfile::tempdir().expect("a folder");
        run_to_ok(&mut Command::new(build_test(dir.path(), "compat", None)));
    }
}

/// This also runs over TLS, where the end of a session is sent to a peer that may no longer exist.
#[test]
fn a_server_that_is_gone_ends_no_program() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build_test(dir.path(), "lost_server", Some("guild"));
    let lose = |server: &Server, remote: &str, files: Option<&Path>| {
        let mut command = Command::new(&program);
        command.arg(schema("guild")).arg(remote);
        command.arg(server.pid().to_string());
        run_to_ok(command.args(files));
    };
    let server = server_with("guild", Vec::new());
    lose(
        &server,
        &format!("unix:{}", server.socket().display()),
        None,
    );
    if let Some((server, remote, files)) = server_with_tls("guild") {
        lose(&server, &remote, Some(files.path()));
    }
}

/// Replies are lost. Without ids the library would report "try again", and the programs would make
/// a second row each time.
#[test]
fn a_transaction_whose_reply_is_lost_is_executed_once() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build_test(dir.path(), "once", Some("guild"));
    let server = server_with("guild", Vec::new());
    let socket = dir.path().join("proxy");
    losing_proxy::start(&socket, &server.socket(), 3);
    let mut command = Command::new(&program);
    run_to_ok(command.arg(format!("unix:{}", socket.display())));
    let select =
        json!(["Guild", {"op": "select", "table": "Member", "where": [], "columns": ["name"]}]);
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &select).expect("a reply");
    let rows = reply["result"][0]["rows"].as_array().expect("rows");
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    let expected: Vec<String> = (0..8).map(|number| format!("member {number}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn blocking_calls_return_and_say_why() {
    run_guild_test("waits");
}

/// This also runs over TLS, where dropping a client sends a message that ends the session. It does
/// not run under valgrind, which would report in each child the memory that belongs to its parent.
#[test]
fn a_forked_child_leaves_its_parents_clients_alone() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = build_test(dir.path(), "forks", Some("guild"));
    let fork = |remote: &str, files: Option<&Path>| {
        let mut command = Command::new(&program);
        run_to_ok(command.arg(schema("guild")).arg(remote).args(files));
    };
    let server = server_with("guild", Vec::new());
    fork(&format!("unix:{}", server.socket().display()), None);
    if let Some((_server, remote, files)) = server_with_tls("guild") {
        fork(&remote, Some(files.path()));
    }
}

#[test]
fn the_library_stays_when_a_program_closes_it() {
    if let Some(library) = library() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("closed");
        run(Command::new("cc")
            .arg(package().join("tests/closed.c"))
            .arg("-o")
            .arg(&program)
            .arg("-ldl"));
        run_to_ok(Command::new(&program).arg(library.join("libcorvid.so.0")));
    }
}

#[test]
fn a_program_in_c_does_everything_once() {
    run_test("core", false);
}

#[test]
fn wrong_arguments_are_errors() {
    run_test("hostile", false);
}

/// `make check-c-threads` names an archive that was built for ThreadSanitizer. In this case, the
/// program is also built for it.
#[test]
fn threads_share_a_client() {
    let Some(archive) = std::env::var_os("CORVID_C_THREADS") else {
        return run_test("threads", false);
    };
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("threads");
    run(Command::new("cc")
        .args([
            "-g",
            "-O1",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-fno-builtin",
            "-fsanitize=thread",
            "-I",
        ])
        .arg(package().join("include"))
        .arg(package().join("tests/threads.c"))
        .arg(package().join("tests/tsan.c"))
        .arg(archive)
        .args([
            "-lgcc_s",
            "-lutil",
            "-lrt",
            "-lpthread",
            "-lm",
            "-ldl",
            "-o",
        ])
        .arg(&program));
    let server = server();
    let remote = format!("unix:{}", server.socket().display());
    run(Command::new(&program).arg(zoo()).arg(remote));
}

/// Executes a transaction of the test.
fn transact(server: &Server, operations: &[Value]) -> Value {
    let mut params = vec![json!("Zoo")];
    params.extend_from_slice(operations);
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &Value::Array(params));
    reply.expect("a reply")["result"].clone()
}

/// Waits until the rows of a table are as expected.
fn wait_for(server: &Server, table: &str, columns: &[&str], is_there: impl Fn(&[Value]) -> bool) {
    let begun = Instant::now();
    loop {
        let select = json!({"op": "select", "table": table, "where": [], "columns": columns});
        let result = transact(server, &[select]);
        let rows = result[0]["rows"].as_array().expect("rows");
        if is_there(rows) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{result}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The daemon of `examples/warden.c` does its work when it is compiled with the header for programs
/// of the reference's library.
#[test]
fn a_daemon_of_the_reference_is_ported_by_its_includes() {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let idl = dir.path().join("zoorec.json");
    let tool = binary::bin("ovsdb-idlc");
    let merged = run(Command::new(&tool)
        .arg("annotate")
        .arg(zoo())
        .arg(package().join("tests/zoo.ann")));
    fs::write(&idl, merged.stdout).expect("written");
    for (verb, name) in [
        ("c-idl-header", "zoorec-idl.h"),
        ("c-idl-source", "zoorec-idl.c"),
    ] {
        let made = run(Command::new(&tool).arg(verb).arg(&idl));
        fs::write(dir.path().join(name), made.stdout).expect("written");
    }
    let program = dir.path().join("warden");
    let sources = [
        package().join("examples/warden.c"),
        dir.path().join("zoorec-idl.c"),
    ];
    let include = dir.path().to_str().expect("a path");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-DUSE_CORVID", "-I", include];
    compile("cc", &sources, &flags, &program);
    let watch_at_socket = |command: &mut Command| {
        let server = server();
        let remote = format!("unix:{}", server.socket().display());
        watch_over_the_zoo(command.arg(remote), &server);
    };
    watch_at_socket(&mut Command::new(&program));
    if has("valgrind") {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        command.args(["--errors-for-leak-kinds=definite,indirect"]);
        watch_at_socket(command.arg(&program));
    }
    if let Some((server, remote, files)) = server_with_tls("zoo") {
        let mut command = Command::new(&program);
        command.args(tls_options(files.path(), "relay", "source"));
        watch_over_the_zoo(command.arg(remote), &server);
    }
}

fn watch_over_the_zoo(command: &mut Command, server: &Server) {
    let mut warden = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let keeper = |name: &str, age: u32, ids: Value| json!({"op": "insert", "table": "Keeper", "row": {"name": name, "age": age, "external_ids": ["map", ids]}});
    transact(
        server,
        &[
            keeper("ann", 40, json!([["wants", "owl"]])),
            keeper("bob", 40, json!([["wants", "newt"]])),
            keeper("cid", 30, json!([["wants", "dragon"]])),
        ],
    );
    let columns = ["name", "external_ids"];
    let has = |rows: &[Value], name: &str, pairs: &[[&str; 2]]| {
        let row = rows.iter().find(|row| row["name"] == json!(name));
        let ids = row.and_then(|row| row["external_ids"][1].as_array());
        ids.is_some_and(|ids| pairs.iter().all(|pair| ids.contains(&json!(pair))))
    };
    wait_for(server, "Keeper", &columns, |rows| {
        has(rows, "ann", &[["animals", "1"], ["team", "bob"]])
            && has(rows, "bob", &[["animals", "1"], ["team", "ann"]])
            && has(rows, "cid", &[["animals", "0"]])
    });
    wait_for(server, "Settings", &["cfg"], |rows| {
        rows == [json!({"cfg": 3})]
    });
    wait_for(server, "Animal", &["species"], |rows| rows.len() == 2);
    // A keeper that no longer wants an animal loses it, and the animal's row is deleted with its
    // last reference.
    let at_ann = json!([["name", "==", "ann"]]);
    let update = json!({"op": "update", "table": "Keeper", "where": at_ann, "row": {"external_ids": ["map", []]}});
    transact(server, &[update]);
    wait_for(server, "Keeper", &columns, |rows| {
        has(rows, "ann", &[["animals", "0"]])
    });
    wait_for(server, "Animal", &["species"], |rows| {
        rows == [json!({"species": "newt"})]
    });
    transact(server, &[keeper("stop", 1, json!([]))]);
    let begun = Instant::now();
    while warden.try_wait().expect("a status").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = warden.kill();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = warden.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in [
        "this warden is in charge",
        "keeper ann gets a owl",
        "owl ann of table Animal is gone",
        "wants a dragon",
        "the warden leaves",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

/// Tests `make c` and `make deb`: pkg-config finds the installed library, and a program can be
/// linked with it in both ways.
#[test]
fn the_library_is_installed() {
    let Some(_) = library() else { return };
    let xtask = binary::bin("corvid-xtask");
    let archive = binary::beside_tests("libcorvid_c.a");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = tempfile::tempdir().expect("a folder");
    let prefix = dir.path().join("prefix");
    run(Command::new(&xtask)
        .args(["c", "--library"])
        .arg(&archive)
        .arg("--source")
        .arg(&root)
        .arg(&prefix));
    let page = fs::read_to_string(prefix.join("share/man/man3/libcorvid.3")).expect("the page");
    assert!(
        page.replace("\\-", "-").contains("corvid_client_run"),
        "{page}"
    );
    if has("pkg-config") {
        let program = dir.path().join("header");
        let flags = run(Command::new("pkg-config")
            .args(["--cflags", "--libs", "libcorvid"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        run(Command::new("cc")
            .arg(package().join("tests/threads.c"))
            .args(["-D_GNU_SOURCE", "-o"])
            .arg(&program)
            .args(flags.split_whitespace()));
        let linked = run(Command::new("ldd")
            .arg(&program)
            .env("LD_LIBRARY_PATH", prefix.join("lib")));
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        assert!(linked.contains("libcorvid.so.0 => "), "{linked}");
    } else {
        skip("the pkg-config file of the library for C: there is no pkg-config");
    }
}

/// The packages for C contain their files, and a program that needs the shared library gets a
/// dependency on its package.
#[test]
fn the_packages_have_the_library() {
    let Some(_) = library() else { return };
    if !has("dpkg-deb") {
        skip("the packages of the library for C: there is no dpkg-deb");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let server = binary::bin("ovsdb-server");
    run(Command::new(binary::bin("corvid-xtask"))
        .args(["deb", "--fast", "--bin-dir"])
        .arg(server.parent().expect("a folder"))
        .arg("--library")
        .arg(binary::beside_tests("libcorvid_c.a"))
        .arg("--source")
        .arg(root)
        .arg(dir.path()));
    let mut packages = 0;
    for entry in fs::read_dir(dir.path()).expect("packages") {
        let path = entry.expect("a package").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let expected: &[&str] = match name.split('_').next() {
            Some("libcorvid0") => &["/libcorvid.so.0\n"],
            Some("libcorvid-dev") => &[
                "/libcorvid.a\n",
                "/libcorvid.so -> libcorvid.so.0\n",
                "/usr/include/corvid.h\n",
                "/usr/include/corvid-idl-compat.h\n",
                "/usr/include/corvid-compat-smap.h\n",
                "/pkgconfig/libcorvid.pc\n",
                "man3/libcorvid.3.gz\n",
            ],
            _ => continue,
        };
        packages += 1;
        let contents = run(Command::new("dpkg-deb").arg("-c").arg(&path));
        let contents = String::from_utf8_lossy(&contents.stdout).into_owned();
        for part in expected {
            assert!(contents.contains(part), "{name}: {part}\n{contents}");
        }
        let control = run(Command::new("dpkg-deb").arg("-I").arg(&path));
        let control = String::from_utf8_lossy(&control.stdout).into_owned();
        assert!(control.contains("Depends: lib"), "{control}");
    }
    assert_eq!(packages, 2);
}

/// The header in the repository is the one that the sources give. `CORVID_ACCEPT=1` writes it.
#[test]
fn the_header_is_made_of_the_sources() {
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).expect("settings");
    // The modules of the crate are read together with its root.
    let crate_root = package().join("src/lib.rs");
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_root);
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = package().join("include/corvid.h");
    if std::env::var_os("CORVID_ACCEPT").is_some() {
        fs::write(&path, &made).expect("the header");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == kept,
        "include/corvid.h differs from the sources: run this test with CORVID_ACCEPT=1"
    );
}

#[test]
fn the_header_compiles_as_cpp() {
    if library().is_none() {
        return;
    }
    if !has("c++") {
        skip("the header in C++: there is no c++");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("header");
    generate(dir.path());
    // The generated source is C.
    let object = dir.path().join("zoo-idl.o");
    run(Command::new("cc")
        .args(["-std=c11", "-c", "-I"])
        .arg(package().join("include"))
        .arg(dir.path().join("zoo-idl.c"))
        .arg("-o")
        .arg(&object));
    let include = dir.path().to_str().expect("a path");
    let sources = [package().join("tests/header.cpp"), object];
    for standard in ["-std=c++11", "-std=c++20"] {
        compile("c++", &sources, &[standard, "-I", include], &program);
        run(&mut Command::new(&program));
    }
}

/// The shared library exports exactly the functions of the header, under the version, and has the
/// right name.
#[test]
fn symbols_are_those_of_the_header() {
    let Some(library) = library() else { return };
    if !has("readelf") {
        skip("symbols of the library for C: there is no readelf");
        return;
    }
    let library = library.join("libcorvid.so.0");
    let dynamic = run(Command::new("readelf").args(["-d", "-W"]).arg(&library));
    let dynamic = String::from_utf8_lossy(&dynamic.stdout).into_owned();
    assert!(dynamic.contains("soname: [libcorvid.so.0]"), "{dynamic}");
    let symbols = run(Command::new("readelf")
        .args(["--dyn-syms", "-W"])
        .arg(&library));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let shown = symbols.lines().filter(|line| !line.contains(" UND "));
    let shown: BTreeSet<&str> = shown
        .filter_map(|line| line.split_whitespace().nth(7)?.strip_suffix("@@CORVID_0"))
        .filter(|name| !name.is_empty())
        .collect();
    let others = symbols.lines().filter(|line| {
        line.contains(" GLOBAL ") && !line.contains(" UND ") && !line.contains("CORVID_0")
    });
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&str>::new());
    let header = fs::read_to_string(package().join("include/corvid.h")).expect("the header");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '*', '/', '#']) && !line.starts_with("typedef"))
        .filter_map(|line| {
            let name = line.split('(').next()?;
            let name = name.rsplit([' ', '*']).next()?;
            (line.contains('(') && name.starts_with("corvid_")).then_some(name)
        })
        .collect();
    assert!(declared.len() > 50, "{declared:?}");
    assert_eq!(shown, declared);
}

/// The code for the schemas of the system's packages compiles without warnings, and the library
/// finds its structs as the code describes them.
#[test]
fn schemas_of_the_system_become_code() {
    let Some(_) = library() else { return };
    for (schema, name) in [
        ("/usr/share/openvswitch/vswitch.ovsschema", "open_vswitch"),
        ("/usr/share/ovn/ovn-nb.ovsschema", "ovn_northbound"),
        ("/usr/share/ovn/ovn-sb.ovsschema", "ovn_southbound"),
    ] {
        if !Path::new(schema).is_file() {
            skip(&format!("code in C for {schema}: it is not installed"));
            continue;
        }
        let dir = tempfile::tempdir().expect("a folder");
        run(Command::new(binary::bin("ovsdb-idlc"))
            .args(["c", schema])
            .arg(dir.path()));
        let text = format!(
            "#include \"{name}-idl.h\"\nint main(void) {{ return corvid_idl_create_unconnected(&{name}_idl_class, true) == NULL; }}\n"
        );
        let source = dir.path().join("main.c");
        fs::write(&source, text).expect("written");
        let program = dir.path().join("main");
        let sources = [source, dir.path().join(format!("{name}-idl.c"))];
        let include = dir.path().to_str().expect("a path");
        compile("cc", &sources, &["-std=c11", "-I", include], &program);
        run(&mut Command::new(&program));
    }
}

/// The code blocks in C in each part of the tutorial are a program that runs as it is printed.
#[test]
fn the_tutorial_works_as_it_is_printed() {
    if library().is_none() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients/c.md");
    let tutorial = fs::read_to_string(path).expect("the tutorial");
    let (any, typed) = tutorial.split_once("\n## Typed rows\n").expect("two parts");
    let expected = [
        (
            any,
            "ann is 40 and speaks Welsh\n",
            "the handle is no client",
        ),
        (typed, "dan is 50\n", ""),
    ];
    let dir = tempfile::tempdir().expect("a folder");
    generate(dir.path());
    let include = dir.path().to_str().expect("a path");
    let server = server();
    for (part, said, logged) in expected {
        let blocks = part.split("```c\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
        let blocks: Vec<&str> = blocks.collect();
        assert!(blocks.len() >= 5, "{}", blocks.len());
        let source = dir.path().join("tutorial.c");
        fs::write(&source, blocks.join("\n")).expect("written");
        let program = dir.path().join("tutorial");
        let sources = [source, dir.path().join("zoo-idl.c")];
        let flags = ["-std=c11", "-D_GNU_SOURCE", "-I", include];
        compile("cc", &sources, &flags, &program);
        let remote = format!("unix:{}", server.socket().display());
        let output = run(Command::new(&program).arg(zoo()).arg(remote));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(said), "{text}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(logged), "{text}");
    }
}
