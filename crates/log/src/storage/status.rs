//! The state of a database's file that other threads read without its lock. A disk thread may hold
//! the lock for as long as a sync takes.
//!
//! The [`Committer`](super::Committer) publishes under the lock: `begin_swap` before a rename,
//! everything else at the end of a call. [`Routing`](super::Routing), the thread that writes a new
//! file, and readings of the history read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The published state of a database's file.
#[derive(Debug, Default)]
pub struct FileStatus {
    end: AtomicU64,
    is_quick: AtomicBool,
    is_poisoned: AtomicBool,
    /// Odd while the file is being replaced by another.
    swaps: AtomicU64,
}

impl FileStatus {
    /// Where the file ends, bytes from its start. The records before it are stored or about to be
    /// answered, and are never cut off.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Opens the file for reading and returns its end too. `open` opens the file that has its name.
    /// `None` if it is being replaced; try again.
    ///
    /// # Errors
    /// That of `open`.
    pub fn open_with_end<T, E>(
        &self,
        open: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<(T, u64)>, E> {
        let before = self.swaps.load(Ordering::SeqCst);
        let file = open()?;
        let end = self.end.load(Ordering::SeqCst);
        let is_same = before.is_multiple_of(2) && before == self.swaps.load(Ordering::SeqCst);
        Ok(is_same.then_some((file, end)))
    }

    /// The file is about to be replaced. The next [`FileStatus::set`] is about its successor.
    pub(super) fn begin_swap(&self) {
        self.swaps.fetch_or(1, Ordering::SeqCst);
    }

    /// Whether writes are fast enough to be done inline and the file need not be cut first.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Acquire)
    }

    /// Whether a sync has failed, so that nothing can be appended until a new file is in place. Set
    /// before the reply with the error leaves.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Acquire)
    }

    pub(super) fn set_poisoned(&self, is_poisoned: bool) {
        self.is_poisoned.store(is_poisoned, Ordering::Release);
    }

    pub(super) fn set(&self, end: u64, is_quick: bool) {
        self.end.store(end, Ordering::SeqCst);
        // Only the committer writes, so nothing changes between the two steps.
        let swaps = self.swaps.load(Ordering::SeqCst);
        self.swaps.store(swaps + swaps % 2, Ordering::SeqCst);
        self.is_quick.store(is_quick, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_belongs_to_the_file_that_was_opened() {
        let status = FileStatus::default();
        status.set(10, true);
        let open = |swap: &dyn Fn()| {
            let opened = status.open_with_end::<_, ()>(|| {
                swap();
                Ok("file")
            });
            opened.unwrap()
        };
        assert_eq!(open(&|| {}), Some(("file", 10)));
        status.begin_swap();
        assert_eq!(open(&|| {}), None, "the name may lead to either file");
        status.set(5, true);
        assert_eq!(open(&|| {}), Some(("file", 5)));
        let swapped = || {
            status.begin_swap();
            status.set(7, true);
        };
        assert_eq!(open(&swapped), None);
        assert_eq!(open(&|| {}), Some(("file", 7)));
        // A record is appended.
        assert_eq!(open(&|| status.set(8, true)), Some(("file", 8)));
    }
}
