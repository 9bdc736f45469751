//! Servers with a configuration file (`--config-file`), and reloading the file. The packaged
//! reference does not have this option.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary::bin;
use corvid_tests::client::Client;
use corvid_tests::daemon::Daemon;
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

/// Runs a control command. Returns its result or its error.
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
fn a_configuration_file_lists_databases_and_is_reloaded() {
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

    // A file that cannot be used changes nothing.
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

    // The other changes are made nevertheless.
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

    // A file that was closed can be reopened immediately, under the same name and under another
    // name.
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
fn a_server_that_cannot_apply_the_whole_file_does_not_start() {
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
            .current_dir(dir.path())
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
fn a_database_file_of_another_model_than_configured_is_refused() {
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
            "database is clustered and not active-backup",
        ),
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
            .current_dir(dir.path())
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

/// Returns the schema of a database. Its table `T` may have a set of targets `c`.
fn schema_of_remotes(name: &str, has_targets: bool) -> Value {
    let mut columns = json!({"n": {"type": "integer"}});
    if has_targets {
        columns["c"] = json!({"type": {"key": "string", "min": 0, "max": "unlimited"}});
    }
    json!({"name": name, "version": "1.0.0", "tables": {"T": {"isRoot": true, "columns": columns}}})
}

/// Makes a database with a column of targets in `folder`.
fn database_of_remotes(folder: &Path, name: &str) {
    let file = folder.join(format!("{name}.db"));
    database_file::create(&file, &schema_of_remotes(name, true)).expect("a file");
}

/// Converts a database. The session is not closed by this.
fn convert(folder: &Path, name: &str, schema: &Value) {
    let mut client = Client::connect(&folder.join("db.sock")).expect("connected");
    let params = json!([name, schema]);
    let reply = client.call("convert", &params).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
}

const FAILED: &str = "Configuration failed.  See the log file for details.";

/// Returns the lines of a server's log since `from`, without times and numbers.
fn logged(server: &Process, from: usize) -> Vec<String> {
    let log = server.log().split_off(from);
    let text = |line: &str| line.splitn(3, '|').nth(2).unwrap_or_default().to_owned();
    log.lines().map(text).collect()
}

fn add_target(folder: &Path, database: &str, target: &str) {
    let mut client = Client::connect(&folder.join("db.sock")).expect("connected");
    let insert = json!({"op": "insert", "table": "T", "row": {"c": target}});
    let reply = client
        .call("transact", &json!([database, insert]))
        .expect("a reply");
    assert!(reply["result"][0]["uuid"].is_array(), "{reply}");
}

fn until(what: &str, server: &Process, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: {}", server.said());
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn remotes_of_columns_are_checked_at_each_reload() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    database_of_remotes(folder, "D");
    database(folder, "B");
    let with = |remotes: &[&str], databases: Value| {
        let mut all: Map<String, Value> = Map::new();
        all.insert("punix:db.sock".to_owned(), Value::Null);
        all.extend(remotes.iter().map(|name| ((*name).to_owned(), Value::Null)));
        configure(folder, &json!({"remotes": all, "databases": databases}));
    };
    with(&["db:D,T,c"], json!({"D.db": {}}));
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server =
        Process::without_remote(&program, folder, &["--config-file=config.json".into()]);
    server.start().expect("a server");
    let reload = |server: &Process| control(server, "ovsdb-server/reload", &[]);
    let second = folder.join("second.sock");
    add_target(folder, "D", &format!("punix:{}", second.display()));
    assert!(second.exists());
    assert_eq!(reload(&server), "");

    // If its database is removed, the rest of the file takes effect.
    let from = server.log().len();
    with(&["db:D,T,c", "punix:third.sock"], json!({"B.db": {}}));
    assert_eq!(reload(&server), FAILED);
    let problem =
        "ovsdb_server|WARN|failed to configure remotes: \"db:D,T,c\": no database named D";
    assert!(
        logged(&server, from)
            .iter()
            .any(|line| line.ends_with(problem))
    );
    assert_eq!(control(&server, "ovsdb-server/list-dbs", &[]), "B\n_Server");
    assert_eq!(
        control(&server, "ovsdb-server/list-remotes", &[]),
        "db:D,T,c\npunix:db.sock\npunix:third.sock"
    );
    assert!(folder.join("third.sock").exists() && !second.exists());
    // The remote is checked at each reload.
    let from = server.log().len();
    assert_eq!(reload(&server), FAILED);
    let lines = logged(&server, from);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].ends_with(problem));

    // A new remote of this kind is listed, too, and each has its own line.
    with(&["db:D,T,c", "db:B,T,c"], json!({"B.db": {}}));
    let from = server.log().len();
    assert_eq!(reload(&server), FAILED);
    let log = server.log().split_off(from);
    for problem in [
        "\"db:D,T,c\": no database named D",
        "\"db:B,T,c\": table \"T\" has no column \"c\"",
    ] {
        assert_eq!(log.matches(problem).count(), 1, "{log}");
    }
    assert_eq!(
        control(&server, "ovsdb-server/list-remotes", &[]),
        "db:B,T,c\ndb:D,T,c\npunix:db.sock"
    );

    // The missing parts appear, one because of the file and one because of a conversion.
    with(&["db:D,T,c", "db:B,T,c"], json!({"B.db": {}, "D.db": {}}));
    assert_eq!(reload(&server), FAILED);
    until("D's remote", &server, || second.exists());
    convert(folder, "B", &schema_of_remotes("B", true));
    assert_eq!(reload(&server), "");
    let fourth = folder.join("fourth.sock");
    add_target(folder, "B", &format!("punix:{}", fourth.display()));
    assert!(fourth.exists());
}

