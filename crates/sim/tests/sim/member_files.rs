//! Files of cluster members on a disk that goes down. A compaction, and the installation of a
//! peer's snapshot, leave the old file or the new one, whatever happens. The database of either
//! file can be loaded.

use std::sync::Arc;

use corvid_data::{HashSeed, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_log::cluster::{
    BodyLocation, Cid, Eid, Entry, Index, Kind, MemberIdentity, Payload, ReceivedBody, Record,
    Recovered, Servers, Sid, SnapshotHeader, SnapshotMeta, Term, locate_body, read_body, recover,
};
use corvid_log::salvage::Bytes;
use corvid_log::storage::{
    Committer, DiskTask, FileContent, LogPosition, RewriteNumber, RewriteStage, StorageReply,
    StorageRequest,
};
use corvid_log::{Disk, DiskFile, LogWriter};
use corvid_service::storage::MemberContent;
use corvid_service::storage::loading::run;
use corvid_service::storage::member_loading::load_member;
use corvid_sim::world::disk::{Crash, Handle, SimDisk, Troubles};
use corvid_sim::world::trace::{Trace, Tracing};

const SCHEMA: &str = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"},"s":{"type":"string"}},"isRoot":true}},"version":"1.0.0"}"#;

/// Number of disks on which each moment is tried. The bytes that survive a power loss follow from
/// the disk's number.
const SEEDS: u64 = 6;

fn uuid(last: u8) -> Uuid {
    let mut bytes = [last; 16];
    bytes[6] = 0x40;
    bytes[8] = 0x80;
    Uuid(bytes)
}

pub(crate) struct Counter(pub(crate) u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let mut bytes = [0xcc; 16];
        bytes[..8].copy_from_slice(&self.0.to_be_bytes());
        Uuid(bytes)
    }
}

/// A handle that is read as a source, from an offset.
struct FileSource<'f>(&'f Handle, u64);

impl corvid_log::Source for FileSource<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let got = self.0.read_at(room, self.1).map_err(|fault| fault.text)?;
        self.1 += got as u64;
        Ok(got)
    }
}

impl Bytes for FileSource<'_> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.0.read_at(room, offset).map_err(|fault| fault.text)
    }
}

fn identity() -> MemberIdentity {
    MemberIdentity {
        server_id: Sid(uuid(1)),
        cluster_id: Cid::new(uuid(9)),
        name: "D".to_owned(),
        local_address: "tcp:127.0.0.1:1".to_owned(),
    }
}

fn meta(index: u64, term: u64) -> SnapshotMeta {
    SnapshotMeta {
        index: Index(index),
        term: Term(term),
        eid: Eid(uuid(20)),
        servers: Servers::one(Sid(uuid(1)), "tcp:127.0.0.1:1"),
        election_timer_ms: 1000,
        body_bytes: 0,
    }
}

fn commit(index: u64, data: &str) -> Record {
    let json = format!(
        r#"{{"term":1,"index":{index},"eid":"{}","data":{data}}}"#,
        uuid(40 + u8::try_from(index).expect("small"))
    );
    Record::decode(json.as_bytes()).expect("an entry")
}

fn inserted(row: u8, i: u8) -> String {
    format!(r#"[null,{{"t":{{"{}":{{"i":{i}}}}}}}]"#, uuid(row))
}

fn framed(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        record.append(&mut out);
    }
    out
}

/// Returns a file with a snapshot of one row, a vote, and three commits, the last of which is not
/// known to be committed.
fn old_file() -> Vec<u8> {
    let body = format!(r#"[{SCHEMA},{{"t":{{"{}":{{"i":1}}}}}}]"#, uuid(101));
    let mut out = Vec::new();
    let Ok(()) = SnapshotHeader::new(&identity(), &meta(1, 1)).write::<std::convert::Infallible>(
        |sink| sink(body.as_bytes()),
        &mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        },
    );
    out.extend(framed(&[
        Record::new(Kind::Vote {
            term: Term(1),
            vote: Sid(uuid(1)),
        }),
        commit(2, &inserted(102, 2)),
        commit(
            3,
            &format!(
                r#"[null,{{"_is_diff":true,"t":{{"{}":{{"i":7}}}}}}]"#,
                uuid(101)
            ),
        ),
        Record::new(Kind::CommitIndex(Index(3))),
        commit(4, &inserted(104, 4)),
    ]));
    out
}

