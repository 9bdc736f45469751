//! Slices of long work: the amount done before other work gets its turn, and work that resumes
//! where its last slice ended.
//!
//! Work is counted in steps of about 20 ns, as [`crate::WorkBudget`] counts them: visiting a row is
//! one step, and so is writing sixteen bytes. The writers of long results here, and of contents and
//! updates in `monitor`, use slices. The caller decides which work gets the next slice.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes that are written in one step.
const BYTES: usize = 16;

/// Steps that may be done before the work pauses. Indivisible work, for example a row, may exceed
/// them.
#[derive(Debug)]
pub struct Slice {
    left: u64,
}

impl Slice {
    /// A slice of this many steps.
    #[must_use]
    pub fn new(steps: u64) -> Slice {
        Slice { left: steps }
    }

    /// A slice without a limit.
    #[must_use]
    pub fn unlimited() -> Slice {
        Slice::new(u64::MAX)
    }

    /// Spends this many steps and bytes written.
    pub fn spend(&mut self, steps: u64, bytes: usize) {
        self.left = self.left.saturating_sub(steps + (bytes / BYTES) as u64);
    }

    /// Whether the work must pause.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Work with an outcome, done in slices by any thread. A thread that needs the outcome at once does
/// the rest of the work.
///
/// Invariant: `outcome` is set only by the holder of `work`, with the last slice, and `work` is
/// dropped then.
pub struct Resumable<W, T> {
    work: Mutex<Option<W>>,
    outcome: OnceLock<T>,
}

impl<W, T> Resumable<W, T> {
    /// Work that has not begun.
    pub fn new(work: W) -> Resumable<W, T> {
        Resumable {
            work: Mutex::new(Some(work)),
            outcome: OnceLock::new(),
        }
    }

    /// The outcome, if the work is finished.
    pub fn get(&self) -> Option<&T> {
        self.outcome.get()
    }

    /// Does one slice. `advance` returns the outcome with the last slice. Returns whether the work
    /// is finished. Blocks while another thread does a slice.
    pub fn advance(&self, advance: impl FnOnce(&mut W) -> Option<T>) -> bool {
        if self.outcome.get().is_some() {
            return true;
        }
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = work.as_mut().and_then(advance) {
            *work = None;
            let is_first = self.outcome.set(outcome).is_ok();
            assert!(is_first, "work is finished once");
        }
        work.is_none()
    }

    /// Does the rest of the work: calls `advance` until it returns the outcome.
    pub fn finish(&self, mut advance: impl FnMut(&mut W) -> Option<T>) -> &T {
        loop {
            if let Some(outcome) = self.outcome.get() {
                return outcome;
            }
            self.advance(&mut advance);
        }
    }
}

impl<W, T: Debug> Debug for Resumable<W, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumable")
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(to: u32) -> impl FnMut(&mut u32) -> Option<u32> {
        move |at| {
            *at += 1;
            (*at == to).then_some(*at)
        }
    }

    #[test]
    fn work_resumes_where_the_last_slice_ended() {
        let work = Resumable::new(0);
        for _ in 0..3 {
            assert!(!work.advance(count(5)));
        }
        assert_eq!((work.get(), work.finish(count(5))), (None, &5));
        assert!(work.advance(|_| unreachable!()));
    }

    #[test]
    fn threads_that_need_an_outcome_share_the_work() {
        let work = Resumable::new(0);
        let slices = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| while !work.advance(count(slices)) {});
                scope.spawn(|| assert_eq!(work.finish(count(slices)), &slices));
            }
        });
    }
}
