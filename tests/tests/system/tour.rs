//! The tours in `docs/start`, typed as they are printed: each indented command of a page's tour is
//! run, in order, in a POSIX shell and in zsh, while the demo runs.
//!
//! The pages name fixed ports and a running demo, so each run has its own network and its own
//! processes (`unshare`). A command whose program is not installed is skipped with a message, and
//! so is a run for which the machine does not allow namespaces. The programs are those that have
//! been built already (`corvid_tests::binary`): nothing is compiled.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary::bin;
use tempfile::TempDir;

/// The time limit for a tour on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The programs that the tour takes from `target/release`.
const OURS: [&str; 7] = [
    "corvid",
    "corvid-console",
    "corvid-demo",
    "ovsdb-server",
    "ovsdb-client",
    "ovsdb-tool",
    "ovs-appctl",
];

/// For commands that contain the first text, the texts that their output must contain. The shell
/// waits for these texts, because a monitor in the background may print at any time.
const EXPECTED: [(&str, &[&str]); 24] = [
    ("Inventory show", &["Device web-1"]),
    ("--where 'name", &["role", ": web-1"]),
    ("diff HEAD~1", &["b12"]),
    ("revert HEAD", &["b11"]),
    ("list-dbs $DB", &["Inventory", "_Server"]),
    ("dump $DB Inventory", &["web-1", "leaf-1"]),
    ("monitor $DB", &["initial", "web-1"]),
    ("\"mutate\"", &["[{\"count\":1}]", "old", "new", "b11"]),
    ("ovs-vsctl --db=$DB show", &["Bridge br0", "Port p1"]),
    ("ovn-nbctl --db=$DB show", &["(sw0)", "port port0"]),
    ("lflow-list sw0", &["Datapath: \"sw0\"", "ls_in_"]),
    ("list-commands", &["ovsdb-server/compact"]),
    (
        "list-remotes",
        &["ptcp:6650:127.0.0.1", "ptcp:6640:127.0.0.1"],
    ),
    ("ls -l", &["inventory-backup.db"]),
    ("show-log", &["record 0: \"Inventory\" schema"]),
    ("query Inventory.db", &["\"north\""]),
    ("list-tables", &["Note"]),
    ("/metrics", &["# TYPE corvid_build_info gauge"]),
    ("/readyz", &["databases"]),
    ("transact unix:$PWD/audited.sock", &["\"uuid\""]),
    ("cat audit.log.1", &["\"committed\"", "\"hello\""]),
    ("transact unix:$PWD/relay-2.sock", &["\"uuid\""]),
    ("dump unix:$PWD/source.sock", &["from afar"]),
    ("tail -n 1 audited.log", &["\"level\":"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages of `docs/start` with a tour.
const PAGES: [&str; 3] = ["server.md", "ovn.md", "relay.md"];

/// Returns the commands of a page's tour.
fn tour_of(page: &str) -> Vec<String> {
    let path = root().join("docs/start").join(page);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    commands(section(&text, "A tour"))
}

/// Reports a skipped part in a way that the test runner does not capture.
fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}");
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    command.stderr(Stdio::null()).status().is_ok()
}

/// Returns the text below a heading of the second level.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let (_, rest) = document
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or_default()
}

/// Returns the indented commands of a text. A command continues on the next line if a quotation is
/// not closed.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            assert!(!is_open, "a quotation ends with its block: {found:?}");
            continue;
        };
        match found.last_mut() {
            Some(last) if is_open => {
                last.push('\n');
                last.push_str(line);
            }
            _ => found.push(line.to_owned()),
        }
        is_open ^= line.matches('\'').count() % 2 == 1;
    }
    found
}

/// Returns the program that a command starts. An assignment starts no program.
fn program(command: &str) -> &str {
    let first = command.split_whitespace().next().unwrap_or_default();
    if first.contains('=') { "cd" } else { first }
}

fn expected(command: &str) -> &'static [&'static str] {
    EXPECTED
        .iter()
        .find(|(part, _)| command.contains(part))
        .map_or(&[], |(_, expected)| expected)
}

