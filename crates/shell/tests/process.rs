//! Processes: daemons, pidfiles, supervision, signals and the control channel, against the
//! reference's clients and servers.
//!
//! This binary is both sides: started with `CORVID_TEST_ROLE=daemon` it is a small daemon, else it
//! runs the cases below one after another. It has no test harness, because a daemon must fork
//! before it has a second thread.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};

use corvid_json::Value;
use corvid_shell::args::{self, Args, Item};
use corvid_shell::blocking::Connection;
use corvid_shell::daemon::{self, DaemonOption};
use corvid_shell::unixctl::{self, Client, Server, socket_of};
use corvid_shell::vlog::{self, LogOption, Module};
use corvid_shell::{pidfile, program, timeout};

fn main() -> ExitCode {
    match std::env::var("CORVID_TEST_ROLE").as_deref() {
        Ok("daemon") => play_daemon(),
        Ok("waiter") => play_waiter(),
        _ => run_cases(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Opt {
    Daemon(DaemonOption),
    Log(LogOption),
}

/// The state of the daemon's commands.
#[derive(Default)]
struct State {
    exiting: bool,
    deferred: Vec<corvid_shell::unixctl::Replier>,
}

/// A daemon with only a control channel. The positional `fail` makes it fail before it is ready.
fn play_daemon() -> ExitCode {
    let line = args::from_env();
    program::init(line[0].as_ref());
    let specs: Vec<_> = daemon::specs(Opt::Daemon)
        .into_iter()
        .chain(vlog::specs(Opt::Log))
        .collect();
    let mut options = daemon::Options::default();
    let mut fails = false;
    let mut reader = Args::new(&specs, &line);
    while let Some(item) = reader.or_die() {
        match item {
            Item::Option(Opt::Daemon(option), value) => options.apply(option, value.as_deref()),
            Item::Option(Opt::Log(option), value) => vlog::apply(option, value.as_deref()),
            Item::Positional(word) => fails |= word == "fail",
        }
    }
    let startup = options.start();
    if fails {
        program::fatal("told to fail");
    }
    let mut server: Server<State> = Server::open(None).unwrap_or_else(|text| program::fatal(text));
    let commands: [unixctl::Command<State>; 7] = [
        unixctl::Command::new("exit", "", 0..=0, "", |state, _| {
            state.exiting = true;
            Ok(String::new())
        }),
        unixctl::Command::new("crash", "", 0..=0, "", |_, _| std::process::abort()),
        unixctl::Command::new("panic", "", 0..=0, "", |_, _| panic!("told to panic")),
        unixctl::Command::new("recurse", "", 0..=0, "", |_, _| {
            Ok(recurse(&[0]).to_string())
        }),
        unixctl::Command::new("join", "WORD...", 1..=3, "", |_, words| Ok(words.join("+"))),
        unixctl::Command::deferred("park", "", 0..=0, "", |state, _, replier| {
            state.deferred.push(replier);
        }),
        unixctl::Command::new("release", "", 0..=0, "", |state, _| {
            state
                .deferred
                .drain(..)
                .for_each(|replier| replier.reply(Ok("released".to_owned())));
            Ok(String::new())
        }),
    ];
    server.registry().add(commands);
    startup.complete();
    vlog::info(
        Module::OvsdbServer,
        format_args!("{}", program::version_line()),
    );
    let mut state = State::default();
    while !state.exiting {
        if let Err(error) = server.turn(&mut state, None) {
            program::fatal_error("waiting failed", &error);
        }
    }
    server.close();
    program::exit(0)
}

/// Recurses until the stack is exhausted.
fn recurse(bytes: &[u8]) -> usize {
    if bytes.is_empty() {
        return 0;
    }
    let more = [bytes.len() as u8; 512];
    let found = recurse(std::hint::black_box(&more));
    found + more.len()
}

/// A client that waits for a reply that never comes, with a deadline of one second.
fn play_waiter() -> ExitCode {
    program::init_waiting("waiter".as_ref());
    timeout::arm(None);
    let target = std::env::args().nth(1).unwrap();
    let mut connection = Connection::open(&target, None).unwrap();
    connection.receive(None).unwrap();
    ExitCode::SUCCESS
}

/// A case: its name and its function, which gets its own directory.
type Case = (&'static str, fn(&Home));

fn run_cases() -> ExitCode {
    let cases: [Case; 11] = [
        (
            "a_detached_daemon_is_found_by_the_reference_client",
            detached_daemon,
        ),
        (
            "the_control_channel_answers_as_the_reference_does",
            control_channel,
        ),
        (
            "deferred_replies_block_their_connection_only",
            deferred_replies,
        ),
        (
            "a_second_daemon_of_the_same_pidfile_gives_up",
            second_daemon,
        ),
        (
            "a_held_pidfile_is_respected_although_its_owner_is_hidden",
            hidden_owner,
        ),
        (
            "a_pidfile_that_another_daemon_has_replaced_stays",
            replaced_pidfile,
        ),
        ("a_failing_start_reaches_the_caller", failing_start),
        ("sigterm_cleans_up_and_kills", sigterm),
        ("a_crashed_daemon_is_started_again", supervision),
        ("faults_are_logged", last_words),
        ("a_deadline_kills_by_alarm", deadline),
    ];
    for (number, (name, case)) in cases.into_iter().enumerate() {
        let place = Home::new(number);
        println!("test {name} ...");
        case(&place);
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// A directory of one case, with the daemons started in it; dropping it kills them by pid.
struct Home {
    directory: PathBuf,
}

impl Home {
    /// Each case has its own directory: a daemon of the previous case may still be removing its
    /// files.
    fn new(case: usize) -> Home {
        let name = format!("corvid-process-{}-{case}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        Home { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("OVS_RUNDIR", &self.directory)
            .env("OVS_LOGDIR", &self.directory)
            .env("OVS_SYSLOG_METHOD", "null");
        command
    }

    fn daemon(&self, args: &[&str]) -> Output {
        let mut command = self.command(std::env::current_exe().unwrap());
        command
            .env("CORVID_TEST_ROLE", "daemon")
            .arg0("/somewhere/testd")
            .args(args);
        command.output().unwrap()
    }

    fn started(&self, args: &[&str]) {
        let output = self.daemon(args);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text(&output.stderr), "");
    }

    fn appctl(&self, args: &[&str]) -> Output {
        self.command("ovs-appctl")
            .args(["-T", "20", "-t", "testd"])
            .args(args)
            .output()
            .unwrap()
    }

    fn answer(&self, args: &[&str]) -> String {
        let output = self.appctl(args);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    fn pid(&self) -> Option<i32> {
        pidfile::read(&self.path("testd.pid")).ok()
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.directory).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let is_pidfile = entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "pid");
            if is_pidfile && let Ok(pid) = pidfile::read(&entry.path()) {
                kill(pid, "-TERM");
            }
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kill(pid: i32, signal: &str) {
    let _ = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
}

fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn comm(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

fn is_alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn detached_daemon(place: &Home) {
    place.started(&["--detach", "--pidfile", "-vconsole:off", "--log-file"]);
    let pid = place.pid().unwrap();
    assert_eq!(
        place.answer(&["version"]),
        concat!(
            "testd (Open vSwitch) 3.7.0\nCorvid ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )
    );
    assert_eq!(
        std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(),
        Path::new("/")
    );
    assert!(
        place
            .answer(&["vlog/list"])
            .contains("\nraft               OFF       INFO       INFO\n")
    );
    place.answer(&["exit"]);
    eventually("the end", || (!is_alive(pid)).then_some(()));
    assert_eq!(place.files(), ["testd.log"]);
    let log = std::fs::read_to_string(place.path("testd.log")).unwrap();
    let lines: Vec<&str> = log
        .lines()
        .map(|line| line.split_once('|').unwrap().1)
        .collect();
    let opened = format!(
        "00001|vlog|INFO|opened log file {}",
        place.path("testd.log").display()
    );
    assert_eq!(
        lines,
        [
            opened.as_str(),
            "00002|ovsdb_server|INFO|testd (Open vSwitch) 3.7.0"
        ]
    );
}

/// The same requests to this server and to the reference's have the same errors and layouts.
fn control_channel(place: &Home) {
    place.started(&["--detach", "--pidfile", "-vconsole:off"]);
    let reference = place.path("reference.ctl");
    let status = place
        .command("ovsdb-server")
        .args(["--no-db", "--detach", "--no-chdir", "-vconsole:off"])
        .args([
            format!("--unixctl={}", reference.display()),
            format!("--pidfile={}", place.path("r.pid").display()),
        ])
        .status()
        .unwrap();
    if !status.success() {
        // A release without `--no-dbs` needs a database to serve.
        let database = place.path("a.db").display().to_string();
        let schema = place.path("a.ovsschema");
        std::fs::write(&schema, r#"{"name":"a","tables":{}}"#).unwrap();
        let status = place
            .command("ovsdb-tool")
            .arg("create")
            .args([Path::new(&database), &schema])
            .status()
            .unwrap();
        assert!(status.success());
        let pidfile = format!("--pidfile={}", place.path("r.pid").display());
        let control = format!("--unixctl={}", reference.display());
        let args = [
            database.as_str(),
            "--detach",
            "-vconsole:off",
            &control,
            &pidfile,
        ];
        assert!(
            place
                .command("ovsdb-server")
                .args(args)
                .status()
                .unwrap()
                .success()
        );
    }
    let ours = place.path(&format!("testd.{}.ctl", place.pid().unwrap()));
    let ask = |socket: &Path, words: &[&str]| {
        let args: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        let answer = Client::connect(socket)
            .unwrap()
            .transact(words[0], &args)
            .unwrap();
        answer
            .map(|value| value.as_str().unwrap().to_owned())
            .map_err(|value| value.as_str().unwrap().to_owned())
    };
    let requests: &[&[&str]] = &[
        &["nonsense"],
        &["version", "x"],
        &["vlog/set", "bogus:info"],
        &["vlog/set", "PATTERN"],
        &["vlog/set", "console:file"],
        &["vlog/set", "FACILITY:nothing"],
        &["vlog/set", "raft:file:dbg", "PATTERN:console:%m %p"],
        &["vlog/list-pattern"],
        &["vlog/disable-rate-limit", "nothing"],
        &["vlog/disable-rate-limit", "raft"],
        &["vlog/reopen"],
        &["vlog/close"],
        &["coverage/read-counter"],
        &["coverage/read-counter", "nothing"],
    ];
    for words in requests {
        // This daemon's method is null, so that tests do not write to the machine's log.
        let known = |text: String| {
            text.replace(
                "<%B> %D{%h %e %T} %E %A:        ",
                "                                ",
            )
        };
        assert_eq!(
            ask(&ours, words).map(known),
            ask(&reference, words).map(known),
            "{words:?}"
        );
    }
    let line_of = |socket: &Path, name: &str| {
        let list = ask(socket, &["vlog/list"]).unwrap();
        list.lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert_eq!(line_of(&ours, "raft "), line_of(&reference, "raft "));
    let listed = ask(&ours, &["list-commands"]).unwrap();
    for line in ask(&reference, &["list-commands"])
        .unwrap()
        .lines()
        .filter(|line| line.contains("vlog/set"))
    {
        assert!(listed.lines().any(|ours| ours == line), "{line}");
    }

    let error = place.appctl(&["join"]);
    assert_eq!(error.status.code(), Some(2));
    let expected = "\"join\" command requires at least 1 arguments\novs-appctl: testd: server returned an error\n";
    assert_eq!(text(&error.stderr), expected);
    assert_eq!(place.answer(&["join", "a", "--b"]), "a+--b\n");

    let mut client = Client::connect(&ours).unwrap();
    let json = |text: &str| Ok(Value::parse(text.as_bytes()).unwrap());
    let words =
        |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let format = client
        .transact("set-options", &words(&["--format", "JSON"]))
        .unwrap();
    assert_eq!(format, json(r#"{"reply-format":"plain","reply":""}"#));
    let wrapped = client.transact("join", &words(&["a", "b"])).unwrap();
    assert_eq!(wrapped, json(r#"{"reply-format":"plain","reply":"a+b"}"#));
    let listed = client.transact("list-commands", &[]).unwrap().unwrap();
    assert_eq!(listed.get("join").and_then(Value::as_str), Some("WORD..."));
    let error = client
        .transact("set-options", &words(&["--format", "xml"]))
        .unwrap()
        .unwrap_err();
    assert_eq!(error.as_str(), Some("option format has invalid value xml"));

    // Messages that are not requests end the connection.
    let mut raw = Connection::open(&format!("unix:{}", ours.display()), None).unwrap();
    raw.send(br#"{"id":null,"method":"version","params":[]}"#, None)
        .unwrap();
    assert!(matches!(raw.receive(None), Ok(None) | Err(_)));
}

fn deferred_replies(place: &Home) {
    place.started(&["--detach", "--pidfile", "-vconsole:off"]);
    let socket = place.path(&format!("testd.{}.ctl", place.pid().unwrap()));
    let mut first = Connection::open(&format!("unix:{}", socket.display()), None).unwrap();
    first
        .send(
            br#"{"id":1,"method":"park","params":[]}{"id":2,"method":"version","params":[]}"#,
            None,
        )
        .unwrap();
    // Repeated, because the other connection's request may not have arrived yet.
    let mut second = Client::connect(&socket).unwrap();
    let answer = eventually("a released reply", || {
        second.transact("release", &[]).unwrap().unwrap();
        let soon = corvid_net::clock::mono_ms() + 20;
        first.receive(Some(soon)).ok().flatten()
    });
    assert_eq!(
        text(&answer),
        r#"{"error":null,"id":1,"result":"released\n"}"#
    );
    let next = text(&first.receive(None).unwrap().unwrap());
    assert!(next.starts_with(r#"{"error":null,"id":2,"#), "{next}");
}

fn second_daemon(place: &Home) {
    std::fs::write(place.path("testd.pid"), "1\n").unwrap();
    place.started(&["--detach", "--pidfile", "-vconsole:off"]);
    let pid = place.pid().unwrap();
    let second = place.daemon(&["--detach", "--pidfile", "-vconsole:off"]);
    assert_eq!(second.status.code(), Some(1));
    let pidfile = place.path("testd.pid").display().to_string();
    assert_eq!(
        text(&second.stderr),
        format!("testd: {pidfile}: already running as pid {pid}, aborting\n")
    );
    assert_eq!(
        place.answer(&["version"]),
        concat!(
            "testd (Open vSwitch) 3.7.0\nCorvid ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )
    );
    let missing = place.daemon(&["--pidfile=/nonexistent/x.pid", "-vconsole:off"]);
    let expected = "testd: /nonexistent/x.pid.tmp: create failed (No such file or directory)\n";
    assert_eq!(
        (missing.status.code(), text(&missing.stderr).as_str()),
        (Some(1), expected)
    );
}

/// A second daemon in another PID namespace sees the lock, and 0 as the pid of its holder.
fn hidden_owner(place: &Home) {
    place.started(&["--detach", "--pidfile", "-vconsole:off"]);
    let path = place.path("testd.pid");
    let pidfile = path.display().to_string();
    let before = std::fs::read(&path).unwrap();
    let expected = format!("testd: {pidfile}: pidfile check failed (No such process), aborting\n");
    // Within one namespace: the file names a process other than the one that holds its lock.
    std::fs::write(&path, "1\n").unwrap();
    let second = place.daemon(&["--detach", "--pidfile", "-vconsole:off"]);
    assert_eq!(
        (second.status.code(), text(&second.stderr)),
        (Some(1), expected.clone())
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"1\n");
    std::fs::write(&path, &before).unwrap();
    // Only root may create a namespace.
    let is_allowed = Command::new("unshare")
        .args(["-p", "-f", "--mount-proc", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_allowed {
        println!("no PID namespace can be made here: not tried in one");
        return;
    }
    let second = place
        .command("unshare")
        .args(["-p", "-f", "--mount-proc", "bash", "-c"])
        .arg("exec -a testd \"$0\" --pidfile -vconsole:off")
        .arg(std::env::current_exe().unwrap())
        .env("CORVID_TEST_ROLE", "daemon")
        .output()
        .unwrap();
    assert_eq!(
        (second.status.code(), text(&second.stderr)),
        (Some(1), expected)
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(
        place.answer(&["version"]),
        concat!(
            "testd (Open vSwitch) 3.7.0\nCorvid ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )
    );
}

/// A daemon that ends removes only its own files.
fn replaced_pidfile(place: &Home) {
    place.started(&["--detach", "--pidfile", "-vconsole:off"]);
    let first = place.pid().unwrap();
    let control = place.path(&format!("testd.{first}.ctl"));
    std::fs::remove_file(&control).unwrap();
    std::fs::write(&control, "of somebody else").unwrap();
    place.started(&[
        "--detach",
        "--pidfile",
        "--overwrite-pidfile",
        "-vconsole:off",
    ]);
    let second = place.pid().unwrap();
    assert_ne!(first, second);
    kill(first, "-TERM");
    eventually("the first daemon's end", || {
        (!is_alive(first)).then_some(())
    });
    assert_eq!(place.pid(), Some(second));
    assert_eq!(std::fs::read(&control).unwrap(), b"of somebody else");
    assert_eq!(
        place.answer(&["version"]),
        concat!(
            "testd (Open vSwitch) 3.7.0\nCorvid ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )
    );
}

fn failing_start(place: &Home) {
    for args in [
        &["--detach", "--pidfile", "fail"][..],
        &["--detach", "--monitor", "--pidfile", "fail"],
    ] {
        let output = place.daemon(args);
        assert_eq!(
            (output.status.code(), text(&output.stderr).as_str()),
            (Some(1), "testd: told to fail\n")
        );
        assert!(!place.path("testd.pid").exists());
    }
    let output = place.daemon(&["-vnonsense"]);
    let expected =
        "testd: processing \"nonsense\": no destination, level, or module \"nonsense\"\n";
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(1), expected)
    );
}

fn sigterm(place: &Home) {
    let mut command = place.command(std::env::current_exe().unwrap());
    command
        .env("CORVID_TEST_ROLE", "daemon")
        .arg0("testd")
        .args(["--pidfile", "-vsyslog:off"]);
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = eventually("a control socket", || {
        place
            .pid()
            .filter(|_| place.appctl(&["version"]).status.success())
    });
    kill(pid, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15));
    assert!(
        text(&output.stderr)
            .ends_with("|fatal_signal|WARN|terminating with signal 15 (Terminated)\n")
    );
    assert_eq!(place.files(), Vec::<String>::new());
}

fn supervision(place: &Home) {
    place.started(&[
        "--detach",
        "--monitor",
        "--pidfile",
        "-vconsole:off",
        "--log-file",
    ]);
    let first = place.pid().unwrap();
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let supervisor = parent_of(first).unwrap();
    assert_eq!(comm(supervisor), "monitor");
    let title = |pid: i32| {
        text(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap())
            .replace('\0', " ")
            .trim()
            .to_owned()
    };
    let original = title(first);
    // The caller may learn that the daemon is ready before the supervisor continues.
    let monitoring = format!("testd: monitoring pid {first} (healthy)");
    eventually("the title of a supervisor", || {
        title(supervisor).starts_with(&monitoring).then_some(())
    });
    // The daemon aborts while it handles the request.
    place.appctl(&["crash"]);
    let second = eventually("a restart", || place.pid().filter(|&pid| pid != first));
    assert_eq!(
        (title(second), comm(second)),
        (original, "testd".to_owned())
    );
    assert_eq!(parent_of(second), Some(supervisor));
    eventually("an answer", || {
        place.appctl(&["version"]).status.success().then_some(())
    });
    place.answer(&["exit"]);
    eventually("the end of the supervisor", || {
        (!is_alive(supervisor)).then_some(())
    });
    let log = std::fs::read_to_string(place.path("testd.log")).unwrap();
    for line in [
        format!(
            "|daemon_unix(monitor)|ERR|1 crashes: pid {first} died, killed (Aborted), restarting\n"
        )
        .replace(
            ", restarting",
            if log.contains("core dumped") {
                ", core dumped, restarting"
            } else {
                ", restarting"
            },
        ),
        "|ovsdb_server(testd)|INFO|testd (Open vSwitch) 3.7.0\n".to_owned(),
        format!("|daemon_unix(monitor)|INFO|pid {second} died, exit status 0, exiting\n"),
    ] {
        assert!(log.contains(&line), "{line} is not in\n{log}");
    }
}

fn last_words(place: &Home) {
    let log_after = |command: &str| {
        place.started(&["--detach", "--pidfile", "-vconsole:off", "--log-file"]);
        let pid = place.pid().unwrap();
        match command {
            "kill" => kill(pid, "-SEGV"),
            _ => assert!(!place.appctl(&[command]).status.success()),
        }
        eventually("its end", || (!is_alive(pid)).then_some(()));
        place.path("testd.log")
    };
    for (fault, function) in [("kill", "play_daemon"), ("recurse", "recurse")] {
        let path = log_after(fault);
        // A copy of the dead process writes functions after the addresses.
        let log = eventually("a function with its line", || {
            let log = std::fs::read_to_string(&path).unwrap();
            let is_known = |line: &str| line.contains(function) && line.contains("process.rs:");
            log.lines().any(is_known).then_some(log)
        });
        std::fs::remove_file(path).unwrap();
        let (_, trace) = log
            .split_once("\nSIGSEGV detected, backtrace:\n")
            .unwrap_or_else(|| panic!("{fault}: {log}"));
        let calls = trace.lines().filter(|line| line.contains("(+0x"));
        assert!(calls.count() > 1, "{log}");
    }
    let log = std::fs::read_to_string(log_after("panic")).unwrap();
    let told = log
        .lines()
        .any(|line| line.contains("|util|EMER|panicked at "));
    assert!(told && log.contains("told to panic"), "{log}");
    // A function, and its source line below it.
    let mut lines = log.lines();
    let is_named = lines.any(|line| line.ends_with(": play_daemon"));
    let line = lines.next().unwrap_or_default();
    assert!(is_named && line.contains("process.rs:"), "{log}");
}

fn deadline(place: &Home) {
    let listener = std::os::unix::net::UnixListener::bind(place.path("s")).unwrap();
    let mut command = place.command(std::env::current_exe().unwrap());
    command
        .env("CORVID_TEST_ROLE", "waiter")
        .env("OVS_CTL_TIMEOUT", "1")
        .arg(format!("unix:{}", place.path("s").display()));
    let output = command.output().unwrap();
    drop(listener);
    assert_eq!(output.status.signal(), Some(14));
    assert!(
        text(&output.stderr)
            .ends_with("|fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n"),
        "{output:?}"
    );
    let error = socket_of("nobody-is-called-so").unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read pidfile \"")
            && error.ends_with("(No such file or directory)"),
        "{error}"
    );
}
