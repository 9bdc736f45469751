//! A server process on damaged database files: which files it serves, which it copies first, and
//! which it does not open.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corvid_log::{Magic, Record};

const SCHEMA: &str = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}}}}}"#;
/// The time limit for a server's start and end.
const LIMIT: Duration = Duration::from_secs(30);

/// A directory; dropping the value removes it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path =
            std::env::temp_dir().join(format!("corvid-damaged-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a directory of its own");
        Directory(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The salvage copies in the directory.
    fn copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("readable");
        entries
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.to_string_lossy().contains("a.db.damaged-"))
            .collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server on `a.db` of a directory; dropping the value kills it.
struct Server(Child);

impl Server {
    fn spawn(directory: &Directory) -> Server {
        let log = fs::File::create(directory.path("log")).expect("writable");
        let _ = fs::remove_file(directory.path("sock"));
        let child = Command::new(env!("CARGO_BIN_EXE_ovsdb-server"))
            .arg(format!(
                "--remote=punix:{}",
                directory.path("sock").display()
            ))
            .arg(format!("--unixctl={}", directory.path("ctl").display()))
            .arg("a.db")
            .current_dir(&directory.0)
            .env("OVS_RUNDIR", &directory.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Server(child.expect("a server"))
    }

    fn start(directory: &Directory) -> Server {
        let mut server = Server::spawn(directory);
        let deadline = Instant::now() + LIMIT;
        while UnixStream::connect(directory.path("sock")).is_err() {
            let ended = server.0.try_wait().expect("a child");
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{}",
                directory.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// Waits until the server has ended by itself. Returns whether it succeeded.
    fn ends(mut self) -> bool {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status.success();
            }
            assert!(Instant::now() < deadline, "the server goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the reply to a transaction.
fn transact(directory: &Directory, operation: &str) -> String {
    let mut stream = UnixStream::connect(directory.path("sock")).expect("listening");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let request = format!(r#"{{"method":"transact","params":["D",{operation}],"id":1}}"#);
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reply = Vec::new();
    let mut room = [0; 4096];
    while !reply.ends_with(b"}")
        || reply.iter().filter(|byte| **byte == b'{').count()
            != reply.iter().filter(|byte| **byte == b'}').count()
    {
        let got = stream.read(&mut room).expect("a reply");
        assert!(got > 0, "the connection ended");
        reply.extend_from_slice(&room[..got]);
    }
    String::from_utf8(reply).expect("UTF-8")
}

fn rows(directory: &Directory) -> usize {
    let reply = transact(
        directory,
        r#"{"op":"select","table":"t","where":[],"columns":["i"]}"#,
    );
    reply.matches("\"i\":").count()
}

fn insertion(row: u8) -> String {
    format!(
        r#"{{"_date":1700000000000,"t":{{"00000000-0000-4000-8000-00000000000{row}":{{"i":{row}}}}}}}"#
    )
}

/// A file with five rows, and the offsets of its records.
fn file() -> (Vec<u8>, Vec<usize>) {
    let (mut file, mut starts) = (Vec::new(), Vec::new());
    for body in [SCHEMA.to_owned()]
        .into_iter()
        .chain((1..=5).map(insertion))
    {
        starts.push(file.len());
        let mut record = Record::begin(&mut file, Magic::Standalone);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
    }
    (file, starts)
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("writable");
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).expect("ours");
}

/// Starts a server on these bytes, and asserts that it does not open them and neither writes nor
/// copies anything. Returns its log.
fn refused(name: &str, bytes: &[u8]) -> String {
    let directory = Directory::new(name);
    write(&directory.path("a.db"), bytes);
    assert!(!Server::spawn(&directory).ends(), "{}", directory.log());
    assert_eq!(fs::read(directory.path("a.db")).expect("readable"), bytes);
    assert_eq!(directory.copies().len(), 0);
    let log = directory.log();
    let advice = "restore a backup, or recover the readable rows into a new file with \"ovsdb-tool salvage a.db NEW\"";
    assert!(log.contains(advice), "{log}");
    log
}

#[test]
fn a_file_with_damage_before_records_is_not_opened() {
    let (mut bytes, starts) = file();
    bytes[starts[4] - 10] ^= 4;
    let log = refused("middle", &bytes);
    let why = format!(
        "2 intact records follow damaged record 3 at offset {}, so this is not an interrupted write",
        starts[3]
    );
    assert!(
        log.contains(&why) && log.contains("have SHA-1 hash"),
        "{log}"
    );
}

#[test]
fn rotten_contents_are_not_opened_as_an_empty_database() {
    let mut bytes = Vec::new();
    for body in [
        SCHEMA,
        r#"{"_comment":"compacting database online","_date":1700000000000,"t":{"00000000-0000-4000-8000-000000000001":{"i":1}}}"#,
    ] {
        let mut record = Record::begin(&mut bytes, Magic::Standalone);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
    }
    let length = bytes.len();
    let cut = &bytes[..length - 5];
    let log = refused("cut", cut);
    assert!(log.contains("(End of file)"), "{log}");
    bytes[length - 20] ^= 1;
    let log = refused("contents", &bytes);
    assert!(
        log.contains("record 1 at offset ")
            && log.contains("holds the contents of the database and was complete"),
        "{log}"
    );
}

#[test]
fn records_behind_a_hole_are_copied_before_the_first_write() {
    let directory = Directory::new("hole");
    let (mut bytes, starts) = file();
    bytes[starts[3] + 10..starts[3] + 60].fill(0);
    write(&directory.path("a.db"), &bytes);
    let server = Server::start(&directory);
    assert_eq!(rows(&directory), 2);
    let copies = directory.copies();
    let [copy] = &copies[..] else {
        panic!("one copy: {copies:?}");
    };
    assert_eq!(fs::read(copy).expect("readable"), bytes);
    assert_eq!(
        fs::metadata(copy).expect("there").permissions().mode() & 0o777,
        0o640
    );
    let log = directory.log();
    let (place, name) = (
        starts[3],
        copy.file_name().expect("a name").to_string_lossy(),
    );
    let loud = format!("|ERR|a.db: 2 intact records follow damaged record 3 at offset {place}.");
    assert_eq!(log.matches(&loud).count(), 1, "{log}");
    assert!(
        log.contains(&*name) && log.contains("parse error at offset"),
        "{log}"
    );
    // Nothing has been written yet, so the second start makes no second copy.
    drop(server);
    assert_eq!(fs::read(directory.path("a.db")).expect("readable"), bytes);
    let server = Server::start(&directory);
    assert_eq!(directory.copies(), copies);
    let reply = transact(&directory, r#"{"op":"insert","table":"t","row":{"i":9}}"#);
    assert!(reply.contains("\"uuid\""), "{reply}");
    drop(server);
    let _server = Server::start(&directory);
    assert_eq!(rows(&directory), 3);
    assert!(!directory.log().contains("|ERR|"), "{}", directory.log());
    assert_eq!(fs::read(copy).expect("readable"), bytes);
}

#[test]
fn a_last_record_that_was_complete_is_copied_before_the_first_write() {
    let directory = Directory::new("last");
    let (mut bytes, starts) = file();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    write(&directory.path("a.db"), &bytes);
    let _server = Server::start(&directory);
    assert_eq!(rows(&directory), 4);
    let copies = directory.copies();
    assert_eq!(copies.len(), 1);
    assert_eq!(fs::read(&copies[0]).expect("readable"), bytes);
    let log = directory.log();
    let loud = format!(
        "|ERR|a.db: the file ends in damaged record 5 at offset {}.",
        starts[5]
    );
    assert!(log.contains(&loud), "{log}");
}

#[test]
fn an_invalid_record_is_damage() {
    let (mut bytes, _) = file();
    let place = bytes.len();
    let mut append = |body: &str| {
        let mut record = Record::begin(&mut bytes, Magic::Standalone);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
        bytes.clone()
    };
    let directory = Directory::new("nonsense");
    write(&directory.path("a.db"), &append(r#"{"x":{}}"#));
    let server = Server::start(&directory);
    assert_eq!(rows(&directory), 5);
    assert_eq!(directory.copies().len(), 1);
    let log = directory.log();
    let loud = format!("a.db: the file ends in damaged record 6 at offset {place}.");
    assert!(
        log.contains(&loud) && log.contains("No table named x."),
        "{log}"
    );
    drop(server);
    let log = refused("nonsense-before", &append("{}"));
    let why = format!("1 intact record follows damaged record 6 at offset {place}");
    assert!(log.contains(&why), "{log}");
}

#[test]
fn a_damaged_tail_is_only_reported() {
    let directory = Directory::new("tail");
    let (bytes, _) = file();
    let torn = &bytes[..bytes.len() - 20];
    write(&directory.path("a.db"), torn);
    let _server = Server::start(&directory);
    assert_eq!(rows(&directory), 4);
    assert_eq!(directory.copies().len(), 0);
    let log = directory.log();
    assert_eq!(log.matches("|ERR|").count(), 1, "{log}");
    assert!(log.contains("(End of file)"), "{log}");
    assert_eq!(fs::read(directory.path("a.db")).expect("readable"), torn);
}

#[test]
fn a_file_that_cannot_be_copied_is_not_opened() {
    let directory = Directory::new("refused");
    let (mut bytes, starts) = file();
    bytes[starts[2]..starts[2] + 20].fill(0);
    // The file name has the maximum length, so the copy's name is too long.
    let long = directory.path(&format!("{}.db", "n".repeat(230)));
    write(&long, &bytes);
    std::os::unix::fs::symlink(&long, directory.path("a.db")).expect("a link");
    assert!(!Server::spawn(&directory).ends());
    let log = directory.log();
    let refusal = format!(
        "a.db: 3 intact records follow damaged record 2 at offset {}, and the file cannot be copied",
        starts[2]
    );
    assert!(
        log.contains(&refusal) && log.contains("(File name too long)"),
        "{log}"
    );
    assert_eq!(fs::read(&long).expect("readable"), bytes);
}
