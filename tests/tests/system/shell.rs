//! The shell of `corvid`, as a person uses it in a terminal, and as a script does.

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::daemon::Daemon;
use corvid_tests::pseudo_terminal::{CTRL_A, CTRL_C, CTRL_D, ENTER, TAB, Terminal, UP};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Deserializer, Value, json};
use tempfile::TempDir;

/// The time limit for a condition on a machine that stalls.
const LIMIT: Duration = Duration::from_secs(90);
const PROMPT: &str = "db.sock/Lab(standalone)> ";
const OPEN_PROMPT: &str = "db.sock/Lab(standalone)*> ";

fn schema() -> Value {
    json!({"name": "Lab", "version": "1.0.0", "tables": {
        "Device": {"isRoot": true, "indexes": [["name"]], "columns": {
            "name": {"type": "string"},
            "role": {"type": {"key": {"type": "string", "enum": ["set", ["leaf", "spine"]]}, "min": 0, "max": 1}},
            "labels": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
        "Site": {"isRoot": true, "columns": {"name": {"type": "string"}}}}})
}

/// A server with the devices `web-1` and `web-2`, and a home for the shell's files.
struct Lab {
    server: Server,
    home: TempDir,
}

impl Lab {
    fn new() -> Lab {
        let setup = Setup {
            databases: vec![schema()],
            ..Setup::default()
        };
        let lab = Lab {
            server: Server::start(Implementation::Corvid, &setup).expect("a server"),
            home: tempfile::tempdir().expect("a directory"),
        };
        lab.insert(&["web-1", "web-2"]);
        lab
    }

    fn insert(&self, names: &[&str]) {
        let rows = names.iter().map(|name| {
            json!({"op": "insert", "table": "Device", "row": {"name": name, "labels": ["map", [["rack", "b11"]]]}})
        });
        let params: Vec<Value> = std::iter::once(json!("Lab")).chain(rows).collect();
        let mut client = self.server.connect().expect("a connection");
        let reply = client.call("transact", &json!(params)).expect("a reply");
        assert!(reply["error"].is_null(), "{reply}");
    }

    /// The names of the sites.
    fn sites(&self) -> Vec<String> {
        let select =
            json!(["Lab", {"op": "select", "table": "Site", "where": [], "columns": ["name"]}]);
        let mut client = self.server.connect().expect("a connection");
        let reply = client.call("transact", &select).expect("a reply");
        let rows = reply["result"][0]["rows"].as_array().expect("rows");
        rows.iter()
            .map(|row| row["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.server.socket().display())
    }

    fn terminal(&self, columns: u16, variables: &[(&str, &str)]) -> Terminal {
        let program = binary::bin("corvid").display().to_string();
        let home = self.home.path().display().to_string();
        let mut all = vec![
            ("HOME", home.as_str()),
            ("XDG_STATE_HOME", ""),
            ("XDG_CONFIG_HOME", ""),
        ];
        all.extend(variables);
        let line = format!("{program} {}; echo status $?; stty -a", self.remote());
        Terminal::start(&line, columns, &all).expect("script of util-linux")
    }

    /// A shell that shows its prompt.
    fn shell(&self) -> Terminal {
        let mut terminal = self.terminal(80, &[]);
        terminal.await_last(PROMPT);
        terminal
    }
}

/// Runs the shell without a terminal: its status, output and errors.
fn script(arguments: &[&str], home: &Path, input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(binary::bin("corvid"))
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("corvid");
    // A program that ends early does not read everything.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("an end");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn lines_are_edited_run_and_remembered() {
    let lab = Lab::new();
    let mut shell = lab.shell();
    shell.press("ount Device");
    shell.await_last("ount Device");
    shell.press(CTRL_A);
    shell.press("c");
    shell.await_last("> count Device");
    shell.press(ENTER);
    shell.await_text("> count Device\n2\n");
    // A quote continues the line.
    shell.press("create Site name='two");
    shell.press(ENTER);
    shell.press("lines'");
    shell.press(ENTER);
    shell.await_screen("a prompt", |_| lab.sites() == ["two\nlines"]);
    // A slip is named, and the shell goes on.
    shell.press("count Devcie\r");
    shell.await_text("did you mean \"Device\"?");
    shell.press("comit\r");
    shell.await_text("did you mean \"commit\"?");
    // Between two prompts the terminal would take Ctrl-D for an end of its own.
    shell.await_last(PROMPT);
    shell.press(CTRL_D);
    shell.await_text("status 0");
    drop(shell);
    // The next shell knows the lines.
    let mut shell = lab.shell();
    shell.press(UP);
    shell.await_last("> comit");
    shell.press(UP);
    shell.await_last("> count Devcie");
    shell.press(CTRL_C);
    shell.await_last(PROMPT);
}

#[test]
fn names_are_completed_and_types_are_hinted() {
    let lab = Lab::new();
    let mut shell = lab.shell();
    for (keys, seen) in [
        ("set", "> set TABLE RECORD"),
        ("Dev", "> set Device RECORD"),
        ("w", "> set Device web-"),
        ("1 ro", "> set Device web-1 role= optional leaf|spine"),
        ("s", "> set Device web-1 role=spine"),
        ("la", "> set Device web-1 role=spine labels:"),
        ("ra", "> set Device web-1 role=spine labels:rack="),
    ] {
        shell.press(keys);
        // A question to a server that stalls has no answer: Tab asks again.
        let end = Instant::now() + LIMIT;
        loop {
            shell.press(TAB);
            let soon = Instant::now() + Duration::from_secs(3);
            let mut screen = shell.screen();
            while !screen.contains(seen) && Instant::now() < soon {
                std::thread::sleep(Duration::from_millis(10));
                screen = shell.screen();
            }
            if screen.contains(seen) {
                break;
            }
            assert!(Instant::now() < end, "{seen}:\n{screen}");
        }
    }
    shell.press("b12\r");
    shell.await_last(PROMPT);
    shell.press("get Device web-1 role labels\r");
    shell.await_text("spine\n{rack=b12}");
}

#[test]
fn a_large_table_is_not_fetched_for_a_name() {
    let lab = Lab::new();
    let names: Vec<String> = (0..20_000)
        .map(|number| format!("big-{number:040}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lab.insert(&names);
    let mut shell = lab.shell();
    shell.press("list Device big");
    shell.await_last("> list Device big");
    for _ in 0..3 {
        shell.press(TAB);
    }
    shell.press("-x\r");
    shell.await_text("no row \"big-x\" in table Device");
    shell.press("count Device\r");
    shell.await_text("20002");
}

#[test]
fn ctrl_c_cancels_the_command_and_not_the_shell() {
    let lab = Lab::new();
    let mut shell = lab.shell();
    for number in 1..3 {
        shell.press("wait-until Site nosuch\r");
        shell.await_command();
        shell.press(CTRL_C);
        shell.await_screen("cancelled", |screen| {
            screen.matches("\ncancelled\n").count() == number
        });
        shell.await_last(PROMPT);
    }
    shell.press("watch Device\r");
    shell.await_text("+ web-2");
    shell.press(CTRL_C);
    shell.await_screen("cancelled", |screen| {
        screen.matches("\ncancelled\n").count() == 3
    });
    shell.await_last(PROMPT);
    // A line that is being typed is dropped.
    shell.press("count Dev");
    shell.await_last("count Dev");
    shell.press(CTRL_C);
    shell.await_last(PROMPT);
    shell.press("count Device\r");
    shell.await_text("> count Device\n2\n");
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let mut lab = Lab::new();
    let mut shell = lab.shell();
    lab.server.restart().expect("a server");
    shell.press("count Device\r");
    shell.await_text("was lost; connecting again");
    shell.await_text("\n2\n");
    shell.await_last(PROMPT);
    // In the middle of a command.
    shell.press("wait-until Site berlin\r");
    shell.await_command();
    lab.server.restart().expect("a server");
    shell.press(CTRL_C);
    shell.await_text("\ncancelled\n");
    // The connection may be lost at this moment.
    shell.await_last("> ");
    shell.press("create Site name=berlin\r");
    shell.await_screen("the site", |_| lab.sites() == ["berlin"]);
}

/// Serves `Lab` to one client. Returns when the client has answered a probe, which is sent after
/// the last question before the first prompt.
fn probe(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().expect("a client");
    let messages = Deserializer::from_reader(stream.try_clone().expect("a stream"));
    let mut is_informed = false;
    for message in messages.into_iter::<Value>() {
        let message = message.expect("a message");
        if message["id"] == "probe" {
            assert_eq!(message["result"], json!(["are you there"]));
            return;
        }
        let result = match message["method"].as_str() {
            Some("list_dbs") => json!(["Lab"]),
            Some("get_schema") => schema(),
            _ => json!([{"rows": [{"model": "standalone", "connected": true, "leader": true}]}]),
        };
        let reply = json!({"id": message["id"], "result": result, "error": null});
        stream
            .write_all(reply.to_string().as_bytes())
            .expect("a connection");
        is_informed |= message["method"] == "get_schema";
        if is_informed && message["method"] == "list_dbs" {
            // The last question before the prompt. A client that still reads its answer would
            // answer the probe too.
            std::thread::sleep(Duration::from_millis(300));
            let probe = json!({"id": "probe", "method": "echo", "params": ["are you there"]});
            stream
                .write_all(probe.to_string().as_bytes())
                .expect("a connection");
        }
    }
    panic!("the client has left");
}

#[test]
fn probes_are_answered_while_nobody_types() {
    let home = tempfile::tempdir().expect("a directory");
    let socket = home.path().join("db.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let server = std::thread::spawn(move || probe(&listener));
    let program = binary::bin("corvid").display().to_string();
    let line = format!("{program} unix:{}", socket.display());
    let place = home.path().display().to_string();
    let mut shell = Terminal::start(&line, 80, &[("HOME", &place)]).expect("script of util-linux");
    shell.await_last(PROMPT);
    let end = Instant::now() + LIMIT;
    while !server.is_finished() {
        assert!(Instant::now() < end, "no answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.join().expect("an answer to the probe");
}

#[test]
fn a_transaction_is_seen_inside_and_committed_as_one() {
    let lab = Lab::new();
    let mut shell = lab.shell();
    shell.press("commit\r");
    shell.await_text("no transaction is open");
    shell.press("begin\r");
    shell.await_last(OPEN_PROMPT);
    shell.press("create Site name=a\r");
    shell.await_last(OPEN_PROMPT);
    shell.press("--id=@b create Site name=b\r");
    shell.await_last(OPEN_PROMPT);
    // A wrong line changes nothing.
    shell.press("set Site @b nosuch=1\r");
    shell.await_text("does not contain a column");
    shell.press("count Site\r");
    shell.await_text("> count Site\n2\n");
    assert_eq!(lab.sites(), [""; 0]);
    shell.press("use _Server\r");
    shell.await_text("commit or abort it first");
    shell.press("commit\r");
    shell.await_last(PROMPT);
    let mut sites = lab.sites();
    sites.sort();
    assert_eq!(sites, ["a", "b"]);
    shell.press("begin\r");
    shell.await_last(OPEN_PROMPT);
    shell.press("create Site name=c\rabort\r");
    shell.await_last(PROMPT);
    shell.press("count Site name!=x\r");
    shell.await_text("> count Site name!=x\n2\n");
}

#[test]
fn hostile_contents_do_not_control_the_terminal() {
    let lab = Lab::new();
    let title = "\u{1b}]0;taken\u{7}";
    lab.insert(&[&format!("x{title}"), &format!("x\u{9b}2J{title}")]);
    let mut shell = lab.shell();
    shell.press("list Device x");
    let end = Instant::now() + LIMIT;
    while !shell.screen().contains("\\u001b]0;taken") {
        assert!(Instant::now() < end, "{}", shell.screen());
        shell.press(TAB);
        std::thread::sleep(Duration::from_millis(50));
    }
    shell.press(CTRL_C);
    shell.await_last(PROMPT);
    shell.press("list Device\r");
    shell.await_last(PROMPT);
    let bytes = shell.bytes();
    let contains = |text: &str| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(contains("taken"));
    assert!(!contains(title) && !contains("\u{9b}"));
}

#[test]
fn a_narrow_terminal_has_room_for_a_line() {
    let lab = Lab::new();
    let mut shell = lab.terminal(40, &[]);
    shell.await_last("Lab(standalone)> ");
    shell.press("get Device web-1 name labels:rack");
    shell.await_screen("the line", |screen| {
        screen.replace('\n', "").contains("name labels:rack")
    });
    shell.press(ENTER);
    shell.await_text("web-1\nb11\n");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let lab = Lab::new();
    let colours = |terminal: &mut Terminal| {
        terminal.press("count Device\r");
        terminal.await_text("\n2\n");
        let bytes = terminal.bytes();
        bytes.windows(4).any(|window| window == b"\x1b[1m")
    };
    assert!(colours(&mut lab.shell()));
    let mut plain = lab.terminal(80, &[("NO_COLOR", "1")]);
    plain.await_last(PROMPT);
    assert!(!colours(&mut plain));
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let lab = Lab::new();
    let program = binary::bin("corvid").display().to_string();
    let home = lab.home.path().display().to_string();
    let line = format!(
        "sh -c 'echo $$ >{home}/pid; exec {program} {}'; stty -a",
        lab.remote()
    );
    let mut shell = Terminal::start(&line, 80, &[("HOME", &home)]).expect("script of util-linux");
    shell.await_last(PROMPT);
    let pid = std::fs::read_to_string(lab.home.path().join("pid")).expect("a process");
    Daemon::signal(pid.trim().parse().expect("a number"), "TERM").expect("kill");
    let screen = shell.await_text("echonl");
    assert!(
        !screen.contains("-icanon") && !screen.contains("-echo "),
        "{screen}"
    );
}

#[test]
fn a_script_runs_every_line_and_ends_with_the_last_failure() {
    let lab = Lab::new();
    let remote = lab.remote();
    let home = lab.home.path();
    let input = "# a comment\n\ncreate Site name='two\nlines'\ncount Site\n--json list Site \\\n  # the rest\n";
    let (status, output, errors) = script(&[&remote], home, input);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(
        output.contains("\n1\n[{") && output.contains("two\\nlines"),
        "{output}"
    );
    assert!(!output.contains('\u{1b}'), "{output}");
    for (input, status, error) in [
        (
            "get Site nosuch name\ncount Site\n",
            1,
            "corvid: line 1: no row \"nosuch\"",
        ),
        (
            "get Site nosuch name\nlst\n",
            2,
            "corvid: line 2: unknown command 'lst'",
        ),
        (
            "raw '{\"op\":\"abort\"}'\n",
            3,
            "corvid: line 1: transaction error",
        ),
        ("use Lba\n", 2, "did you mean \"Lab\"?"),
        ("begin\ncreate Site name=x\n", 2, "was not committed"),
        (
            "create Site name='x\n",
            2,
            "the input ends in the middle of a line",
        ),
    ] {
        let (ended, _, errors) = script(&[&remote], home, input);
        assert_eq!(ended, Some(status), "{input}: {errors}");
        assert!(errors.contains(error), "{input}: {errors}");
    }
    assert_eq!(lab.sites(), ["two\nlines"]);
    let (status, output, errors) = script(
        &[&remote],
        home,
        "begin\ncreate Site name=x\nset Site x name=y\ncount Site\ncommit\nquit\nnonsense\n",
    );
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(
        output.starts_with("2\n") && output.len() == 2 + 36 + 1,
        "{output}"
    );
}

#[test]
fn servers_have_names() {
    let lab = Lab::new();
    let folder = lab.home.path().join(".config/corvid");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!(
        "default = 'lab'\n[lab]\naddress = '{}'\ndatabase = 'Lab'\n[gone]\naddress = 'unix:/nonexistent'\n",
        lab.remote()
    );
    std::fs::write(folder.join("servers.toml"), text).expect("a file");
    let home = lab.home.path();
    for arguments in [
        &["lab", "count", "Device"][..],
        &["--db=lab", "count", "Device"],
        &["count", "Device"],
    ] {
        let (status, output, errors) = script(arguments, home, "");
        assert_eq!((status, output.as_str()), (Some(0), "2\n"), "{errors}");
    }
    let (status, _, errors) = script(&["--db=lba", "dbs"], home, "");
    assert_eq!(status, Some(2));
    assert!(errors.contains("did you mean \"lab\"?"), "{errors}");
    let (status, output, errors) = script(&[], home, "connect gone\ncount Device\n");
    assert_eq!((status, output.as_str()), (Some(4), "2\n"), "{errors}");
    std::fs::write(folder.join("servers.toml"), "[lab]\nadress = 1\n").expect("a file");
    let (status, _, errors) = script(&["lab", "dbs"], home, "");
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("servers.toml:2: unknown setting \"adress\""),
        "{errors}"
    );
}
