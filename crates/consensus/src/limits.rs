//! The limits of what members take from each other, and the checks that a sender makes before it queues a transaction.
//!
//! Invariant: the receiver ([`crate::guard`], [`crate::peers`]) and the sender check with these
//! constants and functions. So a message that a member sends is never one that its peer refuses:
//! a refused message resets the connection, and the sender would send it again over the next one.
//!
//! ```text
//! client's message        <= --max-message (1 GiB by default), 1000 levels
//! its params, forwarded   <= TRANSACTION_BYTES_MAX, checked by the member that forwards
//! its result, returned    <= RESULT_BYTES_MAX, checked by the leader before the commit
//! its entry               <= ENTRY_BYTES_MAX, checked by the leader before the commit;
//!                            less with a short election timer (transaction_entry_bytes_max)
//! a message with any one  <= MESSAGE_BYTES_MAX, 1008 levels (corvid_json::PEER_DEPTH_MAX)
//! ```

use thiserror::Error;

use crate::database::Forward;

/// Bytes of an address, a name, a comment, a role or a lock, at most.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Bytes of the `params` of a forwarded transaction, at most.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// Bytes of a long message that its receiver reads and hashes in a millisecond, at least: so slow
/// is a slow machine that is busy. The receiver answers nothing meanwhile, and is not taken for dead.
pub const DIGESTED_BYTES_PER_MS: u64 = 64 * 1024;

/// Bytes of the result of a forwarded transaction, at most.
pub const RESULT_BYTES_MAX: usize = 1 << 30;

/// Bytes of the data of an entry, at most. A transaction of ten megabytes may make an entry of
/// any length, because one value goes into many rows.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// Bytes of a transaction's entry for each millisecond of the election timer, at most. Members that
/// write or read a longer entry hear their leader too late. They elect another one, which executes
/// the transaction again. Measured with three members on two busy cores and a timer of one second:
/// 120 MB are committed without an election, 250 MB after five, and 800 MB never.
const ENTRY_BYTES_PER_MS: u64 = 256 << 10;

/// Bytes of the data of a transaction's entry, at most, with this election timer. The entry of a
/// conversion may be longer: an operator asks for it, and can raise the timer first.
#[must_use]
pub fn transaction_entry_bytes_max(election_timer_ms: u64) -> usize {
    let bytes = ENTRY_BYTES_PER_MS.saturating_mul(election_timer_ms);
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .min(ENTRY_BYTES_MAX)
}

/// Bytes of a message without its largest part, at most: the envelope, the smaller parts that are
/// gathered until their limit is reached, and the names of one client in their longest spelling.
const ROOM_BYTES: usize = 64 << 20;

/// Bytes of one message, at most.
pub const MESSAGE_BYTES_MAX: usize = (1 << 30) + ROOM_BYTES;

const _: () = assert!(TRANSACTION_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);
const _: () = assert!(RESULT_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);
const _: () = assert!(ENTRY_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);

/// A byte of a text takes so many in JSON, at most: `\u0001`.
const ESCAPED_BYTES: usize = 6;

/// Bytes of a forwarded transaction without its texts, about.
pub(crate) const FORWARD_OVERHEAD_BYTES: usize = 160;

/// Why a transaction cannot be forwarded. Displays as the `details` of the client's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unforwardable {
    /// Its `params` are too long.
    #[error(
        "transaction is longer than {TRANSACTION_BYTES_MAX} bytes, the most that a member forwards"
    )]
    TooLong,
    /// A name of its client is too long.
    #[error("{0} is longer than {TEXT_BYTES_MAX} bytes, the most that a member forwards")]
    LongName(&'static str),
    /// A name of its client has a byte that JSON cannot carry.
    #[error("{0} contains a NUL, which a member cannot forward")]
    Nul(&'static str),
}

impl Unforwardable {
    /// The reason without figures.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unforwardable::TooLong => "a transaction that is too long",
            Unforwardable::LongName(_) => "a text that is too long",
            Unforwardable::Nul(_) => "a text with a NUL",
        }
    }
}

/// Whether members take this transaction.
///
/// # Errors
/// They would refuse its message.
pub fn check_forward(forward: &Forward) -> Result<(), Unforwardable> {
    if forward.params.len() > TRANSACTION_BYTES_MAX {
        return Err(Unforwardable::TooLong);
    }
    for (what, name) in names(forward) {
        if name.len() > TEXT_BYTES_MAX {
            return Err(Unforwardable::LongName(what));
        }
        if name.contains('\0') {
            return Err(Unforwardable::Nul(what));
        }
    }
    Ok(())
}

/// Bytes that a transaction adds to a message, at most.
pub(crate) fn forward_bytes(forward: &Forward) -> usize {
    let names = names(forward).map(|(_, name)| ESCAPED_BYTES * name.len() + 3);
    FORWARD_OVERHEAD_BYTES + forward.params.len() + names.sum::<usize>()
}

/// The names that go with a transaction.
fn names(forward: &Forward) -> impl Iterator<Item = (&'static str, &str)> {
    let client = &forward.client;
    let locks = client
        .locks
        .iter()
        .map(|lock| ("the name of a lock", &**lock));
    let further = client.further.iter();
    let client_ids = client.client_id.iter();
    let client_ids = client_ids.chain(further.clone().filter_map(|(_, name)| name.as_ref()));
    let client_id = client_ids.map(|name| ("the name in the client's certificate", &**name));
    let further = further.map(|(role, _)| ("the client's role", &**role));
    locks
        .chain(client_id)
        .chain(further)
        .chain([("the client's role", &*client.role)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{ClientIdentity, ForwardMethod};
    use corvid_data::Uuid;
    use corvid_log::cluster::Eid;

    fn forward(client: ClientIdentity) -> Forward {
        Forward {
            id: Eid(Uuid([1; 16])),
            method: ForwardMethod::Transact,
            params: "[\"D\"]".into(),
            client,
            elapsed_ms: 0,
            once: None,
        }
    }

    #[test]
    fn names_are_forwarded_up_to_their_limit() {
        let of = |role: String| {
            forward(ClientIdentity {
                role,
                ..ClientIdentity::default()
            })
        };
        assert_eq!(check_forward(&of("r".repeat(TEXT_BYTES_MAX))), Ok(()));
        let long = check_forward(&of("r".repeat(TEXT_BYTES_MAX + 1)));
        assert_eq!(long, Err(Unforwardable::LongName("the client's role")));
        let named = forward(ClientIdentity {
            client_id: Some("a\0b".to_owned()),
            ..ClientIdentity::default()
        });
        let error = check_forward(&named).expect_err("NUL").to_string();
        assert!(error.starts_with("the name in the client's certificate contains a NUL"));
    }
}
