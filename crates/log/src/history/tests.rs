//! Names and numbers of kept files, recovery after a crash, and which file a full disk takes first.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;

/// A folder of names; each leads to an inode number. The present file is inode 0.
#[derive(Debug, Default)]
struct Names {
    inodes: Mutex<BTreeMap<HistoryName, u64>>,
    fails_to_sync: bool,
    warnings: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct NoFile;

impl DiskFile for NoFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, Fault> {
        Ok(0)
    }

    fn write_at(&mut self, _: &[&[u8]], _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn length(&self) -> Result<u64, Fault> {
        Ok(0)
    }

    fn cut(&mut self, _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn share(&self) -> Result<NoFile, Fault> {
        Ok(NoFile)
    }
}

impl HistoryFolder for Names {
    type Handle = NoFile;

    fn list(&self) -> Result<Vec<HistoryName>, Fault> {
        Ok(self.inodes.lock().unwrap().keys().copied().collect())
    }

    fn holds(&self, name: HistoryName) -> bool {
        self.inodes.lock().unwrap().contains_key(&name)
    }

    fn link_present(&self, number: u64) -> Result<(), Fault> {
        let mut inodes = self.inodes.lock().unwrap();
        assert_eq!(inodes.insert(HistoryName::plain(number), 0), None);
        Ok(())
    }

    fn is_present(&self, number: u64) -> Result<bool, Fault> {
        let inodes = self.inodes.lock().unwrap();
        let inode = inodes.get(&HistoryName::plain(number));
        inode.map(|inode| *inode == 0).ok_or_else(unsupported)
    }

    fn create(&self, name: HistoryName) -> Result<NoFile, Fault> {
        self.inodes.lock().unwrap().insert(name, u64::MAX);
        Ok(NoFile)
    }

    fn open(&self, _: HistoryName) -> Result<NoFile, Fault> {
        Ok(NoFile)
    }

    fn rename(&self, from: HistoryName, to: HistoryName) -> Result<(), Fault> {
        let mut inodes = self.inodes.lock().unwrap();
        let inode = inodes.remove(&from).ok_or_else(unsupported)?;
        inodes.insert(to, inode);
        Ok(())
    }

    fn remove(&self, name: HistoryName, _: Removal) -> Result<(), Fault> {
        let mut inodes = self.inodes.lock().unwrap();
        inodes.remove(&name).map(drop).ok_or_else(unsupported)
    }

    fn sync(&self) -> Result<(), Fault> {
        if self.fails_to_sync {
            return Err(unsupported());
        }
        Ok(())
    }

    fn warn(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }
}

fn folder(names: &[(HistoryName, u64)]) -> Names {
    Names {
        inodes: Mutex::new(names.iter().copied().collect()),
        ..Names::default()
    }
}

fn listed(folder: &Names) -> String {
    let names = folder.list().unwrap();
    let texts: Vec<String> = names.iter().map(HistoryName::to_string).collect();
    texts.join(" ")
}

#[test]
fn a_name_is_read_as_it_is_written_and_no_other_text_is_one() {
    for name in [
        HistoryName::segment(1),
        HistoryName::plain(42),
        HistoryName::partial(9_999_999_999),
        HistoryName::plain(12_345_678_901),
        HistoryName::segment(u64::MAX),
        HistoryName::gone(3),
    ] {
        assert_eq!(name.to_string().parse(), Ok(name));
    }
    assert_eq!(HistoryName::segment(7).to_string(), "0000000007.db.zst");
    for foreign in [
        "",
        ".db",
        "1.db",
        "0000000000.db",
        "+000000001.db",
        "00000000001.db",
        "0000000001.db.gz",
        "0000000001.db.zst.tmp.tmp",
        "0000000001.DB",
        "99999999999999999999.db",
    ] {
        assert_eq!(
            foreign.parse::<HistoryName>(),
            Err(ForeignName),
            "{foreign}"
        );
    }
}

#[test]
fn a_kept_file_gets_the_number_after_the_highest_of_any_form() {
    let names = folder(&[]);
    assert_eq!(keep(&names, 0), Ok(1));
    let names = folder(&[
        (HistoryName::segment(3), 5),
        (HistoryName::partial(7), 6),
        (HistoryName::plain(4), 7),
    ]);
    assert_eq!(keep(&names, 0), Ok(8));
    // The disk was full and took the last one, which a thread may still want to compress.
    assert_eq!(keep(&folder(&[]), 3), Ok(4));
}

#[test]
fn a_replaced_file_that_is_not_kept_takes_a_number_with_it() {
    assert_eq!(skip(&folder(&[]), 0), 0, "there is no history");
    let names = folder(&[(HistoryName::segment(3), 5)]);
    assert_eq!(skip(&names, 0), 4);
    assert_eq!(skip(&names, 4), 5, "each of them");
    assert_eq!(listed(&names), "0000000003.db.zst 0000000005.db.gone");
    assert_eq!(keep(&names, 0), Ok(6), "also after a restart");
    // The disk was full and took the last one.
    assert_eq!(skip(&folder(&[]), 3), 4);
}

#[test]
fn a_mark_goes_when_a_later_file_shows_the_gap() {
    let names = folder(&[(HistoryName::segment(3), 5), (HistoryName::gone(5), 8)]);
    assert_eq!(recover(&names), Ok(Vec::new()));
    assert_eq!(listed(&names), "0000000003.db.zst 0000000005.db.gone");
    // The swap of this one may still fail.
    assert_eq!(keep(&names, 0), Ok(6));
    assert_eq!(recover(&names), Ok(Vec::new()));
    assert_eq!(listed(&names), "0000000003.db.zst 0000000005.db.gone");
    names
        .inodes
        .lock()
        .unwrap()
        .insert(HistoryName::segment(6), 9);
    assert_eq!(recover(&names), Ok(Vec::new()));
    assert_eq!(listed(&names), "0000000003.db.zst 0000000006.db.zst");
}

#[test]
fn a_second_name_that_is_not_durable_is_removed() {
    let names = Names {
        fails_to_sync: true,
        ..Names::default()
    };
    assert!(keep(&names, 0).is_err());
    assert_eq!(listed(&names), "");
}

#[test]
fn after_a_crash_only_files_that_were_replaced_remain() {
    let names = folder(&[
        (HistoryName::segment(1), 1),
        (HistoryName::segment(2), 2),
        (HistoryName::plain(2), 3),
        (HistoryName::partial(3), 4),
        (HistoryName::plain(3), 5),
        (HistoryName::plain(4), 0),
    ]);
    assert_eq!(recover(&names), Ok(vec![2, 3]));
    assert_eq!(
        listed(&names),
        "0000000002.db 0000000003.db 0000000001.db.zst 0000000002.db.zst"
            .split(' ')
            .map(|name| name.parse::<HistoryName>().unwrap())
            .collect::<std::collections::BTreeSet<_>>()
            .iter()
            .map(HistoryName::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    );
}

#[test]
fn a_full_disk_takes_what_is_not_compressed_first_and_the_oldest_next() {
    let names = folder(&[
        (HistoryName::segment(1), 1),
        (HistoryName::segment(2), 2),
        (HistoryName::partial(3), 4),
        (HistoryName::plain(3), 5),
        (HistoryName::plain(4), 0),
    ]);
    let mut removed = Vec::new();
    while let Some(name) = give_way(&names) {
        removed.push(name.to_string());
    }
    assert_eq!(
        removed,
        [
            "0000000003.db.zst.tmp",
            "0000000003.db",
            "0000000001.db.zst",
            "0000000002.db.zst"
        ]
    );
    assert_eq!(
        listed(&names),
        "0000000003.db.gone 0000000004.db",
        "the number of the newest, and the present file's second name"
    );
    assert_eq!(names.warnings.lock().unwrap().len(), 4);
}
