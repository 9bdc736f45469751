//! The history folder of the simulated disk, and the check of what must be found in it.
//!
//! The folder is a directory of its own: which of its unsynced changes survive a power loss is
//! drawn independently of the database's directory. The disk remembers the records that were
//! stored durably while history was kept without a gap. Each must be in the present file or in
//! the history, whatever has happened since.

use std::collections::{BTreeMap, BTreeSet};

use corvid_history::segment::{FrameMemory, Segment};
use corvid_history::{HistoryError, Part, Policy, Timeline};
use corvid_log::header::LINE_BYTES_MAX;
use corvid_log::history::{HistoryFolder, HistoryForm, HistoryName, Removal};
use corvid_log::{Fault, Magic, RecordReader};

use super::{EIO, Fate, Handle, Inode, Platter, SimDisk, fault};
use crate::world::dice::Dice;

type Entries = BTreeMap<HistoryName, u64>;

/// The names of the folder and the files to which they lead.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    present: Entries,
    lasting: Entries,
    /// The names after each unsynced change.
    unsynced: Vec<Entries>,
    policy: Policy,
    /// Records that must be found.
    promised: BTreeSet<Vec<u8>>,
    /// Files of the history that were removed, and rewrites that kept nothing.
    gaps: u64,
}

impl Folder {
    /// Whether a name leads to this file, now or after a crash.
    pub(super) fn holds(&self, inode: u64) -> bool {
        [&self.present, &self.lasting]
            .into_iter()
            .chain(&self.unsynced)
            .any(|entries| entries.values().any(|number| *number == inode))
    }

    /// Whether a name leads to this file now.
    pub(super) fn shows(&self, inode: u64) -> bool {
        self.present.values().any(|number| *number == inode)
    }

    /// Only a prefix of the unsynced changes survives.
    pub(super) fn lose_power(&mut self, dice: &mut Dice) {
        if self.unsynced.is_empty() {
            return;
        }
        let survived = dice.below(self.unsynced.len() + 1);
        if survived > 0 {
            self.lasting = self.unsynced[survived - 1].clone();
        }
        self.present = self.lasting.clone();
        self.unsynced.clear();
    }

    /// From here on, records stored before need not be found.
    pub(super) fn begin_anew(&mut self) {
        self.gaps += 1;
        self.promised.clear();
    }
}

impl Platter {
    /// Bytes of all files that have a name now or are open. Files whose removal is not synced yet
    /// use no space: a file system frees them when it needs to.
    pub(super) fn used(&self) -> usize {
        let (names, folder) = (self.names, &self.folder);
        let is_used = |number: u64, inode: &Inode| {
            inode.handles > 0 || names.holds(number) || folder.shows(number)
        };
        let used = self.inodes.iter();
        used.filter(|(number, inode)| is_used(**number, inode))
            .map(|(_, inode)| inode.bytes().len())
            .sum()
    }

    fn change_folder(&mut self, change: impl FnOnce(&mut Entries)) {
        change(&mut self.folder.present);
        let present = self.folder.present.clone();
        self.folder.unsynced.push(present);
        self.free();
    }

    fn entry(&self, name: HistoryName) -> Result<u64, Fault> {
        self.folder.present.get(&name).copied().ok_or(fault(ENOENT))
    }
}

const ENOENT: i32 = 2;
const EEXIST: i32 = 17;

impl SimDisk {
    /// Keeps history from the next opening of the file on.
    pub(crate) fn keep_history(&self, policy: Policy) {
        self.lock().folder.policy = policy;
    }

    /// The policy.
    pub(crate) fn policy(&self) -> Policy {
        self.lock().folder.policy
    }

    /// How often history was removed or not kept.
    pub(crate) fn gaps(&self) -> u64 {
        self.lock().folder.gaps
    }

    /// Number of segments.
    pub(crate) fn segments(&self) -> usize {
        let platter = self.lock();
        let names = platter.folder.present.keys();
        let segments = names.filter(|name| name.form == HistoryForm::Segment);
        segments.count()
    }

