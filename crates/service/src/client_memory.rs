//! The account of what clients make the process hold after their requests have been read: replies,
//! and what stays until a session ends.
//!
//! The other half of the account, texts of unhandled requests, is kept where they are read
//! (`corvid_reactor::shard::Limits`). Everything that a client without any rights can cause belongs
//! to one of the kinds. Each kind has its own share of the bound (`--max-client-memory`), so one
//! kind cannot starve another. A guard charges bytes when it is made, and releases them when it is
//! dropped together with the memory it stands for.
//!
//! | Kind | Guard | Lives as long as | Beyond the limit |
//! |---|---|---|---|
//! | replies: results, contents, `echo`, errors | [`Charge`] | last unread byte | error (below) |
//! | monitor conditions, blocked transactions | [`Retained`] | monitors, transaction | error |
//!
//! The error is `resources exhausted`. A session whose reply has no room even for that is closed.
//!
//! Replies up to [`COUNTED_BYTES`] are not counted: the number of requests in flight bounds them.
//! Three rules bound the others:
//!
//! - A reply that contains each row at most once, such as a dump or a monitor's initial contents,
//!   is made as long as others hold less than the limit. So a database can always be read, however
//!   large it is, and one such reply can exceed the limit.
//! - Repeated selections of one transaction from a table get up to half of what others leave, and
//!   at least a megabyte. So one client cannot take everything.
//! - A reply that repeats its request (`echo`, an error that quotes it) must fit into what others
//!   leave.
//!
//! A request beyond these limits gets [`exhausted`], and its transaction commits nothing. Updates
//! are not counted: they merge while their client does not read. All databases share the account,
//! which is made of atomic counters without locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use corvid_data::{Tag, WireError};
use corvid_engine::WorkBudget;
use corvid_monitor::SharedBody;

/// Shorter replies are not counted, bytes.
pub const COUNTED_BYTES: usize = 4 << 10;

/// Replies up to this length are never refused, bytes.
pub(crate) const SHORT_BYTES: usize = 64 << 10;

/// Longer replies leave in pieces of this length, bytes; each piece is freed as it is sent.
const WHOLE_BYTES: usize = 256 << 10;

/// A session that keeps requests of at most this length is never refused, bytes: a client without
/// conditions can always monitor.
pub(crate) const SMALL_KEPT_BYTES: usize = 16 << 10;

/// Repeated selections of one transaction may always take this much, bytes.
const FREE_BYTES: usize = 1 << 20;

/// The memory that clients make this process hold, and its limits.
#[derive(Debug)]
pub struct ClientMemory {
    /// Limit of replies.
    bytes_max: AtomicUsize,
    held: AtomicUsize,
    /// Limit of conditions and blocked transactions.
    kept_bytes_max: AtomicUsize,
    kept: AtomicUsize,
    refused: AtomicU64,
}

impl Default for ClientMemory {
    /// No limits.
    fn default() -> ClientMemory {
        ClientMemory::new(usize::MAX)
    }
}

impl ClientMemory {
    /// Limits replies to this many bytes; what sessions keep is not limited.
    #[must_use]
    pub fn new(bytes_max: usize) -> ClientMemory {
        ClientMemory {
            bytes_max: AtomicUsize::new(bytes_max),
            held: AtomicUsize::new(0),
            kept_bytes_max: AtomicUsize::new(usize::MAX),
            kept: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The limit of replies, bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the limit of replies, bytes.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Bytes of replies held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The limit of conditions and blocked transactions, bytes.
    #[must_use]
    pub fn kept_bytes_max(&self) -> usize {
        self.kept_bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the limit of conditions and blocked transactions, bytes.
    pub fn set_kept_bytes_max(&self, bytes_max: usize) {
        self.kept_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Bytes of conditions and blocked transactions kept now.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Number of requests refused because memory was exhausted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether replies exceed their limit.
    fn is_full(&self) -> bool {
        self.held() > self.bytes_max()
    }

    /// Whether there is room now for a reply of this many bytes.
    #[must_use]
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= SHORT_BYTES || !self.is_full()
    }

    /// Whether there is room for a reply of this many bytes that repeats its request.
    #[must_use]
    pub fn has_room_to_repeat(&self, bytes: usize) -> bool {
        bytes <= SHORT_BYTES || self.held().saturating_add(bytes) <= self.bytes_max()
    }

    /// Whether there is room to keep this many bytes until a session ends.
    #[must_use]
    pub fn has_room_to_keep(&self, bytes: usize) -> bool {
        self.kept().saturating_add(bytes) <= self.kept_bytes_max()
    }

    /// Counts a refused request.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Limits the selections of a transaction, given the limit of replies and the bytes held.
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

/// The error of a request whose reply would exceed the limit.
#[must_use]
pub fn exhausted() -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        "unread replies of all clients take too much memory",
    )
}

/// The error of a request that would exceed the limit of what sessions keep.
#[must_use]
pub(crate) fn exhausted_kept() -> WireError {
    WireError::new(
        Tag::ResourcesExhausted,
        "monitor conditions and waiting transactions of all clients take too much memory",
    )
}

/// A text in pieces, charged until they are read.
pub(crate) fn charged_body(memory: &Arc<ClientMemory>, text: &[u8]) -> SharedBody {
    let pieces: Vec<Arc<[u8]>> = text.chunks(WHOLE_BYTES).map(Arc::from).collect();
    let charge = Charge::new(memory);
    charge.add(text.len());
    SharedBody::Guarded(pieces.into(), Arc::new(charge))
}

/// Bytes that are kept until a session closes, or ends its monitor or transaction.
#[derive(Debug)]
pub(crate) struct Retained {
    memory: Arc<ClientMemory>,
    bytes: usize,
}

impl Retained {
    /// Charges this many bytes. The caller has checked that there is room.
    pub(crate) fn new(memory: &Arc<ClientMemory>, bytes: usize) -> Retained {
        memory.kept.fetch_add(bytes, Ordering::Relaxed);
        Retained {
            memory: memory.clone(),
            bytes,
        }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        release(&self.memory.kept, self.bytes);
    }
}

/// Subtracts bytes from an account.
fn release(account: &AtomicUsize, bytes: usize) {
    let before = account.fetch_sub(bytes, Ordering::Relaxed);
    // An account that wraps around would look full forever.
    assert!(bytes <= before, "bytes are released once");
}

/// The bytes of one reply, charged to the client memory.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<ClientMemory>,
    bytes: AtomicUsize,
    /// How many of these bytes belong to repeated selections.
    repeated: AtomicUsize,
    /// The reply's transaction is committed, so the reply cannot be refused. Its repeated
    /// selections are charged before they are written.
    is_reserved: bool,
}

impl Charge {
    /// The charge of a reply without bytes so far.
    #[must_use]
    pub fn new(memory: &Arc<ClientMemory>) -> Charge {
        Charge {
            memory: memory.clone(),
            bytes: AtomicUsize::new(0),
            repeated: AtomicUsize::new(0),
            is_reserved: false,
        }
    }

