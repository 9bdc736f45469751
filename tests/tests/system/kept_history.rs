//! The history on disk (`--keep-history`). A rewrite keeps the file that it replaces, which is then
//! compressed. The policy prunes. A start after a crash cleans up. On a full disk, history is
//! removed before a write is refused.

#![allow(clippy::unwrap_used, reason = "a failing case may end the program")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::numbered_rows::{self, DATABASE, schema};
use corvid_tests::one_file::{self, Configured};
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::Corvid;
use corvid_tests::small_disk::on_small_disk;
use corvid_tests::{binary, http, limited, peer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server with one database.
struct Served {
    process: Process,
    file: PathBuf,
    next: i64,
    _folder: TempDir,
}

impl Served {
    fn start(options: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        Served::on(folder, file, options)
    }

    fn on(folder: TempDir, file: PathBuf, options: &[&str]) -> Served {
        let process = one_file::start_in(folder.path(), &file, &schema(), options).unwrap();
        Served {
            process,
            file,
            next: 0,
            _folder: folder,
        }
    }

    fn client(&self) -> Client {
        self.process.connect().unwrap()
    }

    /// Inserts rows, each in a transaction of its own.
    fn add(&mut self, count: i64) {
        let mut client = self.client();
        for _ in 0..count {
            numbered_rows::add(&mut client, self.next).unwrap();
            self.next += 1;
        }
    }

    /// Inserts a row with a text. Returns the reply if the commit is refused.
    fn try_add(&mut self, client: &mut Client, text: &str) -> Option<String> {
        let insertion = numbered_rows::insert(self.next, text);
        self.next += 1;
        let reply = client.call("transact", &insertion).unwrap();
        let results = reply["result"].as_array().unwrap();
        (results.len() != 1).then(|| reply.to_string())
    }

    fn control(&self, command: &str, arguments: &[&str]) -> String {
        let owned: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let reply = self.process.control(command, &owned).unwrap();
        match reply["result"].as_str() {
            Some(text) => text.to_owned(),
            None => panic!("{command} {arguments:?}: {reply}"),
        }
    }

    fn compact(&self) {
        self.control("ovsdb-server/compact", &[DATABASE]);
    }

    fn names(&self) -> Vec<String> {
        names(&self.file)
    }

    fn await_names(&self, expected: &[&str]) {
        await_names(&self.file, expected, || self.process.log());
    }

    fn text_of(&self, segment: &str) -> Vec<u8> {
        text_of(&folder_of(&self.file).join(segment))
    }
}

fn folder_of(file: &Path) -> PathBuf {
    let mut folder = file.as_os_str().to_owned();
    folder.push(".history");
    PathBuf::from(folder)
}

fn names(file: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder_of(file)) else {
        return Vec::new();
    };
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

fn await_names(file: &Path, expected: &[&str], log: impl Fn() -> String) {
    let deadline = Instant::now() + LIMIT;
    while names(file) != expected {
        assert!(
            Instant::now() < deadline,
            "{:?} instead of {expected:?}\n{}",
            names(file),
            log()
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// The text of a segment, as `zstd` decompresses it.
fn text_of(segment: &Path) -> Vec<u8> {
    let output = Command::new("zstd").arg("-dcq").arg(segment).output();
    let output = output.expect("zstd is installed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    output.stdout
}

/// The output of the reference's tool for a database file. `None`: it is not installed.
fn shown_log(text: &[u8]) -> Option<String> {
    let Some(tool) = binary::reference("ovsdb-tool") else {
        peer::say_skipped("ovsdb-tool");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.db");
    fs::write(&file, text).unwrap();
    let shown = peer::run(Command::new(tool).args(["-mm", "show-log"]).arg(file));
    Some(shown.unwrap())
}

const ONE: &str = "0000000001.db.zst";
const TWO: &str = "0000000002.db.zst";
const THREE: &str = "0000000003.db.zst";

#[test]
fn a_compaction_keeps_the_replaced_file_as_a_segment_that_the_field_reads() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(40);
    let first = fs::read(&served.file).unwrap();
    served.compact();
    served.await_names(&[ONE]);
    assert_eq!(served.text_of(ONE), first, "not a byte is lost");
    assert!(fs::read(&served.file).unwrap().len() < first.len());
    if let Some(shown) = shown_log(&first) {
        let records = shown.lines().filter(|line| line.starts_with("record "));
        assert_eq!(records.count(), 41, "{shown}");
    }

    // The next one begins with the contents of the first.
    served.add(3);
    let second = fs::read(&served.file).unwrap();
    served.compact();
    served.await_names(&[ONE, TWO]);
    assert_eq!(served.text_of(TWO), second);
    assert_eq!(served.text_of(ONE), first);

    let deadline = Instant::now() + LIMIT;
    let listed = loop {
        let listed = served.control("ovsdb-server/history", &[DATABASE]);
        if listed.contains(TWO) && !listed.contains(".db: ") {
            break listed;
        }
        assert!(Instant::now() < deadline, "{listed}");
        thread::sleep(Duration::from_millis(2));
    };
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "policy: 1G", "{listed}");
    assert!(lines[1].ends_with("a.db.history"), "{listed}");
    assert!(lines[2].starts_with(&format!("{ONE}: ")), "{listed}");
    assert!(lines[2].contains(", 40 transactions, 20"), "{listed}");
    assert!(lines[3].contains(", 3 transactions, 20"), "{listed}");
    let log = served.process.log();
    assert!(!log.contains("|WARN|history"), "{log}");
}

#[test]
fn without_a_policy_nothing_is_kept_and_nothing_is_removed() {
    let mut served = Served::start(&[]);
    served.add(3);
    served.compact();
    assert!(!folder_of(&served.file).exists());
    let reply = served.control("ovsdb-server/set-setting", &["keep-history", "10000"]);
    assert_eq!(reply, "");
    served.compact();
    served.await_names(&[ONE]);
    served.control("ovsdb-server/set-setting", &["keep-history", "off"]);
    let settings = served.control("ovsdb-server/list-settings", &[]);
    assert!(settings.contains("keep-history=off\n"), "{settings}");
    served.compact();
    served.process.stop().unwrap();
    served.process.start().unwrap();
    served.compact();
    assert_eq!(served.names(), [ONE]);
}

#[test]
fn the_policy_prunes_the_oldest_and_never_the_newest() {
    let mut served = Served::start(&["--keep-history=7d,10000"]);
    for (number, name) in [ONE, TWO, THREE].into_iter().enumerate() {
        served.add(10);
        served.compact();
        served.await_names(&[ONE, TWO, THREE][..=number]);
        assert!(served.names().contains(&name.to_owned()));
    }
    served.control("ovsdb-server/set-setting", &["keep-history", "20"]);
    served.await_names(&[TWO, THREE]);
    served.control("ovsdb-server/set-setting", &["keep-history", "1"]);
    served.await_names(&[THREE]);
    // A new segment makes the one before removable. Its number is not used again.
    served.add(1);
    served.compact();
    served.await_names(&["0000000004.db.zst"]);
}

#[test]
fn a_policy_that_makes_no_sense_is_refused_everywhere() {
    let served = Served::start(&[]);
    for nonsense in ["", "7x", "-1d", "0", "1d,2d", "forever", "7d,,2G"] {
        let arguments = ["keep-history", nonsense].map(str::to_owned);
        let reply = served
            .process
            .control("ovsdb-server/set-setting", &arguments);
        let reply = reply.unwrap();
        let error = reply["error"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(error.contains("10000"), "forms are shown: {error}");
        let option = format!("--keep-history={nonsense}");
        let program = Corvid.server_binary().unwrap();
        let output = Command::new(program).arg(option).output().unwrap();
        assert!(!output.status.success());
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(shown.contains("--keep-history: "), "{shown}");
    }
}

#[test]
fn a_start_removes_what_a_crash_left_and_compresses_what_was_kept() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(10);
    let first = fs::read(&served.file).unwrap();
    served.compact();
    served.await_names(&[ONE]);
    served.add(2);
    served.process.kill();
    let folder = folder_of(&served.file);
    // As if killed between the second name and the swap, and while segment 5 was written.
    fs::hard_link(&served.file, folder.join("0000000006.db")).unwrap();
    fs::write(folder.join("0000000005.db"), &first).unwrap();
    fs::write(folder.join("0000000005.db.zst.tmp"), "half").unwrap();
    // As if killed between the renaming of a segment and the removal of its file.
    fs::write(folder.join("0000000001.db"), &first).unwrap();
    // As after a loss of power: the last record is torn.
    let torn = [&first[..], b"OVSDB JSON 70 0123"].concat();
    fs::write(folder.join("0000000004.db"), torn).unwrap();
    served.process.start().unwrap();
    served.await_names(&[ONE, "0000000004.db.zst", "0000000005.db.zst"]);
    assert_eq!(served.text_of("0000000004.db.zst"), first);
    assert_eq!(served.text_of("0000000005.db.zst"), first);
    assert_eq!(served.text_of(ONE), first);
    assert_eq!(fs::metadata(&served.file).unwrap().nlink(), 1);
    assert_eq!(
        numbered_rows::numbers(&mut served.client()).unwrap().len(),
        12
    );
}

#[test]
fn a_kept_file_with_records_after_damage_stays_as_it_is() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(10);
    let mut damaged = fs::read(&served.file).unwrap();
    served.process.kill();
    let folder = folder_of(&served.file);
    fs::create_dir(&folder).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(folder.join("0000000001.db"), &damaged).unwrap();
    served.process.start().unwrap();
    let deadline = Instant::now() + LIMIT;
    while !served
        .process
        .log()
        .contains("0000000001.db is not compressed")
    {
        assert!(Instant::now() < deadline, "{}", served.process.log());
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(served.names(), ["0000000001.db"]);
    assert_eq!(fs::read(folder.join("0000000001.db")).unwrap(), damaged);
}

#[test]
fn a_file_that_cannot_be_kept_is_compacted_nevertheless() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(10);
    let before = fs::metadata(&served.file).unwrap().len();
    // No folder can have this name.
    fs::write(folder_of(&served.file), "").unwrap();
    served.compact();
    assert!(fs::metadata(&served.file).unwrap().len() < before);
    let log = served.process.log();
    let warnings = log.lines().filter(|line| line.contains("is not kept"));
    assert_eq!(warnings.count(), 1, "{log}");
    served.add(1);
    fs::remove_file(folder_of(&served.file)).unwrap();
    served.compact();
    served.await_names(&[ONE]);
}

#[test]
fn a_conversion_keeps_the_file_of_the_old_schema() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(5);
    let before = fs::read(&served.file).unwrap();
    let mut converted = schema();
    converted["version"] = json!("9.9.9");
    let mut client = served.client();
    client
        .call("convert", &json!([DATABASE, converted]))
        .unwrap();
    served.await_names(&[ONE]);
    assert_eq!(served.text_of(ONE), before);
}

#[test]
fn metrics_show_the_history() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("metrics.sock");
    let listen = format!("--metrics-listen=unix:{}", socket.display());
    let mut served = Served::start(&["--keep-history=1G", &listen]);
    served.add(5);
    served.compact();
    served.await_names(&[ONE]);
    let label = format!("{{database=\"{DATABASE}\"}}");
    let deadline = Instant::now() + LIMIT;
    loop {
        let page = http::get(&socket, "/metrics", "text/plain").unwrap();
        if page
            .body
            .contains(&format!("corvid_database_history_files{label} 1"))
        {
            assert!(
                page.body
                    .contains(&format!("corvid_database_history_failures_total{label} 0"))
            );
            let oldest = format!("corvid_database_history_oldest_timestamp_seconds{label} 1");
            assert!(page.body.contains(&oldest), "{}", page.body);
            break;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_configuration_file_has_the_policy() {
    let configured = Configured::start(&schema(), "keep-history", &json!("2G,5d")).unwrap();
    let (process, file) = (&configured.process, &configured.file);
    let write = |policy: &Value| configured.write(policy).unwrap();
    let control = |process: &Process, command: &str, arguments: &[&str]| {
        let owned: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        process.control(command, &owned).unwrap()
    };
    let setting = |process: &Process| {
        let reply = control(process, "ovsdb-server/list-settings", &[]);
        let text = reply["result"].as_str().unwrap().to_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("keep-history="));
        line.unwrap().to_owned()
    };
    assert_eq!(setting(process), "5d,2G");
    control(process, "ovsdb-server/compact", &[DATABASE]);
    await_names(file, &[ONE], || process.log());
    // A file that has not changed leaves the setting alone.
    control(
        process,
        "ovsdb-server/set-setting",
        &["keep-history", "1000"],
    );
    control(process, "ovsdb-server/reload", &[]);
    assert_eq!(setting(process), "1000");
    write(&json!("36h"));
    control(process, "ovsdb-server/reload", &[]);
    assert_eq!(setting(process), "36h");
    write(&json!("soon"));
    let reply = control(process, "ovsdb-server/reload", &[]);
    assert!(reply["error"].is_string(), "{reply}");
    assert_eq!(setting(process), "36h");
    write(&Value::Null);
    control(process, "ovsdb-server/reload", &[]);
    assert_eq!(setting(process), "off");
}

#[test]
fn members_keep_their_own_history() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &["--keep-history=1G"]).unwrap();
    let (cluster, leader) = numbered_rows::started(cluster);
    let mut client = cluster.connect(leader).unwrap();
    for n in 0..10 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    for member in 0..cluster.members().len() {
        cluster
            .control(member, "ovsdb-server/compact", &[DATABASE])
            .unwrap();
        let file = cluster.file(member);
        await_names(&file, &[ONE], || cluster.said());
        let text = text_of(&folder_of(&file).join(ONE));
        assert!(text.starts_with(b"OVSDB CLUSTER "));
        if let Some(shown) = shown_log(&text) {
            assert!(shown.contains("record 0:"), "{shown}");
            assert!(shown.lines().count() > 20, "{shown}");
        }
    }
}

/// The file with which a server joins a cluster has no contents. Its first snapshot replaces it.
#[test]
fn a_server_that_joins_keeps_no_file_without_contents() {
    let options = ["--keep-history=1G".into()];
    let cluster = Cluster::over("tcp", "127.0.0.1", 3, &options, &schema()).unwrap();
    let (cluster, leader) = numbered_rows::started(cluster);
    let mut client = cluster.connect(leader).unwrap();
    for n in 0..3 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    numbered_rows::await_rows(&cluster, &[0, 1, 2], &(0..3).collect());
    for member in 0..cluster.members().len() {
        let file = cluster.file(member);
        let (is_readable, text) = tool(&file, &["log"]);
        assert!(is_readable, "{text}");
        let (is_in_order, text) = tool(&file, &["history", "verify"]);
        assert!(is_in_order, "{text}");
        cluster
            .control(member, "ovsdb-server/compact", &[DATABASE])
            .unwrap();
        await_names(&file, &[ONE], || cluster.said());
        assert!(tool(&file, &["log"]).0);
    }
}

/// The words of our tool about the history of a file, and whether it finds it in order.
fn tool(file: &Path, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(binary::bin("ovsdb-tool"));
    let (name, rest) = words.split_first().unwrap();
    command.arg(name);
    // `history verify FILE`, but `log FILE`.
    let output = limited::output(command.args(rest).arg(file)).unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output.status.success(), text)
}