    /// The database's files as a reader finds them, which fails no read.
    pub(crate) fn timeline(&self) -> Result<Timeline<Vec<u8>>, HistoryError> {
        let platter = self.lock();
        let present = platter.names.database;
        let text_of = |inode: u64| {
            let inode = platter.inodes.get(&inode);
            inode.map_or_else(Vec::new, |inode| inode.bytes().to_vec())
        };
        let mut kept: BTreeMap<u64, Part<Vec<u8>>> = BTreeMap::new();
        for (name, inode) in &platter.folder.present {
            let (shown, number) = (name.to_string(), name.number);
            match name.form {
                HistoryForm::Segment => {
                    let part =
                        Part::segment(&shown, number, text_of(*inode), FrameMemory::default())?;
                    kept.insert(number, part);
                }
                // Both names may be there while a file is compressed, or is put in place.
                HistoryForm::Plain if *inode != present => {
                    let part = || Part::plain(&shown, Some(number), text_of(*inode));
                    kept.entry(number).or_insert_with(part);
                }
                HistoryForm::Plain | HistoryForm::Partial | HistoryForm::Gone => {}
            }
        }
        let mut parts: Vec<_> = kept.into_values().collect();
        parts.push(Part::present("the file", text_of(present))?);
        Timeline::of(parts)
    }

    /// A file was replaced without being kept.
    pub(crate) fn history_has_gap(&self) {
        self.lock().folder.begin_anew();
    }

    /// These texts have been stored durably. A member appends several records at once.
    pub(crate) fn promise(&self, texts: impl IntoIterator<Item = Vec<u8>>) {
        let mut platter = self.lock();
        if !platter.is_down && !platter.folder.policy.is_off() {
            for text in texts {
                add_records(&text, &mut platter.folder.promised);
            }
        }
    }

    /// Checks that every promised record is in the present file or in the history. A missing one is
    /// an offence.
    pub(crate) fn check_history(&self) {
        let mut platter = self.lock();
        if platter.inodes.values().any(|inode| inode.is_rotten) {
            platter.folder.begin_anew();
        }
        if platter.folder.promised.is_empty() {
            return;
        }
        let mut found = BTreeSet::new();
        let text_of = |inode: u64| {
            let inode = platter.inodes.get(&inode);
            inode.map_or_else(Vec::new, |inode| inode.bytes().to_vec())
        };
        let mut outcome = Ok(());
        add_records(&text_of(platter.names.database), &mut found);
        for (name, inode) in &platter.folder.present {
            let bytes = text_of(*inode);
            match name.form {
                HistoryForm::Partial | HistoryForm::Gone => {}
                HistoryForm::Plain => add_records(&bytes, &mut found),
                HistoryForm::Segment => match decompressed(bytes) {
                    Ok(text) => add_records(&text, &mut found),
                    Err(error) => outcome = Err(format!("{name}: {error}")),
                },
            }
        }
        let missing = platter.folder.promised.difference(&found).next();
        if let Some(missing) = missing {
            let record = String::from_utf8_lossy(missing);
            let names: Vec<String> = platter
                .folder
                .present
                .keys()
                .map(HistoryName::to_string)
                .collect();
            outcome = Err(format!("not in file or history ({names:?}): {record}"));
        }
        if let Err(offence) = outcome {
            platter.offence.get_or_insert(offence);
        }
    }
}

/// Adds all whole records before the first damage.
fn add_records(text: &[u8], found: &mut BTreeSet<Vec<u8>>) {
    let Ok(magic) = Magic::identify(&text[..text.len().min(LINE_BYTES_MAX)]) else {
        return;
    };
    let mut reader = RecordReader::new(text, magic);
    while let Ok(Some(raw)) = reader.next() {
        let (start, body) = (raw.header_offset as usize, raw.offset as usize);
        found.insert(text[start..body + raw.body.len()].to_vec());
    }
}

