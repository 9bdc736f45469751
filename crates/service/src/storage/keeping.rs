//! Keeps the history of one database file: compresses the files that rewrites replaced, and removes
//! the oldest as the policy says. Driven step by step, by a thread of low priority in the server
//! and by the scheduler in a simulation.
//!
//! ```text
//! kept(2.db) --> compress 2.db --> 2.db.zst.tmp --> synced, read back --> 2.db.zst, 2.db removed
//!            --> prune: 1.db.zst removed, if the policy says so
//! ```
//!
//! Invariants:
//! - A plain file is removed only after its segment was synced, read back and found equal, and
//!   renamed durably.
//! - The newest segment is never removed here.
//! - Nothing here touches the present file. No client waits for any of it.
//!
//! A failure is logged and the file stays as it is. It is tried again after the next one, and at
//! the next start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use corvid_history::segment::Segment;
use corvid_history::{Policy, ReadAt, SegmentError, SegmentWriter, Summary, read_index};
use corvid_log::history::{Extent, HistoryForm, HistoryName, Removal, find_extent, remove_marks};
use corvid_log::{Disk, DiskFile, Fault, HistoryFolder, KeptFile};

/// Bytes of text that are compressed at a time. After each piece the work can be given up.
const PIECE_BYTES: usize = 256 * 1024;

/// Bytes of a segment between two syncs, which empty the cache of the disk.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;

/// A file of the history, as shown to an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name.
    pub name: HistoryName,
    /// Its length, bytes.
    pub bytes: u64,
    /// The facts in its index; `None`: it has none, or it is damaged.
    pub summary: Option<Summary>,
    /// Why the index cannot be used.
    pub damage: Option<String>,
}

/// The history of one database file.
#[derive(Debug)]
pub struct Keeper<D: Disk> {
    disk: Arc<D>,
    policy: Policy,
    /// Files to compress, oldest first.
    uncompressed: VecDeque<KeptFile>,
    /// Files whose compression has failed.
    failed: Vec<KeptFile>,
    /// The known files.
    files: BTreeMap<HistoryName, ListedFile>,
    /// Whether the folder may have changed, or the policy, since the history was last pruned.
    is_due: bool,
}

/// Why a file was not compressed.
#[derive(Debug)]
enum Failure {
    /// The server ends, or the history gives way to records.
    GivenUp,
    Disk(Fault),
    Text(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::GivenUp => f.write_str("given up"),
            Failure::Disk(fault) => write!(f, "{fault}"),
            Failure::Text(text) => f.write_str(text),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Disk(fault)
    }
}

impl<D: Disk> Keeper<D> {
    /// The history of a file that was just opened. `uncompressed` is the result of
    /// [`corvid_log::history::recover`].
    #[must_use]
    pub fn new(disk: Arc<D>, policy: Policy, uncompressed: Vec<u64>) -> Keeper<D> {
        let uncompressed = uncompressed.into_iter();
        let unknown = |number| KeptFile { number, end: None };
        Keeper {
            disk,
            policy,
            uncompressed: uncompressed.map(unknown).collect(),
            failed: Vec::new(),
            files: BTreeMap::new(),
            is_due: true,
        }
    }

    /// A rewrite has replaced this file.
    pub fn kept(&mut self, file: KeptFile) {
        // The cause of a failed compression may be over.
        self.uncompressed.extend(self.failed.drain(..));
        self.uncompressed.push_back(file);
        self.is_due = true;
    }

    /// The policy has changed.
    pub fn set_policy(&mut self, policy: Policy) {
        self.is_due |= policy != self.policy;
        self.policy = policy;
    }

    /// All files, oldest first, as of the last step.
    pub fn files(&self) -> impl Iterator<Item = &ListedFile> {
        self.files.values()
    }

