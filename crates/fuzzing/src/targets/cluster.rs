//! Records of the file of a cluster member.

use corvid_json::frame::whole_texts;
use corvid_log::cluster::{
    ClusterReader, Header, Index, Kind, Promises, Record, Recovered, RecoveredMembership, Replay,
    SnapshotBody, StoredEntry, Term, recover,
};
use corvid_log::{Magic, Record as Framing};

/// Reads files of members. A decoded record stays the same when it is encoded and decoded again,
/// and a log ends after its commit index. An input that does not begin like a file is taken as a
/// sequence of record bodies, which get headers with the right hashes.
///
/// # Panics
/// If one of these invariants is broken.
pub fn cluster_records(input: &[u8]) {
    if input.starts_with(b"OVSDB") {
        read(input);
        return open(input);
    }
    let mut file = Vec::new();
    for text in whole_texts(input) {
        let mut record = Framing::begin(&mut file, Magic::Clustered);
        record.body().extend_from_slice(text);
        record.finish();
    }
    read(&file);
    open(&file);
}

/// Opens the file as a member does, unless it is damaged. The good part alone gives the same
/// result. Entries have no gaps, and stay the same when they are encoded and decoded again. The
/// snapshot's body is where the header says.
fn open(file: &[u8]) {
    let Ok(recovered) = recover(file, file.len() as u64) else {
        return;
    };
    if let RecoveredMembership::Damaged(promises) = &recovered.membership {
        return check_promises(file, &recovered, promises);
    }
    let good = usize::try_from(recovered.good_end).expect("within the file");
    let mut again = recover(&file[..good], recovered.good_end).expect("it opened before");
    assert_eq!(again.damage, None);
    again.damage.clone_from(&recovered.damage);
    assert_eq!(again, recovered);
    let Some(joined) = recovered.joined() else {
        return;
    };
    assert!(joined.snapshot.index <= joined.commit && joined.commit <= joined.last_index());
    let mut index = joined.snapshot.index;
    for entry in &joined.entries {
        index = index.next();
        let mut text = Vec::new();
        entry.write_record(&mut text);
        assert!(!text.contains(&b'\n'), "a record is one line");
        let Ok(Kind::Entry(decoded)) = Record::decode(&text).map(|record| record.kind) else {
            panic!("not an entry: {}", String::from_utf8_lossy(&text));
        };
        assert_eq!(
            (StoredEntry::of(decoded), entry.index),
            (entry.clone(), index)
        );
    }
    let from = usize::try_from(joined.body.offset).expect("within the file");
    let to = usize::try_from(joined.body.end()).expect("within the file");
    let header = ClusterReader::new(file).header();
    if let Ok(Some(Ok(header))) = header
        && let Some(snapshot) = header.snapshot()
    {
        assert_eq!(snapshot.data.json(), &file[from..to]);
    }
    if let Ok(mut body) = SnapshotBody::open(&file[from..to], joined.body) {
        while let Ok(Some(_)) = body.piece() {}
    }
}

/// A damaged file proves at least as much as its good beginning does, and its member is one of
/// several.
fn check_promises(file: &[u8], recovered: &Recovered, promises: &Promises) {
    assert!(recovered.may_have_forgotten() && recovered.term > Term(0));
    assert!(promises.servers.contains(recovered.server_id) && promises.servers.iter().count() > 1);
    let good = usize::try_from(recovered.good_end).expect("within the file");
    if good == 0 {
        return;
    }
    let beginning = recover(&file[..good], recovered.good_end).expect("it opened before");
    assert!(beginning.term <= recovered.term);
    if beginning.term == recovered.term && beginning.vote.is_some() {
        assert_eq!(beginning.vote, recovered.vote);
    }
}

fn read(file: &[u8]) {
    let mut records = ClusterReader::new(file);
    let Ok(Some(Ok(header))) = records.header() else {
        return;
    };
    let mut text = Vec::new();
    header.encode(&mut text);
    assert_eq!(Header::decode(&text), Ok(header.clone()));
    let mut log = Replay::new(&header);
    loop {
        match records.next() {
            Ok(None) => break,
            Ok(Some(Err(_))) => {}
            Ok(Some(Ok(record))) => apply(log.as_mut(), &record),
            Err(damage) => {
                assert_eq!(records.next().err(), Some(damage), "damage is final");
                break;
            }
        }
    }
    assert!(records.good_end() <= file.len() as u64);
}

fn apply(log: Option<&mut Replay>, record: &Record) {
    let mut text = Vec::new();
    record.encode(&mut text);
    assert_eq!(Record::decode(&text).as_ref(), Ok(record));
    let Some(log) = log else {
        return;
    };
    let before = (log.end(), log.commit_index());
    let step = log.apply(record);
    if step.is_err() {
        assert_eq!(
            (log.end(), log.commit_index()),
            before,
            "a violation changes nothing"
        );
    }
    // The entry with the largest possible index has no entry after it.
    assert!(log.commit_index() < log.end() || log.end() == Index(0));
    assert!(log.servers().is_some());
}
