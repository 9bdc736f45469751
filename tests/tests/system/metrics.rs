//! The health and metrics pages (`--metrics-listen`). Their contents follow what happens, common
//! parsers read them, and they are available whatever the server does. Readiness follows the state
//! of the disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::http::{self, Answer};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use corvid_tests::small_disk::on_small_disk;
use corvid_tests::{database_file, peer, troubled_disk};
use serde_json::{Value, json};
use tempfile::TempDir;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0";
/// The header that Prometheus sends.
const OF_PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
     text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
/// The time limit for a condition to become true on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server with a database `D` and its pages on a Unix socket.
struct Watched {
    process: Process,
    home: TempDir,
}

impl Watched {
    fn start() -> Watched {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("D.db");
        Watched::start_on(home, &file, |process, _| process)
    }

    /// Starts a server with the database in `file`. `prepare` gets the process before it is
    /// started.
    fn start_on(
        home: TempDir,
        file: &Path,
        prepare: impl FnOnce(Process, &Path) -> Process,
    ) -> Watched {
        Watched::start_with(home, file, &[], prepare)
    }

    /// Like `start_on`, with more options.
    fn start_with(
        home: TempDir,
        file: &Path,
        options: &[&str],
        prepare: impl FnOnce(Process, &Path) -> Process,
    ) -> Watched {
        let columns = json!({"n": {"type": "integer"}, "text": {"type": "string"}});
        let schema = json!({"name": "D", "tables": {"T": {"columns": columns, "isRoot": true}}});
        database_file::create(file, &schema).expect("a file");
        let pages = home.path().join("http");
        let program = Implementation::Corvid.server_binary().expect("built");
        let option = format!("--metrics-listen=unix:{}", pages.display());
        let mut arguments = vec![option.into(), file.into()];
        arguments.extend(options.iter().map(Into::into));
        let process = Process::new(&program, home.path(), &arguments);
        let mut process = prepare(process, home.path());
        process.start().expect("a server");
        Watched { process, home }
    }

    fn get(&self, path: &str, accept: &str) -> Answer {
        http::get(&self.home.path().join("http"), path, accept).expect("an answer")
    }

    fn metrics(&self) -> Figures {
        let answer = self.get("/metrics", OPENMETRICS);
        assert_eq!(answer.status, 200);
        Figures(answer.body)
    }

    fn status_of(&self, path: &str) -> u16 {
        self.get(path, "*/*").status
    }