/// A member after a start: its state, and its rows.
#[derive(Debug, PartialEq)]
struct Started {
    recovered: Recovered,
    rows: Vec<String>,
}

fn start(file: &Handle) -> (Recovered, Database) {
    let length = file.length().expect("the disk is up");
    let recovered = recover(FileSource(file, 0), length).expect("a member's file");
    assert!(!recovered.may_have_forgotten(), "{recovered:?}");
    let joined = recovered.joined().expect("a member");
    let database = load(file, joined.body, &recovered);
    (recovered, database)
}

fn load(file: &Handle, body: BodyLocation, recovered: &Recovered) -> Database {
    let entries = recovered.joined().expect("a member").committed();
    load_member(
        body,
        entries,
        || Ok(FileSource(file, body.offset)),
        HashSeed::FIXED,
        &mut Counter(1),
        |feed, database, uuids| run(feed, database, uuids, &mut Counter(1 << 32)),
    )
    .expect("every entry applies")
    .database
}

pub(crate) fn rows(database: &Database) -> Vec<String> {
    let mut rows = Vec::new();
    for (id, _) in database.schema().iter() {
        rows.extend(
            database
                .rows(id)
                .map(|row| format!("{} {:?}", row.uuid, row.columns)),
        );
    }
    rows.sort();
    rows
}

fn started(disk: &SimDisk) -> Started {
    let (recovered, database) = start(&disk.open());
    Started {
        rows: rows(&database),
        recovered,
    }
}

/// Returns the file's committer, as a server's threads have it.
fn committer(disk: &SimDisk, good_end: u64) -> Committer<SimDisk> {
    let mut writer = LogWriter::new(disk.clone(), disk.open());
    writer.set_end(good_end);
    Committer::new(writer)
}

/// Replaces the present file by a new one, as the threads of a server do. Returns true if the new
/// file is durable.
fn replace(committer: &mut Committer<SimDisk>, content: Box<dyn FileContent>) -> bool {
    let status = committer.status().clone();
    let Ok(mut rewriter) = committer.rewrite(RewriteNumber(1), content, status.end()) else {
        return false;
    };
    if rewriter.run(|| status.end(), || true).is_err() {
        return false;
    }
    let replies = committer.carry_out(vec![DiskTask::Swap(rewriter)]);
    let is_in_place = replies.iter().any(|reply| {
        matches!(
            reply,
            StorageReply::Rewrite(_, Ok(RewriteStage::InPlace(_)))
        )
    });
    if !is_in_place {
        return false;
    }
    let outcome = committer.disk().sync_directory();
    let reply = committer.name_synced(outcome);
    matches!(
        reply,
        Some(StorageReply::Rewrite(_, Ok(RewriteStage::Lasting)))
    )
}

/// Returns the content of a new file at the commit index of the old one.
fn compacted(database: &Database) -> Box<dyn FileContent> {
    Box::new(MemberContent {
        progress: std::sync::Arc::default(),
        snapshot: database.snapshot(),
        identity: identity(),
        meta: meta(3, 1),
        comment: "compacting database online".to_owned(),
        date_ms: 1_700_000_000_000,
        records: framed(&[
            commit(4, &inserted(104, 4)),
            Record::new(Kind::Vote {
                term: Term(1),
                vote: Sid(uuid(1)),
            }),
        ]),
    })
}

/// Compacts the old file.
fn compact(disk: &SimDisk) -> bool {
    let (recovered, database) = start(&disk.open());
    let mut committer = committer(disk, recovered.good_end);
    replace(&mut committer, compacted(&database))
}

