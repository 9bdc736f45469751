//! Servers that a file tells what to serve (`--config-file`), and its reload. The reference of the packages does not know the option.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use corvid_tests::binary::bin;
use corvid_tests::client::Client;
use corvid_tests::database_file;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation;
use serde_json::{Map, Value, json};

/// Makes the database `name` in `folder`.
fn database(folder: &Path, name: &str) {
    let schema = json!({"name": name, "tables": {"T": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    database_file::create(&folder.join(format!("{name}.db")), &schema).expect("a file");
}

fn configure(folder: &Path, config: &Value) {
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
}

/// Result, or error, of a control command.
fn control(server: &Process, command: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let reply = server.control(command, &arguments).expect("a reply");
    let said = match &reply["error"] {
        Value::Null => &reply["result"],
        error => error,
    };
    said.as_str().unwrap_or_default().trim_end().to_owned()
}

fn insert(client: &mut Client, database: &str) -> Value {
    let insert = json!({"op": "insert", "table": "T", "row": {"n": 1}});
    let reply = client
        .call("transact", &json!([database, insert]))
        .expect("a reply");
    reply["result"].clone()
}

#[test]
fn a_file_says_what_is_served_and_is_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    for name in ["A", "B", "C"] {
        database(folder, name);
    }
    let everything = json!({
        "remotes": {"punix:db.sock": null, "punix:second.sock": {"read-only": true}},
        "databases": {"A.db": {}, "B.db": null}});
    configure(folder, &everything);
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server =
        Process::without_remote(&program, folder, &["--config-file=config.json".into()]);
    server.start().expect("a server");
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        "A\nB\n_Server"
    );
    let path = folder.join("config.json");
    let refusal = format!(
        "Update the {} and use ovsdb-server/reload instead",
        path.display()
    );
    for (command, arguments) in [
        ("ovsdb-server/add-remote", ["punix:third.sock"]),
        ("ovsdb-server/remove-remote", ["punix:second.sock"]),
        ("ovsdb-server/add-db", ["C.db"]),
        ("ovsdb-server/remove-db", ["A"]),
    ] {
        assert_eq!(control(&server, command, &arguments), refusal);
    }
    let mut first = Client::connect(&folder.join("db.sock")).expect("connected");
    assert!(insert(&mut first, "A")[0]["uuid"].is_array());
    let mut second = Client::connect(&folder.join("second.sock")).expect("connected");
    assert_eq!(insert(&mut second, "A")[0]["error"], "not allowed");

    // What cannot be used changes nothing.
    for (text, said) in [
        ("{", "config: reading JSON failed ("),
        (
            r#"{"remotes": []}"#,
            "config: 'remotes' is not a JSON object",
        ),
    ] {
        fs::write(&path, text).expect("written");
        let answer = control(&server, "ovsdb-server/reload", &[]);
        assert_eq!(
            answer,
            "Configuration failed.  See the log file for details."
        );
        assert!(server.log().contains(said), "{}", server.log());
    }
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        "A\nB\n_Server"
    );

    // What can be done is done.
    configure(
        folder,
        &json!({
            "remotes": {"punix:db.sock": null},
            "databases": {"A.db": {"service-model": "standalone"}, "C.db": {}, "missing.db": {}}}),
    );
    let answer = control(&server, "ovsdb-server/reload", &[]);
    assert_eq!(
        answer,
        "Configuration failed.  See the log file for details."
    );
    let log = server.log();
    let missing = "failed to open database 'missing.db': I/O error: ";
    assert!(
        log.contains(missing) && log.contains("failed to configure databases"),
        "{log}"
    );
    assert_eq!(
        control(&server, "ovsdb-server/list-dbs", &[]),
        "A\nC\n_Server"
    );
    assert_eq!(
        control(&server, "ovsdb-server/list-remotes", &[]),
        "punix:db.sock"
    );
    assert!(!folder.join("second.sock").exists());

    // A file that was closed can be opened at once, under the same name and under another.
    let other = folder.join("B.db").display().to_string();
    let elsewhere = json!({"remotes": {"punix:db.sock": null}, "databases": {other: {}}});
    for _ in 0..10 {
        for config in [&everything, &elsewhere] {
            configure(folder, config);
            let answer = control(&server, "ovsdb-server/reload", &[]);
            assert_eq!(answer, "", "{}", server.log());
        }
    }
    assert_eq!(control(&server, "ovsdb-server/list-dbs", &[]), "B\n_Server");
}