    /// The charge of a reply that must be sent, with this many bytes of repeated selections.
    #[must_use]
    pub fn reserved(memory: &Arc<ClientMemory>, repeated: usize) -> Charge {
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

    /// Whether a long reply may start or continue. If several replies exceed the limit together,
    /// some of them must end first.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        let others = self.others();
        others <= self.memory.bytes_max()
    }

    /// Charges bytes that were just written. Returns false if the reply must not grow further.
    #[must_use]
    pub fn count_written(&self, bytes: usize, is_repeated: bool) -> bool {
        // The transaction is committed, so its reply is written in any case. Its repeated
        // selections were charged in advance.
        if self.is_reserved {
            if !is_repeated {
                self.add(bytes);
            }
            return true;
        }
        // Charged before the check below: of two replies that are written at the same time, each
        // sees the bytes of the other.
        self.add(bytes);
        if self.bytes.load(Ordering::Relaxed) > SHORT_BYTES && !self.may_go_on() {
            return false;
        }
        if !is_repeated {
            return true;
        }
        let repeated = self.repeated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // The rest of this reply counts as if it were another's: only repetition is limited to half
        // of the room.
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

    /// Releases the bytes of a reply that is refused.
    pub fn give_up(&self) {
        // 0 is left, so dropping the charge does not release the bytes a second time.
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        release(&self.memory.held, bytes);
        self.memory.refuse();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        release(&self.memory.held, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Piece, message_piece};

    const MIB: usize = 1 << 20;

    #[test]
    fn repeated_selections_take_half_of_what_others_leave() {
        let memory = Arc::new(ClientMemory::new(100 * MIB));
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
        let memory = Arc::new(ClientMemory::new(MIB));
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
        let memory = Arc::new(ClientMemory::new(MIB));
        let reserved = Charge::reserved(&memory, 5 * MIB);
        assert_eq!(memory.held(), 5 * MIB);
        assert!(reserved.count_written(5 * MIB, true) && reserved.count_written(MIB, false));
        assert_eq!(memory.held(), 6 * MIB);
        drop(reserved);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_repeated_request_must_fit_into_what_others_leave() {
        let memory = Arc::new(ClientMemory::new(MIB));
        assert!(memory.has_room_to_repeat(MIB) && !memory.has_room_to_repeat(MIB + 1));
        let piece = message_piece(&memory, vec![b'x'; MIB]);
        assert_eq!((piece.len(), memory.held()), (MIB, MIB));
        assert!(memory.has_room_to_repeat(SHORT_BYTES));
        assert!(!memory.has_room_to_repeat(SHORT_BYTES + 1));
        drop(piece);
        assert_eq!(memory.held(), 0);
        assert!(matches!(
            message_piece(&memory, vec![b'x'; COUNTED_BYTES]),
            Piece::Message(_)
        ));
    }

    #[test]
    fn what_is_kept_has_a_limit_of_its_own() {
        let memory = Arc::new(ClientMemory::new(MIB));
        memory.set_kept_bytes_max(10 * MIB);
        let kept = Retained::new(&memory, 8 * MIB);
        assert!(memory.has_room_to_keep(2 * MIB) && !memory.has_room_to_keep(3 * MIB));
        assert_eq!((memory.kept(), memory.held()), (8 * MIB, 0));
        drop(kept);
        assert_eq!(memory.kept(), 0);
    }
}