/// Installs a snapshot that a peer sent.
fn install(disk: &SimDisk) -> bool {
    let (recovered, _) = start(&disk.open());
    let body = format!(
        r#"[{SCHEMA},{{"t":{{"{}":{{"i":11,"s":"]}}"}},"{}":{{"i":12}}}}}}]"#,
        uuid(111),
        uuid(112)
    );
    let snapshot = SnapshotMeta {
        body_bytes: body.len() as u64,
        ..meta(9, 3)
    };
    let shared = Arc::new(disk.clone());
    let Ok(mut received) = ReceivedBody::begin(&shared, &snapshot) else {
        return false;
    };
    for (number, chunk) in body.as_bytes().chunks(50).enumerate() {
        let offset = number as u64 * 50;
        // A repeated chunk, and a chunk that arrives too early, change nothing.
        let Ok(end) = received.write(offset, chunk) else {
            return false;
        };
        assert_eq!(received.write(offset, chunk), Ok(end));
        assert_eq!(received.write(end + 1, b"x"), Ok(end));
    }
    assert!(received.is_complete());
    let records = framed(&[Record::new(Kind::Term(Term(4)))]);
    let Ok(content) = received.content(&identity(), &snapshot, records) else {
        return false;
    };
    replace(&mut committer(disk, recovered.good_end), Box::new(content))
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(seed, Trace::new(Tracing::None), old_file())
}

/// Crashes `work` at every operation. Afterwards the file must be the old one or the new one, and
/// must be the new one if `work` reported it as durable.
fn crash_everywhere(work: fn(&SimDisk) -> bool) {
    let (old, new) = {
        let disk = disk(0);
        let old = started(&disk);
        assert!(work(&disk), "nothing fails");
        (old, started(&disk))
    };
    assert_ne!(old.recovered, new.recovered);
    let (mut olds, mut news) = (0, 0);
    for seed in 0..SEEDS {
        for crash in [Crash::PowerLoss, Crash::Kill] {
            for operation in 1.. {
                let disk = disk(seed);
                disk.crash_in(operation);
                let lasts = work(&disk);
                let is_over = !disk.is_down();
                disk.crash();
                disk.restart(crash);
                let found = started(&disk);
                if lasts || found == new {
                    assert_eq!(found, new, "disk {seed}, operation {operation}, {crash:?}");
                    news += 1;
                } else {
                    assert_eq!(found, old, "disk {seed}, operation {operation}, {crash:?}");
                    olds += 1;
                }
                assert_eq!(disk.offence(), None);
                if is_over {
                    break;
                }
            }
        }
    }
    assert!(olds > 20 && news > 5, "{olds} {news}");
}

#[test]
fn a_compaction_leaves_the_old_file_or_the_new_one() {
    crash_everywhere(compact);
}

#[test]
fn an_installation_leaves_the_old_file_or_the_new_one() {
    crash_everywhere(install);
}

#[test]
fn a_compaction_changes_no_rows_and_keeps_later_entries() {
    let disk = disk(1);
    let before = started(&disk);
    let handle = disk.open();
    assert!(compact(&disk));
    let after = started(&disk);
    assert_eq!(after.rows, before.rows);
    let (old, new) = (
        before.recovered.joined().expect("a member"),
        after.recovered.joined().expect("a member"),
    );
    assert_eq!((new.snapshot.index, new.commit), (Index(3), Index(3)));
    assert_eq!(new.entries, old.entries[2..]);
    assert_eq!(after.recovered.vote, before.recovered.vote);
    // The body of the old file can still be read. The body of the new file is found without reading
    // all of it.
    let bytes = read_body(&handle, old.body, 3, 1 << 20).expect("the handle is open");
    assert_eq!(bytes, disk_body(&old_file(), old.body)[3..]);
    let present = disk.open();
    assert_eq!(locate_body(&present), Ok(Some(new.body)));
    let mut gathered = Vec::new();
    while gathered.len() < usize::try_from(new.body.length).expect("small") {
        let offset = gathered.len() as u64;
        gathered.extend(read_body(&present, new.body, offset, 10).expect("the disk is up"));
    }
    assert_eq!(gathered, disk_body(&disk.bytes(), new.body));
    assert_eq!(
        read_body(&present, new.body, new.body.length, 10),
        Ok(Vec::new())
    );
}