    fn wait_for(&self, what: &str, mut is_there: impl FnMut() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !is_there() {
            assert!(Instant::now() < deadline, "{what}\n{}", self.process.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The text of a scrape.
struct Figures(String);

impl Figures {
    /// Returns the value of the sample with exactly this name and these labels.
    fn of(&self, sample: &str) -> f64 {
        let line = self.0.lines().find_map(|line| {
            let value = line.strip_prefix(sample)?.strip_prefix(' ')?;
            value.parse().ok()
        });
        line.unwrap_or_else(|| panic!("no {sample} in\n{}", self.0))
    }
}

fn transact(client: &mut Client, operations: &[Value]) -> Value {
    let mut params = vec![json!("D")];
    params.extend_from_slice(operations);
    let reply = client.call("transact", &Value::Array(params));
    reply.expect("a reply")["result"].clone()
}

fn insert(number: u64) -> Value {
    json!({"op": "insert", "table": "T", "row": {"n": number}})
}

/// Inserts a row in a transaction that must be on disk before it is answered.
fn insert_durably(client: &mut Client, number: u64) -> Value {
    let durable = json!({"op": "commit", "durable": true});
    transact(client, &[insert(number), durable])
}

#[test]
fn metrics_are_exported_and_move_with_load() {
    let watched = Watched::start();
    let before = watched.metrics();
    let mut client = watched.process.connect().expect("a connection");
    let mut monitor = watched.process.connect().expect("a connection");
    let nothing_known = "00000000-0000-0000-0000-000000000000";
    let tables = json!({"T": [{"columns": ["n"]}]});
    let subscription = json!(["D", "m", tables, nothing_known]);
    monitor
        .call("monitor_cond_since", &subscription)
        .expect("a reply");
    for number in 0..20 {
        let comment = json!({"op": "comment", "comment": "x"});
        transact(&mut client, &[insert(number), comment]);
        // An update that is not read would be merged with the next one.
        let update = monitor.receive(LIMIT).expect("no error");
        assert!(matches!(update, Received::Text(_)), "{update:?}");
        let drained = "corvid_session_drain_seconds_count";
        watched.wait_for("the update is drained", || {
            watched.metrics().of(drained) >= (number + 1) as f64
        });
    }
    transact(
        &mut client,
        &[json!({"op": "select", "table": "T", "where": []})],
    );
    for _ in 0..2 {
        transact(&mut client, &[json!({"op": "abort"})]);
    }
    insert_durably(&mut client, 21);
    client.call("lock", &json!(["a"])).expect("a reply");
    monitor.call("lock", &json!(["a"])).expect("a reply");

    // The server notices a moment later whether a client has read everything.
    let drained = "corvid_session_drain_seconds_count";
    watched.wait_for("updates are drained", || {
        watched.metrics().of(drained) >= 21.0
    });
    let after = watched.metrics();
    let grew = |sample: &str| after.of(sample) - before.of(sample);
    let of_d = |name: &str| format!("corvid_database_{name}{{database=\"D\"}}");
    let labelled =
        |name: &str, label: &str| format!("corvid_database_{name}{{database=\"D\",{label}}}");
    for (name, label, count) in [
        ("transactions_total", "outcome=\"committed\"", 21.0),
        ("transactions_total", "outcome=\"unchanged\"", 1.0),
        ("transactions_total", "outcome=\"failed\"", 2.0),
        ("operations_total", "operation=\"insert\"", 21.0),
        ("operations_total", "operation=\"comment\"", 20.0),
        ("updates_total", "method=\"update3\"", 21.0),
    ] {
        assert_eq!(grew(&labelled(name, label)), count, "{name} {label}");
    }
    // This metric is absent before the first error.
    let aborted = labelled("transaction_errors_total", "error=\"aborted\"");
    assert_eq!(after.of(&aborted), 2.0);
    assert_eq!(after.of(&labelled("rows", "table=\"T\"")), 21.0);
    assert_eq!(grew(&of_d("execute_seconds_count")), 24.0);
    assert_eq!(grew(&of_d("transaction_seconds_count")), 24.0);
    assert!(grew(&of_d("transaction_seconds_sum")) >= grew(&of_d("execute_seconds_sum")));
    assert!(grew(&of_d("write_seconds_count")) >= 1.0);
    assert!(
        after.of(&of_d("sync_seconds_count")) >= 2.0,
        "at the start, and for one commit"
    );
    assert!(grew(&of_d("fanout_seconds_count")) >= 1.0);
    assert_eq!(grew(&of_d("written_records_total")), 21.0);
    let written = grew(&of_d("written_bytes_total"));
    assert_eq!(grew(&of_d("file_bytes")), written);
    let length = fs::metadata(watched.home.path().join("D.db"))
        .expect("the file")
        .len();
    assert_eq!(after.of(&of_d("file_bytes")), length as f64);
    assert_eq!(after.of(&of_d("monitors")), 1.0);
    assert_eq!(after.of("corvid_sessions"), 2.0);
    assert_eq!(
        (
            after.of("corvid_locks_held"),
            after.of("corvid_lock_waiters")
        ),
        (1.0, 1.0)
    );
    assert!(
        grew("corvid_session_received_bytes_total") > 1000.0
            && grew("corvid_session_sent_bytes_total") > 1000.0
    );
    assert!(after.of("corvid_allocator_bytes{kind=\"allocated\"}") > 100_000.0);
    assert!(after.of("process_resident_memory_bytes") > 1_000_000.0);
    assert!(after.of("process_open_fds") > 5.0);

    drop(client);
    let closed = "corvid_sessions_closed_total{reason=\"client\"}";
    let so_far = after.of(closed);
    watched.wait_for("the end is counted", || {
        watched.metrics().of(closed) == so_far + 1.0
    });
    let reply = watched.process.control("ovsdb-server/compact", &[]);
    assert_eq!(reply.expect("a reply")["error"], Value::Null);
    let compacted = of_d("compaction_seconds_count");
    watched.wait_for("the compaction is counted", || {
        watched.metrics().of(&compacted) == 1.0
    });
    assert!(watched.metrics().of(&of_d("file_compacted_bytes")) > 0.0);
}

#[test]
fn pages_are_where_they_should_be_and_no_others() {
    let watched = Watched::start();
    assert_eq!(watched.get("/livez", "*/*").body, "ok\n");
    assert_eq!(watched.get("/readyz", "*/*").body, "ok\n");
    let listed = watched.get("/readyz?verbose&exclude=storage:D", "*/*");
    let lines: Vec<&str> = listed.body.lines().collect();
    let expected = [
        "[+]databases ok",
        "[+]shutdown ok",
        "[+]storage:D excluded: ok",
        "[+]storage:_Server ok",
        "[+]thread:db:D ok",
        "[+]thread:db:_Server ok",
        "[+]thread:shard0 ok",
    ];
    assert_eq!(lines[..expected.len()], expected);
    assert_eq!(lines.last(), Some(&"readyz check passed"));
    assert_eq!(watched.status_of("/metrics/"), 404);
    assert_eq!(watched.status_of("/readyz/D"), 404);
    let preferred = watched.get("/metrics", OF_PROMETHEUS);
    assert!(
        preferred
            .head
            .contains("application/openmetrics-text; version=1.0.0")
    );
    assert!(preferred.body.ends_with("\n# EOF\n"));
    let older = watched.get("/metrics", "*/*");
    assert!(
        older.head.contains("text/plain; version=0.0.4"),
        "{}",
        older.head
    );
    assert!(!older.body.contains("# EOF"));
}

#[test]
fn databases_have_metrics_while_they_are_served() {
    let watched = Watched::start();
    let spare = watched.home.path().join("E.db");
    database_file::create(&spare, &json!({"name": "E", "tables": {}})).expect("a file");
    let control = |command: &str, argument: &str| {
        let reply = watched.process.control(command, &[argument.to_owned()]);
        assert_eq!(reply.expect("a reply")["error"], Value::Null);
    };
    let atoms = "corvid_database_atoms{database=\"E\"} ";
    control("ovsdb-server/add-db", &spare.display().to_string());
    assert!(watched.metrics().0.contains(atoms));
    assert!(
        watched
            .get("/readyz?verbose", "*/*")
            .body
            .contains("[+]storage:E ok\n")
    );
    control("ovsdb-server/remove-db", "E");
    assert!(!watched.metrics().0.contains(atoms));
    assert_eq!(watched.status_of("/livez"), 200);
}

#[test]
fn clients_refused_by_limits_are_counted() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("D.db");
    let options = ["--max-sessions=1", "--max-message-size=1M"];
    let watched = Watched::start_with(home, &file, &options, |process, _| process);
    // The connection that checked whether the server has started may still be open.
    let mut client = None;
    watched.wait_for("a place is free", || {
        let mut found = watched.process.connect().expect("a connection");
        let is_served = found.call("echo", &json!([])).is_ok();
        client = is_served.then_some(found);
        is_served
    });
    let mut client = client.expect("just found");
    let refused_before = watched.metrics().of("corvid_sessions_refused_total");
    let mut second = watched.process.connect().expect("a connection");
    let refused = second.receive(LIMIT).expect("no error");
    assert!(matches!(refused, Received::Closed), "{refused:?}");
    let figures = watched.metrics();
    assert_eq!(figures.of("corvid_sessions_limit"), 1.0);
    let refused = figures.of("corvid_sessions_refused_total") - refused_before;
    assert_eq!(refused, 1.0);
    assert_eq!(figures.of("corvid_sessions"), 1.0);
    // The connection may be closed before everything is sent.
    let _ = client.send(format!("[\"{}", "x".repeat(2 << 20)).as_bytes());
    let closed = "corvid_sessions_closed_total{reason=\"limit\"}";
    watched.wait_for("it is dropped", || watched.metrics().of(closed) == 1.0);
}

#[test]
fn tls_connections_and_the_certificates_expiry_are_exported() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=me".split(' '))
        .args(["-keyout", &at("key"), "-out", &at("certificate")])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        peer::say_skipped("openssl is not installed: metrics of TLS");
        return;
    }
    let (file, certificate) = (home.path().join("D.db"), at("certificate"));
    let options = [
        "--remote=pssl:0:127.0.0.1".to_owned(),
        format!("--private-key={}", at("key")),
        format!("--certificate={certificate}"),
        format!("--ca-cert={certificate}"),
    ];
    let options = options.each_ref().map(String::as_str);
    let watched = Watched::start_with(home, &file, &options, |process, _| process);
    let expiry = watched
        .metrics()
        .of("corvid_tls_certificate_expiry_timestamp_seconds");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a time");
    let days = (expiry - now.as_secs_f64()) / 86_400.0;
    assert!((29.0..=30.0).contains(&days), "{days}");

    let handshakes = |result: &str| {
        let name = format!("corvid_tls_handshakes_total{{result=\"{result}\"}}");
        watched.metrics().of(&name)
    };
    let port = watched.process.port().expect("a port");
    let mut stranger = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).expect("accepted");
    stranger.write_all(b"this is no handshake\n").expect("sent");
    watched.wait_for("the failure is counted", || handshakes("failed") == 1.0);
    assert_eq!(handshakes("ok"), 0.0);
    let server = Implementation::Corvid.server_binary().expect("built");
    let listed = Command::new(server.with_file_name("ovsdb-client"))
        .arg(format!(
            "--private-key={}",
            watched.home.path().join("key").display()
        ))
        .args([
            format!("--certificate={certificate}"),
            format!("--ca-cert={certificate}"),
        ])
        .args(["list-dbs".to_owned(), format!("ssl:127.0.0.1:{port}")])
        .output()
        .expect("run");
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!((handshakes("ok"), handshakes("failed")), (1.0, 1.0));
}