/// The member was away while the others wrote and compacted, so it gets a snapshot in place of the
/// entries that it lacks.
#[test]
fn a_member_that_installs_a_snapshot_keeps_the_file_that_it_replaces() {
    let mut cluster = Cluster::of(3, &schema()).unwrap();
    cluster.swap(Corvid, &["--keep-history=1G"]).unwrap();
    let (mut cluster, leader) = numbered_rows::started(cluster);
    let away = numbered_rows::others(leader)[0];
    let mut client = cluster.connect(leader).unwrap();
    for n in 0..5 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    numbered_rows::await_rows(&cluster, &[0, 1, 2], &(0..5).collect());
    cluster.member(away).stop().unwrap();
    let with = numbered_rows::others(away);
    for n in 5..15 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    numbered_rows::await_rows(&cluster, &with, &(0..15).collect());
    for member in &with {
        cluster
            .control(*member, "ovsdb-server/compact", &[DATABASE])
            .unwrap();
    }
    // A member that starts has only the entries of its file: none before its snapshot.
    with.iter()
        .for_each(|it| cluster.member(*it).stop().unwrap());
    for member in [0, 1, 2] {
        cluster.member(member).start().unwrap();
    }
    numbered_rows::await_rows(&cluster, &[away], &(0..15).collect());
    let file = cluster.file(away);
    await_names(&file, &[ONE], || cluster.said());
    let segment = folder_of(&file).join(ONE);
    let kept = shown_log(&text_of(&segment));
    if let Some(kept) = kept {
        assert!(kept.contains("record 0:"), "{kept}");
    }
    // Both files are in order. The entries in between never were in a file of this member, and
    // nothing hides that.
    let check = |before: &str| {
        let (_, said) = tool(&file, &["history", "verify"]);
        let faults: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("missing"))
            .collect();
        assert!(
            matches!(faults[..], [fault] if fault.contains(before) && fault.contains("10 rows")),
            "{said}"
        );
        assert!(!said.contains("damaged"), "{said}");
    };
    check(&file.display().to_string());
    // The commits that the member has applied have their own records; those of the snapshot are one
    // difference.
    let (is_read, log) = tool(&file, &["log"]);
    assert!(is_read, "{log}");
    assert_eq!(log.matches("insert T").count(), 15, "{log}");
    // It goes on, and keeps the next file like any other.
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).unwrap();
    let mut client = cluster.connect(leader).unwrap();
    for n in 15..18 {
        numbered_rows::add(&mut client, n).unwrap();
    }
    numbered_rows::await_rows(&cluster, &[away], &(0..18).collect());
    cluster
        .control(away, "ovsdb-server/compact", &[DATABASE])
        .unwrap();
    await_names(&file, &[ONE, "0000000002.db.zst"], || cluster.said());
    check("0000000002.db.zst");
}

