//! UUIDs for inserted rows, until the server assigns others.
//!
//! These UUIDs only have to differ from each other and from those of the replica's rows: the server
//! sees them only as names within one transaction. So they come from the client's seed, which keeps
//! runs with one seed identical.

use corvid_data::Uuid;
use corvid_session::Prng;

/// A sequence of UUIDs.
#[derive(Debug)]
pub(crate) struct ProvisionalUuids(Prng);

impl ProvisionalUuids {
    pub(crate) fn new(seed: u64) -> ProvisionalUuids {
        ProvisionalUuids(Prng::new(seed))
    }

    pub(crate) fn next(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        for half in bytes.chunks_exact_mut(8) {
            half.copy_from_slice(&self.0.word().to_be_bytes());
        }
        Uuid::from_random(bytes)
    }
}
