//! A rewrite with history on, on a disk that goes down at every operation: at each moment the old
//! file is found whole, in its place, under its second name, or as a segment.

use std::sync::Arc;

use corvid_history::Policy;
use corvid_history::segment::Segment;
use corvid_log::history::{HistoryFolder, HistoryForm, HistoryName, recover};
use corvid_log::record::Record;
use corvid_log::storage::{
    Committer, DiskTask, FileContent, LogPosition, RewriteNumber, StorageReply, StorageRequest,
};
use corvid_log::writer::Replaced;
use corvid_log::{Disk, DiskError, DiskFile, LogWriter, Magic};
use corvid_service::storage::Keeper;
use corvid_sim::world::disk::{Crash, SimDisk, Troubles};
use corvid_sim::world::trace::{Trace, Tracing};

/// Number of disks on which each case is tried.
const SEEDS: u64 = 40;

fn record(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut record = Record::begin(&mut out, Magic::Standalone);
    record.body().extend_from_slice(body.as_bytes());
    record.finish();
    out
}

fn old_file() -> Vec<u8> {
    let schema = record(r#"{"name":"D","tables":{}}"#);
    let numbers = 0..20;
    let transactions = numbers.flat_map(|n| record(&format!(r#"{{"_date":{n},"n":{n}}}"#)));
    schema.into_iter().chain(transactions).collect()
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(seed, Trace::new(Tracing::None), old_file())
}

/// The content of a compacted file.
#[derive(Debug)]
struct Compacted;

impl FileContent for Compacted {
    fn database(&self) -> &'static str {
        "D"
    }

    fn with_tail(&self) -> bool {
        true
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        sink(&record(r#"{"name":"D","tables":{}}"#))?;
        sink(&record(r#"{"_comment":"compacting database online"}"#))
    }
}

fn everything() -> Policy {
    Policy {
        bytes: Some(u64::MAX),
        ..Policy::default()
    }
}

fn committer(disk: &SimDisk) -> Committer<SimDisk> {
    let mut writer = LogWriter::new(disk.clone(), disk.open());
    writer.set_end(disk.bytes().len() as u64);
    Committer::new(writer)
}

/// Appends a record durably. Returns whether that was promised.
fn append(committer: &mut Committer<SimDisk>, position: u64, record: Vec<u8>) -> bool {
    let request = StorageRequest::Append {
        position: LogPosition(position),
        record: record.into(),
        durable: true,
    };
    let replies = committer.carry_out(vec![DiskTask::Request(request)]);
    matches!(replies.as_slice(), [StorageReply::Appended(_, Ok(()))])
}

/// Everything that the history thread has to do.
fn keep_all(disk: &SimDisk, mut keeper: Keeper<SimDisk>) {
    while keeper.has_work() && !disk.is_down() {
        keeper.step(0, &|| !disk.is_down());
    }
}

/// Replaces the file as the threads of a server do, and appends a record before, during and after.
/// Returns the promised records.
fn rewrite(disk: &SimDisk) -> Vec<Vec<u8>> {
    let uncompressed = recover(disk).unwrap_or_default();
    let mut keeper = Keeper::new(Arc::new(disk.clone()), everything(), uncompressed);
    let mut committer = committer(disk);
    let mut promised = Vec::new();
    let mut promise = |committer: &mut Committer<SimDisk>, position: u64| {
        let record = record(&format!(r#"{{"_date":{position},"later":true}}"#));
        if append(committer, position, record.clone()) {
            promised.push(record);
        }
    };
    promise(&mut committer, 100);
    let status = committer.status().clone();
    let rewriter = committer.rewrite(RewriteNumber(1), Box::new(Compacted), status.end());
    if let Ok(mut rewriter) = rewriter
        && rewriter.run(|| status.end(), || true).is_ok()
    {
        rewriter.keep(0);
        promise(&mut committer, 101);
        committer.carry_out(vec![DiskTask::Swap(rewriter)]);
        let replaced = committer.take_replaced();
        for kept in replaced.iter().filter_map(Replaced::kept) {
            keeper.kept(kept);
        }
        drop(replaced);
        if committer.unsynced_name().is_some() {
            let outcome = disk.sync_directory();
            committer.name_synced(outcome);
        }
    }
    promise(&mut committer, 102);
    keep_all(disk, keeper);
    promised
}

/// The texts of the present file and of all kept files, and the names of the kept files.
fn texts(disk: &SimDisk) -> (Vec<Vec<u8>>, Vec<HistoryName>) {
    let mut texts = vec![disk.bytes()];
    let names = disk.list().expect("the disk is up");
    for name in &names {
        let file = disk.open_kept(*name);
        let bytes = read(&file);
        match name.form {
            HistoryForm::Partial | HistoryForm::Gone => {}
            HistoryForm::Plain => texts.push(bytes),
            HistoryForm::Segment => {
                let segment = Segment::open(bytes).expect("a whole segment");
                segment.verify().expect("an intact segment");
                let mut text = vec![
                    0;
                    usize::try_from(segment.index().text_length)
                        .expect("it fits into memory")
                ];
                assert_eq!(segment.read_text(&mut text, 0), Ok(text.len()), "one frame");
                texts.push(text);
            }
        }
    }
    (texts, names)
}

fn read(file: &impl DiskFile) -> Vec<u8> {
    let mut bytes =
        vec![0; usize::try_from(file.length().expect("a length")).expect("it fits into memory")];
    let mut at = 0;
    while at < bytes.len() {
        at += file
            .read_at(&mut bytes[at..], at as u64)
            .expect("it can be read");
    }
    bytes
}

trait OpenKept {
    fn open_kept(&self, name: HistoryName) -> corvid_sim::world::disk::Handle;
}

impl OpenKept for SimDisk {
    fn open_kept(&self, name: HistoryName) -> corvid_sim::world::disk::Handle {
        HistoryFolder::open(self, name).expect("it is listed")
    }
}

fn contains(text: &[u8], record: &[u8]) -> bool {
    text.windows(record.len()).any(|window| window == record)
}

fn assert_kept(disk: &SimDisk, promised: &[Vec<u8>], when: &str) -> Vec<HistoryName> {
    let (texts, names) = texts(disk);
    let old = old_file();
    assert!(
        texts.iter().any(|text| text.starts_with(&old)),
        "the old file is lost, {when}: {names:?}"
    );
    for record in promised {
        assert!(
            texts.iter().any(|text| contains(text, record)),
            "a promised record is lost, {when}: {names:?}"
        );
    }
    names
}

#[test]
fn the_old_file_is_found_after_a_crash_at_every_operation() {
    let mut forms = [0; 3];
    for seed in 0..SEEDS {
        for crash in [Crash::PowerLoss, Crash::Kill] {
            for operation in 1.. {
                let disk = disk(seed);
                disk.crash_in(operation);
                let promised = rewrite(&disk);
                let is_over = !disk.is_down();
                disk.crash();
                disk.restart(crash);
                let when = format!("disk {seed}, operation {operation}, {crash:?}");
                for name in assert_kept(&disk, &promised, &when) {
                    forms[name.form as usize] += 1;
                }
                // The next start ends the work, and leaves neither second names nor remains.
                let uncompressed = recover(&disk).expect("the disk is up");
                keep_all(
                    &disk,
                    Keeper::new(Arc::new(disk.clone()), everything(), uncompressed),
                );
                let names = assert_kept(&disk, &promised, &when);
                assert!(
                    names.iter().all(|name| name.form == HistoryForm::Segment),
                    "{when}: {names:?}"
                );
                assert_eq!(disk.offence(), None);
                if is_over {
                    break;
                }
            }
        }
    }
    assert!(forms.iter().all(|count| *count > 20), "{forms:?}");
}

#[test]
fn a_full_disk_takes_the_history_before_it_refuses_a_record() {
    for seed in 0..SEEDS {
        for is_inline in [false, true] {
            let disk = disk(seed);
            rewrite(&disk);
            assert_eq!(disk.list(), Ok(vec![HistoryName::segment(1)]));
            let mut committer = committer(&disk);
            committer.presume_quick();
            disk.presume_quick();
            assert_eq!(
                committer.carry_out(vec![DiskTask::SyncExisting]).len(),
                1,
                "the file is clean"
            );
            disk.set_troubles(Troubles {
                capacity: Some(disk.used()),
                ..Troubles::default()
            });
            let short = record(r#"{"_date":1}"#);
            let request = |position, record: &[u8]| StorageRequest::Append {
                position: LogPosition(position),
                record: record.to_vec().into(),
                durable: false,
            };
            // The holder's write fails, and the disk thread makes room and writes the record.
            let replies = if is_inline {
                let task = committer.append(vec![request(1, &short)]);
                committer.carry_out(vec![*task.expect_err("the disk is full")])
            } else {
                committer.carry_out(vec![DiskTask::Request(request(1, &short))])
            };
            assert!(
                matches!(
                    replies.as_slice(),
                    [StorageReply::Appended(LogPosition(1), Ok(()))]
                ),
                "{replies:?}"
            );
            let left = disk.list();
            assert_eq!(left, Ok(vec![HistoryName::gone(1)]), "the newest goes too");
            assert!(disk.bytes().ends_with(&short));
            // Then there is nothing left to give.
            let long = record(&format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000)));
            let replies = committer.carry_out(vec![DiskTask::Request(request(2, &long))]);
            assert!(
                matches!(replies.as_slice(), [StorageReply::Appended(_, Err(_))]),
                "{replies:?}"
            );
            assert!(disk.bytes().ends_with(&short));
        }
    }
}

#[test]
fn a_rewrite_that_fails_leaves_no_second_name() {
    let disk = disk(0);
    let mut committer = committer(&disk);
    let status = committer.status().clone();
    let begin = |committer: &Committer<SimDisk>| {
        let rewriter = committer.rewrite(RewriteNumber(1), Box::new(Compacted), status.end());
        let mut rewriter = rewriter.expect("descriptors are left");
        rewriter.run(|| status.end(), || true).expect("written");
        assert!(rewriter.keep(0));
        assert_eq!(disk.list(), Ok(vec![HistoryName::plain(1)]));
        rewriter
    };
    drop(begin(&committer));
    assert_eq!(disk.list(), Ok(Vec::new()), "abandoned");
    let rewriter = begin(&committer);
    disk.set_troubles(Troubles {
        sync: 100,
        ..Troubles::default()
    });
    // The record is durable, so the swap must sync it in the new file, which fails.
    append(&mut committer, 1, record(r#"{"_date":1}"#));
    committer.carry_out(vec![DiskTask::Swap(rewriter)]);
    assert_eq!(disk.list(), Ok(Vec::new()), "the swap has failed");
    assert!(disk.bytes().starts_with(&old_file()));
}
