//! Tests that the code of the tutorial (`docs/clients/rust.md`) runs: on the database that
//! `make run` serves, and on the reference server with the same database if it is installed.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::process::Process;

include!(concat!(env!("OUT_DIR"), "/inventory.rs"));
include!(concat!(env!("OUT_DIR"), "/tutorial.rs"));
include!(concat!(env!("OUT_DIR"), "/front_page.rs"));

/// Longer than any wait takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const TUTORIAL: &str = include_str!("../../../../docs/clients/rust.md");

/// The program that `make run` starts, which is killed when this is dropped.
struct Demo(Child);

impl Demo {
    fn start(folder: &Path) -> Demo {
        let program = binary::bin("corvid-demo");
        let process = Command::new(&program)
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut demo = Demo(process);
        let end = Instant::now() + TIMEOUT;
        while UnixStream::connect(folder.join("db.sock")).is_err() {
            let has_ended = demo.0.try_wait().expect("a process").is_some();
            assert!(!has_ended && Instant::now() < end, "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        demo
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(folder: &Path) {
    let remote = format!("unix:{}", folder.join("db.sock").display());
    tutorial(&remote).unwrap_or_else(|error| panic!("{remote}: {error}"));
}

#[test]
fn the_tutorial_is_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = Demo::start(folder.path());
    run(folder.path());
    run(folder.path());
    drop(demo);
    let Some(reference) = binary::reference("ovsdb-server") else {
        eprintln!("SKIPPED: the reference server is not installed");
        return;
    };
    let database = folder.path().join("Inventory.db");
    let mut server = Process::new(&reference, folder.path(), &[database.into()]);
    server.start().expect("a server");
    run(folder.path());
}

/// The first code that a reader of the crate's documentation sees must run on the database that it
/// names.
#[test]
fn the_example_of_the_front_page_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let _demo = Demo::start(folder.path());
    let remote = format!("unix:{}", folder.path().join("db.sock").display());
    front_page(&remote).unwrap_or_else(|error| panic!("{remote}: {error}"));
    let dump = Command::new(binary::bin("ovsdb-client"))
        .args(["dump", &remote, "Inventory", "Device", "name"])
        .output()
        .expect("it runs");
    let dump = String::from_utf8(dump.stdout).expect("text");
    assert!(dump.contains("core-2"), "{dump}");
}

#[test]
fn the_schema_is_where_the_tutorial_says() {
    let named = "crates/server/src/demo/inventory.ovsschema";
    assert!(TUTORIAL.contains(named));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = std::fs::read_to_string(root.join(named)).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let _demo = Demo::start(folder.path());
    let remote = format!("unix:{}", folder.path().join("db.sock").display());
    let printed = Command::new(binary::bin("ovsdb-client"))
        .args(["get-schema", &remote, "Inventory"])
        .output()
        .expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let code = |schema: &str| corvid_idlc::rust(schema).expect("a schema");
    assert_eq!(code(&printed), code(&file));
}

#[test]
fn the_tutorial_names_the_crates_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("it is there");
    let readme = read("crates/corvid/README.md");
    let front_page = read("crates/corvid/src/lib.rs");
    let version = concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    );
    for (package, folder, rest) in [
        ("corvid-ovsdb", "corvid", ""),
        ("corvid-idlc", "idlc", ", default-features = false"),
    ] {
        let dependency = format!("{package} = {{ path = \"…/crates/{folder}\"{rest} }}");
        let published = if rest.is_empty() {
            format!("`{package} = \"{version}\"`")
        } else {
            format!("`{package} = {{ version = \"{version}\"{rest} }}`")
        };
        for text in [TUTORIAL, &readme, &front_page] {
            assert!(text.contains(&dependency), "{dependency}");
            assert!(text.contains(&published), "{published}");
            // The package `corvid` in the public registry is another project's.
            assert!(!text.contains("corvid = "));
        }
        let manifest = read(&format!("crates/{folder}/Cargo.toml"));
        assert!(manifest.contains(&format!("name = \"{package}\"")));
    }
    let imported = TUTORIAL.matches("use corvid").count();
    assert_eq!(
        imported,
        TUTORIAL.matches("use corvid::").count(),
        "one crate"
    );
}
