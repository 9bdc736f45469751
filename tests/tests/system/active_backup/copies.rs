//! The contents of a backup: all tables of its source except for the excluded ones, even if the
//! connection is lost.

use corvid_tests::database_file;
use corvid_tests::ledger::{self, Contents, DATABASE, Ledger};
use corvid_tests::server::Implementation::Corvid;
use serde_json::{Value, json};

use super::node::{Node, begin, pairings, receive, wait_for, wait_until_equal, write};

#[test]
fn copies_equal_their_source_in_every_pairing() {
    let schema = ledger::schema(1);
    for (of, by) in pairings() {
        let mut active = Node::started(of, &schema, &[]);
        let mut ledger = Ledger::new(1, false, 500);
        begin(&active, &ledger, 1);
        ledger::fill(&mut active.client(), 3_000, 1_500).expect("filled");
        write(&active, &mut ledger, 20);
        let mut backup = Node::backup(by, &schema, &active);
        wait_until_equal(&schema, &active, &backup);
        let refused = backup.transact(&ledger.beginning());
        assert_eq!(refused["error"], "not allowed", "{of:?} {by:?}");
        assert_eq!(
            refused["details"],
            "insert operation not allowed when database server is in read only mode"
        );
        write(&active, &mut ledger, 40);
        wait_until_equal(&schema, &active, &backup);
        assert!(
            backup
                .rows(&schema)
                .iter()
                .any(|row| row.contains("\"mood\":7")),
            "ephemeral columns are copied"
        );
        // Commits that are made while the connection is lost arrive afterwards. Commits that the
        // source lost in its crash disappear from the backup, too.
        active.process.kill();
        active.process.start().expect("a server");
        write(&active, &mut ledger, 20);
        wait_until_equal(&schema, &active, &backup);
        let contents = Contents::read(&mut backup.client()).expect("contents");
        assert_eq!(
            ledger.check(&contents),
            Vec::<String>::new(),
            "{of:?} {by:?}"
        );
        // The copy is also in the backup's file.
        backup.process.kill();
        active.process.kill();
        backup.process.start().expect("a server");
        let contents = Contents::read(&mut backup.client()).expect("contents");
        assert_eq!(
            ledger.check(&contents),
            Vec::<String>::new(),
            "{of:?} {by:?}"
        );
    }
}

#[test]
fn clients_of_a_backup_get_each_commit_as_one_update() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let mut ledger = Ledger::new(1, false, 200);
    begin(&active, &ledger, 1);
    write(&active, &mut ledger, 5);
    let mut backup = Node::backup(Corvid, &schema, &active);
    wait_until_equal(&schema, &active, &backup);
    let mut client = backup.client();
    let tables =
        json!({"Entry": {"columns": ["serial"]}, "Total": {"columns": ["serial", "parts"]}});
    let reply = client.call("monitor", &json!([DATABASE, "m", tables]));
    let mut replica = reply.expect("a reply")["result"].clone();
    write(&active, &mut ledger, 30);
    // All rows are sent again, but this changes nothing, so clients get no update.
    assert_eq!(backup.control("connect-active-ovsdb-server"), "");
    write(&active, &mut ledger, 30);
    let entries = |replica: &Value, table: &str| -> Vec<Value> {
        let rows = replica[table].as_object();
        let rows = rows.into_iter().flatten();
        rows.map(|(_, row)| row["new"].clone()).collect()
    };
    let last = ledger.count();
    let is_last = |row: &Value| row["serial"] == last;
    while !entries(&replica, "Total").iter().any(is_last) {
        let update = receive(&mut client).expect("an update");
        for (table, rows) in update["params"][1].as_object().expect("tables") {
            for (uuid, row) in rows.as_object().expect("rows") {
                if row.get("new").is_some() {
                    replica[table][uuid] = json!({"new": row["new"]});
                } else if let Some(rows) = replica[table].as_object_mut() {
                    rows.remove(uuid);
                }
            }
        }
        let totals = entries(&replica, "Total");
        let parts: i64 = totals.iter().filter_map(|row| row["parts"].as_i64()).sum();
        let found = entries(&replica, "Entry").len();
        assert_eq!(i64::try_from(found), Ok(parts), "a part of a commit");
    }
    backup.process.stop().expect("an orderly end");
}

#[test]
fn databases_replicate_independently_and_backups_can_be_sources() {
    let schema = ledger::schema(1);
    let folder = tempfile::tempdir().expect("a directory");
    let file = |place: &str, database: &str| {
        let path = folder.path().join(format!("{place}-{database}.db"));
        let tables = json!({"T": {"columns": {"n": {"type": "integer"}}, "isRoot": true}});
        database_file::create(&path, &json!({"name": database, "tables": tables})).expect("a file");
        path.display().to_string()
    };
    let active = Node::started(
        Corvid,
        &schema,
        &[file("active", "Other"), file("active", "Late")],
    );
    let source = format!("--sync-from={}", active.remote());
    let files = [source, file("backup", "Other"), file("backup", "Alone")];
    let backup = Node::started(Corvid, &schema, &files);
    let last = Node::backup(Corvid, &schema, &backup);
    // A database that is added later is a backup like the others.
    let add = format!("add-db {}", file("backup", "Late"));
    assert_eq!(backup.control(&add), "");
    let ask = |node: &Node, database: &str, operation: &Value| {
        let reply = node
            .client()
            .call("transact", &json!([database, operation]));
        reply.expect("a reply")["result"][0].clone()
    };
    let insert = json!({"op": "insert", "table": "T", "row": {"n": 7}});
    let select = json!({"op": "select", "table": "T", "where": [], "columns": ["n"]});
    for database in ["Other", "Late"] {
        assert!(ask(&active, database, &insert)["uuid"].is_array());
        wait_for("it is copied", &[&active, &backup], || {
            ask(&backup, database, &select)["rows"] == json!([{"n": 7}])
        });
    }
    let mut ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    write(&active, &mut ledger, 20);
    wait_until_equal(&schema, &active, &last);
    let source = active.remote();
    let status = format!(
        "state: backup\ndatabase: Alone\nReplication to ({source}) failed\n\
         state: backup\ndatabase: Late\nreplicating: {source}\n\n\
         state: backup\ndatabase: Ledger\nreplicating: {source}\n\n\
         state: backup\ndatabase: Other\nreplicating: {source}\n\n"
    );
    assert_eq!(backup.control("sync-status"), status);
    assert!(
        backup
            .process
            .log()
            .contains("list_dbs failed: Alone: database name is not in the list")
    );
    for database in ["Alone", "Late", "Other"] {
        assert_eq!(ask(&backup, database, &insert)["error"], "not allowed");
    }
    assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
    for database in ["Alone", "Late", "Other"] {
        assert!(ask(&backup, database, &insert)["uuid"].is_array());
    }
}

