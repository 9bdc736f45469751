//! The limits that members impose on each other's messages, and the checks that a sender makes
//! before it queues a transaction.
//!
//! Invariant: the receiver ([`crate::guard`], [`crate::peers`]) and the sender use the same
//! constants and functions. So a peer never refuses a message that a member sends. A refused
//! message would reset the connection, and the sender would send it again over the next one,
//! forever.
//!
//! ```text
//! client's message        <= --max-message-size (1 GiB by default), 1000 levels
//! its params, forwarded   <= TRANSACTION_BYTES_MAX, checked by the forwarding member
//! its result, returned    <= RESULT_BYTES_MAX, checked by the leader before the commit
//! its entry               <= ENTRY_BYTES_MAX, checked by the leader before the commit;
//!                            less with a short election timer (transaction_entry_bytes_max)
//! a message with any one  <= MESSAGE_BYTES_MAX, 1008 levels (corvid_json::PEER_DEPTH_MAX)
//! ```

use thiserror::Error;

use crate::database::Forward;

/// Maximum bytes of an address, a name, a comment, a role or a lock.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Maximum bytes of the `params` of a forwarded transaction.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// Bytes of a long message that its receiver is sure to read and hash per millisecond, even on a
/// slow, busy machine. The receiver cannot answer during that time and must not be taken for dead.
pub const DIGESTED_BYTES_PER_MS: u64 = 64 * 1024;

/// Maximum bytes of the result of a forwarded transaction.
pub const RESULT_BYTES_MAX: usize = 1 << 30;

/// Maximum bytes of the data of an entry. A transaction of ten megabytes may make an entry of any
/// length, because one value can go into many rows.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// Maximum bytes of a transaction's entry per millisecond of the election timer. While members
/// write or read a longer entry, they hear their leader too late and elect another one, which
/// executes the transaction again. Measured with three members on two busy cores and a timer of one
/// second: 120 MB are committed without an election, 250 MB after five elections, and 800 MB never.
const ENTRY_BYTES_PER_MS: u64 = 256 << 10;

/// Maximum bytes of the data of a transaction's entry under this election timer. A conversion's
/// entry may be longer: an operator asks for it, and can raise the timer first.
#[must_use]
pub fn transaction_entry_bytes_max(election_timer_ms: u64) -> usize {
    let bytes = ENTRY_BYTES_PER_MS.saturating_mul(election_timer_ms);
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .min(ENTRY_BYTES_MAX)
}

/// Maximum bytes of a message without its largest part: the envelope, the smaller parts gathered
/// until their limit is reached, and the names of one client in their longest spelling.
const ROOM_BYTES: usize = 64 << 20;

/// Maximum bytes of one message.
pub const MESSAGE_BYTES_MAX: usize = (1 << 30) + ROOM_BYTES;

const _: () = assert!(TRANSACTION_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);
const _: () = assert!(RESULT_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);
const _: () = assert!(ENTRY_BYTES_MAX + ROOM_BYTES <= MESSAGE_BYTES_MAX);

/// Maximum JSON bytes for one byte of text: `\u0001`.
const ESCAPED_BYTES: usize = 6;

/// Approximate bytes of a forwarded transaction without its texts.
pub(crate) const FORWARD_OVERHEAD_BYTES: usize = 160;

/// Why a transaction cannot be forwarded. Displays as the `details` of the client's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unforwardable {
    /// The `params` are too long.
    #[error(
        "transaction is longer than {TRANSACTION_BYTES_MAX} bytes, the most that a member forwards"
    )]
    TooLong,
    /// A name of the client is too long; the value says which one.
    #[error("{0} is longer than {TEXT_BYTES_MAX} bytes, the most that a member forwards")]
    LongName(&'static str),
    /// A name of the client has a byte that JSON cannot carry; the value says which name.
    #[error("{0} contains a NUL, which a member cannot forward")]
    Nul(&'static str),
}

impl Unforwardable {
    /// The reason as a fixed text, without figures.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unforwardable::TooLong => "a transaction that is too long",
            Unforwardable::LongName(_) => "a text that is too long",
            Unforwardable::Nul(_) => "a text with a NUL",
        }
    }
}

/// Checks that the other members would accept this transaction.
///
/// # Errors
/// They would refuse a message with it.
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

/// Maximum bytes that a transaction adds to a message.
pub(crate) fn forward_bytes(forward: &Forward) -> usize {
    let names = names(forward).map(|(_, name)| ESCAPED_BYTES * name.len() + 3);
    FORWARD_OVERHEAD_BYTES + forward.params.len() + names.sum::<usize>()
}

/// All names that travel with a transaction, each with a description.
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
    let description = client.description.iter();
    let description = description.map(|text| ("the description of the client", &**text));
    let further = further.map(|(role, _)| ("the client's role", &**role));
    locks
        .chain(client_id)
        .chain(further)
        .chain([("the client's role", &*client.role)])
        .chain(description)
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
