//! The memory of replies in the whole process: replies that are being written, wait for the disk or are unread, and their limit.
//!
//! A reply is *charged* with its bytes; the [`Charge`] lives as long as the last of its bytes. Short replies are not counted: the number of
//! requests in flight bounds them. Two rules bound the others:
//!
//! - A reply that contains each row at most once, such as a dump or a monitor's initial contents, is made as long as others hold less than
//!   the limit. So a database can always be read, however large it is, and one such reply can exceed the limit.
//! - Repeated selections of one transaction from a table get up to half of what others leave, and a megabyte in any case. So one client
//!   cannot take everything.
//!
//! A request beyond these limits gets [`exhausted`], and its transaction commits nothing. Updates are not counted: they merge while their
//! client does not read. Shared by all databases; atomic counters, no locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use corvid_data::{Tag, WireError};
use corvid_engine::WorkBudget;

/// Shorter replies are not counted, bytes.
pub const COUNTED_BYTES: usize = 4 << 10;

/// Shorter replies are never refused, bytes.
const SHORT_BYTES: usize = 64 << 10;

/// Repeated selections of one transaction may take this much in any case, bytes.
const FREE_BYTES: usize = 1 << 20;

/// The memory of all replies.
#[derive(Debug)]
pub struct ReplyMemory {
    bytes_max: AtomicUsize,
    held: AtomicUsize,
    refused: AtomicU64,
}

impl Default for ReplyMemory {
    /// Without a limit.
    fn default() -> ReplyMemory {
        ReplyMemory::new(usize::MAX)
    }
}

impl ReplyMemory {
    /// With this limit, bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> ReplyMemory {
        ReplyMemory {
            bytes_max: AtomicUsize::new(bytes_max),
            held: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The limit, bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the limit, bytes.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Requests that were refused because memory was short.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether more than the limit is held.
    fn is_full(&self) -> bool {
        self.held() > self.bytes_max()
    }

    /// Whether there is room for a reply of this length now, bytes.
    #[must_use]
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= SHORT_BYTES || !self.is_full()
    }

    /// Counts a refused request.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Limits the selections of a transaction by the memory that is held and its limit, bytes.
pub(crate) fn limit_selections(budget: WorkBudget, bytes_max: u64, held: u64) -> WorkBudget {
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let (bytes_max, held) = (bytes(bytes_max), bytes(held));
    let budget = budget.with_repeated_bytes(share(bytes_max, held));
    let result_bytes = if held > bytes_max {
        SHORT_BYTES
    } else {
        usize::MAX
    };
    budget.with_result_bytes(result_bytes)
}

fn share(bytes_max: usize, others: usize) -> usize {
    (bytes_max.saturating_sub(others) / 2).max(FREE_BYTES)
}

/// The error of a request whose reply would take too much.
#[must_use]
pub fn exhausted() -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        "replies take too much memory together",
    )
}

/// The bytes of one reply.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<ReplyMemory>,
    bytes: AtomicUsize,
    /// The bytes of repeated selections among them.
    repeated: AtomicUsize,
    /// Its transaction is committed, so the reply is not refused. Its repeated selections are charged before they are written.
    is_reserved: bool,
}

impl Charge {
    /// Of a reply that has no bytes yet.
    #[must_use]
    pub fn new(memory: &Arc<ReplyMemory>) -> Charge {
        Charge {
            memory: memory.clone(),
            bytes: AtomicUsize::new(0),
            repeated: AtomicUsize::new(0),
            is_reserved: false,
        }
    }

    /// Of a reply that must be sent, with this many bytes of repeated selections.
    #[must_use]
    pub fn reserved(memory: &Arc<ReplyMemory>, repeated: usize) -> Charge {
        let mut charge = Charge::new(memory);
        charge.is_reserved = true;
        charge.add(repeated);
        charge
    }

    /// Charges bytes.
    pub fn add(&self, bytes: usize) {
        self.memory.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether a long reply may begin or continue. When several are too much together, one of them ends first.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        let others = self.others();
        others <= self.memory.bytes_max()
    }

    /// Charges bytes that were just written. False when the reply must not become longer.
    #[must_use]
    pub fn count_written(&self, bytes: usize, is_repeated: bool) -> bool {
        if self.is_reserved {
            if !is_repeated {
                self.add(bytes);
            }
            return true;
        }
        self.add(bytes);
        if self.bytes.load(Ordering::Relaxed) > SHORT_BYTES && !self.may_go_on() {
            return false;
        }
        if !is_repeated {
            return true;
        }
        let repeated = self.repeated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let told_once = self.bytes.load(Ordering::Relaxed) - repeated;
        repeated
            <= share(
                self.memory.bytes_max(),
                self.others().saturating_add(told_once),
            )
    }

    /// The bytes of all other replies.
    fn others(&self) -> usize {
        let own = self.bytes.load(Ordering::Relaxed);
        self.memory.held().saturating_sub(own)
    }

    /// Frees the bytes of a reply that is refused.
    pub fn give_up(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        self.memory.held.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.refuse();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.memory.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn repeated_selections_take_half_of_what_others_leave() {
        let memory = Arc::new(ReplyMemory::new(100 * MIB));
        let other = Charge::new(&memory);
        other.add(20 * MIB);
        let charge = Charge::new(&memory);
        assert!(charge.count_written(20 * MIB, false));
        for _ in 0..30 {
            assert!(charge.count_written(MIB, true));
        }
        assert!(!charge.count_written(MIB, true));
        charge.give_up();
        assert_eq!((memory.held(), memory.refused()), (20 * MIB, 1));
        drop((charge, other));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn one_reply_may_exceed_the_limit_and_the_next_is_refused() {
        let memory = Arc::new(ReplyMemory::new(MIB));
        let dump = Charge::new(&memory);
        for _ in 0..10 {
            assert!(dump.count_written(MIB, false));
        }
        let other = Charge::new(&memory);
        assert!(!other.may_go_on() && !other.count_written(MIB, false));
        let short = Charge::new(&memory);
        assert!(short.count_written(SHORT_BYTES, true));
        drop(other);
        drop(dump);
        assert!(Charge::new(&memory).count_written(MIB, false));
    }

    #[test]
    fn a_reply_to_a_commit_is_charged_in_advance_and_not_refused() {
        let memory = Arc::new(ReplyMemory::new(MIB));
        let reserved = Charge::reserved(&memory, 5 * MIB);
        assert_eq!(memory.held(), 5 * MIB);
        assert!(reserved.count_written(5 * MIB, true) && reserved.count_written(MIB, false));
        assert_eq!(memory.held(), 6 * MIB);
        drop(reserved);
        assert_eq!(memory.held(), 0);
    }
}