#[test]
fn a_file_that_could_not_be_kept_leaves_its_number_free() {
    let mut served = Served::start(&["--keep-history=1G"]);
    served.add(3);
    served.compact();
    served.await_names(&[ONE]);
    // A file in place of the folder: nothing can be kept.
    let folder = folder_of(&served.file);
    let aside = folder.with_extension("aside");
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "").unwrap();
    served.add(3);
    served.compact();
    let log = served.process.log();
    assert!(log.contains("is not kept"), "{log}");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    served.add(3);
    served.compact();
    served.await_names(&[ONE, "0000000003.db.zst"]);
    let (_, listed) = tool(&served.file, &["history"]);
    assert!(listed.contains("segment 2 is missing"), "{listed}");
}

#[test]
fn a_full_disk_takes_history_before_it_refuses_a_write() {
    on_small_disk(
        "kept_history::a_full_disk_takes_history_before_it_refuses_a_write",
        |disk| {
            let folder = tempfile::tempdir().unwrap();
            let file = disk.file("a.db");
            let mut served = Served::on(folder, file, &["--keep-history=1G"]);
            for number in 1..=4 {
                // Text that does not compress.
                let mut client = served.client();
                for _ in 0..40 {
                    let text: String = (0..40)
                        .map(|part| format!("{:x}", fingerprint(served.next, part)))
                        .collect();
                    assert_eq!(served.try_add(&mut client, &text), None);
                }
                served.compact();
                let deadline = Instant::now() + LIMIT;
                while served.names().len() < number
                    || served.names().iter().any(|name| !name.ends_with(".zst"))
                {
                    assert!(Instant::now() < deadline, "{}", served.process.log());
                    thread::sleep(Duration::from_millis(2));
                }
            }
            assert_eq!(served.names().len(), 4);
            disk.take_all_but(8 * 1024).unwrap();
            let mut client = served.client();
            let text = "x".repeat(2000);
            // Each segment frees more than some of these need. All are accepted.
            for _ in 0..20 {
                assert_eq!(served.try_add(&mut client, &text), None);
            }
            let names = served.names();
            assert!(!names.is_empty() && names.len() < 4, "{names:?}");
            assert!(!names.contains(&ONE.to_owned()), "the oldest went first");
            let log = served.process.log();
            assert!(
                log.contains("the disk is full: 0000000001.db.zst is removed"),
                "{log}"
            );
            // In the end there is nothing left to give.
            let refused = (0..2000).find_map(|_| served.try_add(&mut client, &text));
            let refused = refused.expect("the disk is full");
            assert!(refused.contains("No space left on device"), "{refused}");
            assert_eq!(
                served.names(),
                ["0000000004.db.gone"],
                "its number stays taken"
            );
            disk.give_back().unwrap();
            served.add(1);
        },
    );
}

/// A number that follows from two others, for text that does not compress.
fn fingerprint(a: i64, b: i64) -> u64 {
    let mixed = (a as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (b as u64).rotate_left(40);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
