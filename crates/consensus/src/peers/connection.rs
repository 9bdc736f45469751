//! One established connection.

use corvid_log::cluster::Sid;
use corvid_rpc::Session;

use super::assembler::Assembler;
use super::backlog::Backlog;

/// A peer that has not said who it is within this time is disconnected, ms.
pub const IDENTIFICATION_MS: u64 = 10_000;

/// An established connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// For the log.
    pub(super) name: String,
    /// The address that was dialled; `None`: accepted.
    pub(super) dialled: Option<String>,
    /// When it was established.
    pub(super) since_ms: u64,
    /// The server at the other end, once it has said so.
    pub(super) peer: Option<Sid>,
    /// The address that the server has told.
    pub(super) address: Option<String>,
    pub(super) assembler: Assembler,
    /// The probe.
    pub(super) session: Session,
    pub(super) backlog: Backlog,
}

impl Connection {
    pub(super) fn new(
        name: &str,
        dialled: Option<String>,
        now_ms: u64,
        probe_ms: u64,
    ) -> Connection {
        Connection {
            name: name.to_owned(),
            dialled,
            since_ms: now_ms,
            peer: None,
            address: None,
            assembler: Assembler::default(),
            session: Session::new(now_ms, probe_ms),
            backlog: Backlog::default(),
        }
    }

    /// When the peer must have identified itself.
    pub(super) fn identification_ms(&self) -> Option<u64> {
        let is_unknown = self.peer.is_none();
        is_unknown.then(|| self.since_ms.saturating_add(IDENTIFICATION_MS))
    }
}
