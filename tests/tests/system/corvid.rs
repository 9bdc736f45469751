//! The program `corvid` as its users see it: exit statuses, terminals and pipes, `watch`.
//!
//! `script` of util-linux provides the terminal, and `stty` its size. The suite `database-commands`
//! compares what the commands do.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::process::Process;
use corvid_tests::{binary, limited, one_file, peer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A value that would clear a terminal and forge a line.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}31m\r\nforged : \u{202e}y";

fn schema() -> Value {
    let set = json!({"key": "string", "min": 0, "max": "unlimited"});
    json!({"name": "Lab", "version": "1.0.0", "tables": {
        "Device": {"isRoot": true, "indexes": [["name"]], "columns": {
            "name": {"type": "string"}, "n": {"type": "integer"}, "tags": {"type": set}}},
        "Only": {"isRoot": true, "maxRows": 1, "columns": {"n": {"type": "integer"}}}}})
}

/// A server with the schema, and devices `d0`, `d1` and so on.
struct Lab {
    server: Process,
    _folder: TempDir,
}

impl Lab {
    fn start(devices: usize) -> Lab {
        let (server, _, folder) = one_file::start(&schema(), &[]).expect("a server");
        let lab = Lab {
            server,
            _folder: folder,
        };
        if devices > 0 {
            let row = |number| json!({"op": "insert", "table": "Device", "row": {"name": format!("d{number}"), "n": number}});
            let operations: Vec<Value> = (0..devices).map(row).collect();
            lab.succeed(&["raw", &json!(operations).to_string()]);
        }
        lab
    }

    fn address(&self) -> String {
        format!("unix:{}", self.server.socket().display())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary::bin("corvid"));
        command.arg(self.address()).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        limited::output(&mut self.command(words)).expect("corvid")
    }

    /// Runs a command that must succeed, and returns its output.
    fn succeed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a shell command line on a terminal, and returns what it shows.
    fn on_terminal(&self, size: (usize, usize), variables: &str, words: &str) -> String {
        let program = binary::bin("corvid");
        let line = format!(
            "stty cols {} rows {}; {variables} {} {} {words}",
            size.0,
            size.1,
            program.display(),
            self.address()
        );
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        command.env("TERM", "xterm");
        command.env_remove("NO_COLOR").env_remove("PAGER");
        let output = limited::output(&mut command).expect("script of util-linux");
        String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
    }

    fn watch(&self, words: &[&str]) -> Watch {
        let mut child = self
            .command(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("corvid");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Watch {
            child,
            lines: Some(lines),
        }
    }
}