/// Returns a script that runs the commands one after another like a user's shell, and prints marks
/// around the output of each.
fn script(commands: &[String]) -> String {
    let mut text = String::from(
        "output=$PWD/tour.out
await() {
    tries=0
    until grep -qF -e \"$1\" \"$output\"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo \"NEVER SEEN: $1\"; return; }
        sleep 0.1
    done
}
grown() {
    tries=0
    until [ \"$(wc -c <\"$output\")\" -gt \"$1\" ] || [ $tries = 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}
",
    );
    for (index, command) in commands.iter().enumerate() {
        let mut after = String::new();
        if command.ends_with('&') {
            after.push_str("grown \"$before\"\n");
        }
        for words in expected(command) {
            let words = words.replace('\'', "'\\''");
            after.push_str(&format!("[ $ended != 0 ] || await '{words}'\n"));
        }
        let program = program(command);
        text.push_str(&format!(
            "printf '\\n=== %s\\n' {index}
if command -v {program} >/dev/null 2>&1; then
before=$(wc -c <\"$output\")
{command}
ended=$?
{after}else
ended=absent
fi
printf '\\n--- %s %s\\n' {index} $ended
"
        ));
    }
    text
}

/// Starts the demo as `make run` does, and then the shell with the tour.
const OUTER: &str = r#"
ip link set lo up || { echo "SKIPPED: no loopback device can be had"; exit 77; }
PATH_OF_TOUR=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH=$PATH_OF_TOUR
OVS_RUNDIR=$PWD/target/run target/release/corvid-demo >demo.out 2>&1 &
tries=0
until target/release/ovsdb-client list-dbs unix:$PWD/target/run/corvid-demo/db.sock >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { cat demo.out; exit 1; }
    sleep 0.1
done
sed -n '/^Try/,/^Ctrl-C/s/^  //p' demo.out | sed '/ monitor /s/$/ \&/' >try.sh
touch tour.out
"$@" >tour.out 2>&1
"#;

/// Makes a folder in which `target/release` contains the programs, as in a clone of the repository
/// after `make run`.
fn clone_of_sorts() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let release = dir.path().join("target/release");
    fs::create_dir_all(&release).expect("made");
    for program in OURS {
        symlink(bin(program), release.join(program)).expect("linked");
    }
    dir
}

/// Returns the options with which `unshare` gives a process its own network, processes and `/proc`.
/// For users other than root, they include a user namespace.
fn own_world() -> Option<Vec<&'static str>> {
    let namespaces = ["--net", "--pid", "--mount-proc", "--fork", "--kill-child"];
    let as_user = ["--user", "--map-root-user"];
    [namespaces.to_vec(), [&as_user[..], &namespaces].concat()]
        .into_iter()
        .find(|options| {
            let mut command = Command::new("unshare");
            command
                .args(options)
                .args(["ip", "link", "set", "lo", "up"]);
            command.stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

/// Runs a shell with a script while the demo runs, and returns its output. `None` if this machine
/// cannot run it.
fn beside_the_demo(shell: &str, dir: &Path, script: &str) -> Option<String> {
    let Some(options) = own_world() else {
        skip("no network of its own can be made here, so the tours were not tried");
        return None;
    };
    fs::write(dir.join("outer.sh"), OUTER).expect("written");
    let mut child = Command::new("unshare")
        .args(options)
        .args(["sh", "outer.sh", shell, script])
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", dir)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .spawn()
        .expect("started");
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().expect("a child");
            child.wait().expect("a child");
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let read = |name: &str| {
        let bytes = fs::read(dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let said = read("demo.out") + &read("tour.out");
    assert!(
        status.is_some_and(|status| status.success()),
        "{shell}: {status:?}\n{said}"
    );
    Some(read("tour.out"))
}

/// Returns the output between the marks of a command, and its exit status.
fn outcome(said: &str, index: usize) -> (&str, &str) {
    let (_, rest) = said
        .split_once(&format!("\n=== {index}\n"))
        .unwrap_or_else(|| panic!("command {index} was not reached:\n{said}"));
    let (output, rest) = rest
        .split_once(&format!("\n--- {index} "))
        .unwrap_or_else(|| panic!("command {index} did not end:\n{said}"));
    (output, rest.lines().next().unwrap_or_default())
}

fn tours(shell: &str) {
    if !has(shell) {
        return skip(&format!("{shell} is not here to try the tours"));
    }
    for page in PAGES {
        tour(shell, &tour_of(page));
    }
}

fn tour(shell: &str, commands: &[String]) {
    let dir = clone_of_sorts();
    fs::write(dir.path().join("tour.sh"), script(commands)).expect("written");
    let Some(said) = beside_the_demo(shell, dir.path(), "tour.sh") else {
        return;
    };
    for (index, command) in commands.iter().enumerate() {
        let (output, status) = outcome(&said, index);
        if status == "absent" {
            skip(&format!("{} is not installed: {command}", program(command)));
            continue;
        }
        assert_eq!(status, "0", "{shell}: {command}\n{output}\nall:\n{said}");
        for words in expected(command) {
            let (seen, never) = (output.contains(words), format!("NEVER SEEN: {words}"));
            assert!(
                seen && !output.contains(&never),
                "{shell}: {command}: no {words}\n{output}\nall:\n{said}"
            );
        }
    }
}

#[test]
fn the_tours_work_as_they_are_printed() {
    tours("sh");
}

#[test]
fn the_tours_work_in_zsh() {
    tours("zsh");
}

#[test]
fn commands_that_the_demo_prints_work() {
    let dir = clone_of_sorts();
    let script =
        "set -e\n. ./try.sh\nmonitor=$!\nuntil grep -q initial tour.out; do sleep 0.1; done\n";
    fs::write(dir.path().join("all.sh"), script).expect("written");
    let Some(said) = beside_the_demo("sh", dir.path(), "all.sh") else {
        return;
    };
    for words in [
        "web-1",
        "+ labels: {rack=b11}",
        "- labels: {rack=b11}",
        "initial",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
}

#[test]
fn the_demo_serves_what_it_has_made_before() {
    let dir = clone_of_sorts();
    let script = "set -e
socket=unix:$PWD/target/run/corvid-demo/db.sock
target/release/ovsdb-client transact $socket '[\"Inventory\",{\"op\":\"insert\",\"table\":\"Site\",\"row\":{\"name\":\"south\"}}]'
OVS_RUNDIR=$PWD/target/run target/release/ovs-appctl -t $PWD/target/run/corvid-demo/ovsdb-server.ctl exit
while [ -e target/run/corvid-demo/ovsdb-server.ctl ]; do sleep 0.1; done
OVS_RUNDIR=$PWD/target/run target/release/corvid-demo >again.out 2>&1 &
until target/release/ovsdb-client list-dbs $socket >dbs 2>/dev/null; do sleep 0.1; done
target/release/ovsdb-client dump $socket Inventory Site name
ls target/run/corvid-demo
";
    fs::write(dir.path().join("again.sh"), script).expect("written");
    let Some(said) = beside_the_demo("sh", dir.path(), "again.sh") else {
        return;
    };
    assert!(said.contains("north") && said.contains("south"), "{said}");
    assert!(!said.lines().any(|line| line == "new"), "{said}");
}

#[test]
fn a_second_demo_reports_the_address_in_use() {
    let dir = clone_of_sorts();
    let script = "
OVS_RUNDIR=$PWD/elsewhere target/release/corvid-demo >elsewhere.out 2>&1 &
until target/release/ovsdb-client list-dbs unix:$PWD/elsewhere/corvid-demo/db.sock 2>/dev/null; do sleep 0.1; done
cat elsewhere.out
OVS_RUNDIR=$PWD/target/run target/release/corvid-demo && exit 1
exit 0
";
    fs::write(dir.path().join("second.sh"), script).expect("written");
    let Some(said) = beside_the_demo("sh", dir.path(), "second.sh") else {
        return;
    };
    for words in [
        "(another program has port 6640, so there is no tcp:)",
        "corvid-demo: a demo runs in ",
        "To end it: Ctrl-C in its terminal, or ",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
}

/// Each expectation belongs to a command of a tour, and the tests run the same command as
/// `make run`.
#[test]
fn every_expectation_belongs_to_a_command_of_a_tour() {
    let commands: Vec<String> = PAGES.into_iter().flat_map(tour_of).collect();
    for (part, _) in EXPECTED {
        assert!(
            commands.iter().any(|command| command.contains(part)),
            "{part}"
        );
    }
    // An interactive zsh would take a comment for arguments.
    for command in &commands {
        assert!(!command.contains(" #"), "{command}");
    }
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let recipe = "\tOVS_RUNDIR=$${OVS_RUNDIR:-$(CURDIR)/target/run} $(RELEASE)/corvid-demo\n";
    assert!(makefile.contains(recipe), "{makefile}");
}

mod proofs {
    use super::*;

    #[test]
    fn commands_are_the_indented_lines() {
        let text = "Say:\n\n    a b\n    c '[1,\n        2]'\n\nor\n\n    d &\n";
        assert_eq!(commands(text), ["a b", "c '[1,\n    2]'", "d &"]);
        assert_eq!(program("A=b c"), "cd");
        assert_eq!(program("curl '127.0.0.1:1/a?b'"), "curl");
        assert_eq!(section("\n## A\nx\n## B\ny\n", "A"), "x");
    }
}
