//! Monitors and locks: both programs watch the same server while its contents change.

use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};

use crate::client::OURS;
use crate::client::reference::fixture::{Fixture, Process, THEIRS, with_sorted_members};
use crate::support::{command, lines, run, status, wait_until, without_dates};

const APPCTL: &str = "/usr/bin/ovs-appctl";

/// A program that runs until it is ended, with its output in files.
struct Watcher {
    process: Process,
    out: PathBuf,
    err: PathBuf,
}

impl Watcher {
    fn start(program: &str, name: &str, fixture: &Fixture, args: &[&str]) -> Watcher {
        let (out, err) = (
            fixture.dir.file(&format!("{name}.out")),
            fixture.dir.file(&format!("{name}.err")),
        );
        let child = command(program, fixture.dir.path(), args)
            .stdout(File::create(&out).expect("a file can be made"))
            .stderr(File::create(&err).expect("a file can be made"))
            .spawn()
            .expect("the program starts");
        Watcher {
            process: Process(child),
            out,
            err,
        }
    }

    fn output(&self) -> String {
        // A cut cell may end within a character.
        let bytes = std::fs::read(&self.out).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        without_times(&with_sorted_members(&text))
    }

    /// Waits for the end of the process. Returns its exit status and standard error.
    fn end(mut self) -> (i32, String) {
        let ended = self.process.0.wait().expect("the program ends");
        (
            status(ended),
            without_dates(&read_to_string(&self.err).unwrap_or_default()),
        )
    }

    fn terminate(self) -> (i32, String) {
        let pid = self.process.0.id().to_string();
        let sent = std::process::Command::new("kill").arg(&pid).status();
        assert!(sent.is_ok_and(|status| status.success()));
        self.end()
    }
}

/// Replaces the lines of `--timestamp`.
fn without_times(text: &str) -> String {
    lines(text, |line| {
        let shape: String = line
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        if shape == "0000-00-00 00:00:00.000" {
            shape
        } else {
            line.to_owned()
        }
    })
}

/// The lines of a text, and the rows in lines of JSON, sorted: the reference prints the rows of a
/// table in no defined order.
fn sorted(text: &str) -> Vec<String> {
    let rows = text
        .replace("],[\"", "]\n[\"")
        .replace("\"data\":[[", "\"data\":[\n[")
        .replace("]],\"headings", "]\n],\"headings");
    let mut lines: Vec<String> = rows.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Starts both programs, and waits until both have printed the same non-empty text.
fn both(fixture: &Fixture, args: &[&str]) -> [Watcher; 2] {
    let watchers = [(THEIRS, "theirs"), (OURS, "ours")]
        .map(|(program, name)| Watcher::start(program, name, fixture, args));
    wait_until_equal(&watchers, 0, &format!("{args:?}"));
    watchers
}

/// Waits until both have printed the same text of more than `length` bytes.
fn wait_until_equal(watchers: &[Watcher; 2], length: usize, what: &str) {
    let [theirs, ours] = watchers;
    let is_equal = || {
        let (theirs, ours) = (theirs.output(), ours.output());
        ours.len() > length && sorted(&ours) == sorted(&theirs)
    };
    let outputs = || {
        format!(
            "{what}\ntheirs:\n{}\nours:\n{}",
            theirs.output(),
            ours.output()
        )
    };
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait_until("equal output", is_equal);
    }));
    assert!(waited.is_ok(), "{}", outputs());
}

pub(crate) fn compare(fixture: &Fixture, args: &[&str], steps: &[&str]) {
    let watchers = both(fixture, args);
    for step in steps {
        let length = watchers[1].output().len();
        fixture.transact(step);
        wait_until_equal(&watchers, length, &format!("{args:?} after {step}"));
    }
    let [theirs, ours] = watchers.map(Watcher::terminate);
    assert_eq!(ours, theirs, "{args:?}");
}

const STEPS: &[&str] = &[
    r#"["mydb",{"op":"insert","table":"T","row":{"n":100,"name":"new","s":["set",["p","q"]]}}]"#,
    r#"["mydb",{"op":"update","table":"T","where":[["n","==",100]],"row":{"n":101,"s":["set",["q","r"]],"kind":"y"}}]"#,
    r#"["mydb",{"op":"mutate","table":"T","where":[["n","==",101]],"mutations":[["n","+=",1],["m","insert",["map",[["a","b"]]]]]}]"#,
    r#"["mydb",{"op":"update","table":"T","where":[["n","==",102]],"row":{"n":103,"s":["set",[]],"m":["map",[]],"o":4}}]"#,
    r#"["mydb",{"op":"update","table":"T","where":[["n","==",103]],"row":{"n":104,"o":["set",[]]}}]"#,
    r#"["mydb",{"op":"delete","table":"T","where":[["n","==",104]]}]"#,
];

