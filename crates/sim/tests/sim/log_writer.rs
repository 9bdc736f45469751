//! The promises of appending to a file, on a disk that goes down. The simulation of the whole
//! server has found these cases; each is tested alone.

use corvid_log::{Disk, DiskFile, LogWriter};
use corvid_sim::world::disk::{Crash, SimDisk, Troubles};
use corvid_sim::world::trace::{Trace, Tracing};

/// Number of disks on which each case is tried. The bytes that survive a power loss follow from the
/// disk's number.
const SEEDS: u64 = 200;

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(seed, Trace::new(Tracing::None), b"schema,".to_vec())
}

fn writer(disk: &SimDisk) -> LogWriter<SimDisk> {
    let mut writer = LogWriter::new(disk.clone(), disk.open());
    writer.set_end(disk.bytes().len() as u64);
    writer
}

/// Returns troubles with one kind of failure, at every operation.
fn always(set: impl Fn(&mut Troubles)) -> Troubles {
    let mut troubles = Troubles::default();
    set(&mut troubles);
    troubles
}

#[test]
fn a_synced_record_outlives_a_kill_between_rename_and_directory_sync() {
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut first = writer(&disk);
        let mut rewrite = first.replace();
        rewrite.write(b"new,").expect("nothing fails");
        rewrite.sync().expect("nothing fails");
        drop(first.swap(rewrite).expect("nothing fails"));
        drop(first);
        disk.crash();
        assert_eq!(disk.restart(Crash::Kill), Crash::Kill);
        let mut second = writer(&disk);
        second.append(&[b"durable,"]).expect("nothing fails");
        let before = second.end();
        second.sync(before).expect("nothing fails");
        drop(second);
        disk.restart(Crash::PowerLoss);
        assert_eq!(disk.bytes(), b"new,durable,", "disk {seed}");
    }
}

#[test]
fn failed_write_does_not_come_back() {
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut writer = writer(&disk);
        disk.set_troubles(always(|troubles| troubles.write = 100));
        writer
            .append(&[b"refused,", b"as well,"])
            .expect_err("writing fails");
        drop(writer);
        disk.restart(Crash::PowerLoss);
        assert_eq!(disk.bytes(), b"schema,", "disk {seed}");
    }
}

#[test]
fn failed_cut_is_repeated_by_the_next_append() {
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut writer = writer(&disk);
        disk.set_troubles(always(|troubles| {
            (troubles.write, troubles.cut) = (100, 100);
        }));
        for _ in 0..2 {
            writer
                .append(&[b"refused,", b"as well,"])
                .expect_err("writing fails");
        }
        disk.set_troubles(Troubles::default());
        writer.append(&[b"accepted"]).expect("nothing fails");
        drop(writer);
        disk.restart(Crash::Kill);
        assert_eq!(disk.bytes(), b"schema,accepted", "disk {seed}");
    }
}

#[test]
fn damaged_tail_does_not_follow_a_record_written_over_it() {
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut first = writer(&disk);
        first.append(&[b"lost 1,lost 2,"]).expect("nothing fails");
        let before = first.end();
        first.sync(before).expect("nothing fails");
        drop(first);
        // A reader finds nothing good after the schema.
        let mut second = LogWriter::new(disk.clone(), disk.open());
        second.set_end(7);
        second.append(&[b"fresh 1"]).expect("nothing fails");
        drop(second);
        disk.restart(Crash::PowerLoss);
        let bytes = disk.bytes();
        assert!(!bytes.ends_with(b"lost 2,"), "disk {seed}");
    }
}

#[test]
fn record_is_cut_off_when_the_directory_cannot_be_synced() {
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut writer = writer(&disk);
        writer.append(&[b"refused,"]).expect("nothing fails");
        disk.set_troubles(always(|troubles| troubles.directory = 100));
        writer.sync(7).expect_err("the directory does not sync");
        assert!(writer.poison().is_some());
        assert_eq!(writer.end(), 7);
        drop(writer);
        disk.restart(Crash::Kill);
        assert_eq!(disk.bytes(), b"schema,", "disk {seed}");
    }
}

#[test]
fn disk_reports_writes_after_a_failed_sync() {
    let disk = disk(1);
    let mut file = disk.open();
    file.write_at(&[b"x"], 7).expect("nothing fails");
    disk.set_troubles(always(|troubles| troubles.sync = 100));
    file.sync().expect_err("syncing fails");
    disk.set_troubles(Troubles::default());
    assert_eq!(disk.offence(), None);
    file.write_at(&[b"y"], 8).expect("nothing fails");
    assert!(disk.offence().is_some());
    disk.sync_directory().expect("nothing fails");
}
