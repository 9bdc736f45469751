//! Files of cluster members that change hands. Files of the reference open here, with the rows that
//! the reference sees. Files written here satisfy the reference's tool and server. Skipped if the
//! reference is not installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid_data::HashSeed;
use corvid_engine::Database;
use corvid_log::cluster::{
    Index, Kind, MemberIdentity, ReceivedBody, Record, Recovered, SnapshotMeta, append_record,
    read_body, recover,
};
use corvid_log::storage::FileContent;
use corvid_log::{DiskError, Load};
use corvid_service::storage::MemberContent;
use corvid_service::storage::loading::run;
use corvid_service::storage::member_loading::load_member;
use corvid_sim::world::disk::SimDisk;
use corvid_sim::world::trace::{Trace, Tracing};
use corvid_tests::binary;
use corvid_tests::process::Process;

use crate::member_files::{Counter, rows};

const SCHEMA: &str = r#"{"name":"Zoo","tables":{"animal":{"columns":{"name":{"type":"string"},"legs":{"type":"integer"},"tags":{"type":{"key":"string","min":0,"max":"unlimited"}}},"isRoot":true}},"version":"1.0.0"}"#;

/// Longest time that a server may take to elect itself on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A directory, and the programs of the reference.
struct Reference {
    folder: tempfile::TempDir,
    tool: PathBuf,
    client: PathBuf,
    server: PathBuf,
}

