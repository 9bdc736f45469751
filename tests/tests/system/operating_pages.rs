//! The commands on the operators' pages do what the pages say: the options for service scripts, the
//! end of a stopped member's log, and backups that are restored.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use corvid_tests::binary::bin;
use corvid_tests::cluster::Cluster;
use corvid_tests::limited;
use corvid_tests::numbered_rows::{add_with, await_rows, schema, started};
use corvid_tests::process::Process;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    let path = root().join("docs/operate").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reports a skipped test in a way that the test runner does not capture.
fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}");
}

/// Runs a script in a folder, with our programs first in its path. Returns its output.
fn shell(folder: &Path, script: &str) -> String {
    let programs = bin("ovsdb-tool");
    let programs = programs.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", format!("{programs}:{path}"))
        .stdin(Stdio::null());
    let output = limited::output(&mut command).expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn servers_start_with_the_options_that_the_page_gives_for_each_script() {
    for script in [
        "/usr/share/ovn/scripts/ovn-ctl",
        "/usr/share/openvswitch/scripts/ovs-ctl",
    ] {
        if !Path::new(script).exists() {
            return skip(&format!("{script} is not installed"));
        }
    }
    let mut command = Command::new(root().join("tests/packaging/private-root"));
    command
        .arg("service-scripts")
        .arg(root().join("docs/operate/service-scripts.md"))
        .args(["ovsdb-server", "ovsdb-client", "ovsdb-tool", "ovs-appctl"].map(bin))
        .stdin(Stdio::null());
    let output = limited::output(&mut command).expect("started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(said.contains("served with the page's options\n"), "{said}"),
        Some(77) => skip(&said),
        _ => panic!("{}\n{said}", output.status),
    }
}

#[test]
fn the_page_finds_the_end_of_each_members_log() {
    let cluster = Cluster::over("tcp", "127.0.0.1", 3, &[], &schema());
    let (mut cluster, leader) = started(cluster.expect("made"));
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let mut client = cluster.connect(leader).expect("a connection");
    for number in 0..3 {
        add_with(&mut client, number, "early").expect("inserted");
    }
    await_rows(&cluster, &others, &(0..3).collect());
    cluster.member(others[0]).kill();
    for number in 3..5 {
        add_with(&mut client, number, "late").expect("inserted");
    }
    await_rows(&cluster, &others[1..], &(0..5).collect());
    // The first record of a compacted file contains the end of its log.
    let compact = cluster.control(leader, "ovsdb-server/compact", &["D"]);
    compact.expect("compacted");
    cluster.member(others[1]).kill();
    cluster.member(leader).kill();

    let folder = tempfile::tempdir().expect("a folder");
    let members = [leader, others[1], others[0]];
    for (number, member) in members.iter().enumerate() {
        let place = folder.path().join(format!("m{}", number + 1));
        fs::create_dir(&place).expect("made");
        symlink(cluster.file(*member), place.join("notes.db")).expect("linked");
    }
    let text = page("backup-and-restore.md");
    let scripts = text.split("```sh\n").skip(1);
    let scripts = scripts.filter_map(|rest| rest.split("```").next());
    let script: Vec<&str> = scripts
        .filter(|script| script.contains("show-log"))
        .collect();
    assert_eq!(script.len(), 1, "the page has one script for this");
    let printed = shell(folder.path(), script[0]);
    let ends: Vec<(u64, u64)> = printed
        .lines()
        .map(|line| {
            let (_, end) = line.split_once(": last entry ").expect("its end");
            let (end, _) = end.split_once(", known to be committed: ").expect("it");
            let (term, index) = end.split_once(':').expect("term and index");
            (
                term.parse().expect("a term"),
                index.parse().expect("an index"),
            )
        })
        .collect();
    assert_eq!(ends.len(), 3, "{printed}");
    assert_eq!(ends[0], ends[1], "{printed}");
    assert_eq!(ends[0].0, ends[2].0, "{printed}");
    assert_eq!(ends[0].1, ends[2].1 + 2, "two transactions: {printed}");
    let rescued = shell(
        folder.path(),
        "ovsdb-tool cluster-to-standalone rescued.db m1/notes.db
        ovsdb-tool query rescued.db '[\"D\", {\"op\":\"select\", \"table\":\"T\", \"where\":[]}]'",
    );
    assert_eq!(rescued.matches("\"_uuid\"").count(), 5, "{rescued}");
}

fn rows(text: &str) -> Vec<Value> {
    let reply: Value = serde_json::from_str(text.trim()).expect("JSON");
    reply[0]["rows"].as_array().expect("rows").clone()
}

#[test]
fn uuids_are_kept_by_a_file_and_not_by_restore() {
    let schema = json!({"name": "Notes", "version": "1.0.0", "tables": {"Note": {"isRoot": true,
        "columns": {"text": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    let insert = json!(["Notes", {"op": "insert", "table": "Note", "row": {"text": "kept"}}]);
    let before = client.call("transact", &insert).expect("inserted");
    let folder = tempfile::tempdir().expect("a folder");
    let remote = format!("unix:{}", server.socket().display());
    let select = "'[\"Notes\", {\"op\":\"select\", \"table\":\"Note\", \"where\":[]}]'";
    shell(
        folder.path(),
        &format!("ovsdb-client backup {remote} Notes > notes-backup.db"),
    );
    let uuid = &before["result"][0]["uuid"];
    let in_file = shell(
        folder.path(),
        &format!("ovsdb-tool query notes-backup.db {select}"),
    );
    assert_eq!(&rows(&in_file)[0]["_uuid"], uuid, "the backup has the UUID");
    shell(
        folder.path(),
        &format!("cat notes-backup.db | ovsdb-client restore {remote} Notes"),
    );
    let restored = shell(
        folder.path(),
        &format!("ovsdb-client query {remote} {select}"),
    );
    let restored = rows(&restored);
    assert_eq!(restored.len(), 1);
    assert_eq!(restored[0]["text"], "kept");
    assert_ne!(&restored[0]["_uuid"], uuid, "a restored row has a new one");
}

/// A record with its header.
fn record(body: &Value) -> String {
    let body = format!("{body}\n");
    let hash = <sha1::Sha1 as sha1::Digest>::digest(body.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("OVSDB JSON {} {hash}\n{body}", body.len())
}

/// A row of [`recent_changes`] that is deleted.
const PORT: &str = "5db740cf-3aa7-44b7-a9b5-3a4a3b1c7a11";

/// The file of a database with changes of the last three hours.
fn recent_changes() -> String {
    let named = json!({"isRoot": true, "columns": {"name": {"type": "string"},
        "tag": {"type": {"key": "integer", "min": 0, "max": 1}}}});
    let schema = json!({"name": "Open_vSwitch", "version": "1.0.0",
        "tables": {"Bridge": named, "Port": named}});
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_ms = now.expect("after 1970").as_millis() as i64;
    let at = |minutes: i64| now_ms - minutes * 60_000;
    let bridge = "11111111-3aa7-44b7-a9b5-3a4a3b1c7a22";
    let client = "corvid: client=hv1 peer=ssl:192.0.2.7:50122 role=ovn-controller";
    let file = [
        schema,
        json!({"_date": at(180), "_comment": "ovs-vsctl: add-br br0",
            "Bridge": {bridge: {"name": "br0"}}, "Port": {PORT: {"name": "p1", "tag": 5}}}),
        json!({"_date": at(90), "_comment": "ovs-vsctl: set port p1 tag=6", "_is_diff": true,
            "Port": {PORT: {"tag": 6}}}),
        json!({"_date": at(30), "_comment": format!("a script\n{client}"), "_is_diff": true, "Port": {PORT: null}}),
    ];
    file.iter().map(record).collect()
}

/// Runs the scripts of the page about history that begin with this program. Returns what each
/// prints.
fn run_recipes_for_history(folder: &Path, program: &str) -> Vec<String> {
    let page = page("history.md");
    let scripts = page.split("```sh\n").skip(1);
    let scripts = scripts.filter_map(|rest| rest.split("```").next());
    let scripts = scripts.filter(|script| script.starts_with(program));
    scripts.map(|script| shell(folder, script)).collect()
}

#[test]
fn the_recipes_for_history_do_what_the_page_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, port) = (recent_changes(), PORT);
    fs::write(folder.path().join("conf.db"), &text).expect("written");
    let printed = run_recipes_for_history(folder.path(), "ovsdb-tool");
    let all = printed.concat();
    assert_eq!(printed.len(), 10, "{all}");
    assert!(printed[0].contains("3 transactions"), "{}", printed[0]);
    assert!(
        printed[1].contains(port),
        "the row that is gone: {}",
        printed[1]
    );
    assert!(
        printed[2].contains("- tag: 5\n+ tag: 6\n"),
        "{}",
        printed[2]
    );
    assert_eq!(printed[3].matches("commit ").count(), 2, "{}", printed[3]);
    assert_eq!(printed[4].matches("commit ").count(), 1, "{}", printed[4]);
    let lines: Vec<Value> = printed[5]
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2]["comment"], "a script");
    assert_eq!(lines[2]["client"]["client"], "hv1");
    let shown = "\nClient:  ssl:192.0.2.7:50122 (client \"hv1\", role \"ovn-controller\")\n";
    assert!(printed[2].contains(shown), "{}", printed[2]);
    assert!(printed[6].contains("br0"), "{}", printed[6]);
    assert!(
        printed[7].contains(&format!("delete Port \"p1\" {port}")),
        "{}",
        printed[7]
    );
    assert_eq!(printed[8], "");
    assert_eq!(printed[9], "");
    let restored = shell(folder.path(), "ovsdb-tool dump restored.db Port");
    assert!(restored.contains(port), "the same UUID: {restored}");
    assert_eq!(
        fs::read_to_string(folder.path().join("conf.db")).expect("read"),
        text
    );
}

#[test]
fn the_recipes_for_history_of_a_running_server_do_what_the_page_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("conf.db");
    fs::write(&file, recent_changes()).expect("written");
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::new(&program, folder.path(), &[file.into()]);
    server.start().expect("started");
    let of_file = shell(folder.path(), "ovsdb-tool --json -n 5 log conf.db");
    let printed = run_recipes_for_history(folder.path(), "ovsdb-client");
    let all = printed.concat();
    assert_eq!(printed.len(), 8, "{all}");
    assert!(printed[0].contains("3 transactions"), "{}", printed[0]);
    assert!(
        printed[1].contains("- tag: 5\n+ tag: 6\n"),
        "{}",
        printed[1]
    );
    // The same lines as from the file.
    assert_eq!(printed[2], of_file);
    let delete = format!("delete Port \"p1\" {PORT}");
    assert!(printed[3].contains(&delete), "{}", printed[3]);
    assert!(printed[4].contains("p1   5"), "{}", printed[4]);
    // The row is back, with its UUID, and going back is taken back.
    assert_eq!(printed[5], "");
    assert!(printed[6].contains(&delete), "{}", printed[6]);
    assert_eq!(printed[7], printed[6]);
    let now = shell(
        folder.path(),
        "ovsdb-client dump unix:$PWD/db.sock Open_vSwitch Port",
    );
    assert!(!now.contains(PORT), "{now}");
}