#[test]
fn monitors_print_as_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &["monitor", "mydb", "T"],
        &["monitor", "unix:db.sock", "mydb", "T", "n,s", "m"],
        &["monitor", "mydb", "T", "n,!initial", "s,_uuid"],
        &["monitor", "mydb", "ALL"],
        &["-fcsv", "monitor", "mydb", "ALL"],
        &["-flist", "monitor", "mydb", "T", "n,s,m"],
        &["-fhtml", "monitor", "mydb", "T", "n,s,m,u"],
        &["-fjson", "monitor", "mydb", "T", "n,s,m,u"],
        &["--bare", "monitor", "mydb", "T", "n,s,m,u"],
        &["--no-db-change-aware", "monitor", "mydb", "T", "n"],
        &["--timestamp", "monitor", "mydb", "ALL"],
        &["--timestamp", "-fcsv", "monitor", "mydb", "ALL"],
        &["--timestamp", "-flist", "monitor", "mydb", "T", "n"],
        &["--timestamp", "-fhtml", "monitor", "mydb", "ALL"],
        &["monitor-cond", "mydb", "[]", "T"],
        &["monitor-cond", "mydb", "[true]", "T", "n,o,s,m"],
        &["monitor-cond-since", "mydb", "[]", "T", "n,o,s,m"],
        &[
            "monitor-cond-since",
            "mydb",
            "6731fef6-afef-4e54-bb8b-892b04777101",
            "[[\"n\",\">\",-1]]",
            "T",
            "n,o",
        ],
        &["-fjson", "monitor-cond-since", "mydb", "[]", "T", "n,o,s,m"],
        &["-fcsv", "monitor-cond-since", "mydb", "[]", "T", "n,o,s,m"],
        &["-fhtml", "monitor-cond-since", "mydb", "[]", "T", "n,o,s,m"],
    ];
    for case in cases {
        compare(&fixture, case, STEPS);
    }
    // The row enters and leaves the condition, so half of the steps print nothing.
    compare(
        &fixture,
        &[
            "monitor-cond",
            "mydb",
            "[[\"n\",\"==\",102],[\"n\",\"==\",5]]",
            "T",
            "n,s",
        ],
        &[],
    );
}

#[test]
fn bad_monitors_fail_as_in_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &["monitor", "mydb", "Nothing"],
        &["monitor", "mydb", "T", "zz"],
        &["monitor", "mydb", "T", "n", "n"],
        &["monitor", "mydb", "T", "n", "!delete"],
        &["monitor", "mydb", "T", "!zz"],
        &["monitor", "mydb", "ALL", "n"],
        &["monitor-cond", "mydb", "[]", "ALL"],
        &["monitor-cond", "mydb", "[[\"zz\",\"==\",1]]", "T"],
        &["monitor-cond", "mydb", "[[\"n\",\"==\",\"x\"]]", "T"],
        &["monitor-cond", "mydb", "[[\"n\",\"foo\",1]]", "T"],
        &["monitor-cond", "mydb", "true", "T"],
        &["monitor-cond", "mydb", "[[", "T"],
        &["monitor-cond", "mydb", "[]", "T", "zz"],
        &["monitor-cond", "mydb", "[]", "T", "n", "s"],
        &["monitor-cond-since", "mydb", "xxx", "[]", "T", "n"],
    ];
    crate::client::reference::compare_all(
        &fixture,
        crate::client::reference::Compare::Exactly,
        cases.iter().copied(),
    );
}

#[test]
fn monitors_end_with_their_database_and_server() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let appctl = |args: &[&str]| {
        let control = fixture.dir.file("server.ctl").display().to_string();
        let args: Vec<&str> = ["-t", &control]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        let done = run(APPCTL, fixture.dir.path(), &args, b"");
        assert_eq!(done.status, 0, "{done:?}");
    };
    fixture.transact(r#"["other",{"op":"insert","table":"O","row":{"v":"x"}}]"#);
    let removed = both(&fixture, &["monitor", "other", "O"]);
    appctl(&["ovsdb-server/remove-db", "other"]);
    let [theirs, ours] = removed.map(Watcher::end);
    assert_eq!(ours, theirs);
    let unaware = both(
        &fixture,
        &["--no-db-change-aware", "monitor", "mydb", "T", "n"],
    );
    appctl(&["ovsdb-server/reconnect"]);
    let [theirs, ours] = unaware.map(Watcher::end);
    assert_eq!(ours, theirs);
    let locks = [(THEIRS, "theirs"), (OURS, "ours")].map(|(program, name)| {
        let watcher = Watcher::start(program, name, &fixture, &["lock", name]);
        wait_until("the lock", || watcher.output().contains("true"));
        watcher
    });
    appctl(&["exit"]);
    let [theirs, ours] = locks.map(Watcher::end);
    assert_eq!(ours, theirs);
}