#[test]
fn a_conversion_that_drops_the_column_of_a_remote_is_logged() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    database_of_remotes(folder, "D");
    let remotes = json!({"punix:db.sock": null, "db:D,T,c": null});
    configure(
        folder,
        &json!({"remotes": remotes, "databases": {"D.db": {}}}),
    );
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server =
        Process::without_remote(&program, folder, &["--config-file=config.json".into()]);
    server.start().expect("a server");
    let second = folder.join("second.sock");
    let target = format!("punix:{}", second.display());
    add_target(folder, "D", &target);
    convert(folder, "D", &schema_of_remotes("D", false));
    let problem = "\"db:D,T,c\": table \"T\" has no column \"c\"";
    let line = format!("|ovsdb_server|WARN|{problem}\n");
    until("the loss of the column", &server, || {
        server.log().contains(&line)
    });
    assert!(!second.exists());
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), FAILED);
    let line = format!("|ovsdb_server|WARN|failed to configure remotes: {problem}\n");
    assert_eq!(server.log().matches(&line).count(), 1, "{}", server.log());
    assert_eq!(
        control(&server, "ovsdb-server/list-remotes", &[]),
        "db:D,T,c\npunix:db.sock"
    );
    convert(folder, "D", &schema_of_remotes("D", true));
    add_target(folder, "D", &target);
    assert!(second.exists());
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), "");
}

/// This also applies to a server that has become a daemon and has left that directory, whatever
/// `OVS_DBDIR` says.
#[test]
fn relative_names_of_databases_are_resolved_from_the_starting_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    for name in ["A", "B"] {
        database(folder, name);
    }
    let serve = |databases: Value| {
        let remotes = json!({format!("punix:{}/db.sock", folder.display()): null});
        configure(folder, &json!({"remotes": remotes, "databases": databases}));
    };
    serve(json!({"A.db": {}}));
    let program = Implementation::Corvid.server_binary().expect("built");
    let option = format!("--config-file={}/config.json", folder.display());
    let daemon = Daemon::start(&program, folder, &[&option]).expect("a server");
    let said = |command: &str| daemon.control(command, &[]).expect("a reply");
    assert_eq!(said("ovsdb-server/list-dbs")["result"], "A\n_Server\n");
    serve(json!({"A.db": {}, "B.db": {}, "missing.db": {}}));
    assert_eq!(said("ovsdb-server/reload")["error"], format!("{FAILED}\n"));
    assert_eq!(said("ovsdb-server/list-dbs")["result"], "A\nB\n_Server\n");
    let log = daemon.log();
    let missing = folder.join("missing.db");
    let line = format!(
        "'missing.db': I/O error: {}: open failed",
        missing.display()
    );
    assert!(log.contains(&line), "{log}");
}

#[test]
fn a_file_that_cannot_be_opened_is_logged_with_one_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    configure(folder, &json!({"remotes": {"punix:db.sock": null}}));
    let program = Implementation::Corvid.server_binary().expect("built");
    let mut server =
        Process::without_remote(&program, folder, &["--config-file=config.json".into()]);
    server.start().expect("a server");
    let path = folder.join("config.json");
    fs::remove_file(&path).expect("removed");
    // The control socket exists before the lines about the version are logged.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !server.log().contains("|Corvid ") {
        assert!(Instant::now() < deadline, "the server starts");
        thread::sleep(Duration::from_millis(2));
    }
    let from = server.log().len();
    assert_eq!(control(&server, "ovsdb-server/reload", &[]), FAILED);
    let line = format!(
        "ovsdb_server|ERR|failed to open configuration file '{}': No such file or directory",
        path.display()
    );
    assert_eq!(logged(&server, from), [line]);
}