fn decompressed(segment: Vec<u8>) -> Result<Vec<u8>, String> {
    let segment = Segment::open(segment).map_err(|error| error.to_string())?;
    segment.verify().map_err(|error| error.to_string())?;
    let mut text = vec![0; segment.index().text_length as usize];
    let mut at = 0;
    while at < text.len() {
        let got = segment.read_text(&mut text[at..], at as u64);
        match got.map_err(|error| error.to_string())? {
            0 => return Err("the text ends early".to_owned()),
            got => at += got,
        }
    }
    Ok(text)
}

impl HistoryFolder for SimDisk {
    type Handle = Handle;

    fn list(&self) -> Result<Vec<HistoryName>, Fault> {
        let platter = self.lock();
        if platter.is_down {
            return Err(fault(EIO));
        }
        Ok(platter.folder.present.keys().copied().collect())
    }

    fn holds(&self, name: HistoryName) -> bool {
        self.lock().entry(name).is_ok()
    }

    fn link_present(&self, number: u64) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("link {number}"), trouble)?;
        let name = HistoryName::plain(number);
        if fate == Fate::Failed {
            return Err(fault(EIO));
        }
        if platter.entry(name).is_ok() {
            return Err(fault(EEXIST));
        }
        let inode = platter.names.database;
        platter.change_folder(|entries| {
            entries.insert(name, inode);
        });
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(())
    }

    fn is_present(&self, number: u64) -> Result<bool, Fault> {
        let platter = self.lock();
        let inode = platter.entry(HistoryName::plain(number))?;
        Ok(inode == platter.names.database)
    }

    fn create(&self, name: HistoryName) -> Result<Handle, Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("create {name}"), trouble)?;
        if fate == Fate::Failed {
            return Err(fault(EIO));
        }
        let inode = platter.next_inode;
        platter.next_inode += 1;
        platter.inodes.insert(inode, Inode::default());
        let handle = platter.handle(self, inode);
        platter.change_folder(|entries| {
            entries.insert(name, inode);
        });
        drop(platter);
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(handle)
    }

    fn open(&self, name: HistoryName) -> Result<Handle, Fault> {
        let mut platter = self.lock();
        if platter.is_down {
            return Err(fault(EIO));
        }
        let inode = platter.entry(name)?;
        Ok(platter.handle(self, inode))
    }

    fn rename(&self, from: HistoryName, to: HistoryName) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("rename {from} to {to}"), trouble)?;
        if fate == Fate::Failed {
            return Err(fault(EIO));
        }
        let inode = platter.entry(from)?;
        if fate == Fate::Done || platter.dice.chance(50) {
            platter.change_folder(|entries| {
                entries.remove(&from);
                entries.insert(to, inode);
            });
        }
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(())
    }

    fn remove(&self, name: HistoryName, how: Removal) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.name;
        let fate = platter.begin(format_args!("remove {name} ({how:?})"), trouble)?;
        if fate == Fate::Failed {
            return Err(fault(EIO));
        }
        let inode = platter.entry(name)?;
        let is_history = match name.form {
            HistoryForm::Partial | HistoryForm::Gone => false,
            // Compressed, or still the present file, or given up for room.
            HistoryForm::Plain => how == Removal::AtOnce && inode != platter.names.database,
            HistoryForm::Segment => true,
        };
        // Records after the damage are not found in its segment either.
        let is_rotten = platter.inodes.get(&inode).is_some_and(|it| it.is_rotten);
        if is_history || is_rotten {
            platter.folder.begin_anew();
        }
        platter.change_folder(|entries| {
            entries.remove(&name);
        });
        if fate == Fate::Down {
            return Err(fault(EIO));
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Fault> {
        let mut platter = self.lock();
        let trouble = platter.troubles.directory;
        match platter.begin(format_args!("sync history"), trouble)? {
            Fate::Done => {
                platter.folder.lasting = platter.folder.present.clone();
                platter.folder.unsynced.clear();
                platter.free();
                Ok(())
            }
            Fate::Failed | Fate::Down => Err(fault(EIO)),
        }
    }

    fn warn(&self, text: &str) {
        self.lock().trace.line(format_args!("history: {text}"));
    }
}