#[test]
fn a_sync_that_fails_makes_the_server_not_ready_until_it_is_compacted() {
    let home = tempfile::tempdir().expect("a directory");
    let (file, trigger) = (home.path().join("D.db"), home.path().join("trigger"));
    let watched = Watched::start_on(home, &file, |process, folder| {
        process
            .with_variable("LD_PRELOAD", troubled_disk::library(folder))
            .with_variable(troubled_disk::WHILE, &trigger)
            .with_variable(troubled_disk::SYNC_ERRNO, "5")
    });
    let mut client = watched.process.connect().expect("a connection");
    let is_refused = |result: &Value| result.to_string().contains("I/O error");
    assert!(!is_refused(&insert_durably(&mut client, 1)));
    assert_eq!(watched.status_of("/readyz"), 200);

    fs::write(&trigger, "").expect("a file");
    assert!(is_refused(&insert_durably(&mut client, 2)));
    let refused = watched.get("/readyz", "*/*");
    assert_eq!(refused.status, 503, "{}", refused.body);
    let why = "[-]storage:D failed: a sync has failed";
    assert!(refused.body.contains(why), "{}", refused.body);
    // If a manager killed the server for this reason, the next server would trust the disk.
    assert_eq!(watched.status_of("/livez"), 200);
    let figures = watched.metrics();
    let of_d = |name: &str| format!("corvid_database_{name}{{database=\"D\"}}");
    assert_eq!(figures.of("corvid_ready"), 0.0);
    assert_eq!(figures.of(&of_d("storage_poisoned")), 1.0);
    assert_eq!(figures.of(&of_d("storage_failed")), 1.0);
    let unstored = "corvid_database_transactions_total{database=\"D\",outcome=\"storage_error\"}";
    assert_eq!(figures.of(unstored), 1.0);
    assert_eq!(watched.status_of("/readyz?exclude=storage"), 200);

    fs::remove_file(&trigger).expect("it is there");
    assert_eq!(
        watched.status_of("/readyz"),
        503,
        "the contents of the disk are unknown"
    );
    let reply = watched.process.control("ovsdb-server/compact", &[]);
    assert_eq!(reply.expect("a reply")["error"], Value::Null);
    assert_eq!(watched.status_of("/readyz"), 200);
    assert_eq!(watched.metrics().of(&of_d("storage_poisoned")), 0.0);
    assert!(!is_refused(&insert_durably(&mut client, 3)));
    assert_eq!(watched.metrics().of(&of_d("storage_failed")), 0.0);
}

