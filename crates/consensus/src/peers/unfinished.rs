//! Unfinished messages: which connection is reset when those of all connections together are too
//! long.
//!
//! On plain TCP any process may claim to be any server, begin messages and abandon them. Invariant:
//! unfinished messages hold at most twice the longest message, and connections that are not vouched
//! for ([`super::vouching`]) take no room from those that are:
//!
//! 1. While connections without a vouch hold more than half, one of them is reset; otherwise, one
//!    of all connections.
//! 2. [`corvid_json::unfinished`] chooses among these, with servers as owners. So a leader's entry
//!    of one gigabyte is safe while it keeps arriving, however long it is.
//!
//! `receive` calls this module. The clients of a server are subject to the same rule (crate
//! `reactor`), with remotes and addresses in place of servers.

use std::collections::BTreeMap;

use corvid_json::unfinished::{Candidate, choose};

use super::ConnectionNumber;
use super::connection::Connection;

/// The connection to reset because unfinished messages hold more than `bytes_max` bytes; `None` if
/// there is room.
pub(super) fn to_close(
    now_ms: u64,
    connections: &BTreeMap<ConnectionNumber, Connection>,
    bytes_max: usize,
) -> Option<ConnectionNumber> {
    let begun = || {
        let all = connections.iter().map(|(number, it)| (*number, it));
        all.filter(|(_, connection)| connection.begun_bytes() > 0)
    };
    let total = |wanted: &dyn Fn(&Connection) -> bool| -> usize {
        let found = begun().filter(|(_, connection)| wanted(connection));
        found.map(|(_, connection)| connection.begun_bytes()).sum()
    };
    if total(&|_| true) <= bytes_max {
        return None;
    }
    let are_strangers_too_long = total(&|connection| !connection.is_vouched) > bytes_max / 2;
    let candidates: Vec<_> = begun()
        .filter(|(_, connection)| !(are_strangers_too_long && connection.is_vouched))
        .map(|(key, connection)| Candidate {
            key,
            bytes: connection.begun_bytes(),
            idle_ms: connection.growth.idle_ms(now_ms),
            is_peers_turn: true,
            group: (),
            owner: connection.peer,
        })
        .collect();
    choose(&candidates)
}

#[cfg(test)]
mod tests {
    use corvid_data::Uuid;
    use corvid_json::unfinished::STALLED_MS;
    use corvid_log::cluster::Sid;

    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    /// Connections in virtual time.
    #[derive(Default)]
    struct Play {
        connections: BTreeMap<ConnectionNumber, Connection>,
        now_ms: u64,
    }

    impl Play {
        /// Adds a connection of a server on which a message has begun, with this many bytes so far.
        fn begin(&mut self, server: u8, is_vouched: bool, bytes: usize) -> ConnectionNumber {
            let number = ConnectionNumber(self.connections.len() as u64);
            let mut connection = Connection::new("tcp:x:1", None, self.now_ms, 1000);
            connection.peer = Some(Sid(Uuid([server; 16])));
            connection.is_vouched = is_vouched;
            self.connections.insert(number, connection);
            self.grow(number, bytes);
            number
        }

        fn grow(&mut self, number: ConnectionNumber, bytes: usize) {
            let connection = self.connections.get_mut(&number).expect("it is there");
            connection.growth.arrive(self.now_ms, bytes);
            connection.inbound.add(&vec![b'x'; bytes], false);
        }

        /// Closes connections until there is room. Returns their numbers.
        fn close(&mut self, bytes_max: usize) -> Vec<ConnectionNumber> {
            let mut closed = Vec::new();
            while let Some(number) = to_close(self.now_ms, &self.connections, bytes_max) {
                self.connections.remove(&number);
                closed.push(number);
            }
            closed
        }
    }

    #[test]
    fn messages_that_stall_make_room_for_a_longer_one_that_grows() {
        let mut play = Play::default();
        for _ in 0..30 {
            play.begin(1, false, 650 * KIB);
        }
        play.now_ms += 10 * STALLED_MS;
        let honest = play.begin(1, false, MIB);
        for _ in 0..8 {
            play.now_ms += STALLED_MS / 10;
            play.grow(honest, MIB);
            assert!(!play.close(20 * MIB).contains(&honest));
        }
    }

    #[test]
    fn strangers_take_no_room_from_connections_that_are_vouched_for() {
        let mut play = Play::default();
        let member = play.begin(1, true, 6 * MIB);
        // The member's network pauses, and strangers send as fast as they can.
        play.now_ms += 10 * STALLED_MS;
        for server in 2..30 {
            play.begin(server, false, MIB);
            assert!(!play.close(12 * MIB).contains(&member));
        }
        // A stalled member does not keep out another one.
        let other = play.begin(99, true, 6 * MIB);
        let closed = play.close(12 * MIB);
        assert!(closed.contains(&member) && !closed.contains(&other));
    }

    #[test]
    fn a_server_with_many_connections_pays_before_one_with_a_longer_message() {
        let mut play = Play::default();
        let honest = play.begin(1, false, 3 * MIB);
        for _ in 0..8 {
            play.begin(2, false, MIB);
        }
        play.now_ms += STALLED_MS / 2;
        let closed = play.close(10 * MIB);
        assert!(closed.len() == 1 && closed[0] != honest);
    }
}