    /// Whether there is work.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.is_due || !self.uncompressed.is_empty()
    }

    /// Compresses one file, or prunes the history. `is_wanted` is called for each piece of work; if
    /// it returns false, the step ends early and its file is left for the next start.
    pub fn step(&mut self, now_ms: u64, is_wanted: &dyn Fn() -> bool) {
        if let Some(file) = self.uncompressed.pop_front() {
            self.compress(file, is_wanted);
        } else if std::mem::take(&mut self.is_due) {
            self.prune(now_ms);
        }
        self.refresh();
    }

    fn folder(&self) -> &D::History {
        self.disk.history()
    }

    fn compress(&mut self, file: KeptFile, is_wanted: &dyn Fn() -> bool) {
        self.is_due = true;
        let folder = self.folder();
        let plain = HistoryName::plain(file.number);
        // The history has given way to records, or the swap failed.
        let is_there = || folder.holds(plain);
        if !is_there() {
            return;
        }
        let outcome = compress(&*self.disk, file, &|| is_wanted() && is_there());
        match outcome {
            // Its number tells which ones before it are missing, and no swap can take it back.
            Ok(()) => remove_marks(folder),
            // If the history gave way, it has said so.
            Err(Failure::GivenUp) => {}
            Err(failure) => {
                folder.warn(&format!(
                    "{plain} is not compressed, and is kept as it is ({failure})"
                ));
                self.failed.push(file);
            }
        }
    }

    /// Removes the oldest segments until the policy holds.
    fn prune(&mut self, now_ms: u64) {
        self.refresh();
        if self.policy.is_off() {
            return;
        }
        let mut segments: Vec<Summary> = Vec::new();
        // Backwards, because a damaged segment counts as being as old as the next one: it goes when
        // its neighbour goes, and not before.
        for file in self.files.values().rev() {
            if file.name.form != HistoryForm::Segment {
                continue;
            }
            let next_ms = segments.last().map_or(i64::MAX, |next| next.last_ms);
            segments.push(file.summary.unwrap_or(Summary {
                number: file.name.number,
                bytes: file.bytes,
                transactions: 0,
                first_ms: next_ms,
                last_ms: next_ms,
            }));
        }
        segments.reverse();
        let excess = self.policy.excess(now_ms, &segments);
        let folder = self.folder();
        for segment in &segments[..excess] {
            let name = HistoryName::segment(segment.number);
            // If this fails, the next pruning tries again, and the segments after it wait, because
            // history has no gaps.
            if let Err(fault) = folder.remove(name, Removal::Gentle) {
                if folder.holds(name) {
                    folder.warn(&format!("{name} cannot be removed ({fault})"));
                }
                break;
            }
        }
    }

    /// Reads the folder. The disk thread may have removed files.
    fn refresh(&mut self) {
        let names: BTreeSet<HistoryName> = match self.folder().list() {
            Ok(names) => names
                .into_iter()
                .filter(|name| name.form != HistoryForm::Gone)
                .collect(),
            Err(fault) => {
                self.folder()
                    .warn(&format!("the folder cannot be read ({fault})"));
                return;
            }
        };
        self.files.retain(|name, _| names.contains(name));
        for name in names {
            // A segment never changes. A plain file grows until the swap.
            if name.form == HistoryForm::Segment && self.files.contains_key(&name) {
                continue;
            }
            if let Ok(file) = self.folder().open(name) {
                self.files.insert(name, listed(name, &file));
            }
        }
    }
}

fn listed<F: DiskFile>(name: HistoryName, file: &F) -> ListedFile {
    let (summary, damage) = match name.form {
        HistoryForm::Partial | HistoryForm::Plain | HistoryForm::Gone => (None, None),
        HistoryForm::Segment => match read_index(&AtOffset(file)) {
            Ok(index) => {
                let mut summary = index.summary();
                summary.number = name.number;
                (Some(summary), None)
            }
            Err(error) => (None, Some(error.to_string())),
        },
    };
    ListedFile {
        name,
        bytes: file.length().unwrap_or(0),
        summary,
        damage,
    }
}