fn disk_body(file: &[u8], body: BodyLocation) -> &[u8] {
    let at = |offset| usize::try_from(offset).expect("small");
    &file[at(body.offset)..at(body.end())]
}

#[test]
fn a_snapshot_that_is_no_array_is_not_installed() {
    for body in ["[1,2", "[1]2]", "{}", "[]x", "\"[]\""] {
        let disk = disk(2);
        let snapshot = SnapshotMeta {
            body_bytes: body.len() as u64,
            ..meta(9, 3)
        };
        let shared = Arc::new(disk.clone());
        let mut received = ReceivedBody::begin(&shared, &snapshot).expect("room");
        received.write(0, body.as_bytes()).expect("room");
        let content = received
            .content(&identity(), &snapshot, Vec::new())
            .expect("a handle");
        let before = disk.bytes();
        let mut present = committer(&disk, before.len() as u64);
        assert!(!replace(&mut present, Box::new(content)), "{body}");
        assert_eq!(disk.bytes(), before, "{body}");
    }
}

#[test]
fn a_poisoned_file_is_replaced() {
    let disk = disk(3);
    let (recovered, database) = start(&disk.open());
    let mut committer = committer(&disk, recovered.good_end);
    let is_stored = |committer: &mut Committer<SimDisk>, position| {
        let append = StorageRequest::Append {
            position: LogPosition(position),
            record: framed(&[commit(5, &inserted(105, 5))]).into(),
            durable: true,
        };
        let requests = [StorageRequest::Recover, append];
        let replies = committer.carry_out(requests.map(DiskTask::Request).into());
        replies.iter().any(
            |reply| matches!(reply, StorageReply::Appended(stored, Ok(())) if stored.0 == position),
        )
    };
    disk.set_troubles(Troubles {
        sync: 100,
        ..Troubles::default()
    });
    assert!(!is_stored(&mut committer, 1));
    disk.set_troubles(Troubles::default());
    assert!(committer.is_poisoned() && !is_stored(&mut committer, 2));
    assert!(replace(&mut committer, compacted(&database)));
    assert!(!committer.is_poisoned() && is_stored(&mut committer, 3));
    drop(committer);
    disk.restart(Crash::PowerLoss);
    let after = started(&disk);
    assert_eq!(after.rows, rows(&database));
    let joined = after.recovered.joined().expect("a member");
    assert_eq!(joined.last_index(), Index(5));
    assert_eq!(disk.offence(), None);
}

#[test]
fn schemas_in_entries_replace_or_convert_the_rows() {
    let wider = SCHEMA.replace("\"string\"", r#"{"key":"string","min":0,"max":1}"#);
    let other = SCHEMA.replace("integer", "real");
    let payload = |index: u64, data: String| {
        Record::new(Kind::Entry(Entry {
            term: Term(1),
            index: Index(index),
            servers: None,
            election_timer_ms: None,
            payload: Some(match commit(index, &data).kind {
                Kind::Entry(Entry {
                    payload: Some(Payload { eid, data }),
                    ..
                }) => Payload { eid, data },
                other => panic!("no entry: {other:?}"),
            }),
        }))
    };
    let shown = |entries: &[Record], through: u64| {
        let mut file = old_file();
        file.extend(framed(entries));
        Record::new(Kind::CommitIndex(Index(through))).append(&mut file);
        let disk = SimDisk::new(1, Trace::new(Tracing::None), file);
        let (_, database) = start(&disk.open());
        (database.schema().to_json().to_string(), rows(&database))
    };
    let converted = payload(5, format!("[{wider},null]"));
    let (schema, after) = shown(&[converted.clone(), payload(6, inserted(106, 6))], 6);
    assert!(schema.contains("\"min\":0"), "{schema}");
    assert_eq!(after.len(), 4);
    let replaced = payload(
        6,
        format!(r#"[{other},{{"t":{{"{}":{{"i":1.5}}}}}}]"#, uuid(107)),
    );
    let (schema, after) = shown(&[converted, replaced], 6);
    assert!(schema.contains("real"), "{schema}");
    assert_eq!(after.len(), 1);
    assert!(after[0].contains("1.5"), "{after:?}");
}
