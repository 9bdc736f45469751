//! The history folder of a database file: the files that rewrites replaced, kept under names of
//! their own.
//!
//! ```text
//! a.db                              the present file
//! a.db.history/0000000001.db.zst    a segment: a replaced file, compressed
//! a.db.history/0000000002.db        a replaced file that is not compressed yet
//! a.db.history/0000000002.db.zst.tmp   a segment that is being written
//! a.db.history/0000000003.db.gone      empty: the number of a file that is missing, the last one
//! ```
//!
//! A file is kept in three steps, and each of them leaves it reachable by one of its names:
//!
//! | Step | By | Names of the old file afterwards |
//! |---|---|---|
//! | [`keep`]: a second name, folder synced | rewrite thread, before the swap | `a.db`, `2.db` |
//! | the swap: rename, directory synced | disk thread | `2.db` |
//! | compression: `2.db.zst` synced, verified and renamed, then `2.db` removed | history thread | none; its text is in `2.db.zst` |
//!
//! Invariants:
//! - A plain file that is also the present file is never changed, and its second name is removed
//!   only while the present name leads to it. After a crash before the swap, [`recover`] removes
//!   the second name.
//! - Numbers count up. A number is not used again while a higher one exists, nor while the process
//!   runs.
//! - A file that is replaced without being kept takes the next number with it ([`skip`]), if there
//!   is a history: so readers see at once that something is missing there. As long as no later file
//!   shows the gap, an empty file keeps the number taken, also across restarts. The same holds for
//!   the newest file if a full disk removes it.
//!
//! This module decides about names only, over [`HistoryFolder`]. Compression and the policy are
//! decided by the crates that know them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use crate::disk::{DiskFile, Fault};

/// The form of a file of the history folder. In the order in which a full disk removes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryForm {
    /// A segment that is being written. Left over by a crash.
    Partial,
    /// A replaced file as it was.
    Plain,
    /// A compressed file.
    Segment,
    /// An empty file: the number is taken, and its file was not kept or was removed.
    Gone,
}

impl HistoryForm {
    /// Longest first, because each is a suffix of a name.
    const ALL: [HistoryForm; 4] = [
        HistoryForm::Partial,
        HistoryForm::Segment,
        HistoryForm::Gone,
        HistoryForm::Plain,
    ];

    fn suffix(self) -> &'static str {
        match self {
            HistoryForm::Partial => ".db.zst.tmp",
            HistoryForm::Plain => ".db",
            HistoryForm::Segment => ".db.zst",
            HistoryForm::Gone => ".db.gone",
        }
    }
}

/// The name of a file in a history folder. Displays as `0000000001.db.zst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryName {
    /// Counts up from 1, oldest first.
    pub number: u64,
    /// Its form.
    pub form: HistoryForm,
}

impl HistoryName {
    /// The name of a segment.
    #[must_use]
    pub fn segment(number: u64) -> HistoryName {
        HistoryName {
            number,
            form: HistoryForm::Segment,
        }
    }

    /// The name of a file that is not compressed.
    #[must_use]
    pub fn plain(number: u64) -> HistoryName {
        HistoryName {
            number,
            form: HistoryForm::Plain,
        }
    }

    /// The name of a segment that is being written.
    #[must_use]
    pub fn partial(number: u64) -> HistoryName {
        HistoryName {
            number,
            form: HistoryForm::Partial,
        }
    }

    /// The name that keeps the number of a missing file taken.
    #[must_use]
    pub fn gone(number: u64) -> HistoryName {
        HistoryName {
            number,
            form: HistoryForm::Gone,
        }
    }
}

impl fmt::Display for HistoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}{}", self.number, self.form.suffix())
    }
}

/// The text is not the name of a file of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a history file")]
pub struct ForeignName;

impl FromStr for HistoryName {
    type Err = ForeignName;

    /// Accepts exactly what [`HistoryName`] displays, so that two texts never mean one file.
    fn from_str(text: &str) -> Result<HistoryName, ForeignName> {
        let with_form = |form: HistoryForm| {
            let digits = text.strip_suffix(form.suffix())?;
            let number = digits.parse().ok().filter(|number| *number > 0)?;
            let name = HistoryName { number, form };
            (name.to_string() == text).then_some(name)
        };
        HistoryForm::ALL
            .into_iter()
            .find_map(with_form)
            .ok_or(ForeignName)
    }
}

/// How the space of a removed file is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// In steps, so that no sync of another file waits for it.
    Gentle,
    /// At once: a write waits for the space.
    AtOnce,
}

/// The history folder of one database file. No method may be called by a thread that clients wait
/// for, except [`give_way`] on the disk thread.
pub trait HistoryFolder: Send + Sync + fmt::Debug {
    /// An open file.
    type Handle: DiskFile;

