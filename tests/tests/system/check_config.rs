//! `--check-config` reports whether a server could be started, without starting it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use corvid_tests::database_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::json;

/// Returns the exit status, the standard output, and the standard error without lines of the log.
fn check(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = Implementation::Corvid.server_binary().expect("built");
    let output = Command::new(program)
        .args(["--check-config", "-vconsole:off"])
        .args(arguments)
        .env("OVS_RUNDIR", folder)
        .env("OVS_DBDIR", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn database(folder: &Path, file: &str, name: &str) {
    let schema = json!({"name": name, "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": {
        "n": {"type": "integer"}, "c": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}}}});
    database_file::create(&folder.join(file), &schema).expect("a file");
}

#[test]
fn valid_configurations_pass_the_check() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    for name in ["A", "B"] {
        database(folder, &format!("{name}.db"), name);
    }
    let good = |arguments: &[&str]| {
        let (status, said, faults) = check(folder, arguments);
        assert_eq!((status, faults.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(said.ends_with("the configuration is good\n"), "{said}");
        said
    };
    let said = good(&["A.db", "--remote=punix:db.sock", "--remote=db:A,T,c"]);
    let expected =
        "database A: A.db\nremote punix:db.sock\nremote db:A,T,c\nthe configuration is good\n";
    assert_eq!(said, expected);
    let config = json!({
        "remotes": {"ptcp:6640": null, "db:B,T,c": null},
        "databases": {"A.db": {}, "B.db": {"service-model": "active-backup", "backup": true, "source": {"tcp:192.0.2.1:6640": null}}}});
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
    good(&["--config-file=config.json"]);
    good(&[
        "--no-dbs",
        "--detach",
        "--pidfile=here.pid",
        "--remote=pfd:3",
        "--audit-log=audit.log",
    ]);

    // The check runs while a server serves the same file. The server does not notice it.
    let before = fs::read(folder.join("A.db")).expect("a file");
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::new(&program, folder, &["A.db".into()]);
    server.start().expect("a server");
    good(&["A.db", "--remote=punix:db.sock"]);
    assert!(server.connect().is_ok() && !server.has_ended());
    assert_eq!(fs::read(folder.join("A.db")).expect("a file"), before);
    let left = ["here.pid", "audit.log"];
    assert!(
        left.iter().all(|file| !folder.join(file).exists()),
        "nothing is made"
    );
}

#[test]
fn every_fault_is_reported_and_fails_the_check() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    database(folder, "A.db", "A");
    database(folder, "again.db", "A");
    database(folder, "own.db", "_Own");
    fs::write(folder.join("text.db"), "no database\n").expect("written");
    fs::write(folder.join("no.pem"), "nothing\n").expect("written");
    let config = |text: &str| fs::write(folder.join("config.json"), text).expect("written");
    config(
        r#"{"databases": {"A.db": {"service-model": "clustered"}}, "remotes": {"db:A,T,c": null, "bogus:1": null}}"#,
    );
    let clustered = "failed to open database 'A.db': ovsdb error: A.db: database is standalone and not clustered";
    for (arguments, faults) in [
        (
            &["missing.db"][..],
            &[
                "failed to open database 'missing.db': I/O error: missing.db: open failed (No such file or directory)",
            ][..],
        ),
        (
            &["A.db", "again.db"],
            &["failed to open database 'again.db': ovsdb error: A: duplicate database name"],
        ),
        (
            &["A.db", "./A.db"],
            &["failed to open database './A.db': ovsdb error: ./A.db: already open"],
        ),
        (
            &["own.db"],
            &[
                "failed to open database 'own.db': ovsdb error: _Own: names beginning with \"_\" are reserved",
            ],
        ),
        (
            &["text.db", "A.db", "--remote=db:A,T,x"],
            &[
                "failed to open database 'text.db': ",
                "failed to configure remotes: \"db:A,T,x\": table \"T\" has no column \"x\"",
            ],
        ),
        (
            &["A.db", "--remote=ptcp:99999"],
            &["remote 'ptcp:99999' cannot be used: 99999: bad port number \"99999\""],
        ),
        (
            &["A.db", "--sync-from=nonsense"],
            &["remote 'nonsense' cannot be used: "],
        ),
        (
            &[
                "A.db",
                "--private-key=db:A,T,n",
                "--certificate=no.pem",
                "--ca-cert=no.pem",
            ],
            &[
                "failed to configure SSL/TLS: \"db:A,T,n\": table \"T\" column \"n\" is not string or set of strings",
                "SSL/TLS cannot be used; see the stream_ssl log messages",
            ],
        ),
        (
            &["A.db", "--remote=pssl:6640"],
            &["SSL/TLS cannot be used; see the stream_ssl log messages"],
        ),
        (
            &["A.db", "--metrics-listen=nowhere"],
            &["--metrics-listen=nowhere: "],
        ),
        (
            &["A.db", "--audit-log=no/where"],
            &["no/where: cannot open audit log (No such file or directory)"],
        ),
        (&["--config-file=none.json"], &["the file cannot be used"]),
        (
            &["--config-file=config.json"],
            &[
                clustered,
                "\"db:A,T,c\": no database named A",
                "remote 'bogus:1' cannot be used: ",
            ],
        ),
    ] {
        let (status, _, said) = check(folder, arguments);
        assert_eq!(status, Some(1), "{arguments:?}: {said}");
        assert_eq!(
            said.lines().count(),
            faults.len() + 1,
            "{arguments:?}: {said}"
        );
        for fault in faults {
            assert!(said.contains(fault), "{arguments:?}: {said}");
        }
        assert!(
            said.ends_with("ovsdb-server: the configuration check failed\n"),
            "{said}"
        );
    }
    // Options are checked as usual.
    let (status, _, said) = check(folder, &["A.db", "--max-message-size=1"]);
    assert_eq!(
        (status, said.contains("--max-message-size=1: ")),
        (Some(1), true)
    );
}

