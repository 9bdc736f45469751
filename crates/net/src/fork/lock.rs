//! A mutex that reports to a forked child that nobody will release it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::forks;

/// A mutex. If a thread of the parent held it at the fork, no thread of the child will ever release
/// the child's copy, and locking it there is an error.
#[derive(Debug)]
pub struct Lock<T> {
    value: Mutex<T>,
    /// The number of forks at the time the mutex was last known to be free or held by a thread of
    /// this process.
    forks: AtomicU32,
    /// Held while a forked child checks the mutex for the first time.
    first_look: Mutex<()>,
}

/// Why a lock cannot be acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A thread panicked while it held the lock.
    #[error("an earlier call failed in the middle of its work")]
    Poisoned,
    /// A thread of the parent held the lock when this process was forked.
    #[error("a thread of the parent was using it when this process was forked")]
    LeftLocked,
}

impl<T> Lock<T> {
    /// A mutex around a value.
    pub fn new(value: T) -> Lock<T> {
        Lock {
            value: Mutex::new(value),
            forks: AtomicU32::new(forks()),
            first_look: Mutex::new(()),
        }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// The lock is poisoned or was left locked; see [`LockError`].
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, LockError> {
        self.check()?;
        self.value.lock().map_err(|_| LockError::Poisoned)
    }

    /// Acquires the lock if it is free; else returns `None`.
    ///
    /// # Errors
    /// The lock is poisoned or was left locked; see [`LockError`].
    pub fn try_lock(&self) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        self.check()?;
        match self.value.try_lock() {
            Ok(value) => Ok(Some(value)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Poisoned(_)) => Err(LockError::Poisoned),
        }
    }

    /// Acquires the lock even after a panic, to drop the value.
    ///
    /// # Errors
    /// The lock was left locked: [`LockError::LeftLocked`].
    pub fn lock_to_drop(&self) -> Result<MutexGuard<'_, T>, LockError> {
        self.check()?;
        Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Detects, at the first call in a forked child, whether the lock was left locked.
    fn check(&self) -> Result<(), LockError> {
        if self.forks.load(Ordering::Acquire) == forks() {
            return Ok(());
        }
        let first_look = self.first_look.lock();
        let _first_look = first_look.unwrap_or_else(PoisonError::into_inner);
        // Another thread of the child may have found the mutex free in the meantime, and may hold
        // it now.
        if self.forks.load(Ordering::Acquire) == forks() {
            return Ok(());
        }
        if matches!(self.value.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(LockError::LeftLocked);
        }
        self.forks.store(forks(), Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_a_child;
    use super::*;

    #[test]
    fn a_child_is_told_of_a_lock_that_no_thread_will_release() {
        let lock = Lock::new(1);
        let held = lock.lock().unwrap();
        let seen = in_a_child(|| i32::from(lock.try_lock().err() == Some(LockError::LeftLocked)));
        assert_eq!(seen, 1);
        drop(held);
        // The second call sees a lock that its own process holds, as usual.
        let seen = in_a_child(|| match lock.lock() {
            Ok(held) => *held + i32::from(matches!(lock.try_lock(), Ok(None))),
            Err(_) => 0,
        });
        assert_eq!(seen, 2);
    }
}
