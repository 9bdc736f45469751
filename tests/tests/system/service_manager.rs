//! The notifications for a service manager (`sd_notify`). A datagram socket of the test receives
//! them instead of systemd.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::database_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The service manager, as the test plays it.
struct Manager {
    socket: UnixDatagram,
    /// The lines that have arrived and have not been examined.
    lines: VecDeque<String>,
}

impl Manager {
    fn new(folder: &Path) -> Manager {
        let socket = UnixDatagram::bind(folder.join("notify.sock")).expect("a socket");
        socket.set_read_timeout(Some(LIMIT)).expect("set");
        Manager {
            socket,
            lines: VecDeque::new(),
        }
    }

    fn next(&mut self) -> String {
        let mut datagram = [0; 4096];
        while self.lines.is_empty() {
            let length = self.socket.recv(&mut datagram).expect("a datagram");
            let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
            self.lines.extend(text.lines().map(str::to_owned));
        }
        self.lines.pop_front().expect("there is one")
    }

    /// Returns the notifications up to and including `last`, without signs of life.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut told = Vec::new();
        while told.last().is_none_or(|line| line != last) {
            let line = self.next();
            let is_sign_of_life = line == "WATCHDOG=1" || line.starts_with("EXTEND_TIMEOUT_USEC=");
            if !is_sign_of_life || line == last {
                told.push(line);
            }
        }
        told
    }
}

fn database(folder: &Path, name: &str) {
    let schema = json!({"name": name, "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
    database_file::create(&folder.join(format!("{name}.db")), &schema).expect("a file");
}

#[test]
fn a_manager_is_notified_of_readiness_reloads_exit_and_signs_of_life() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    let mut manager = Manager::new(folder);
    for name in ["A", "B"] {
        database(folder, name);
    }
    let config = folder.join("config.json");
    let configure = |databases: Value| {
        let text = json!({"remotes": {"punix:db.sock": {}}, "databases": databases}).to_string();
        fs::write(&config, text).expect("written");
    };
    configure(json!({"A.db": {}}));
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server =
        Process::without_remote(&program, folder, &["--config-file=config.json".into()])
            .with_variable("NOTIFY_SOCKET", folder.join("notify.sock"))
            .with_variable("WATCHDOG_USEC", "300000");
    server.start().expect("a server");
    let main_pid = format!("MAINPID={}", server.pid());
    assert_eq!(
        manager.until("READY=1"),
        [main_pid.as_str(), "STATUS=serving A", "READY=1"]
    );
    // The signs of life continue although nothing happens, and come more often than the main loop
    // would run by itself.
    for _ in 0..5 {
        manager.until("WATCHDOG=1");
    }

    configure(json!({"A.db": {}, "B.db": {}}));
    let reply = server.control("ovsdb-server/reload", &[]).expect("a reply");
    assert_eq!(reply["error"], Value::Null);
    let told = manager.until("READY=1");
    let [begin, time, status, _] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(begin, "RELOADING=1");
    let time = time.strip_prefix("MONOTONIC_USEC=").expect("a time");
    assert!(time.parse::<u64>().is_ok_and(|time| time > 0), "{time}");
    assert_eq!(status, "STATUS=serving A, B");

    server.stop().expect("a clean end");
    assert_eq!(manager.until("STOPPING=1"), ["STOPPING=1"]);
}

/// Returns the process id in a pidfile that already exists.
fn pid_in(path: &Path) -> u32 {
    let text = fs::read_to_string(path).expect("a pidfile");
    text.trim().parse().expect("a number")
}

fn parent_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.expect("a parent").trim().parse().expect("a number")
}

#[test]
fn the_main_process_is_the_daemon_that_remains() {
    let program = Implementation::Corvid.server_binary().expect("built");
    for options in [&["--detach"][..], &["--detach", "--monitor"]] {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = dir.path();
        let mut manager = Manager::new(folder);
        let place = |option: &str, file: &str| format!("{option}={}", folder.join(file).display());
        let status = Command::new(&program)
            .args(["--no-dbs", "-vconsole:off"])
            .args(options)
            .arg(place("--pidfile", "server.pid"))
            .arg(place("--unixctl", "server.ctl"))
            .env("NOTIFY_SOCKET", folder.join("notify.sock"))
            .env("OVS_RUNDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("started");
        assert!(status.success());
        // The caller has continued, so the service manager must already have been notified.
        // Otherwise it would take the end of the caller for the end of the service.
        manager.socket.set_nonblocking(true).expect("set");
        let told = manager.until("READY=1");
        manager.socket.set_nonblocking(false).expect("set");
        let server = pid_in(&folder.join("server.pid"));
        let main = match options {
            [_] => server,
            _ => parent_of(server),
        };
        assert_eq!(told[0], format!("MAINPID={main}"), "{options:?}");
        assert_eq!(told[1], "STATUS=serving no database");

        // The manager is notified of the end, whatever its cause is.
        if let [_] = options {
            let killed = Command::new("kill").arg(server.to_string()).status();
            assert!(killed.expect("started").success());
        } else {
            let control = Client::connect(&folder.join("server.ctl"));
            let reply = control.and_then(|mut control| control.call("exit", &json!([])));
            assert_eq!(reply.expect("a reply")["error"], Value::Null);
        }
        manager.until("STOPPING=1");
        let deadline = Instant::now() + LIMIT;
        while [server, main].iter().any(|pid| is_running(*pid)) {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether a process exists and is not a zombie.
fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}