#[test]
fn without_a_file_there_is_nothing_to_reload() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server = Process::new(&program, dir.path(), &["--no-dbs".into()]);
    server.start().expect("a server");
    assert_eq!(
        control(&server, "ovsdb-server/reload", &[]),
        "Configuration file was not specified on command line"
    );
}

#[test]
fn a_server_that_cannot_do_all_of_it_does_not_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("config.json");
    let option = format!("--config-file={}", config.display());
    let started = |arguments: &[&str]| {
        let program = Implementation::Corvid.server_binary().expect("built");
        let output = Command::new(program)
            .args(["--unixctl=none", "-vconsole:off", &option])
            .args(arguments)
            .env("OVS_RUNDIR", dir.path())
            .env("OVS_DBDIR", dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let conflict = |text: &str| (Some(1), format!("ovsdb-server: {text}\n"));
    for (arguments, text) in [
        (
            ["--sync-from=tcp:x"],
            "--config-file is mutually exclusive with --sync-from, --sync-exclude and --active",
        ),
        (
            ["--remote=punix:x"],
            "--config-file is mutually exclusive with --remote",
        ),
        (["x.db"], "Databases should be specified in a config file"),
    ] {
        assert_eq!(started(&arguments), conflict(text));
    }
    let failed = conflict("server configuration failed");
    assert_eq!(started(&[]), failed, "no file");
    for text in [
        "nonsense",
        r#"{"databases": {"missing.db": {}}}"#,
        r#"{"remotes": {"db:None,T,c": {}}}"#,
    ] {
        fs::write(&config, text).expect("written");
        assert_eq!(started(&[]), failed, "{text}");
    }
}

#[test]
fn a_file_of_another_model_than_its_entry_says_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path(), "A");
    let schema = dir.path().join("A.ovsschema");
    fs::write(
        &schema,
        r#"{"name": "A", "version": "1.0.0", "tables": {}}"#,
    )
    .expect("written");
    let status = Command::new(bin("ovsdb-tool"))
        .arg("create-cluster")
        .args([&dir.path().join("member.db"), &schema])
        .arg("unix:member.raft")
        .status();
    assert!(status.expect("started").success());
    let program = Implementation::Corvid.server_binary().expect("built");
    let not_built = "database is clustered, and clusters are not built yet";
    for (file, model, problem) in [
        (
            "A.db",
            "clustered",
            "database is standalone and not clustered",
        ),
        (
            "member.db",
            "standalone",
            "database is clustered and not standalone",
        ),
        (
            "member.db",
            "active-backup",
            "database is clustered and not standalone",
        ),
        ("member.db", "clustered", not_built),
        ("member.db", "", not_built),
        (
            "none.db",
            "clustered",
            "open failed (No such file or directory)",
        ),
    ] {
        let entry = match model {
            "" => json!({}),
            "active-backup" => json!({"service-model": model, "backup": false}),
            _ => json!({"service-model": model}),
        };
        let databases: Map<_, _> = [(file.to_owned(), entry)].into_iter().collect();
        configure(dir.path(), &json!({"databases": databases}));
        let output = Command::new(&program)
            .args(["--unixctl=none", "-vconsole:warn", "-vsyslog:off"])
            .arg(format!(
                "--config-file={}/config.json",
                dir.path().display()
            ))
            .env("OVS_RUNDIR", dir.path())
            .env("OVS_DBDIR", dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("started");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(&format!("failed to open database '{file}': ")) && said.contains(problem),
            "{file}, {model}: {said}"
        );
    }
}