    /// All names of history files, in any order. Empty if there is no folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&self) -> Result<Vec<HistoryName>, Fault>;

    /// Whether there is a file of this name.
    fn holds(&self, name: HistoryName) -> bool;

    /// Gives the present file a second name, [`HistoryName::plain`]. Creates the folder if there is
    /// none.
    ///
    /// # Errors
    /// The name exists, or the file system does not allow it.
    fn link_present(&self, number: u64) -> Result<(), Fault>;

    /// Whether the plain file is the present file under its second name.
    ///
    /// # Errors
    /// One of the two cannot be found.
    fn is_present(&self, number: u64) -> Result<bool, Fault>;

    /// Creates an empty file. Replaces one of that name.
    ///
    /// # Errors
    /// It cannot be created.
    fn create(&self, name: HistoryName) -> Result<Self::Handle, Fault>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&self, name: HistoryName) -> Result<Self::Handle, Fault>;

    /// Renames a file. Replaces one of the new name.
    ///
    /// # Errors
    /// Nothing has changed.
    fn rename(&self, from: HistoryName, to: HistoryName) -> Result<(), Fault>;

    /// Removes a file.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: HistoryName, how: Removal) -> Result<(), Fault>;

    /// Forces the names to disk, and that of the folder.
    ///
    /// # Errors
    /// Names created before may be lost in a crash.
    fn sync(&self) -> Result<(), Fault>;

    /// Logs that something went wrong, or that history was removed. One sentence.
    fn warn(&self, text: &str) {
        let _ = text;
    }
}

/// The folder of a disk that keeps no history.
#[derive(Debug)]
pub struct NoHistory<F>(PhantomData<fn() -> F>);

impl<F> Clone for NoHistory<F> {
    fn clone(&self) -> NoHistory<F> {
        *self
    }
}

impl<F> Copy for NoHistory<F> {}

impl<F> Default for NoHistory<F> {
    fn default() -> NoHistory<F> {
        NoHistory(PhantomData)
    }
}

impl<F: DiskFile> HistoryFolder for NoHistory<F> {
    type Handle = F;

    fn list(&self) -> Result<Vec<HistoryName>, Fault> {
        Ok(Vec::new())
    }

    fn holds(&self, _: HistoryName) -> bool {
        false
    }

    fn link_present(&self, _: u64) -> Result<(), Fault> {
        Err(unsupported())
    }

    fn is_present(&self, _: u64) -> Result<bool, Fault> {
        Err(unsupported())
    }

    fn create(&self, _: HistoryName) -> Result<F, Fault> {
        Err(unsupported())
    }

    fn open(&self, _: HistoryName) -> Result<F, Fault> {
        Err(unsupported())
    }

    fn rename(&self, _: HistoryName, _: HistoryName) -> Result<(), Fault> {
        Err(unsupported())
    }

    fn remove(&self, _: HistoryName, _: Removal) -> Result<(), Fault> {
        Err(unsupported())
    }

    fn sync(&self) -> Result<(), Fault> {
        Err(unsupported())
    }
}

fn unsupported() -> Fault {
    Fault {
        code: 0,
        text: "no history here".to_owned(),
    }
}

/// A replaced file that has a name in the history folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Its number.
    pub number: u64,
    /// Where its last good record ends, bytes; `None`: unknown. Bytes beyond it are damaged or
    /// were taken back.
    pub end: Option<u64>,
}

/// Gives the present file a second name, durably, before a rewrite replaces it. Returns the number.
/// It is greater than `last`, the last number that this process has used, even if a full disk has
/// taken that file since: a thread that still knows the old number must not take this file for the
/// old one. Called by the rewrite thread at the end of its work.
///
/// # Errors
/// The file has no second name.
pub(crate) fn keep<H: HistoryFolder>(folder: &H, last: u64) -> Result<u64, Fault> {
    let number = highest(folder)?.max(last) + 1;
    folder.link_present(number)?;
    // Synced before the swap: once the rename is on disk, this is the only name of the old file.
    folder.sync().inspect_err(|_| forget(folder, number))?;
    Ok(number)
}

/// A rewrite has replaced the present file, which was not kept. Returns the number to take for the
/// last one that was used, in place of `last`: the number that the file would have got. 0 as long
/// as nothing was ever kept.
pub fn skip<H: HistoryFolder>(folder: &H, last: u64) -> u64 {
    // A folder that cannot be read may be the reason why the file was not kept.
    let highest = highest(folder).unwrap_or_default().max(last);
    if highest == 0 {
        return 0;
    }
    let number = highest + 1;
    mark_gone(folder, number);
    // Synced, because nothing else tells a restarted server. Best effort, like the mark.
    let _ = folder.sync();
    number
}

