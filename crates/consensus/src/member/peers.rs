//! The other members and the servers that have sent messages: their connections, and what their
//! messages reveal.
//!
//! Invariant: a server that is in no list gets an entry only while fewer than `PEERS_MAX` are
//! known, and loses it with its connection.

use std::collections::BTreeMap;

use corvid_log::cluster::Sid;
use corvid_rpc::Level;

use crate::guard::SERVERS_MAX;

/// Maximum number of known peers; further servers are ignored unless a list contains them.
const PEERS_MAX: usize = 2 * SERVERS_MAX;

/// A peer, as far as this member knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    /// Whether messages can be sent to it.
    pub(crate) is_up: bool,
    /// When `is_up` last changed.
    pub(crate) changed_ms: Option<u64>,
    /// When its last message arrived.
    pub(crate) last_message_ms: Option<u64>,
    /// Whether its file is damaged: it has lost entries that the algorithm believes it to have.
    /// Reset once it acknowledges an entry.
    pub(crate) is_damaged: bool,
    /// Its vote in the present term, if known.
    pub(crate) voted_for: Option<Sid>,
}

/// All known peers.
#[derive(Debug, Default)]
pub(crate) struct PeerTable {
    peers: BTreeMap<Sid, Peer>,
    /// Whether a server was refused because there are too many; one log line is enough.
    are_refused: bool,
}

impl PeerTable {
    /// The entry of a peer, created if necessary.
    ///
    /// # Errors
    /// Too many peers are known, and this one is in no list. The text is for the log, the first
    /// time only.
    pub(crate) fn admit(
        &mut self,
        sid: Sid,
        is_member: bool,
    ) -> Result<&mut Peer, Option<(Level, String)>> {
        let is_refused =
            self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&sid) && !is_member;
        if !is_refused {
            return Ok(self.peers.entry(sid).or_default());
        }
        if std::mem::replace(&mut self.are_refused, true) {
            return Err(None);
        }
        let text = format!(
            "ignoring server {sid} and other servers that are not members: {PEERS_MAX} servers have sent \
             messages. Restrict access to this port to members"
        );
        Err(Some((Level::Warn, text)))
    }

    /// The state of a peer; the default if it has no entry.
    pub(crate) fn get(&self, sid: Sid) -> Peer {
        self.peers.get(&sid).copied().unwrap_or_default()
    }

    /// Records a vote in this member's term.
    pub(crate) fn note_vote(&mut self, sid: Sid, voted_for: Sid) {
        self.peers.entry(sid).or_default().voted_for = Some(voted_for);
    }

    /// Forgets all votes, because a new term has begun.
    pub(crate) fn forget_votes(&mut self) {
        for peer in self.peers.values_mut() {
            peer.voted_for = None;
        }
    }

    pub(crate) fn set_damaged(&mut self, sid: Sid, is_damaged: bool) {
        self.peers.entry(sid).or_default().is_damaged = is_damaged;
    }

    /// The connection to a peer is down. Returns whether the peer is forgotten.
    pub(crate) fn disconnect(&mut self, sid: Sid, now_ms: u64, is_member: bool) -> bool {
        let Some(peer) = self.peers.get_mut(&sid) else {
            return false;
        };
        // A failed attempt to connect is not a change.
        if std::mem::replace(&mut peer.is_up, false) {
            peer.changed_ms = Some(now_ms);
        }
        !is_member && self.peers.remove(&sid).is_some()
    }

    /// Peers to which messages can be sent.
    pub(crate) fn connected(&self) -> impl Iterator<Item = Sid> {
        let up = self.peers.iter().filter(|(_, peer)| peer.is_up);
        up.map(|(sid, _)| *sid)
    }

    /// Whether messages can be sent to this peer.
    pub(crate) fn is_up(&self, sid: Sid) -> bool {
        self.get(sid).is_up
    }

    /// Whether this peer takes part: messages can be sent to it, and its file is intact.
    pub(crate) fn takes_part(&self, sid: Sid) -> bool {
        let peer = self.get(sid);
        peer.is_up && !peer.is_damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;

    fn sid(number: usize) -> Sid {
        Sid(Uuid((number as u128 + 1).to_be_bytes()))
    }

    #[test]
    fn strangers_beyond_the_limit_are_refused_with_one_line_and_members_are_not() {
        let mut table = PeerTable::default();
        for number in 0..PEERS_MAX {
            let peer = table.admit(sid(number), false);
            peer.expect("a place").is_up = true;
        }
        let first = table.admit(sid(PEERS_MAX), false).expect_err("it is full");
        assert!(first.is_some_and(|(level, _)| level == Level::Warn));
        let next = table.admit(sid(PEERS_MAX), false).expect_err("it is full");
        assert!(next.is_none(), "one line is enough");
        assert!(table.admit(sid(PEERS_MAX), true).is_ok(), "a member");
        assert!(table.disconnect(sid(0), 5, false), "it is forgotten");
        assert!(!table.disconnect(sid(PEERS_MAX), 5, true), "a member stays");
    }

    #[test]
    fn a_change_of_the_connection_is_dated_once() {
        let mut table = PeerTable::default();
        let peer = table.admit(sid(1), true).expect("a place");
        (peer.is_up, peer.changed_ms) = (true, Some(3));
        table.disconnect(sid(1), 5, true);
        table.disconnect(sid(1), 9, true);
        assert_eq!(table.get(sid(1)).changed_ms, Some(5));
        assert!(table.connected().next().is_none());
    }
}
