//! Which of a server's connections carry messages. On plain TCP any process may claim to be any
//! server.
//!
//! A connection is *vouched for* if the network leads to the place that the list of members names:
//! it was dialled at the server's address, or accepted from that address's host. Invariant: a
//! connection that is not vouched for never replaces one that is and is alive. When such a
//! connection appears, the one in use is probed at once, and closed if nothing arrives over it in
//! time. It may have died unnoticed, and the new one may belong to the true server, whose name
//! resolves to another address here.
//!
//! Messages that arrive are trusted on either kind; docs/operate/clusters.md says what that allows.

use corvid_log::cluster::Sid;
use corvid_rpc::message::PROBE;

use super::connection::Connection;
use super::{ConnectionNumber, Peers, PeersOutput};

/// Time within which the connection in use must answer when another one claims its server, ms.
pub(super) const CHALLENGE_MS: u64 = 1000;

impl Peers {
    /// A connection has been identified as a server's. Messages use it, unless the one in use is
    /// better.
    pub(super) fn identified(&mut self, now_ms: u64, number: ConnectionNumber, sid: Sid) {
        let is_vouched = self.is_vouched(number);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.is_vouched = is_vouched;
        }
        let numbers = self.by_server.entry(sid).or_default();
        numbers.push(number);
        self.order_connections(sid);
        let used = self.used(sid);
        if used == Some(number) {
            self.outputs.push_back(PeersOutput::PeerUp(sid));
        } else if let Some(used) = used {
            self.challenge(now_ms, used);
        }
    }

    /// The connection that carries messages to a server.
    pub(super) fn used(&self, sid: Sid) -> Option<ConnectionNumber> {
        self.by_server.get(&sid)?.last().copied()
    }

    /// The list of members has changed, and with it the known addresses: vouches anew.
    pub(super) fn vouch_again(&mut self) {
        let numbers: Vec<ConnectionNumber> = self.connections.keys().copied().collect();
        for number in numbers {
            let is_vouched = self.is_vouched(number);
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.is_vouched = is_vouched;
            }
        }
        let sids: Vec<Sid> = self.by_server.keys().copied().collect();
        for sid in sids {
            let before = self.used(sid);
            self.order_connections(sid);
            if self.used(sid) != before {
                self.outputs.push_back(PeersOutput::PeerUp(sid));
            }
        }
    }

    /// Sorts a server's connections: those that are vouched for come last, each kind in the order
    /// of identification.
    fn order_connections(&mut self, sid: Sid) {
        if let Some(numbers) = self.by_server.get_mut(&sid) {
            let connections = &self.connections;
            numbers.sort_by_key(|number| {
                let connection = connections.get(number);
                let is_vouched = connection.is_some_and(|connection| connection.is_vouched);
                (
                    is_vouched,
                    connection.map_or(0, |connection| connection.identified),
                )
            });
        }
    }

    fn is_vouched(&self, number: ConnectionNumber) -> bool {
        let Some(connection) = self.connections.get(&number) else {
            return false;
        };
        let Some(sid) = connection.peer else {
            return false;
        };
        let mut listed = self
            .remotes
            .iter()
            .filter(|(_, remote)| remote.sid == Some(sid));
        match &connection.dialled {
            Some(dialled) => listed.any(|(address, _)| address == dialled),
            None => listed.any(|(address, _)| {
                let host = host(address);
                host.is_some() && host == self::host(&connection.name)
            }),
        }
    }

    /// Probes a connection because another one claims the same server.
    fn challenge(&mut self, now_ms: u64, number: ConnectionNumber) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.answer_until_ms.is_none() {
            connection.answer_until_ms = Some(now_ms + CHALLENGE_MS);
            self.write(number, PROBE.into());
        }
    }

    /// The server's connections that may have carried a malformed message: those that are not
    /// vouched for, if there are any.
    pub(super) fn suspects(&self, sid: Sid) -> Vec<ConnectionNumber> {
        let all = self.by_server.get(&sid).cloned().unwrap_or_default();
        let is_vouched = |number: &ConnectionNumber| {
            let connection = self.connections.get(number);
            connection.is_some_and(|connection| connection.is_vouched)
        };
        let strange = all.iter().copied().filter(|number| !is_vouched(number));
        let strange: Vec<ConnectionNumber> = strange.collect();
        if strange.is_empty() { all } else { strange }
    }
}

/// The accepted connection to close when there are too many: the oldest one whose server is unknown
/// or, failing that, not vouched for.
pub(super) fn least<'a>(
    accepted: impl Iterator<Item = (ConnectionNumber, &'a Connection)>,
) -> Option<ConnectionNumber> {
    let rank = |connection: &Connection| (connection.peer.is_some(), connection.is_vouched);
    let ranked = accepted.map(|(number, connection)| (rank(connection), number));
    ranked.min().map(|(_, number)| number)
}

/// The host part of an address, or of a connection's name, as written: `tcp:10.0.0.2:6644`.
fn host(address: &str) -> Option<&str> {
    let rest = address
        .strip_prefix("tcp:")
        .or_else(|| address.strip_prefix("ssl:"))?;
    rest.rsplit_once(':').map(|(host, _)| host)
}
