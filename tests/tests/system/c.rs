//! `libcorvid`, the library for C: its header, and its tests in C (`crates/capi/tests`), compiled here with the library that was built beside this program, against our
//! server.
//!
//! A machine without a C compiler skips them and says so. With valgrind the same programs run under it too.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use tempfile::TempDir;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/capi")
}

/// Reports a skipped part, past the capture of the test runner.
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
    let output = command.stdin(Stdio::null()).output();
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

/// A folder with the shared library, linked once for all tests of this program; nothing without a compiler.
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
        // Without line tables, which are most of it.
        run(Command::new(package().join("link.sh"))
            .arg(&archive)
            .arg(dir.path())
            .env("CORVID_LINK_FLAGS", "-Wl,--strip-debug"));
        Some(dir)
    });
    made.as_ref().map(TempDir::path)
}

/// Compiles sources, of C or C++ by the compiler, against the shared library.
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

fn zoo() -> PathBuf {
    package().join("tests/zoo.ovsschema")
}

/// A server with an empty zoo.
fn server() -> Server {
    let schema = fs::read_to_string(zoo()).expect("the schema");
    let setup = Setup {
        databases: vec![serde_json::from_str(&schema).expect("JSON")],
        ..Setup::default()
    };
    Server::start(Implementation::Corvid, &setup).expect("a server")
}

/// Runs a program of the tests with the schema and a fresh server, plainly and then under valgrind.
fn run_with_server(program: &Path) {
    let run_on_server = |command: &mut Command| {
        let server = server();
        let remote = format!("unix:{}", server.socket().display());
        let output = run(command.arg(zoo()).arg(remote));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.ends_with("ok\n"), "{said}");
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

/// Typed code for the zoo, in a folder.
fn generate(dir: &Path) {
    run(Command::new(binary::bin("ovsdb-idlc"))
        .arg("c")
        .arg(zoo())
        .arg(dir));
}

fn run_test(name: &str, is_typed: bool) {
    if library().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join(name);
    let mut sources = vec![package().join("tests").join(name).with_extension("c")];
    if is_typed {
        generate(dir.path());
        sources.push(dir.path().join("zoo-idl.c"));
    }
    let include = dir.path().to_str().expect("a path");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-I", include];
    compile("cc", &sources, &flags, &program);
    run_with_server(&program);
}

#[test]
fn typed_rows_follow_the_database() {
    run_test("typed", true);
}

#[test]
fn a_program_in_c_does_everything_once() {
    run_test("core", false);
}

#[test]
fn wrong_arguments_are_errors() {
    run_test("hostile", false);
}

#[test]
fn threads_share_a_client() {
    run_test("threads", false);
}

/// The header is that of the sources. `CORVID_ACCEPT=1` writes it.
#[test]
fn the_header_is_made_of_the_sources() {
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).expect("settings");
    let mut sources: Vec<PathBuf> = files(&package().join("src"));
    sources.sort();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(source);
    }
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

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension() == Some(OsStr::new("rs")) {
            found.push(path);
        }
    }
    found
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
    let source = package().join("tests/header.cpp");
    for standard in ["-std=c++11", "-std=c++20"] {
        compile("c++", &[source.clone()], &[standard], &program);
        run(&mut Command::new(&program));
    }
}

/// The shared library shows exactly the functions of the header, under the version, and has its name.
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