/// If the server were not ready, no client would come whose write could find out that there is room
/// again.
#[test]
fn a_full_disk_is_exported_and_leaves_the_server_ready() {
    on_small_disk(
        "metrics::a_full_disk_is_exported_and_leaves_the_server_ready",
        |disk| {
            let home = tempfile::tempdir().expect("a directory");
            let watched = Watched::start_on(home, &disk.file("D.db"), |process, _| process);
            let mut client = watched.process.connect().expect("a connection");
            disk.take_all_but(0).expect("room to take");
            let text = "x".repeat(100_000);
            let row = json!({"op": "insert", "table": "T", "row": {"text": text}});
            assert!(
                transact(&mut client, std::slice::from_ref(&row))
                    .to_string()
                    .contains("I/O error")
            );
            let failed = "corvid_database_storage_failed{database=\"D\"}";
            assert_eq!(watched.metrics().of(failed), 1.0);
            assert_eq!(
                (watched.status_of("/readyz"), watched.status_of("/livez")),
                (200, 200)
            );
            disk.give_back().expect("it was taken");
            assert!(
                !transact(&mut client, &[row])
                    .to_string()
                    .contains("I/O error")
            );
            assert_eq!(watched.metrics().of(failed), 0.0);
        },
    );
}

#[test]
fn metrics_are_exported_during_a_long_transaction() {
    // A fast machine may finish a transaction between two reads of the metrics. So each transaction
    // is twice as long as the previous one, until the metrics are read during a transaction.
    const FIRST_ROWS: usize = 250_000;
    const LAST_ROWS: usize = 16 * FIRST_ROWS;
    let watched = Watched::start();
    let was_busy = AtomicBool::new(false);
    let is_done = AtomicBool::new(false);
    let inserted = AtomicUsize::new(0);
    let unresponsive = "corvid_thread_unresponsive_seconds{thread=\"db:D\"}";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = watched.process.connect().expect("a connection");
            let operation = insert(1).to_string();
            let mut rows = FIRST_ROWS;
            while !was_busy.load(Ordering::Acquire) && rows <= LAST_ROWS {
                let operations = vec![operation.as_str(); rows].join(",");
                let request =
                    format!(r#"{{"id":1,"method":"transact","params":["D",{operations}]}}"#);
                client.send(request.as_bytes()).expect("sent");
                let reply = client.receive(2 * LIMIT).expect("no error");
                assert!(matches!(reply, Received::Text(_)), "{reply:?}");
                inserted.fetch_add(rows, Ordering::AcqRel);
                rows *= 2;
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            if watched.metrics().of(unresponsive) > 0.02 {
                was_busy.store(true, Ordering::Release);
            }
            assert_eq!(watched.status_of("/livez"), 200);
        }
    });
    assert!(
        was_busy.load(Ordering::Acquire),
        "no transaction was long enough to prove anything"
    );
    let rows = "corvid_database_rows{database=\"D\",table=\"T\"}";
    watched.wait_for("rows are told", || {
        watched.metrics().of(rows) == inserted.load(Ordering::Acquire) as f64
    });
}

