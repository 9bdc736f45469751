//! `corvid servers`, `doctor`, `top` and `bundle`: servers of each kind in one table, what is wrong
//! with them, what they do, and the archive for a bug report.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use corvid_tests::cluster::Cluster;
use corvid_tests::process::Process;
use corvid_tests::pseudo_terminal::{CTRL_C, ENTER, Terminal};
use corvid_tests::server::Implementation::{Corvid, Reference};
use corvid_tests::{binary, limited, one_file, peer};
use serde_json::{Value, json};

use crate::relay::node::{await_contents, relay_of};

const DATABASE: &str = "Lab";

fn schema() -> Value {
    json!({"name": DATABASE, "version": "1.0.0", "tables": {
        "Device": {"isRoot": true, "indexes": [["name"]], "columns": {
            "name": {"type": "string"}, "password": {"type": "string"}}},
        "Connection": {"isRoot": true, "columns": {
            "target": {"type": "string"},
            "inactivity_probe": {"type": {"key": "integer", "min": 0, "max": 1}}}}}})
}

fn address(server: &Process) -> String {
    format!("unix:{}", server.socket().display())
}

/// Runs the program. No control socket of the machine is in its run directory.
fn run(words: &[&str]) -> Output {
    let mut command = Command::new(binary::bin("corvid"));
    command.args(words).env("OVS_RUNDIR", "/nowhere");
    command
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", "/nowhere");
    limited::output(&mut command).expect("corvid")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The rows of `servers`, which must reach one.
fn servers(words: &[&str]) -> Vec<Value> {
    let output = run(&[&["--json", "servers"], words].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    rows.as_array().expect("rows").clone()
}

/// The findings of `doctor`, and its status.
fn doctor(words: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output = run(&[&["doctor", "--json"], words].concat());
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (
        found.as_array().expect("findings").clone(),
        output.status.code(),
    )
}

/// The verdicts of a check.
fn verdicts(found: &[Value], check: &str) -> Vec<String> {
    let of_check = found.iter().filter(|finding| finding["check"] == check);
    of_check
        .map(|finding| finding["verdict"].as_str().expect("a verdict").to_owned())
        .collect()
}

/// The wrong findings, except about the machine that runs the test.
fn wrong(found: &[Value]) -> Vec<String> {
    let is_wrong = |it: &&Value| {
        let is_bad = it["verdict"] == "bad" || it["verdict"] == "warn";
        is_bad && it["check"] != "disk"
    };
    found
        .iter()
        .filter(is_wrong)
        .map(Value::to_string)
        .collect()
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn one_server_is_one_row() {
    let (server, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    let rows = servers(&[&address(&server)]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row["address"], address(&server));
    assert_eq!(
        (&row["database"], &row["model"], &row["state"]),
        (&json!(DATABASE), &json!("standalone"), &json!("ok"))
    );
    assert_eq!((&row["role"], &row["lag"]), (&Value::Null, &Value::Null));
    assert!(row["file_bytes"].as_i64() > Some(0), "{row}");
    assert!(row["sessions"].is_i64(), "{row}");
    assert!(
        row["version"]
            .as_str()
            .is_some_and(|it| it.starts_with("Corvid "))
    );
    // For people.
    let output = run(&[&address(&server), "servers"]);
    assert!(text(&output.stdout).starts_with("address "), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    // The first one must be reached.
    assert_eq!(run(&["servers", "unix:/nowhere"]).status.code(), Some(4));
    assert_eq!(run(&["servers", "ptcp:0"]).status.code(), Some(4));
    for words in [
        &["servers", "--clt=x"][..],
        &["servers", "nosuch"],
        &["--at=HEAD", "servers"],
    ] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
    let meant = run(&["docter"]);
    assert!(text(&meant.stderr).contains("\"doctor\""), "{meant:?}");
    let (found, status) = doctor(&[&address(&server)]);
    assert_eq!(wrong(&found), [""; 0]);
    let has_room = verdicts(&found, "disk") == ["ok"];
    assert_eq!(status, Some(i32::from(!has_room)));
    assert_eq!(verdicts(&found, "reached"), ["ok"]);
    assert_eq!(verdicts(&found, "clocks"), ["ok"]);
}

#[test]
fn a_cluster_with_a_dead_member_is_shown_and_judged() {
    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.start().expect("started");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let all: Vec<String> = cluster.members().iter().map(address).collect();
    let words: Vec<&str> = all.iter().map(String::as_str).collect();
    wait_for("all members follow", || {
        let rows = servers(&words);
        rows.len() == 3
            && rows
                .iter()
                .all(|row| row["lag"] == 0 && row["state"] == "ok")
    });
    let rows = servers(&words);
    let mut roles: Vec<&str> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    roles.sort_unstable();
    assert_eq!(roles, ["follower", "follower", "leader"]);
    assert!(rows.iter().all(|row| row["term"] == rows[0]["term"]));
    assert_eq!(wrong(&doctor(&words).0), [""; 0]);
    // A comma separates servers too.
    let addresses =
        |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["address"].clone()).collect() };
    assert_eq!(addresses(&servers(&[&all.join(",")])), addresses(&rows));

    let dead = (leader + 1) % 3;
    let dead_address = cluster.address(dead);
    cluster.member(dead).kill();
    // The leader alone tells about all three.
    let rows = servers(&[&all[leader]]);
    assert_eq!(rows.len(), 3, "{rows:?}");
    let row = rows.iter().find(|row| row["address"] == dead_address);
    let state = row.expect("the dead member")["state"].as_str();
    assert!(
        state.is_some_and(|it| it.starts_with("not reached: ")),
        "{row:?}"
    );
    wait_for("the doctor misses the member", || {
        let (found, status) = doctor(&[&all[leader]]);
        let heard = verdicts(&found, "members-heard");
        heard.contains(&"bad".to_owned()) && status == Some(1)
    });
    let output = run(&["doctor", &all[leader]]);
    let shown = text(&output.stdout);
    let command = format!(
        "\n         ovs-appctl -t {} cluster/status Lab\n",
        cluster.members()[leader].control_socket().display()
    );
    assert!(
        shown.contains("bad  members-heard ") && shown.contains(&command),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(run(&["--quiet", "doctor", &all[leader]]).stdout.is_empty());
}

#[test]
fn a_relay_shows_its_source() {
    let (source, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    let relay = relay_of(Corvid, DATABASE, &address(&source));
    await_contents(&relay, DATABASE);
    let rows = servers(&[&address(&relay.process)]);
    let shown: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|row| Some((row["address"].as_str()?, row["model"].as_str()?)))
        .collect();
    let addresses = [address(&relay.process), address(&source)];
    assert_eq!(
        shown,
        [
            (addresses[0].as_str(), "relay"),
            (addresses[1].as_str(), "standalone")
        ]
    );
    let mut source = source;
    source.kill();
    wait_for("the relay is cut off", || {
        servers(&[&addresses[0]])[0]["state"] == "cut off from its source"
    });
    let (found, status) = doctor(&[&addresses[0]]);
    assert!(verdicts(&found, "relay").contains(&"bad".to_owned()));
    assert_eq!(verdicts(&found, "reached"), ["bad", "ok"]);
    assert_eq!(status, Some(1));
}

#[test]
fn the_status_comes_from_the_pages_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = format!("unix:{}", folder.path().join("pages.sock").display());
    let option = format!("--metrics-listen={pages}");
    // No control socket is near the second remote.
    let apart = tempfile::tempdir().expect("a folder");
    let remote = format!("unix:{}", apart.path().join("x.sock").display());
    let second = format!("--remote=p{remote}");
    let (server, _, _own) = one_file::start(&schema(), &[&option, &second]).expect("a server");
    let unknown = run(&["servers", &remote]);
    assert!(
        text(&unknown.stderr).contains("--ctl=SOCKET"),
        "{unknown:?}"
    );
    assert!(text(&unknown.stdout).contains(" - "), "{unknown:?}");
    for source in [
        format!("--metrics={pages}"),
        format!("--ctl={}", server.control_socket().display()),
    ] {
        let known = run(&["servers", &source, &remote]);
        assert!(known.stderr.is_empty(), "{known:?}");
        assert!(text(&known.stdout).contains("Corvid "), "{known:?}");
    }
    // A status of another server is noticed.
    let (other, _, _other_folder) = one_file::start(&schema(), &[]).expect("a server");
    let control = format!("--ctl={}", server.control_socket().display());
    let both = run(&["servers", &control, &remote, &address(&other)]);
    assert!(both.stderr.is_empty(), "{both:?}");
    let wrong = run(&["servers", "--ctl=/nowhere.ctl", &remote]);
    assert!(text(&wrong.stderr).contains("/nowhere.ctl: "), "{wrong:?}");
    // A name stands for all of it.
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(home.path().join("corvid")).expect("made");
    std::fs::write(
        home.path().join("corvid/servers.toml"),
        format!("[lab]\naddress = '{remote}'\nmetrics = '{pages}'\n"),
    )
    .expect("written");
    let mut command = Command::new(binary::bin("corvid"));
    command.args(["servers", "lab"]);
    command.env("XDG_CONFIG_HOME", home.path());
    let named = limited::output(&mut command).expect("corvid");
    assert!(text(&named.stdout).contains("Corvid "), "{named:?}");
}

#[test]
fn the_doctor_finds_what_the_operator_has_set() {
    let (server, _, _folder) = one_file::start(&schema(), &["--remote=ptcp:0"]).expect("a server");
    let mut session = server.connect().expect("a connection");
    let row = json!({"op": "insert", "table": "Connection", "row": {"target": "ptcp:1:127.0.0.1\u{1b}[2J", "inactivity_probe": 0}});
    session
        .call("transact", &json!([DATABASE, row]))
        .expect("a reply");
    let level = ["file:raft:dbg".to_owned()];
    server.control("vlog/set", &level).expect("a reply");
    let (found, status) = doctor(&[&address(&server)]);
    for check in ["probes", "log-level", "open-remotes"] {
        assert_eq!(verdicts(&found, check), ["warn"], "{check}");
    }
    assert_eq!((wrong(&found).len(), status), (3, Some(1)));
    // On a terminal no control character of a row gets through.
    let line = format!(
        "stty cols 80 rows 200; {} {} --no-pager doctor",
        binary::bin("corvid").display(),
        address(&server)
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let output = limited::output(&mut command).expect("script of util-linux");
    let shown = text(&output.stdout);
    assert!(shown.contains("127.0.0.1\\u001b[2J"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    // The command mends it.
    let probes = found.iter().find(|it| it["check"] == "probes");
    let command = probes.expect("a finding")["command"].as_str();
    let words: Vec<&str> = command.expect("a command").split(' ').collect();
    assert_eq!(words[0], "corvid");
    assert!(run(&words[1..]).status.success(), "{words:?}");
    let (found, _) = doctor(&[&address(&server)]);
    assert_eq!(verdicts(&found, "probes"), ["ok"]);
}

/// Makes a certificate and its key in a folder; `false` if openssl is not installed.
fn make_certificate(folder: &Path, days: &str) -> bool {
    let at = |name: &str| folder.join(name).display().to_string();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -subj /CN=me".split(' '))
        .args([
            "-days",
            days,
            "-keyout",
            &at("key"),
            "-out",
            &at("certificate"),
        ])
        .output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn certificates_that_end_soon_are_found_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    if !make_certificate(folder.path(), "20") {
        return peer::say_skipped("openssl, which makes certificates, is not installed");
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let tls = [
        format!("--private-key={}", at("key")),
        format!("--certificate={}", at("certificate")),
        format!("--ca-cert={}", at("certificate")),
    ];
    let pages = format!("unix:{}", at("pages.sock"));
    let mut options = vec![
        "--remote=pssl:0:127.0.0.1".to_owned(),
        format!("--metrics-listen={pages}"),
    ];
    options.extend(tls.iter().cloned());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (server, _, _own) = one_file::start(&schema(), &options).expect("a server");
    let port = server.port().expect("a port");
    let remote = format!("ssl:127.0.0.1:{port}");
    let mut words: Vec<&str> = tls.iter().map(String::as_str).collect();
    let metrics = format!("--metrics={pages}");
    words.extend(["--json", "doctor", &metrics, &remote]);
    let output = run(&words);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = found.as_array().expect("findings");
    assert_eq!(verdicts(found, "reached"), ["ok"]);
    assert_eq!(verdicts(found, "certificates"), ["warn", "warn"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_reference_tells_what_it_can() {
    if Reference.server_binary().is_err() {
        return peer::say_skipped("the servers of the reference: it is not installed");
    }
    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.swap(Reference, &[]).expect("swapped");
    cluster.start().expect("started");
    cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let all: Vec<String> = cluster.members().iter().map(address).collect();
    let words: Vec<&str> = all.iter().map(String::as_str).collect();
    wait_for("all members follow", || {
        let rows = servers(&words);
        rows.len() == 3
            && rows
                .iter()
                .all(|row| row["lag"] == 0 && row["state"] == "ok")
    });
    let rows = servers(&words);
    for row in &rows {
        let version = row["version"].as_str().unwrap_or_default();
        assert!(version.starts_with("Open vSwitch "), "{row}");
        assert!(row["term"].as_i64() > Some(0), "{row}");
        assert_eq!(row["file_bytes"], Value::Null);
    }
    // One of them names the others.
    assert_eq!(servers(&words[..1]).len(), 3);
    let (found, _) = doctor(&words);
    assert_eq!(verdicts(&found, "connected"), ["ok", "ok", "ok"]);
    assert_eq!(verdicts(&found, "leader"), ["ok"]);
    assert_eq!(verdicts(&found, "members-odd"), ["ok", "ok", "ok"]);
    assert!(verdicts(&found, "storage").iter().all(|it| it == "unknown"));
}

fn add_device(server: &Process, name: &str, password: &str) {
    let mut session = server.connect().expect("a connection");
    let row =
        json!({"op": "insert", "table": "Device", "row": {"name": name, "password": password}});
    let comment = json!({"op": "comment", "comment": "a device"});
    let reply = session.call("transact", &json!([DATABASE, row, comment]));
    assert!(reply.expect("a reply")["error"].is_null());
}

#[test]
fn top_prints_pictures_for_scripts() {
    let (server, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    add_device(&server, "d1", "x");
    let remote = address(&server);
    let output = run(&["top", "--interval=0.2", "--count=2", &remote]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        shown.matches(&format!("{remote}  Corvid ")).count(),
        2,
        "{shown}"
    );
    let line = shown.lines().find(|line| line.starts_with("Lab "));
    let words: Vec<&str> = line.expect("a row").split_whitespace().collect();
    assert_eq!(words[..2], ["Lab", "standalone"]);
    assert!(words[2].parse::<f64>().is_ok(), "{words:?}");
    assert!(shown.contains("\nsession "), "{shown}");
    for (words, status) in [
        (["top", "--count=0", &remote], 2),
        (["top", "--interval=x", &remote], 2),
        (["top", "--count=1", "unix:/nowhere"], 4),
    ] {
        assert_eq!(run(&words).status.code(), Some(status), "{words:?}");
    }
}

/// Waits until the terminal is as it was: `stty -a` shows no mode that `top` has switched off.
fn await_restored(terminal: &mut Terminal) {
    let is_on = |screen: &str, mode: &str| screen.split_whitespace().any(|word| word == mode);
    terminal.await_screen("the restored terminal", |screen| {
        let screen = screen.replace(';', " ");
        ["icanon", "echo", "isig"]
            .iter()
            .all(|mode| is_on(&screen, mode))
    });
}

#[test]
fn top_redraws_a_terminal_and_gives_it_back() {
    let (server, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    let line = format!(
        "{} {} top --interval=0.2; echo status $?; stty -a",
        binary::bin("corvid").display(),
        address(&server)
    );
    for key in ["q", CTRL_C] {
        let mut terminal = Terminal::start(&line, 100, &[]).expect("script of util-linux");
        terminal.await_text("commits/s");
        terminal.await_text("slow transactions");
        // Other keys change nothing, and are not shown.
        terminal.press("x");
        let drawn = terminal.bytes().len();
        terminal.await_screen("a further picture", |_| true);
        wait_for("another picture", || terminal.bytes().len() > drawn);
        terminal.press(key);
        terminal.await_text("status 0");
        let screen = terminal.screen();
        assert!(!screen.contains("commits/s"), "{screen}");
        await_restored(&mut terminal);
    }
    // A signal ends it too.
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let line = format!(
        "sh -c 'echo $$ >{}; exec {} {} top'; echo status $?; stty -a",
        pid.display(),
        binary::bin("corvid").display(),
        address(&server)
    );
    let mut terminal = Terminal::start(&line, 100, &[]).expect("script of util-linux");
    terminal.await_text("commits/s");
    let pid = std::fs::read_to_string(&pid).expect("its id");
    let killed = Command::new("kill").arg(pid.trim()).status();
    assert!(killed.expect("kill").success());
    terminal.await_text("status 143");
    await_restored(&mut terminal);
}

#[test]
fn the_shell_goes_on_after_top() {
    let (server, _, _folder) = one_file::start(&schema(), &[]).expect("a server");
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path().display().to_string();
    let line = format!("{} {}", binary::bin("corvid").display(), address(&server));
    let variables = [("HOME", home.as_str()), ("XDG_STATE_HOME", "")];
    let mut terminal = Terminal::start(&line, 100, &variables).expect("script of util-linux");
    terminal.await_last("Lab(standalone)> ");
    terminal.press("top --interval=0.2");
    terminal.press(ENTER);
    terminal.await_text("commits/s");
    terminal.press(CTRL_C);
    terminal.await_last("Lab(standalone)> ");
    terminal.press("count Device");
    terminal.press(ENTER);
    terminal.await_text("\n0\n");
    terminal.press("servers");
    terminal.press(ENTER);
    terminal.await_text("file_bytes");
}

/// The files of an archive by name; `None` if its tools are not installed.
fn unpacked(archive: &Path) -> Option<Vec<(String, String)>> {
    let folder = tempfile::tempdir().expect("a folder");
    let status = Command::new("tar")
        .args(["--zstd", "-xf"])
        .arg(archive)
        .arg("-C")
        .arg(folder.path())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        peer::say_skipped("tar with zstd is not installed: the contents of a bundle");
        return None;
    }
    let mut files = Vec::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder.path()).expect("within");
            let bytes = std::fs::read(&path).expect("a file");
            files.push((name.display().to_string(), text(&bytes)));
        }
    }
    Some(files)
}

#[test]
fn a_bundle_has_everything_but_rows_and_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = format!(
        "--metrics-listen=unix:{}",
        folder.path().join("p").display()
    );
    let (server, _, _own) = one_file::start(&schema(), &[&pages]).expect("a server");
    add_device(&server, "device-of-a-customer", "hunter2");
    let remote = address(&server);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let file = at("a.tar.zst");
    let output = run(&[&remote, "bundle", &file]);
    let listed = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(listed.contains("without the contents of rows"), "{listed}");
    // It is private, and is not overwritten.
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&file).expect("a file").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(run(&[&remote, "bundle", &file]).status.code(), Some(1));
    assert_eq!(
        run(&["unix:/nowhere", "bundle", &at("b")]).status.code(),
        Some(4)
    );
    assert!(!Path::new(&at("b")).exists());
    let Some(files) = unpacked(Path::new(&file)) else {
        return;
    };
    let of = |name: &str| {
        let found = files.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    };
    for (name, part) in [
        ("README.txt", "corvid bundle"),
        ("servers.json", "standalone"),
        ("doctor.json", "\"reached\""),
        ("server-1/about.json", "\"Lab\""),
        ("server-1/status.json", "\"descriptors\""),
        ("server-1/metrics.txt", "corvid_build_info"),
        ("server-1/schema-Lab.json", "\"password\""),
        ("server-1/rows-Lab.json", "\"Device\": 1"),
        ("server-1/log.txt", "|INFO|"),
        ("server-1/control/version.txt", "ovsdb-server"),
        ("server-1/control/list-settings.txt", "max-sessions="),
        ("missing.txt", "cluster-status-Lab"),
    ] {
        assert!(of(name).contains(part), "{name}: {}", of(name));
    }
    for (name, text) in &files {
        assert!(listed.contains(name.as_str()), "{name} is not listed");
        assert!(!text.contains("hunter2"), "{name} has a password");
        assert!(!text.contains("device-of-a-customer"), "{name} has a row");
    }

    let whole = at("c.tar.zst");
    let output = run(&[&remote, "--quiet", "bundle", "--with-contents", &whole]);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    let files = unpacked(Path::new(&whole)).expect("as before");
    let contents = files
        .iter()
        .find(|(name, _)| name == "server-1/contents-Lab.json");
    let (_, contents) = contents.expect("contents");
    assert!(contents.contains("device-of-a-customer"), "{contents}");
    assert!(
        contents.contains("(left out)") && !contents.contains("hunter2"),
        "{contents}"
    );
}