/// Keeps the number of a missing file taken, unless that of a later file tells of it. Best effort:
/// without the mark only the contents show that commits are missing.
fn mark_gone<H: HistoryFolder>(folder: &H, number: u64) {
    let marked = folder.list().unwrap_or_default().into_iter();
    let marked = marked.filter(|name| name.form == HistoryForm::Gone);
    let later = marked.map(|name| name.number).fold(0, u64::max);
    let is_last = newest(folder).is_ok_and(|newest| newest.max(later) < number);
    if is_last && folder.create(HistoryName::gone(number)).is_ok() {
        remove_marks_before(folder, number);
    }
}

/// Removes the marks of numbers before this one, which say nothing that it does not.
fn remove_marks_before<H: HistoryFolder>(folder: &H, number: u64) {
    let marks = folder.list().unwrap_or_default().into_iter();
    for mark in marks.filter(|name| name.form == HistoryForm::Gone && name.number < number) {
        let _ = folder.remove(mark, Removal::AtOnce);
    }
}

/// The highest number of a kept file; 0: there is none.
fn newest<H: HistoryFolder>(folder: &H) -> Result<u64, Fault> {
    let names = folder.list()?.into_iter();
    let is_kept = |name: &HistoryName| match name.form {
        HistoryForm::Segment => true,
        HistoryForm::Plain => folder.is_present(name.number) == Ok(false),
        HistoryForm::Partial | HistoryForm::Gone => false,
    };
    let kept = names.filter(is_kept);
    Ok(kept.map(|name| name.number).fold(0, u64::max))
}

/// The highest number in the folder; 0: there is none.
///
/// # Errors
/// The folder cannot be read.
pub fn highest<H: HistoryFolder>(folder: &H) -> Result<u64, Fault> {
    let names = folder.list()?;
    Ok(names.iter().map(|name| name.number).fold(0, u64::max))
}

/// Removes the second name of the present file: the rewrite that was to replace it has failed.
pub(crate) fn forget<H: HistoryFolder>(folder: &H, number: u64) {
    // A rename that was reported as failed may have happened after all. Then this is the only name.
    if folder.is_present(number) == Ok(true) {
        // If this fails, `recover` removes the name at the next start. The present file still has
        // its own name, so nothing is freed here.
        let _ = folder.remove(HistoryName::plain(number), Removal::AtOnce);
    }
}

/// Puts the folder in order after a crash or an exit, before the first rewrite. Returns the numbers
/// of the files that must be compressed, oldest first.
///
/// # Errors
/// The folder cannot be read. The history stays as it is.
pub fn recover<H: HistoryFolder>(folder: &H) -> Result<Vec<u64>, Fault> {
    let mut names = folder.list()?;
    names.sort_unstable();
    let mut uncompressed = Vec::new();
    for name in names {
        match name.form {
            // Never complete: a complete segment has its own name.
            HistoryForm::Partial => {
                let _ = folder.remove(name, Removal::Gentle);
            }
            HistoryForm::Plain => match folder.is_present(name.number) {
                // The swap never happened. Later appends go to this file, so the second name must
                // go before the next rewrite.
                Ok(true) => forget(folder, name.number),
                Ok(false) => uncompressed.push(name.number),
                Err(fault) => folder.warn(&format!("{name} cannot be examined ({fault})")),
            },
            HistoryForm::Segment | HistoryForm::Gone => {}
        }
    }
    remove_marks(folder);
    Ok(uncompressed)
}

/// Removes the marks of missing files that later files tell of by their numbers.
pub fn remove_marks<H: HistoryFolder>(folder: &H) {
    // None without a newest file.
    remove_marks_before(folder, newest(folder).unwrap_or_default());
}

/// The disk is full and a write waits for space: removes the file of the history that is missed
/// least. First what is not compressed, then the oldest; the newest may go too, and its number
/// stays taken. `None`: nothing is left. Called by the disk thread and by rewrite threads.
pub(crate) fn give_way<H: HistoryFolder>(folder: &H) -> Option<HistoryName> {
    let mut names = folder.list().ok()?;
    names.sort_unstable_by_key(|name| (name.form, name.number));
    for name in names {
        // The second name of the present file frees nothing, and the swap needs it.
        let is_free = match name.form {
            HistoryForm::Plain => folder.is_present(name.number) == Ok(false),
            HistoryForm::Partial | HistoryForm::Segment => true,
            HistoryForm::Gone => false,
        };
        if is_free && folder.remove(name, Removal::AtOnce).is_ok() {
            folder.warn(&format!(
                "the disk is full: {name} is removed to make room for new records"
            ));
            if name.form != HistoryForm::Partial {
                mark_gone(folder, name.number);
            }
            return Some(name);
        }
    }
    None
}

mod extent;
#[cfg(test)]
mod tests;

pub use extent::{Extent, find_extent};
