//! `transact_once`, as clients and relays use it: how a server announces it and other extensions,
//! the ids of transactions, and the parameters (docs/reference/wire-extensions.md).
//!
//! Nothing here decides whether a transaction was executed: the server does (`corvid-service`).

use corvid_data::Uuid;
use corvid_json::splitmix;

/// The bits of a server id by which a server announces that it supports `transact_once`.
const MARK: [(usize, u8); 3] = [
    // Version 8 (RFC 9562): the server chooses the meaning of the other bits.
    (6, 0x8c),
    // The variant of all UUIDs, and bits that distinguish ours from other UUIDs of version 8.
    (8, 0xb7),
    (9, 0x1d),
];
/// The byte that tells how much the server supports; each level includes the ones below.
const LEVEL_AT: usize = 7;
/// The server supports `transact_once` with three parameters.
const LEVEL_ONCE: u8 = 1;
/// The server also checks the roles of a relay's client, the fourth parameter.
const LEVEL_CLIENT: u8 = 2;

/// `id` with the bits that announce what this server supports.
#[must_use]
pub fn announce(mut id: Uuid) -> Uuid {
    for (at, byte) in MARK {
        id.0[at] = byte;
    }
    id.0[LEVEL_AT] = LEVEL_CLIENT;
    id
}

/// Whether the server with this id supports `transact_once`.
#[must_use]
pub fn is_announced(id: Uuid) -> bool {
    let is_marked = MARK.iter().all(|(at, byte)| id.0[*at] == *byte);
    is_marked && (LEVEL_ONCE..=LEVEL_CLIENT).contains(&id.0[LEVEL_AT])
}

/// Whether the server with this id checks the roles of a relay's client.
#[must_use]
pub fn judges_clients(id: Uuid) -> bool {
    is_announced(id) && id.0[LEVEL_AT] >= LEVEL_CLIENT
}

/// The bytes by which a server announces that it supports `read_history` and `select_at`. They are
/// not a higher level: clients that do not know a level use no extension at all.
const HISTORY: [(usize, u8); 2] = [(10, 0x68), (11, 0x01)];

/// `id`, which announces `transact_once`, with the bytes that announce `read_history` too.
#[must_use]
pub fn announce_history(mut id: Uuid) -> Uuid {
    for (at, byte) in HISTORY {
        id.0[at] = byte;
    }
    id
}

/// Whether the server with this id supports `read_history` and `select_at`. One id in 65,536 of our
/// older servers says so by chance: such a server answers `unknown method`.
#[must_use]
pub fn reads_history(id: Uuid) -> bool {
    is_announced(id) && HISTORY.iter().all(|(at, byte)| id.0[*at] == *byte)
}

/// The bytes of a commit's id that distinguish executions of one transaction; byte 6 has the UUID's
/// version. They are zero in a client's id.
pub const EXECUTION_AT: [usize; 3] = [4, 5, 7];

/// Makes the id of a transaction from random bytes.
#[must_use]
pub fn transaction_id(mut random: Uuid) -> Uuid {
    EXECUTION_AT.into_iter().for_each(|at| random.0[at] = 0);
    random
}

/// The ids of one client's transactions.
///
/// Invariant: no id repeats. Two clients need different keys: the server would take a transaction
/// of one for a copy of the other's.
#[derive(Debug, Clone)]
pub struct TransactionIds {
    halves: [u64; 2],
}

impl TransactionIds {
    /// The ids that follow from this key: random bytes that no other client has, nor another
    /// process with a copy of this client.
    #[must_use]
    pub fn new(key: u128) -> TransactionIds {
        TransactionIds {
            halves: [(key >> 64) as u64, key as u64],
        }
    }

    /// The next id; never zero, which stands for no id.
    pub fn draw(&mut self) -> Uuid {
        loop {
            // Two counters, each mixed by a bijection. The id keeps the second half whole, so it
            // repeats no earlier than after 2^64 draws.
            self.halves = self.halves.map(|half| half.wrapping_add(splitmix::STEP));
            let mut id = [0; 16];
            let (parts, _) = id.as_chunks_mut();
            for (part, half) in parts.iter_mut().zip(self.halves) {
                *part = splitmix::mix(half).to_be_bytes();
            }
            let id = transaction_id(Uuid(id));
            if id != Uuid::ZERO {
                return id;
            }
        }
    }
}

/// The `params` of `transact_once`. `params`: those of `transact`. `after`: `None` if the
/// transaction is sent for the first time. `client`: the client for which a relay sends it, as
/// JSON; it may come without an id.
#[must_use]
pub fn params(
    id: Option<Uuid>,
    after: Option<Uuid>,
    params: &[u8],
    client: Option<&[u8]>,
) -> Vec<u8> {
    let text = |id: Option<Uuid>| id.map_or("null".to_owned(), |id| format!("\"{id}\""));
    let head = format!("[{},{},", text(id), text(after.filter(|_| id.is_some())));
    let mut out = [head.as_bytes(), params].concat();
    if let Some(client) = client {
        out.push(b',');
        out.extend_from_slice(client);
    }
    out.push(b']');
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_announce_and_random_ids_do_not() {
        let random = Uuid::parse(b"d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10").expect("a UUID");
        let announced = announce(random);
        assert!(is_announced(announced) && !is_announced(random));
        assert_eq!(
            announced.to_string(),
            "d7a3bf0c-5e0c-8c02-b71d-0d8ad7a2ce10"
        );
        let earlier = Uuid::parse(b"d7a3bf0c-5e0c-8c01-b71d-0d8ad7a2ce10").expect("a UUID");
        assert!(is_announced(earlier) && !judges_clients(earlier) && judges_clients(announced));
        let later = Uuid::parse(b"d7a3bf0c-5e0c-8c03-b71d-0d8ad7a2ce10").expect("a UUID");
        assert!(!is_announced(later), "an unknown level");
    }

    #[test]
    fn history_is_announced_without_a_level_that_older_clients_do_not_know() {
        let random = Uuid::parse(b"d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10").expect("a UUID");
        let id = announce_history(announce(random));
        assert_eq!(id.to_string(), "d7a3bf0c-5e0c-8c02-b71d-6801d7a2ce10");
        assert!(reads_history(id) && is_announced(id) && judges_clients(id));
        assert!(!reads_history(announce(random)) && !reads_history(announce_history(random)));
    }

    #[test]
    fn ids_of_transactions_differ_and_have_the_form_that_servers_accept() {
        let mut seen = BTreeSet::new();
        for key in [0, 1, u128::MAX] {
            let mut ids = TransactionIds::new(key);
            for _ in 0..1000 {
                let id = ids.draw();
                assert!(id == transaction_id(id) && id != Uuid::ZERO);
                assert!(seen.insert(id), "{id}");
            }
        }
    }
}