/// A running `watch`.
struct Watch {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Watch {
    fn line(&mut self) -> String {
        let mut line = String::new();
        let lines = self.lines.as_mut().expect("its output");
        lines.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Waits until it has ended, and returns what it said on standard error.
    fn await_end(&mut self) -> String {
        let began = Instant::now();
        while self.child.try_wait().expect("a status").is_none() {
            if began.elapsed() > Duration::from_secs(60) {
                let _ = self.child.kill();
                panic!("it does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        let errors = self.child.stderr.as_mut().expect("its errors");
        errors.read_to_string(&mut said).expect("text");
        said
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn corvid_ends_with_the_status_of_its_outcome() {
    let lab = Lab::start(1);
    let status = |words: &[&str]| lab.run(words).status.code();
    assert_eq!(status(&["get", "Device", "d0", "n"]), Some(0));
    assert_eq!(status(&["find", "Device", "name=x"]), Some(0));
    assert_eq!(status(&["get", "Device", "x"]), Some(1));
    assert_eq!(status(&["--quiet", "find", "Device", "name=x"]), Some(1));
    assert_eq!(status(&["get", "Dev"]), Some(2));
    assert_eq!(status(&["create", "Device", "name=d0"]), Some(3));
    // A table that is full.
    assert_eq!(status(&["create", "Only", "n=1"]), Some(0));
    assert_eq!(status(&["create", "Only", "n=2"]), Some(3));
    let mut nowhere = Command::new(binary::bin("corvid"));
    nowhere.args(["unix:/nonexistent/db.sock", "tables"]);
    let output = limited::output(&mut nowhere).expect("corvid");
    assert_eq!(output.status.code(), Some(4));
    for words in [
        &["--quiet", "list", "Device"][..],
        &["--quiet", "create", "Device", "name=d1"],
        &["--quiet", "raw", "[]"],
        &["--quiet", "explain", "destroy", "Device", "d1"],
    ] {
        let quiet = lab.run(words);
        assert_eq!((quiet.status.code(), quiet.stdout), (Some(0), Vec::new()));
    }
}

#[test]
fn empty_addresses_and_files_are_refused_before_anything_is_asked() {
    for (words, said) in [
        (
            &["--db=", "tables"][..],
            "option '--db' has an empty argument",
        ),
        (&["unix:/a,", "tables"], "\"unix:/a,\" has an empty address"),
        (&["--db=,unix:/a", "tables"], "has an empty address"),
        (&["--db=unix:/a,,unix:/b", "tables"], "has an empty address"),
        (&["--db=unix:", "tables"], "\"unix:\" names no socket"),
        (&["--db=unix:/a,", "servers"], "has an empty address"),
        (&["servers", "--ctl="], "--ctl=: an address is empty"),
        (
            &["servers", "--metrics=http://h:1,"],
            "--metrics=http://h:1,: an address is empty",
        ),
        (
            &["--private-key=", "--db=unix:/a", "tables"],
            "option '--private-key' has an empty argument: expected FILE",
        ),
        (
            &["--database=", "--db=unix:/a", "tables"],
            "option '--database' has an empty argument",
        ),
    ] {
        let mut command = Command::new(binary::bin("corvid"));
        let output = limited::output(command.args(words)).expect("corvid");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

#[test]
fn columns_in_place_of_records_are_recognised() {
    let lab = Lab::start(1);
    let output = lab.run(&["list", "Device", "name", "n"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("no row \"name\" in table Device\n"),
        "{errors}"
    );
    assert!(
        errors.contains("did you mean \"--columns=name,n\"?"),
        "{errors}"
    );
}

#[test]
fn formats_are_those_that_options_name() {
    let lab = Lab::start(1);
    let list = |option: &str| lab.succeed(&[option, "list", "Device", "name", "n", "--where=n<5"]);
    assert_eq!(list("--format=table"), "name n\n---- -\nd0   0\n");
    assert_eq!(list("--format=csv"), "name,n\nd0,0\n");
    assert_eq!(list("--json"), "[{\"name\":\"d0\",\"n\":0}]\n");
    assert_eq!(list("--jsonl"), "{\"name\":\"d0\",\"n\":0}\n");
}

#[test]
fn terminals_get_fitted_tables_and_no_control_characters_of_values() {
    let lab = Lab::start(0);
    let row = json!({"op": "insert", "table": "Device", "row": {"name": HOSTILE, "n": 7}});
    lab.succeed(&["raw", &row.to_string()]);
    let list = "--columns=n,name list Device";
    let row = r#"7  "x\u001b[2J\u009b31m\r\nforged : \u202ey""#;
    for width in [60, 80, 300] {
        let shown = lab.on_terminal((width, 50), "NO_COLOR=1", list);
        assert!(
            !shown.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']),
            "{shown:?}"
        );
        assert!(shown.starts_with("n  name\n-  ---"), "{shown}");
        assert!(shown.contains(row), "{shown}");
    }
    // Too narrow: a record, or a table whose values are cut.
    let shown = lab.on_terminal((40, 50), "NO_COLOR=1", list);
    assert!(shown.starts_with("n                   : 7\n"), "{shown}");
    let shown = lab.on_terminal((40, 50), "NO_COLOR=1", &format!("--format=table {list}"));
    assert!(
        shown.lines().all(|line| line.chars().count() <= 40),
        "{shown}"
    );
    assert!(shown.contains('…'), "{shown}");
    // Only headings and marks are in colour, and only on a terminal.
    let shown = lab.on_terminal((80, 50), "", list);
    assert!(shown.starts_with("\u{1b}[1mn\u{1b}[0m"), "{shown:?}");
    assert_eq!(shown.matches('\u{1b}').count(), 4, "{shown:?}");
    let shown = lab.on_terminal((80, 50), "TERM=dumb", list);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let piped = lab.succeed(&["--columns=n", "list", "Device"]);
    assert_eq!(piped, "n                   : 7\n");
}

#[test]
fn long_output_goes_through_the_pager_of_a_terminal() {
    let lab = Lab::start(30);
    let list = "--columns=name list Device";
    let pager = "PAGER='sed s/^/PAGED/'";
    let shown = lab.on_terminal((80, 20), pager, list);
    assert_eq!(shown.matches("PAGED").count(), 32, "{shown}");
    // A text that fits on the screen is not paged; nor is anything if the user says so.
    for (size, words) in [
        ((80, 40), list.to_owned()),
        ((80, 20), format!("--no-pager {list}")),
    ] {
        let shown = lab.on_terminal(size, pager, &words);
        assert!(!shown.contains("PAGED") && shown.contains("d29"), "{shown}");
    }
    // A reader that leaves early is not an error.
    let shown = lab.on_terminal((80, 20), "PAGER=true", &format!("{list} && echo done"));
    assert!(shown.ends_with("done\n"), "{shown}");
}

#[test]
fn a_watch_reports_changed_elements_and_ends_with_its_reader() {
    let lab = Lab::start(3);
    let mut watch = lab.watch(&[
        "watch",
        "Device",
        "name",
        "n",
        "tags",
        "--where",
        "n >= 1 and n != 2",
    ]);
    assert_eq!(watch.line(), "+ d1 n=1");
    lab.succeed(&["set", "Device", "d1", "tags=a,b"]);
    assert_eq!(watch.line(), "~ d1 tags: +a +b");
    lab.succeed(&["set", "Device", "d1", "tags=b,c", "n=5"]);
    assert_eq!(watch.line(), "~ d1 n: 1 -> 5, tags: -a +c");
    lab.succeed(&[
        "set", "Device", "d1", "n=0", "--", "set", "Device", "d2", "n=9",
    ]);
    let mut both = [watch.line(), watch.line()];
    both.sort();
    assert_eq!(both, ["+ d2 n=9", "- d1"]);
    // No further change is needed to notice that the reader has gone.
    drop(watch.lines.take());
    assert_eq!(watch.await_end(), "");
    assert!(watch.child.wait().expect("a status").success());
}

#[test]
fn a_watch_prints_json_lines() {
    let lab = Lab::start(1);
    let mut watch = lab.watch(&["--jsonl", "watch", "Device", "n", "name"]);
    let mut told = || {
        let mut value: Value = serde_json::from_str(&watch.line()).expect("JSON");
        assert_eq!(value["uuid"].as_str().map(str::len), Some(36), "{value}");
        value.as_object_mut().expect("an object").remove("uuid");
        value
    };
    assert_eq!(
        told(),
        json!({"event": "present", "row": {"n": 0, "name": "d0"}})
    );
    lab.succeed(&["set", "Device", "d0", "n=1"]);
    assert_eq!(
        told(),
        json!({"event": "modify", "row": {"n": 1, "name": "d0"}, "old": {"n": 0}})
    );
    lab.succeed(&["create", "Device", "name=d1"]);
    assert_eq!(
        told(),
        json!({"event": "insert", "row": {"n": 0, "name": "d1"}})
    );
    lab.succeed(&["destroy", "Device", "d0"]);
    assert_eq!(
        told(),
        json!({"event": "delete", "row": {"n": 1, "name": "d0"}})
    );
}

#[test]
fn a_watch_connects_again_and_reports_what_has_changed_meanwhile() {
    let mut lab = Lab::start(2);
    let mut watch = lab.watch(&["watch", "Device", "n"]);
    let mut present = [watch.line(), watch.line()];
    present.sort();
    assert_eq!(present, ["+ d0", "+ d1 n=1"]);
    lab.server.stop().expect("a server that stops");
    lab.server.start().expect("a server");
    let operations = json!([
        {"op": "update", "table": "Device", "where": [["name", "==", "d1"]], "row": {"n": 7}},
        {"op": "delete", "table": "Device", "where": [["name", "==", "d0"]]},
        {"op": "insert", "table": "Device", "row": {"name": "d2"}}]);
    lab.succeed(&["raw", &operations.to_string()]);
    let mut news = [watch.line(), watch.line(), watch.line()];
    news.sort();
    assert_eq!(news, ["+ d2", "- d0", "~ d1 n: 1 -> 7"]);
    drop(watch.lines.take());
    let said = watch.await_end();
    assert!(
        said.contains("connecting again") && said.contains("connected again"),
        "{said}"
    );
}

/// Chains read all their rows at one moment, although they ask several times: two rows that are
/// always changed together are never seen apart. Additions to a set do not disturb one another.
#[test]
fn chains_read_at_one_moment_and_additions_do_not_collide() {
    let lab = Lab::start(2);
    thread::scope(|scope| {
        let writers = (0..2).map(|writer| {
            let lab = &lab;
            scope.spawn(move || {
                for round in 0..25 {
                    let n = format!("n={}", writer * 100 + round);
                    let tag = format!("w{writer}-{round}");
                    let second = if writer == 0 { "d1" } else { "d0" };
                    lab.succeed(&[
                        "set", "Device", "d0", &n, "--", "set", "Device", "d1", &n, "--", "add",
                        "Device", second, "tags", &tag, "--", "add", "Device", "d0", "tags", &tag,
                    ]);
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        let mut reads = 0;
        while reads < 20 || writers.iter().any(|writer| !writer.is_finished()) {
            let shown =
                lab.succeed(&["get", "Device", "d0", "n", "--", "get", "Device", "d1", "n"]);
            let values: Vec<&str> = shown.lines().collect();
            // At first the numbers of the devices.
            assert!(values == ["0", "1"] || values[0] == values[1], "{values:?}");
            reads += 1;
        }
    });
    let tags = lab.succeed(&["--json", "list", "Device", "tags", "--where", "name == d0"]);
    let tags: Value = serde_json::from_str(&tags).expect("JSON");
    assert_eq!(tags[0]["tags"].as_array().map(Vec::len), Some(50), "{tags}");
}

#[test]
fn the_past_is_read_compared_and_undone() {
    let lab = Lab::start(1);
    lab.succeed(&["set", "Device", "d0", "n=5"]);
    lab.succeed(&["--at=HEAD~1", "get", "Device", "d0", "n"]);
    assert_eq!(
        lab.succeed(&["--at=HEAD~1", "get", "Device", "d0", "n"]),
        "0\n"
    );
    assert_eq!(
        lab.succeed(&["--at", "HEAD", "get", "Device", "d0", "n"]),
        "5\n"
    );
    let refused = lab.run(&["--at=HEAD~1", "set", "Device", "d0", "n=7"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        lab.run(&["--at=HEAD~1", "watch", "Device"]).status.code(),
        Some(2)
    );
    let log = lab.succeed(&["log", "-n", "1", "--table", "Device"]);
    assert!(
        log.contains("corvid: set Device d0 n=5") && log.contains('5'),
        "{log}"
    );
    let json = lab.succeed(&["--json", "log", "-n", "1"]);
    assert!(
        json.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{json}"
    );
    let diff = lab.succeed(&["diff", "HEAD~1", "HEAD"]);
    assert!(diff.contains("Device"), "{diff}");
    let shown = lab.succeed(&["revert", "HEAD", "--dry-run"]);
    assert!(shown.contains("Device"), "{shown}");
    assert_eq!(lab.succeed(&["get", "Device", "d0", "n"]), "5\n");
    lab.succeed(&["revert", "HEAD"]);
    assert_eq!(lab.succeed(&["get", "Device", "d0", "n"]), "0\n");
    assert_eq!(lab.run(&["log", "--tabel=x"]).status.code(), Some(2));
    assert_eq!(lab.run(&["revert", "HEAD~9999"]).status.code(), Some(1));
    // The name, which an index makes unique, has another owner.
    lab.succeed(&["destroy", "Device", "d0"]);
    lab.succeed(&["create", "Device", "name=d0"]);
    let refused = lab.run(&["revert", "HEAD~1"]);
    assert_eq!(refused.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&refused.stderr);
    let problem = "has the same value (d0) for the index on (name) now";
    assert!(errors.contains(problem), "{errors}");
}

#[test]
fn a_row_is_changed_in_the_editor_unless_others_change_it_meanwhile() {
    let lab = Lab::start(1);
    let edit = |editor: &str| {
        let mut command = lab.command(&["edit", "Device", "d0"]);
        command.env_remove("VISUAL").env("EDITOR", editor);
        let output = limited::output(&mut command).expect("corvid");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let row = || lab.succeed(&["get", "Device", "d0", "n", "tags"]);
    assert_eq!(
        edit("sed -i -e s/^n=.*/n=42/ -e '/^tags/d'"),
        (Some(0), String::new())
    );
    assert_eq!(row(), "42\n[]\n");
    let (status, said) = edit("true");
    assert!(
        status == Some(0) && said.contains("nothing was changed"),
        "{said}"
    );
    let kept = |said: &str| {
        let file = said
            .trim()
            .rsplit(" is in ")
            .next()
            .unwrap_or_default()
            .to_owned();
        let text = std::fs::read_to_string(&file).expect("the kept text");
        std::fs::remove_file(&file).expect("the kept text");
        text
    };
    let (status, said) = edit("sed -i s/^n=.*/n=many/");
    assert_eq!(status, Some(2), "{said}");
    assert!(kept(&said).contains("n=many"));
    let program = binary::bin("corvid");
    let other = format!(
        "{} {} set Device d0 n=7; sed -i s/^n=.*/n=43/",
        program.display(),
        lab.address()
    );
    let (status, said) = edit(&other);
    assert_eq!(status, Some(1), "{said}");
    assert!(kept(&said).contains("n=43"));
    assert_eq!(row(), "7\n[]\n");
    // Another column may change.
    let other = format!(
        "{} {} add Device d0 tags x; sed -i s/^n=.*/n=44/",
        program.display(),
        lab.address()
    );
    assert_eq!(edit(&other).0, Some(0));
    assert_eq!(row(), "44\n[x]\n");
}

#[test]
fn schemas_in_files_are_checked_with_the_places_of_their_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.ovsschema");
    std::fs::write(
        &file,
        "{\"name\": \"D\", \"tables\": {\n  \"T\": {\"columns\": {\"a\": {\"type\": 7}}}}}",
    )
    .expect("a file");
    let mut check = Command::new(binary::bin("corvid"));
    check.args(["schema", "check"]).arg(&file);
    let output = limited::output(&mut check).expect("corvid");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with(&format!("{}:2:26: ", file.display())),
        "{text}"
    );
}

/// Runs the commands of the page in a shell, and compares what they print with the page.
#[test]
fn the_page_about_schemas_is_true() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/start/schema.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks = |kind: &str| {
        let begin = format!("```{kind}\n");
        let blocks = page.split(&begin).skip(1);
        let ends = blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned());
        ends.collect::<Vec<String>>()
    };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("lab.ovsschema"), &blocks("json")[0]).expect("a file");
    let session = blocks("console").concat();
    let mut script = String::from("exec 2>&1\n");
    for command in session.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let shown = command.replace('\'', "'\\''");
        script.push_str(&format!("printf '%s\\n' '$ {shown}'\n{command}\n"));
    }
    let programs = binary::bin("corvid");
    let programs = programs.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&script).current_dir(folder.path());
    shell.env("PATH", format!("{programs}:{path}"));
    shell
        .env("OVS_RUNDIR", folder.path())
        .env("OVS_LOGDIR", folder.path());
    let output = limited::output(&mut shell).expect("sh");
    assert_eq!(String::from_utf8_lossy(&output.stdout), session);
}

#[test]
fn servers_are_reached_by_tls_and_messages_go_to_a_file() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=me".split(' '))
        .args(["-keyout", &at("key"), "-out", &at("certificate")])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        peer::say_skipped("openssl is not installed: corvid by TLS");
        return;
    }
    let identity = [
        format!("--private-key={}", at("key")),
        format!("--certificate={}", at("certificate")),
        format!("--ca-cert={}", at("certificate")),
    ];
    let mut options = identity.each_ref().map(String::as_str).to_vec();
    options.push("--remote=pssl:0:127.0.0.1");
    let (server, _, _folder) = one_file::start(&schema(), &options).expect("a server");
    let address = format!("ssl:127.0.0.1:{}", server.port().expect("a port"));
    let corvid = |options: &[String]| {
        let mut command = Command::new(binary::bin("corvid"));
        command
            .arg(&address)
            .args(options)
            .args(["count", "Device"]);
        limited::output(&mut command).expect("corvid")
    };
    let log = at("corvid.log");
    let logging = [format!("--log-file={log}"), "-vfile:dbg".to_owned()];
    let output = corvid(&[&identity[..], &logging].concat());
    assert_eq!(output.stdout, b"0\n", "{output:?}");
    let logged = std::fs::read_to_string(log).expect("a log");
    assert!(logged.contains("|DBG|"), "{logged}");
    let refused = corvid(&identity[2..]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
}