#[test]
fn tables_that_are_left_out_stay_as_they_are() {
    let schema = ledger::schema(1);
    let active = Node::started(Corvid, &schema, &[]);
    let options = [
        format!("--sync-from={}", active.remote()),
        "--active".to_owned(),
        "--sync-exclude-tables=Ledger:Filler,Nothing".to_owned(),
    ];
    let backup = Node::started(Corvid, &schema, &options);
    assert_eq!(
        backup.control("sync-status"),
        format!("state: active\ndatabase: {DATABASE}\n\n")
    );
    ledger::fill(&mut backup.client(), 3, 10).expect("it begins as active server");
    let mut ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    ledger::fill(&mut active.client(), 5, 10).expect("filled");
    assert_eq!(backup.control("connect-active-ovsdb-server"), "");
    write(&active, &mut ledger, 20);
    let own = backup.rows(&schema);
    let own = || own.iter().filter(|row| row.starts_with("Filler"));
    let others = |node: &Node| -> Vec<String> {
        let rows = node.rows(&schema).into_iter();
        rows.filter(|row| !row.starts_with("Filler")).collect()
    };
    wait_for("the other tables are copied", &[&backup], || {
        others(&backup) == others(&active)
    });
    let status = format!(
        "state: backup\ndatabase: {DATABASE}\nreplicating: {}\nexclude: Ledger:Filler,Ledger:Nothing\n",
        active.remote()
    );
    assert_eq!(backup.control("sync-status"), status);
    let now = backup.rows(&schema);
    assert!(now.iter().filter(|row| row.starts_with("Filler")).eq(own()));
    assert_eq!(own().count(), 3);
}

#[test]
fn a_source_that_does_not_fit_leaves_a_backup_that_is_read_only() {
    let (old, new) = (ledger::schema(1), ledger::schema(2));
    let active = Node::started(Corvid, &new, &[]);
    let backup = Node::backup(Corvid, &old, &active);
    let failed = format!("Replication to ({}) failed\n", active.remote());
    wait_for("it fails", &[&backup], || {
        backup.control("sync-status").ends_with(&failed)
    });
    let log = backup.process.log();
    for line in [
        "|replication|INFO|Ledger: Schema version mismatch, checking if Ledger can still be replicated or not.",
        "|replication|INFO|Column note not present in the local db schema table Entry.",
        "|replication|INFO|Table Extra not present in the local db schema",
        "|replication|INFO|Ledger cannot be replicated.",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    let ledger = Ledger::new(1, false, 100);
    assert_eq!(backup.transact(&ledger.beginning())["error"], "not allowed");
    // A server can copy a source whose schema is smaller, because it has a place for everything.
    assert_eq!(backup.control("disconnect-active-ovsdb-server"), "");
    begin(&backup, &ledger, 1);
    active.follow(&backup);
    wait_for("it is copied", &[&active], || {
        active.rows(&old) == backup.rows(&old)
    });
    // A server cannot be a backup of itself.
    backup.follow(&backup);
    let failed = format!("Replication to ({}) failed\n", backup.remote());
    wait_for("it fails", &[&backup], || {
        backup.control("sync-status").ends_with(&failed)
    });
    assert!(
        backup
            .process
            .log()
            .contains("Server ID check failed: Self replicating is not allowed")
    );
    assert_eq!(backup.rows(&old).len(), 1, "it keeps what it has");
}

#[test]
fn a_conversion_at_the_source_is_replicated_where_it_fits() {
    let (old, new) = (ledger::schema(1), ledger::schema(2));
    let active = Node::started(Corvid, &old, &[]);
    let backup = Node::backup(Corvid, &new, &active);
    let mut ledger = Ledger::new(1, false, 100);
    begin(&active, &ledger, 1);
    wait_until_equal(&old, &active, &backup);
    let mut client = active.client();
    let converted = client.call("convert", &json!([DATABASE, new]));
    assert_eq!(converted.expect("a reply")["error"], Value::Null);
    let extra = json!({"op": "insert", "table": "Extra", "row": {"number": 1}});
    assert!(active.transact(&extra)["uuid"].is_array());
    write(&active, &mut ledger, 5);
    wait_until_equal(&new, &active, &backup);
    let refused = backup.client().call("convert", &json!([DATABASE, old]));
    assert_eq!(
        refused.expect("a reply")["error"]["details"],
        "conversion is not allowed for read-only database Ledger"
    );
}
