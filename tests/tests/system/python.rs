//! The Python packages `corvid` and `ovs`: their own tests (`crates/python/tests`) run against our
//! server, with the library that was built together with this program.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use corvid_tests::{binary, limited, peer};
use tempfile::TempDir;

/// Returns the folder of the crate.
fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/python")
}

/// Makes a folder for `PYTHONPATH` with the packages in the form in which they are installed:
/// `corvid` with the library among its modules, and `ovs`.
pub(crate) fn site() -> TempDir {
    let library = binary::beside_tests("libcorvid_python.so");
    assert!(
        library.is_file(),
        "{} is not there: cargo build -p corvid-python makes it (make test does)",
        library.display()
    );
    let site = tempfile::tempdir().expect("a folder");
    let installed = site.path().join("corvid");
    fs::create_dir(&installed).expect("a folder");
    let modules = package().join("python/corvid");
    for entry in fs::read_dir(&modules).expect("the modules") {
        let path = entry.expect("the modules").path();
        let name = path.file_name().expect("a file");
        symlink(&path, installed.join(name)).expect("a link");
    }
    symlink(package().join("ovs/ovs"), site.path().join("ovs")).expect("a link");
    symlink(library, installed.join("_native.abi3.so")).expect("a link");
    site
}

fn python(site: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command
        .args(["-X", "faulthandler"])
        .args(arguments)
        .current_dir(package())
        .env("PYTHONPATH", site.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OVSDB_SERVER_UNDER_TEST", binary::bin("ovsdb-server"))
        .env("OVSDB_TOOL_UNDER_TEST", binary::bin("ovsdb-tool"))
        .env("OVSDB_IDLC_UNDER_TEST", binary::bin("ovsdb-idlc"))
        .env("RANDOM_LIFE", binary::beside_tests("random-life"));
    limited::output(&mut command).expect("python3 runs")
}

fn assert_success(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{text}");
}

#[test]
fn the_tests_of_the_package_pass() {
    let output = python(
        &site(),
        &[
            "-X",
            "faulthandler",
            "-W",
            "error::ResourceWarning",
            "-m",
            "unittest",
            "discover",
            "-t",
            ".",
            "-s",
            "tests",
        ],
    );
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("Ran ") && !text.contains("Ran 0 tests"),
        "{text}"
    );
}

/// Clients of relays, while relays and their source are killed and messages are lost. The
/// reference, tested in the same way, executes such transactions twice. `CORVID_ONCE_ROUNDS` sets
/// the number of accidents.
#[test]
fn transactions_through_relays_are_executed_once() {
    if binary::reference("ovsdb-server").is_none() {
        peer::say_skipped("relays of the reference, which execute twice: it is not installed");
    }
    let output = python(&site(), &["-m", "unittest", "tests.relayed_once"]);
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("Ran 5 tests"), "{text}");
}

/// Each name of the core has a signature for type checkers, and each signature has a name in the
/// core.
#[test]
fn the_stubs_name_what_the_core_has() {
    let script = "\
import ast, corvid._native as native
tree = ast.parse(open('python/corvid/_native.pyi').read())
def members(body):
    return {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
stubs = {n.name: members(n.body) if isinstance(n, ast.ClassDef) else None for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
real = {name: getattr(native, name) for name in dir(native) if not name.startswith('_')}
assert set(stubs) == set(real), set(stubs) ^ set(real)
for name, names in stubs.items():
    if names is None: continue
    public = {n for n in vars(real[name]) if not n.startswith('_')}
    named = {n for n in names if not n.startswith('_')}
    assert public == named, (name, public ^ named)
";
    assert_success(&python(&site(), &["-c", script]));
}

/// Every example of the tutorial works, in order, on a server with OVN's schema.
#[test]
fn the_tutorial_works_as_it_is_printed() {
    let schema = Path::new("/usr/share/ovn/ovn-nb.ovsschema");
    if !schema.is_file() {
        // The runner only captures the output of the macros. This line must be seen.
        let _ = writeln!(
            io::stderr(),
            "\nSKIPPED tutorial of Python: {} is not installed",
            schema.display()
        );
        return;
    }
    let script = "\
import faulthandler, re, subprocess, sys, tempfile, time, os
faulthandler.dump_traceback_later(120, exit=True)
server, tool, schema, tutorial = sys.argv[1:]
directory = tempfile.mkdtemp()
subprocess.run([tool, 'create', directory + '/nb.db', schema], check=True)
process = subprocess.Popen([server, directory + '/nb.db', '--remote=punix:' + directory + '/s', '--unixctl=' + directory + '/ctl', '-vconsole:off'])
try:
    while not os.path.exists(directory + '/s'):
        time.sleep(0.01)
    blocks = re.findall('```python\\n(.*?)```', open(tutorial).read(), re.S)
    assert len(blocks) >= 10, len(blocks)
    names = {'REMOTE': 'unix:' + directory + '/s'}
    for block in blocks:
        exec(compile(block, tutorial, 'exec'), names)
finally:
    process.kill()
    process.wait()
";
    let tutorial = package().join("../../docs/clients/python.md");
    let server = binary::bin("ovsdb-server");
    let tool = binary::bin("ovsdb-tool");
    let paths = [server.as_path(), &tool, schema, &tutorial];
    let paths = paths.map(|path| path.to_str().expect("a path"));
    assert_success(&python(&site(), &[&["-c", script], &paths[..]].concat()));
}
