//! `--user`: a server that root starts as another user, compared with the reference if it is
//! installed.
//!
//! Only root can run these tests; for other users they are skipped with a message. The other
//! account is `nobody`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::database_file;
use corvid_tests::server::Implementation;
use serde_json::json;

/// The capabilities that are kept: binding low ports and locking memory.
const KEPT: u64 = 1 << 10 | 1 << 14;

/// Returns the ids of an account and its group; `None` if there is no such account.
fn account(name: &str) -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let mut number = || fields.next()?.parse().ok();
    Some((number()?, number()?))
}

/// Returns the ids of `nobody` if this can be tested here. Otherwise reports the reason.
fn nobody() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let found = account("nobody").filter(|_| is_root);
    if found.is_none() {
        eprintln!("SKIPPED: --user needs root, and an account named nobody");
    }
    found
}

fn implementations() -> Vec<Implementation> {
    let all = [Implementation::Corvid, Implementation::Reference];
    let mut found: Vec<Implementation> = all.into();
    found.retain(|found| found.server_binary().is_ok());
    found
}

/// Returns the words that follow a heading in the status of a process.
fn status(pid: u32, heading: &str) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(heading));
    let words = line.map(|line| line.split_whitespace().skip(1).map(str::to_owned));
    words.expect("a line").collect()
}

fn capabilities(pid: u32, heading: &str) -> u64 {
    u64::from_str_radix(&status(pid, heading)[0], 16).expect("a set")
}

/// Ends a daemon when the test ends, whether it has passed or failed.
struct Daemon(u32);

impl Drop for Daemon {
    fn drop(&mut self) {
        // The daemon may have ended already.
        let _ = Command::new("kill").arg(self.0.to_string()).status();
    }
}

fn command(implementation: Implementation, dir: &Path) -> Command {
    let mut command = Command::new(implementation.server_binary().expect("there"));
    command
        .env("OVS_RUNDIR", dir)
        .env("OVS_LOGDIR", dir)
        .env("OVS_DBDIR", dir)
        .current_dir(dir)
        .stdin(Stdio::null());
    command
}

#[test]
fn files_and_sockets_belong_to_the_user() {
    let Some((uid, gid)) = nobody() else {
        return;
    };
    for implementation in implementations() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("its owner");
        let at = |name: &str| dir.path().join(name);
        let schema = json!({"name": "D", "tables": {"T": {"columns": {"n": {"type": "integer"}}}}});
        database_file::create(&at("D.db"), &schema).expect("made");
        std::os::unix::fs::chown(at("D.db"), Some(uid), Some(gid)).expect("root may");
        let output = command(implementation, dir.path())
            .args([
                "--detach",
                "--no-chdir",
                "--pidfile",
                "--user=nobody",
                "-vconsole:off",
            ])
            .args([
                "--log-file",
                "--unixctl=server.ctl",
                "--remote=punix:db.sock",
                "D.db",
            ])
            // If the daemon inherited a descriptor for its output, the reader would wait until the
            // daemon ends.
            .stdout(Stdio::null())
            .stderr(fs::File::create(at("stderr")).expect("a file"))
            .status()
            .expect("started");
        let said = fs::read_to_string(at("stderr")).unwrap_or_default();
        assert!(output.success(), "{implementation:?}: {said}");
        let pidfile = fs::read_to_string(at("ovsdb-server.pid")).expect("a pidfile");
        let pid = pidfile.trim().parse().expect("a number");
        let _daemon = Daemon(pid);

        for name in [
            "ovsdb-server.pid",
            "ovsdb-server.log",
            "db.sock",
            "server.ctl",
            ".D.db.~lock~",
        ] {
            let found = fs::symlink_metadata(at(name)).expect(name);
            assert_eq!(
                (found.uid(), found.gid()),
                (uid, gid),
                "{implementation:?} {name}"
            );
        }
        let (uid, gid) = (uid.to_string(), gid.to_string());
        assert_eq!(status(pid, "Uid:"), vec![uid; 4], "{implementation:?}");
        assert_eq!(status(pid, "Gid:"), vec![gid; 4], "{implementation:?}");
        assert!(status(pid, "Groups:").is_empty(), "{implementation:?}");
        assert_eq!(capabilities(pid, "CapEff:"), KEPT, "{implementation:?}");
        assert_eq!(capabilities(pid, "CapPrm:"), KEPT, "{implementation:?}");
        assert_eq!(capabilities(pid, "CapInh:"), 0, "{implementation:?}");
        assert_eq!(capabilities(pid, "CapBnd:"), 0, "{implementation:?}");

        // The daemon can write its own files.
        let mut client = Client::connect(&at("db.sock")).expect("a connection");
        let insert = json!(["D", {"op": "insert", "table": "T", "row": {"n": 1}}, {"op": "commit", "durable": true}]);
        let reply = client.call("transact", &insert).expect("a reply");
        assert_eq!(reply["result"][1], json!({}), "{implementation:?}: {reply}");
        let exit = Client::connect(&at("server.ctl"))
            .expect("a connection")
            .call("exit", &json!([]));
        assert!(exit.expect("an answer")["error"].is_null());
        let deadline = Instant::now() + Duration::from_secs(60);
        while at("ovsdb-server.pid").exists() {
            assert!(Instant::now() < deadline, "{implementation:?} does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn an_invalid_user_is_reported() {
    if nobody().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (options, text) in [
        (
            &["--user=no-such-one"][..],
            "(null): user no-such-one not found, aborting.",
        ),
        (
            &["--user=nobody:no-such-group"],
            "(null): group no-such-group not found, aborting.",
        ),
        (
            &["--pidfile=/x/p", "--user=no-such-one"],
            "/x/p: user no-such-one not found, aborting.",
        ),
        (
            &["--user=nobody:daemon"],
            "(null): Invalid --user option nobody:daemon (user nobody is not in group daemon), aborting.",
        ),
    ] {
        for implementation in implementations() {
            let output = command(implementation, dir.path())
                .args(options)
                .args(["-vconsole:off", "--no-dbs", "--unixctl=none"])
                .output()
                .expect("started");
            assert_eq!(
                output.status.code(),
                Some(1),
                "{implementation:?} {options:?}"
            );
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                said.contains(text),
                "{implementation:?} {options:?}: {said}"
            );
        }
    }
}