#[test]
fn certificates_are_checked_as_connections_need_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "1", "-subj", "/CN=server"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: openssl, which makes the certificate, is not installed");
        return;
    }
    let options = [
        "--no-dbs",
        "--remote=pssl:6640",
        "--private-key=key.pem",
        "--certificate=cert.pem",
    ];
    let with = |authority: &str| check(folder, &[&options[..], &[authority]].concat());
    let (status, said, _) = with("--ca-cert=cert.pem");
    assert_eq!(status, Some(0));
    assert!(said.contains("SSL/TLS: key and certificate\n"), "{said}");
    assert_eq!(with("--ca-cert=none").0, Some(0));
    assert_eq!(with("--ca-cert=missing.pem").0, Some(1));
    assert_eq!(with("--ssl-protocols=SSLv2").0, Some(1));
    fs::copy(folder.join("key.pem"), folder.join("cert.pem")).expect("copied");
    assert_eq!(with("--ca-cert=none").0, Some(1));
}

/// A server serves the records before the damage, so the damage is reported but is not a fault.
#[test]
fn damage_at_the_end_of_a_file_is_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    database(folder, "A.db", "A");
    let file = folder.join("A.db");
    let mut text = fs::read(&file).expect("a file");
    // A damaged record that may contain all contents is more than a damaged end.
    let rotten = [&text[..], b"OVSDB JSON 5 00\n"].concat();
    fs::write(&file, &rotten).expect("written");
    let (status, _, said) = check(folder, &["A.db"]);
    assert_eq!(status, Some(1));
    assert!(said.contains("the file is not opened"), "{said}");
    text.extend_from_slice(b"garbage\n");
    fs::write(&file, &text).expect("written");
    let (status, _, said) = check(folder, &["A.db"]);
    assert_eq!(status, Some(0));
    assert!(
        said.starts_with("ovsdb-server: warning: ") && said.contains("A.db"),
        "{said}"
    );
    assert_eq!(fs::read(&file).expect("a file"), text);
}
