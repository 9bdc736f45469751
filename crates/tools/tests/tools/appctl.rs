//! `ovs-appctl` against daemons that play a test's script, and compared with the reference's
//! `ovs-appctl` against the reference server. The comparisons are skipped with a message if the
//! reference is not installed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use corvid_json::Value;
use corvid_net::clock;
use corvid_shell::blocking::Connection;

use crate::support::{self, Dir, wait_until};

const OURS: &str = env!("CARGO_BIN_EXE_ovs-appctl");
const THEIRS: &str = "/usr/bin/ovs-appctl";
const SERVER: &str = "/usr/sbin/ovsdb-server";

/// The exit status (negative: a signal), standard output, and standard error without the dates of
/// log lines.
type Outcome = (i32, String, String);

fn run(program: &str, dir: &Path, args: &[&str]) -> Outcome {
    let outcome = support::run(program, dir, args, b"");
    (outcome.status, outcome.stdout, outcome.stderr)
}

/// A daemon at `DIR/ctl` that answers each request with the next of these replies (members of a
/// message) and closes the connection after the last. Returns the methods and params of the
/// requests.
fn daemon(dir: &Dir, replies: &'static [&'static str]) -> JoinHandle<Vec<String>> {
    let path = dir.path().join("ctl");
    let method = format!("punix:{}", path.display());
    let thread = std::thread::spawn(move || {
        let deadline = Some(clock::mono_ms() + 30_000);
        let mut connection = Connection::open(&method, deadline).expect("the program connects");
        let mut requests = Vec::new();
        for reply in replies {
            let Some(frame) = connection
                .receive(deadline)
                .expect("the connection is whole")
            else {
                break;
            };
            let request = Value::parse(&frame).expect("requests are JSON");
            let member = |name: &str| {
                request
                    .get(name)
                    .map(ToString::to_string)
                    .unwrap_or_default()
            };
            requests.push(format!("{} {}", member("method"), member("params")));
            let reply = format!("{{\"id\":{},{reply}}}", member("id"));
            connection
                .send(reply.as_bytes(), deadline)
                .expect("the connection is whole");
        }
        // One more read: a request that gets no answer, or the end of the connection.
        let _ = connection.receive(deadline);
        requests
    });
    wait_until("the socket", || path.exists());
    thread
}

/// Runs our client against such a daemon. Returns its outcome and the requests.
fn run_with_daemon(args: &[&str], replies: &'static [&'static str]) -> (Outcome, Vec<String>) {
    let dir = Dir::new();
    let served = daemon(&dir, replies);
    let socket = dir.file("ctl").display().to_string();
    let args: Vec<&str> = ["-t", &socket]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    let (status, stdout, stderr) = run(OURS, dir.path(), &args);
    let requests = served.join().expect("the daemon was requests as expected");
    (
        (status, stdout, stderr.replace(&socket, "SOCKET")),
        requests,
    )
}

#[test]
fn replies_are_printed_as_lines() {
    let answered = |reply: &'static [&'static str]| run_with_daemon(&["x", "-y", "--z"], reply).0;
    assert_eq!(
        answered(&["\"result\":\"one\\ntwo\",\"error\":null"]),
        (0, "one\ntwo\n".into(), String::new())
    );
    assert_eq!(
        answered(&["\"result\":\"one\\n\",\"error\":null"]),
        (0, "one\n".into(), String::new())
    );
    assert_eq!(
        answered(&["\"result\":\"\",\"error\":null"]),
        (0, String::new(), String::new())
    );
    let refused = "no\novs-appctl: SOCKET: server returned an error\n";
    assert_eq!(
        answered(&["\"result\":null,\"error\":\"no\""]),
        (2, String::new(), refused.into())
    );
    assert_eq!(
        answered(&["\"error\":\"no\\n\""]),
        (2, String::new(), refused.into())
    );
    let strange = "ovs-appctl: Unexpected reply type in JSON rpc reply: object\n";
    assert_eq!(
        answered(&["\"result\":{},\"error\":null"]),
        (2, String::new(), strange.into())
    );
}

