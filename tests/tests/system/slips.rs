//! The programs' answers to mistakes and questions of an operator: names that nearly exist,
//! transactions that are rejected, versions, and a demo that is already running. The reference's
//! texts, which scripts compare, come first and are unchanged.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::json;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command line to its end.
fn run(program: &str, words: &[&str]) -> Output {
    Command::new(binary::bin(program))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

/// Returns the exit status and the standard error.
fn failure(program: &str, words: &[&str]) -> (Option<i32>, String) {
    let output = run(program, words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

fn serve() -> (Server, String) {
    let schema = json!({"name": "Net", "version": "1.0.0", "tables": {
        "Logical_Switch": {"isRoot": true, "indexes": [["name"]], "columns": {
            "name": {"type": "string"},
            "load_balancer": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let remote = format!("unix:{}", server.socket().display());
    (server, remote)
}

#[test]
fn names_that_nearly_exist_are_suggested_after_the_text_of_the_reference() {
    let (server, remote) = serve();
    let control = server.control_socket().display().to_string();
    let client = |words: &[&str]| {
        let mut line = vec![words[0], &remote];
        line.extend(&words[1..]);
        failure("ovsdb-client", &line)
    };
    let meant = |name: &str| format!("ovsdb-client: did you mean \"{name}\"?\n");
    assert_eq!(
        failure("ovsdb-client", &["dmup"]),
        (
            Some(1),
            "ovsdb-client: unknown command 'dmup'; use --help for help\n".to_owned()
                + &meant("dump")
        )
    );
    assert_eq!(
        failure("ovsdb-tool", &["compct"]).1,
        "ovsdb-tool: unknown command 'compct'; use --help for help\novsdb-tool: did you mean \"compact\"?\n"
    );
    for (words, name) in [
        (&["dump", "Net", "logical_swtch"][..], "Logical_Switch"),
        (&["dump", "Net", "Logical_Switch", "nmae"], "name"),
        (&["monitor", "Net", "Logical_Switches"], "Logical_Switch"),
        (
            &["monitor", "Net", "Logical_Switch", "load_balancers"],
            "load_balancer",
        ),
        (
            &["monitor-cond", "Net", "[]", "Logical_Swich"],
            "Logical_Switch",
        ),
    ] {
        let (status, said) = client(words);
        assert_eq!(status, Some(1), "{words:?}");
        let (text, question) = said.split_at(said.len() - meant(name).len());
        assert_eq!(question, meant(name), "{words:?}: {said}");
        assert_eq!(text.lines().count(), 1, "{words:?}: {said}");
    }
    // The reference prints an empty list.
    let (status, said) = client(&["list-columns", "Net", "LogicalSwitch"]);
    assert_eq!((status, said), (Some(0), meant("Logical_Switch")));
    let (status, said) = failure("ovs-appctl", &["-t", &control, "ovsdb-server/list-db"]);
    assert_eq!(status, Some(2));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[1].ends_with("server returned an error"), "{said}");
    assert_eq!(
        lines[2],
        "ovs-appctl: did you mean \"ovsdb-server/list-dbs\"?"
    );
    // For names that do not resemble any existing name, only the text of the reference is printed.
    assert_eq!(
        failure("ovsdb-client", &["frobnicate"]).1,
        "ovsdb-client: unknown command 'frobnicate'; use --help for help\n"
    );
    let (_, said) = client(&["dump", "Net", "Bridge"]);
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_refused_transaction_fails_the_command_with_fail() {
    let (server, remote) = serve();
    let insert =
        r#"["Net",{"op":"insert","table":"Logical_Switch","row":{"name":"one"}}]"#.to_owned();
    let good =
        |words: &[&str]| assert_eq!(failure("ovsdb-client", words), (Some(0), String::new()));
    good(&["--fail", "transact", &remote, &insert]);
    // Inserting the same row again violates the index.
    good(&["transact", &remote, &insert]);
    let output = run("ovsdb-client", &["--fail", "transact", &remote, &insert]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("ovsdb-client: the transaction was refused: constraint violation: "),
        "{said}"
    );
    // The results are printed nevertheless.
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("\"constraint violation\""), "{printed}");
    let select = r#"["Net",{"op":"select","table":"Logical_Switch","where":[]}]"#;
    good(&["--fail", "query", &remote, select]);
    // The same applies to a file without a server.
    drop(server);
    let folder = tempfile::tempdir().expect("a directory");
    let schema = folder.path().join("schema");
    std::fs::write(
        &schema,
        r#"{"name":"D","tables":{"T":{"isRoot":true,"columns":{"n":{"type":{"key":{"type":"integer","maxInteger":3}}}}}}}"#,
    )
    .expect("a schema");
    let file = folder.path().join("db").display().to_string();
    let schema = schema.display().to_string();
    assert_eq!(
        failure("ovsdb-tool", &["create", &file, &schema]).0,
        Some(0)
    );
    let insert = |n: i32| format!(r#"["D",{{"op":"insert","table":"T","row":{{"n":{n}}}}}]"#);
    for (n, expected) in [(3, 0), (4, 2)] {
        let status = failure("ovsdb-tool", &["--fail", "transact", &file, &insert(n)]).0;
        assert_eq!(status, Some(expected));
    }
    let status = failure("ovsdb-tool", &["transact", &file, &insert(4)]).0;
    assert_eq!(status, Some(0));
}

#[test]
fn versions_name_corvid_after_the_line_that_scripts_parse() {
    let (server, _) = serve();
    let control = server.control_socket().display().to_string();
    let corvid = format!("Corvid {}", env!("CARGO_PKG_VERSION"));
    let check = |text: &str, program: &str| {
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let version = lines[0].strip_prefix(&format!("{program} (Open vSwitch) "));
        let version = version.expect("the line of the reference");
        assert!(version.starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(lines[1], corvid);
    };
    for program in [
        "ovsdb-server",
        "ovsdb-client",
        "ovsdb-tool",
        "ovs-appctl",
        "ovsdb-idlc",
        "corvid",
        "corvid-console",
        "corvid-demo",
    ] {
        let output = run(program, &["--version"]);
        assert!(output.status.success());
        check(&String::from_utf8_lossy(&output.stdout), program);
    }
    let output = run("ovs-appctl", &["-t", &control, "version"]);
    check(&String::from_utf8_lossy(&output.stdout), "ovsdb-server");
    // The scripts of Open vSwitch and OVN do the same.
    let parse = format!(
        "{} -t {control} version | awk 'NR==1{{print $NF}}'; {} --version | awk '/Open vSwitch/{{print $NF}}'",
        binary::bin("ovs-appctl").display(),
        binary::bin("ovsdb-server").display()
    );
    let output = Command::new("sh").args(["-c", &parse]).output();
    let parsed = String::from_utf8(output.expect("a shell").stdout).expect("text");
    let versions: Vec<&str> = parsed.lines().collect();
    assert_eq!(versions.len(), 2, "{parsed}");
    assert_eq!(versions[0], versions[1]);
    // The installed script stops a daemon gracefully only if it finds its version new enough.
    let library = "/usr/share/openvswitch/scripts/ovs-lib";
    if std::path::Path::new(library).is_file() {
        let version = versions[0];
        let compare =
            format!(". {library}; version_geq {version} 2.5.90 && ! version_geq {version} 100");
        let status = Command::new("sh").args(["-c", &compare]).status();
        assert!(status.expect("a shell").success(), "{parsed}");
    }
    let log = server.log();
    assert!(
        log.contains(&format!("|ovsdb_server|INFO|{corvid}\n")),
        "{log}"
    );
}

/// Kills the server of a demo when the value is dropped.
struct Demo(std::process::Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(binary::bin("corvid-demo"));
    command.args(words).env("OVS_RUNDIR", folder);
    command.stdin(Stdio::null());
    command
}

#[test]
fn the_demo_helps_and_starts_once() {
    let folder = tempfile::tempdir().expect("a directory");
    let help = demo(folder.path(), &["--help"]).output().expect("a demo");
    assert!(help.status.success());
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(
        text.contains("usage: corvid-demo [--cluster] [DIRECTORY]"),
        "{text}"
    );
    for wrong in [&["--halp"][..], &["a", "b"]] {
        let output = demo(folder.path(), wrong).output().expect("a demo");
        assert_eq!(output.status.code(), Some(1), "{wrong:?}");
    }
    let made = std::fs::read_dir(folder.path()).expect("a directory");
    assert_eq!(made.count(), 0, "nothing was started");
    let first = demo(folder.path(), &[]).stdout(Stdio::null()).spawn();
    let _first = Demo(first.expect("a demo"));
    let socket = folder.path().join("corvid-demo/ovsdb-server.ctl");
    let deadline = Instant::now() + LIMIT;
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < deadline, "the demo does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let second = demo(folder.path(), &[]).output().expect("a demo");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    let place = folder.path().join("corvid-demo");
    let begin = format!(
        "corvid-demo: a demo runs in {} already, at unix:{}\n",
        place.display(),
        place.join("db.sock").display()
    );
    assert!(said.starts_with(&begin), "{said}");
}