#[test]
fn locks_pass_to_the_next_owner() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let transcripts = [(THEIRS, "theirs"), (OURS, "ours")].map(|(program, name)| {
        let lock = format!("lock_{name}");
        let start = |name: &str, args: &[&str]| Watcher::start(program, name, &fixture, args);
        let has = |watcher: &Watcher, text: &str| {
            wait_until(text, || watcher.output().contains(text));
        };
        let first = start(&format!("{name}1"), &["lock", &lock]);
        has(&first, "{\"locked\":true}\n");
        let second = start(&format!("{name}2"), &["lock", &lock]);
        has(&second, "{\"locked\":false}\n");
        let third = start(&format!("{name}3"), &["steal", &lock]);
        has(&third, "{\"locked\":true}\n");
        has(&first, &format!("stolen\n[\"{lock}\"]\n"));
        third.terminate();
        has(&first, &format!("locked\n[\"{lock}\"]\n"));
        let outputs = [first.output(), second.output()].map(|text| text.replace(&lock, "LOCK"));
        (outputs, first.terminate(), second.terminate())
    });
    assert_eq!(transcripts[1], transcripts[0]);
}

/// Control commands to background monitors have the same replies, and the same output follows.
#[test]
fn background_monitors_obey_control_commands() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let dir = fixture.dir.path();
    let control = |name: &str, args: &[&str]| {
        let pid =
            read_to_string(fixture.dir.file(&format!("{name}.pid"))).expect("the pidfile is there");
        let socket = fixture
            .dir
            .file(&format!("ovsdb-client.{}.ctl", pid.trim()))
            .display()
            .to_string();
        let args: Vec<&str> = ["-t", &socket]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        let mut done = run(APPCTL, dir, &args, b"");
        done.stderr = done.stderr.replace(&socket, "SOCKET");
        (done, Path::new(&socket).exists())
    };
    let insert = |n: i32| {
        fixture.transact(&format!(
            r#"["mydb",{{"op":"insert","table":"Empty","row":{{"x":{n}}}}}]"#
        ));
    };
    let transcripts = [(THEIRS, "theirs"), (OURS, "ours")].map(|(program, name)| {
        let pidfile = format!("--pidfile={name}.pid");
        let watcher = Watcher::start(
            program,
            name,
            &fixture,
            &[
                "--detach",
                "--no-chdir",
                &pidfile,
                "monitor-cond",
                "mydb",
                "[[\"x\",\">\",10]]",
                "Empty",
                "x",
            ],
        );
        let out = watcher.out.clone();
        let mut log = vec![format!("{:?}", watcher.end())];
        let shows = |text: &str| {
            wait_until(text, || {
                read_to_string(&out).is_ok_and(|output| output.contains(text))
            });
        };
        let mut order = |args: &[&str]| log.push(format!("{:?}", control(name, args)));
        insert(11);
        shows(" 11\n");
        order(&["ovsdb-client/block"]);
        order(&["ovsdb-client/block"]);
        insert(12);
        order(&["ovsdb-client/unblock"]);
        order(&["ovsdb-client/unblock"]);
        shows(" 12\n");
        insert(5);
        order(&["ovsdb-client/cond_change", "Empty", "[[\"x\",\"==\",5]]"]);
        shows(" 5\n");
        order(&["ovsdb-client/cond_change", "Empty"]);
        order(&["frobnicate"]);
        // Its socket may or may not exist at this time.
        let (last, _) = control(name, &["exit"]);
        log.push(format!("{last:?}"));
        wait_until("the end", || {
            !fixture.dir.file(&format!("{name}.pid")).exists()
        });
        fixture.transact(r#"["mydb",{"op":"delete","table":"Empty","where":[]}]"#);
        let output = crate::support::without_uuids(&read_to_string(&out).unwrap_or_default());
        (log, sorted(&output).join("\n"))
    });
    assert_eq!(transcripts[1], transcripts[0]);
}