#[test]
fn arguments_are_sent_to_the_daemon_unchanged() {
    let requests = run_with_daemon(
        &["-e", "x", "-t", "--help", "--", "-T0"],
        &["\"result\":\"\",\"error\":null"],
    )
    .1;
    assert_eq!(requests, [r#""x" ["-t","--help","--","-T0"]"#]);
}

#[test]
fn json_output_is_negotiated_first() {
    const PLAIN: &str = r#""result":{"reply-format":"plain","reply":"x"},"error":null"#;
    const EMPTY: &str = r#""result":{"reply-format":"plain","reply":""},"error":null"#;
    let (outcome, requests) = run_with_daemon(&["-f", "JSON", "version"], &[EMPTY, PLAIN]);
    assert_eq!(
        outcome,
        (
            0,
            "{\"reply\":\"x\",\"reply-format\":\"plain\"}\n".into(),
            String::new()
        )
    );
    assert_eq!(
        requests,
        [r#""set-options" ["--format","json"]"#, r#""version" []"#]
    );
    let (outcome, _) = run_with_daemon(&["--format=json", "--pretty", "version"], &[EMPTY, PLAIN]);
    assert_eq!(
        outcome.1,
        "{\n  \"reply\": \"x\",\n  \"reply-format\": \"plain\"}\n"
    );
    let (outcome, requests) =
        run_with_daemon(&["-fjson", "version"], &["\"error\":\"no such command\""]);
    assert_eq!(
        outcome,
        (
            2,
            String::new(),
            "no such command\novs-appctl: SOCKET: server returned an error\n".into()
        )
    );
    assert_eq!(requests.len(), 1);
}

#[test]
fn closed_connection_is_an_error() {
    let lost = "unixctl|WARN|error communicating with unix:SOCKET: End of file\n\
                ovs-appctl: SOCKET: transaction error (End of file)\n";
    let (outcome, _) = run_with_daemon(&["version"], &[]);
    assert_eq!(outcome, (1, String::new(), lost.into()));
}

#[test]
fn missing_targets_are_errors() {
    let dir = Dir::new();
    let socket = dir.file("nobody").display().to_string();
    let expected = format!(
        "unixctl|WARN|failed to connect to {socket}\novs-appctl: cannot connect to \"{socket}\" (No such file or directory)\n"
    );
    assert_eq!(
        run(OURS, dir.path(), &["-t", &socket, "version"]),
        (1, String::new(), expected)
    );
    std::fs::write(dir.path().join("stale.pid"), "1\n").expect("a pidfile can be written");
    let pidfile = dir.file("stale.pid").display().to_string();
    let expected = format!("ovs-appctl: cannot read pidfile \"{pidfile}\" (No such process)\n");
    assert_eq!(
        run(OURS, dir.path(), &["-t", "stale", "version"]),
        (1, String::new(), expected)
    );
}

#[test]
fn formats_are_checked_before_anything_is_sent() {
    let dir = Dir::new();
    let message = |args: &[&str]| {
        let (status, stdout, stderr) = run(OURS, dir.path(), args);
        assert_eq!((status, stdout.as_str()), (1, ""));
        stderr
    };
    assert_eq!(
        message(&["-f", "yaml", "x"]),
        "ovs-appctl: value yaml on -f or --format is invalid\n"
    );
    assert_eq!(
        message(&["--pretty", "x"]),
        "ovs-appctl: --pretty is supported with --format json only\n"
    );
    let listing = run(OURS, dir.path(), &["--option"]).1;
    assert!(
        listing.starts_with("--target=ARG\n-t ARG\n--execute\n-e \n--help\n"),
        "{listing}"
    );
    assert!(
        listing.contains("\n--verbose=[ARG]\n-v [ARG]\n"),
        "{listing}"
    );
}

/// A server process; dropping it kills the process.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn reference(dir: &Dir) -> Option<Server> {
    if let Some(missing) = [THEIRS, SERVER]
        .into_iter()
        .find(|program| !Path::new(program).exists())
    {
        eprintln!("SKIPPED: {missing} is not installed, so nothing was compared");
        return None;
    }
    let child = Command::new(SERVER)
        .args([
            "--pidfile=ref.pid",
            "--unixctl=named.ctl",
            "--no-dbs",
            "-vconsole:off",
        ])
        .current_dir(dir.path())
        .env("OVS_RUNDIR", dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the reference server starts");
    let server = Server(child);
    wait_until("the control socket", || {
        run(
            THEIRS,
            dir.path(),
            &[
                "-t",
                &dir.file("named.ctl").display().to_string(),
                "version",
            ],
        )
        .0 == 0
    });
    // The control socket's path for a daemon that is named by its pidfile.
    let default = dir.path().join(format!("ref.{}.ctl", server.0.id()));
    std::os::unix::fs::symlink(dir.path().join("named.ctl"), default).expect("a link can be made");
    Some(server)
}

#[test]
fn command_lines_end_as_with_the_reference() {
    let dir = Dir::new();
    let Some(_server) = reference(&dir) else {
        return;
    };
    let socket = dir.file("named.ctl").display().to_string();
    let cases: &[&[&str]] = &[
        &["-t", &socket, "version"],
        &["-t", "ref", "version"],
        &["--target=ref", "list-commands"],
        &["-t", "ref", "vlog/list"],
        &["-t", "ref", "vlog/list-pattern"],
        &["-t", "ref", "vlog/set", "raft:dbg", "-v"],
        &["-t", "ref", "vlog/set", "nonsense"],
        &["-t", "ref", "ovsdb-server/list-dbs"],
        &["-t", "ref", "ovsdb-server/list-remotes"],
        &["-t", "ref", "frobnicate"],
        &["-t", "ref", "exit", "--cleanup"],
        &["-t", "ref", "--", "version"],
        &["-t", "ref", "-e", "version"],
        &["-t", "ref", "-e", "-e", "version"],
        &["-t", "ref", "-t", "ref", "version"],
        &["-t", "ref", "-T", "5", "version"],
        &["-t", "ref", "-T", "0", "version"],
        &["-t", "ref", "--timeout=x", "version"],
        &["-t", "nobody", "version"],
        &["-t", "/nowhere/nobody.ctl", "version"],
        &["version"],
        &["-t", "ref"],
        &[],
        &["-t"],
        &["--frobnicate"],
        &["-q"],
        &["--t=ref", "version"],
        &["-vnonsense", "version"],
        &["-vconsole:off", "-t", "nobody", "version"],
        &["-t", "ref", "exit"],
    ];
    let mut differences = String::new();
    let (last, others) = cases.split_last().expect("there are cases");
    for args in others {
        let (theirs, ours) = (run(THEIRS, dir.path(), args), run(OURS, dir.path(), args));
        if ours != theirs {
            differences.push_str(&format!(
                "\n{args:?}\n  theirs: {theirs:?}\n  ours:   {ours:?}\n"
            ));
        }
    }
    assert!(differences.is_empty(), "{differences}");
    // This one ends the server, so it runs only once.
    assert_eq!(
        run(OURS, dir.path(), last),
        (0, String::new(), String::new())
    );
}

#[test]
fn timeouts_end_the_program_as_in_the_reference() {
    let dir = Dir::new();
    if !Path::new(THEIRS).exists() {
        eprintln!("SKIPPED: {THEIRS} is not installed, so nothing was compared");
        return;
    }
    // A socket that accepts connections and sends nothing.
    let _silent = std::os::unix::net::UnixListener::bind(dir.path().join("silent"))
        .expect("a socket can be made");
    let args = [
        "-T1",
        "-t",
        &dir.file("silent").display().to_string(),
        "version",
    ];
    let ours = run(OURS, dir.path(), &args);
    assert_eq!(ours.0, -14);
    assert_eq!(ours, run(THEIRS, dir.path(), &args));
}