impl Reference {
    fn new() -> Option<Reference> {
        let program = |name| {
            let found = binary::reference(name);
            if found.is_none() {
                eprintln!("SKIPPED, nothing is compared: the reference has no {name} here");
            }
            found
        };
        Some(Reference {
            folder: tempfile::tempdir().expect("a temporary directory"),
            tool: program("ovsdb-tool")?,
            client: program("ovsdb-client")?,
            server: program("ovsdb-server")?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the reference's tool. Returns its standard output.
    fn tool(&self, args: &[&str]) -> String {
        self.run(&self.tool, args).expect("the tool succeeds")
    }

    fn run(&self, program: &Path, args: &[&str]) -> Result<String, String> {
        let output = Command::new(program)
            .args(args)
            .current_dir(self.folder.path())
            .output()
            .expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() && output.stderr.is_empty() {
            Ok(text(&output.stdout))
        } else {
            Err(format!("{args:?}: {output:?}"))
        }
    }

    /// Starts a process that serves this file.
    fn serve(&self, file: &str) -> Process {
        let arguments = [OsString::from(self.path(file))];
        let mut process = Process::new(&self.server, self.folder.path(), &arguments);
        process.start().expect("it listens");
        process
    }

    /// Executes operations as soon as there is a leader.
    fn transact(&self, operations: &str) -> String {
        let remote = format!("unix:{}", self.path("db.sock").display());
        let params = format!(r#"["Zoo",{operations}]"#);
        let until = Instant::now() + LIMIT;
        loop {
            match self.run(&self.client, &["transact", &remote, &params]) {
                Ok(reply) => {
                    assert!(!reply.contains("\"error\""), "{reply}");
                    return reply;
                }
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }

    /// Returns the rows of a member's file as the reference's tool extracts them.
    fn rows_of(&self, file: &str) -> Vec<String> {
        let standalone = self.path("standalone.db");
        let _ = fs::remove_file(&standalone);
        self.tool(&["cluster-to-standalone", "standalone.db", file]);
        let bytes = fs::read(standalone).expect("it was written");
        let mut load = Load::open(&bytes[..]).expect("a schema");
        let mut database = Database::new(load.schema().clone(), HashSeed::FIXED);
        while let Some(recorded) = load.next_transaction().expect("an intact file") {
            let applied = database.apply_recorded(recorded, &mut Counter(1));
            applied.expect("its own transactions");
        }
        rows(&database)
    }
}

fn insert(name: &str, legs: u32) -> String {
    format!(
        r#"{{"op":"insert","table":"animal","row":{{"name":"{name}","legs":{legs},"tags":["set",["a","b"]]}}}}"#
    )
}

/// Returns the state of a member, and the database after the last committed entry.
fn open(bytes: &[u8]) -> (Recovered, Database) {
    let recovered = recover(bytes, bytes.len() as u64).expect("a member's file");
    assert_eq!(recovered.damage, None);
    let joined = recovered.joined().expect("a member");
    let at = usize::try_from(joined.body.offset).expect("small");
    let loaded = load_member(
        joined.body,
        joined.committed(),
        || Ok(&bytes[at..]),
        HashSeed::FIXED,
        &mut Counter(1),
        |feed, database, uuids| run(feed, database, uuids, &mut Counter(1 << 32)),
    )
    .expect("every entry applies");
    (recovered, loaded.database)
}

fn identity(recovered: &Recovered) -> MemberIdentity {
    MemberIdentity {
        server_id: recovered.server_id,
        cluster_id: recovered.cluster_id,
        name: recovered.name.clone(),
        local_address: recovered.local_address.clone(),
    }
}

/// Returns the bytes of a new file.
fn written(content: &dyn FileContent) -> Vec<u8> {
    let mut file = Vec::new();
    content.write_schema(&mut file);
    content
        .write_rows(&mut |piece| -> Result<(), DiskError> {
            file.extend_from_slice(piece);
            Ok(())
        })
        .expect("memory does not fail");
    file.extend_from_slice(content.records());
    file
}

/// Returns the file compacted at its commit index, with the entries that follow, the term and the
/// vote.
fn compacted(recovered: &Recovered, database: &Database) -> Vec<u8> {
    let joined = recovered.joined().expect("a member");
    let committed = joined.committed();
    let mut records = Vec::new();
    for entry in &joined.entries[committed.len()..] {
        append_record(&mut records, entry.text.len() + 40, |body| {
            entry.write_record(body);
        });
    }
    let kind = match recovered.vote {
        Some(vote) => Kind::Vote {
            term: recovered.term,
            vote,
        },
        None => Kind::Term(recovered.term),
    };
    Record::new(kind).append(&mut records);
    let last = committed.last();
    let mut eids = committed.iter().rev();
    let eid = eids.find_map(|entry| entry.commit.as_ref().map(|(eid, _)| *eid));
    let content = MemberContent {
        progress: std::sync::Arc::default(),
        snapshot: database.snapshot(),
        identity: identity(recovered),
        meta: SnapshotMeta {
            index: joined.commit,
            term: last.map_or(joined.snapshot.term, |entry| entry.term),
            eid: eid.unwrap_or(joined.snapshot.eid),
            servers: joined.servers().clone(),
            election_timer_ms: joined.election_timer_ms(),
            body_bytes: 0,
        },
        comment: "compacting database online".to_owned(),
        date_ms: 1_700_000_000_000,
        records,
    };
    written(&content)
}

#[test]
fn files_change_hands_between_this_project_and_the_reference() {
    let Some(reference) = Reference::new() else {
        return;
    };
    fs::write(reference.path("zoo.ovsschema"), SCHEMA).expect("room");
    let address = format!("unix:{}", reference.path("zoo.raft").display());
    reference.tool(&["create-cluster", "zoo.db", "zoo.ovsschema", &address]);
    let (recovered, database) = open(&fs::read(reference.path("zoo.db")).expect("it is there"));
    let joined = recovered.joined().expect("a member");
    assert_eq!((joined.commit, joined.last_index()), (Index(1), Index(1)));
    assert_eq!(rows(&database), [""; 0]);

    let mut server = reference.serve("zoo.db");
    for (name, legs) in [("ant", 6), ("bear", 4), ("crab", 10)] {
        reference.transact(&insert(name, legs));
    }
    reference.transact(
        r#"{"op":"mutate","table":"animal","where":[["name","==","ant"]],"mutations":[["tags","insert",["set",["c","é\n"]]]]}"#,
    );
    reference.transact(r#"{"op":"delete","table":"animal","where":[["name","==","bear"]]}"#);
    server.kill();
    let bytes = fs::read(reference.path("zoo.db")).expect("it is there");
    let (recovered, database) = open(&bytes);
    let expected = reference.rows_of("zoo.db");
    assert_eq!((rows(&database), expected.len()), (expected.clone(), 2));
    assert_eq!(recovered.vote, Some(recovered.server_id));

    // A file written here is served by the reference.
    fs::write(reference.path("new.db"), compacted(&recovered, &database)).expect("room");
    assert_eq!(reference.tool(&["check-cluster", "new.db"]), "");
    assert!(
        reference
            .tool(&["show-log", "-m", "new.db"])
            .contains("prev_index: ")
    );
    assert_eq!(reference.rows_of("new.db"), expected);
    let mut server = reference.serve("new.db");
    reference.transact(&insert("dog", 4));
    server.kill();
    let after = reference.rows_of("new.db");
    let bytes = fs::read(reference.path("new.db")).expect("it is there");
    let (recovered, database) = open(&bytes);
    assert_eq!((rows(&database), after.len()), (after.clone(), 3));

    // A member receives the body of the reference's file.
    let disk = SimDisk::new(
        1,
        Trace::new(Tracing::None),
        compacted(&recovered, &database),
    );
    let (present, _) = open(&disk.bytes());
    let joined = present.joined().expect("a member");
    let mut received =
        ReceivedBody::begin(&Arc::new(disk.clone()), &joined.snapshot).expect("room");
    let mut offset = 0;
    while !received.is_complete() {
        let chunk = read_body(&disk.open(), joined.body, offset, 100).expect("the disk is up");
        offset = received.write(offset, &chunk).expect("room");
    }
    let mut records = Vec::new();
    Record::new(Kind::Term(present.term)).append(&mut records);
    let content = received
        .content(&identity(&present), &joined.snapshot, records)
        .expect("a handle");
    fs::write(reference.path("installed.db"), written(&content)).expect("room");
    assert_eq!(reference.tool(&["check-cluster", "installed.db"]), "");
    assert_eq!(reference.rows_of("installed.db"), after);
}