#[test]
fn a_bad_address_is_fatal() {
    let program = Implementation::Corvid.server_binary().expect("built");
    let home = tempfile::tempdir().expect("a directory");
    let fails = |address: &str, why: &str| {
        let output = Command::new(&program)
            .args(["--no-dbs", "--unixctl=none", "-vconsole:off"])
            .arg(format!("--metrics-listen={address}"))
            .env("OVS_RUNDIR", home.path())
            .output()
            .expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{address}: {said}");
        assert_eq!(
            said,
            format!("ovsdb-server: --metrics-listen={address}: {why}\n")
        );
    };
    fails("9476", "expected HOST:PORT or unix:FILE");
    fails("127.0.0.1:many", "\"many\" is not a port number");
    fails("::1:9476", "an IPv6 address must be in brackets");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    fails(&address, "could not listen (Address already in use)");
}

#[test]
fn a_port_that_the_system_chose_is_logged() {
    let home = tempfile::tempdir().expect("a directory");
    let program = Implementation::Corvid.server_binary().expect("built");
    let arguments = ["--metrics-listen=127.0.0.1:0".into(), "--no-dbs".into()];
    let mut process = Process::new(&program, home.path(), &arguments);
    process.start().expect("a server");
    let log = process.log();
    let port = log.split_once("127.0.0.1:0: listening on port ");
    let port = port.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    let port = port.unwrap_or_else(|| panic!("no port in\n{log}"));
    let answer = http::get_from_port(port, "/readyz", "*/*").expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

/// Reads both formats with the parsers of the Python client library, which are strict, and with
/// `promtool` if it is installed.
#[test]
fn common_parsers_accept_the_metrics() {
    const READER: &str = "import sys\n\
        from prometheus_client import parser\n\
        from prometheus_client.openmetrics import parser as openmetrics\n\
        read = {'openmetrics': openmetrics, 'plain': parser}[sys.argv[1]]\n\
        for family in read.text_string_to_metric_families(open(sys.argv[2]).read()):\n\
        \x20   print(family.name, family.type, len(family.samples), len(family.documentation))\n";
    let watched = Watched::start();
    let mut client = watched.process.connect().expect("a connection");
    transact(&mut client, &[insert(1)]);
    transact(&mut client, &[json!({"op": "abort"})]);
    let file = watched.home.path().join("metrics.txt");
    let python = std::env::var_os("INTEROP_VENV_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python"),
        PathBuf::from,
    );
    let has_library = Command::new(&python)
        .args(["-c", "import prometheus_client"])
        .output()
        .is_ok_and(|output| output.status.success());
    for (format, accept) in [("openmetrics", OPENMETRICS), ("plain", "text/plain")] {
        let text = watched.get("/metrics", accept).body;
        fs::write(&file, &text).expect("a file");
        if has_library {
            let mut reader = Command::new(&python);
            reader.args(["-c", READER, format]).arg(&file);
            let read = peer::run(&mut reader).expect("text that the parser accepts");
            let families = text
                .lines()
                .filter(|line| line.starts_with("# TYPE "))
                .count();
            assert_eq!(read.lines().count(), families, "{read}");
            assert!(
                read.lines()
                    .any(|line| line.starts_with("corvid_database_transactions counter "))
            );
            assert!(!read.contains(" unknown "), "{read}");
        } else {
            peer::say_skipped("prometheus_client is not installed: tests/setup/venv.sh");
        }
    }
    let text = fs::File::open(&file).expect("a file");
    let checked = promtool(&["check", "metrics"], text.into());
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
}