/// Compresses a plain file to a segment and removes it.
fn compress<D: Disk>(
    disk: &D,
    file: KeptFile,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let folder = disk.history();
    let number = file.number;
    let (plain, segment) = (HistoryName::plain(number), HistoryName::segment(number));
    // Until the rename of the new file is on disk, a crash may bring this file back as the present
    // one. Then the second name must still be there to tell so.
    disk.sync_directory()?;
    let text = folder.open(plain)?;
    let end = match file.end {
        Some(end) => end,
        None => match find_extent(&text, is_wanted).map_err(Failure::Text)? {
            Extent::End(end) => end,
            Extent::Damaged { offset, behind } => {
                return Err(Failure::Text(format!(
                    "damaged at offset {offset}, {behind} whole records follow"
                )));
            }
        },
    };
    // A crash came between the rename of a complete segment and the removal of the file.
    let is_done = folder.holds(segment)
        && folder
            .open(segment)
            .is_ok_and(|copy| is_equal(&copy, &text, end, is_wanted).is_ok());
    if !is_done {
        let partial = HistoryName::partial(number);
        let outcome = write_segment(folder, partial, &text, end, is_wanted)
            .and_then(|()| Ok(folder.rename(partial, segment)?));
        if let Err(failure) = outcome {
            let _ = folder.remove(partial, Removal::Gentle);
            return Err(failure);
        }
    }
    // The segment's name must last before the other name goes.
    folder.sync()?;
    // Large files are freed in steps, which needs that nobody has them open.
    drop(text);
    folder.remove(plain, Removal::Gentle)?;
    Ok(())
}

/// Writes a segment, syncs it, and reads it back.
fn write_segment<H: HistoryFolder>(
    folder: &H,
    name: HistoryName,
    text: &H::Handle,
    end: u64,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let mut out = Output {
        file: folder.create(name)?,
        written: 0,
        synced: 0,
    };
    let mut writer = SegmentWriter::new();
    let mut bytes = Vec::new();
    each_piece(text, end, is_wanted, |piece| {
        let pushed = writer.push(piece, &mut bytes);
        pushed.map_err(|error| Failure::Text(error.to_string()))?;
        // A full disk takes the unfinished segment away.
        if !folder.holds(name) {
            return Err(Failure::GivenUp);
        }
        out.write(&mut bytes)
    })?;
    writer
        .finish(&mut bytes)
        .map_err(|error| Failure::Text(error.to_string()))?;
    out.write(&mut bytes)?;
    out.file.sync()?;
    is_equal(&out.file, text, end, is_wanted)
}

/// A segment that is being written.
struct Output<F> {
    file: F,
    written: u64,
    synced: u64,
}

impl<F: DiskFile> Output<F> {
    /// Appends the bytes, hands them to the disk, and clears them.
    fn write(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        self.file.write_at(&[bytes], self.written)?;
        // In small pieces, so that syncs of other files do not wait for all of it.
        self.file.write_back(self.written, length)?;
        self.written += length;
        bytes.clear();
        if self.written - self.synced >= SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }
}

/// Passes the bytes of a file before `end` to `sink`, in pieces.
fn each_piece<F: DiskFile>(
    file: &F,
    end: u64,
    is_wanted: &dyn Fn() -> bool,
    mut sink: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut room = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < end {
        if !is_wanted() {
            return Err(Failure::GivenUp);
        }
        let left = usize::try_from(end - offset).unwrap_or(PIECE_BYTES);
        let got = file.read_at(&mut room[..left.min(PIECE_BYTES)], offset)?;
        if got == 0 {
            return Err(Failure::Text("the file has become shorter".to_owned()));
        }
        sink(&room[..got])?;
        offset += got as u64;
    }
    Ok(())
}

/// Checks that a segment's text is the file's, up to `end`.
fn is_equal<F: DiskFile>(
    segment: &F,
    text: &F,
    end: u64,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let different = || Failure::Text("the compressed text is not the file's".to_owned());
    let failed = |error: SegmentError| Failure::Text(error.to_string());
    let segment = Segment::open(AtOffset(segment)).map_err(failed)?;
    if segment.index().text_length != end {
        return Err(different());
    }
    let (mut room, mut offset) = (vec![0; PIECE_BYTES], 0);
    each_piece(text, end, is_wanted, |mut piece| {
        while !piece.is_empty() {
            let got = segment.read_text(&mut room[..piece.len()], offset);
            let got = got.map_err(failed)?;
            if got == 0 || room[..got] != piece[..got] {
                return Err(different());
            }
            piece = &piece[got..];
            offset += got as u64;
        }
        Ok(())
    })
}

/// A file of the disk as the crate `history` reads it.
struct AtOffset<'f, F>(&'f F);

impl<F: DiskFile> ReadAt for AtOffset<'_, F> {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        let got = self.0.read_at(room, offset);
        got.map_err(|fault| fault.text)
    }

    fn length(&self) -> Result<u64, String> {
        self.0.length().map_err(|fault| fault.text)
    }
}