/// Runs the checker of Prometheus, if it is installed, and returns its complaints.
fn promtool(arguments: &[&str], input: Stdio) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = root.join(".venv/bin/promtool");
    let program = if own.exists() { own } else { "promtool".into() };
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root.join("contrib/monitoring"))
        .stdin(input)
        .output();
    match output {
        Err(_) => {
            peer::say_skipped("promtool is not there (tests/setup/promtool.sh)");
            Ok(())
        }
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{output:?}")),
    }
}

/// Returns the names of the samples that a scrape shows or could show.
fn sample_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    names
}

/// Returns the words of a text that look like metrics.
fn names_in(text: &str) -> BTreeSet<String> {
    text.split(|found: char| !found.is_ascii_alphanumeric() && found != '_')
        .filter(|word| word.starts_with("corvid_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dashboard_and_alerts_use_metrics_that_exist() {
    let watched = Watched::start();
    let exported = sample_names(&watched.metrics().0);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/monitoring");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("JSON");
    let expressions: Vec<String> = dashboard["panels"]
        .as_array()
        .expect("panels")
        .iter()
        .flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default())
        .map(|target| target["expr"].as_str().expect("an expression").to_owned())
        .collect();
    assert!(expressions.len() > 40);
    for (what, text) in [
        ("dashboard", dashboard.to_string()),
        ("alerts", read("alerts.yaml")),
    ] {
        let used = names_in(&text);
        assert!(used.len() > 10, "{what}: {used:?}");
        let strangers: Vec<_> = used.difference(&exported).collect();
        assert!(strangers.is_empty(), "{what}: {strangers:?}");
    }
    // There must be a panel or an alert for each metric, except for those that explain others.
    let used: BTreeSet<String> = names_in(&(expressions.join(" ") + &read("alerts.yaml")));
    let unused: Vec<&str> = exported
        .iter()
        .filter(|name| name.starts_with("corvid_") && !used.contains(*name))
        .map(String::as_str)
        .filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"))
        .collect();
    let expected = [
        "corvid_build_info",
        "corvid_database_atoms",
        "corvid_database_compaction_seconds_bucket",
        "corvid_database_file_appended_records",
        "corvid_database_history_atoms",
        "corvid_database_history_bytes",
        "corvid_database_history_commits",
        "corvid_database_history_files",
        "corvid_database_history_oldest_timestamp_seconds",
        "corvid_database_report_age_seconds",
        "corvid_database_written_records_total",
    ];
    assert_eq!(unused, expected);
}

#[test]
fn alerts_fire_when_they_should() {
    let checked = promtool(&["check", "rules", "alerts.yaml"], Stdio::null());
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
    let fired = promtool(&["test", "rules", "alerts-test.yaml"], Stdio::null());
    assert!(fired.is_ok(), "{}", fired.unwrap_err());
}
