//! The unhandled messages of clients in a whole group of shards: how many bytes each connection
//! holds, and which connection is evicted if all of them together hold too much.
//!
//! A table with one entry for each connection that holds enough to count. An entry belongs to an
//! account: the remote that accepted the connection, and the address of its peer. Invariant:
//! `bytes` is the sum of all entries that are not evicted. An evicted entry no longer counts,
//! because its shard is about to close the connection. It stays until the shard has done so, and is
//! not chosen twice.
//!
//! [`corvid_json::unfinished`] chooses. Strangers on one remote cannot evict clients of another,
//! such as the local socket, nor can one peer with many connections evict the others.
//!
//! `limits` owns the table, which knows no sockets.

use std::net::{IpAddr, Ipv6Addr};

use corvid_json::unfinished::{Candidate, Growth, choose};
use slab::Slab;

use super::{ConnId, ListenerId};

/// The owner of memory: a remote, and one of its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Account {
    /// The listener that accepted the connection; `None`: this process opened it.
    pub(super) remote: Option<ListenerId>,
    /// The peer's network address. All clients of a Unix socket are one peer.
    peer: Option<IpAddr>,
}

impl Account {
    /// The account of a peer with this address. An IPv6 peer owns at least the 64-bit network of
    /// its address.
    pub(super) fn new(remote: Option<ListenerId>, address: Option<IpAddr>) -> Account {
        let peer = address.map(|address| match address.to_canonical() {
            IpAddr::V6(v6) => {
                let network = u128::from(v6) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            v4 @ IpAddr::V4(_) => v4,
        });
        Account { remote, peer }
    }
}

/// The side that must act before a connection holds less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The client must act: a message is incomplete.
    Client,
    /// The server must act: the messages are complete, or the server is not reading from this
    /// client.
    Server,
}

/// The bytes that one connection holds.
#[derive(Debug)]
struct Entry {
    conn: ConnId,
    shard: usize,
    account: Account,
    bytes: usize,
    turn: Turn,
    growth: Growth,
    is_evicted: bool,
}

/// A connection that must be closed to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evicted {
    pub(super) conn: ConnId,
    /// The shard that owns the connection.
    pub(super) shard: usize,
    /// The bytes that the connection holds.
    pub(super) bytes: usize,
    /// Milliseconds since the connection last made progress.
    pub(super) idle_ms: u64,
}

/// The entries of all connections that count.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    entries: Slab<Entry>,
    bytes: usize,
}

impl Unfinished {
    /// The sum of all bytes that count.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a connection without bytes. Returns its key.
    pub(super) fn insert(
        &mut self,
        now_ms: u64,
        conn: ConnId,
        shard: usize,
        account: Account,
    ) -> usize {
        self.entries.insert(Entry {
            conn,
            shard,
            account,
            bytes: 0,
            turn: Turn::Client,
            growth: Growth::new(now_ms),
            is_evicted: false,
        })
    }

    /// Sets the bytes that a connection holds, after `arrived` more bytes of it.
    pub(super) fn set(
        &mut self,
        now_ms: u64,
        key: usize,
        bytes: usize,
        turn: Turn,
        arrived: usize,
    ) {
        let entry = &mut self.entries[key];
        entry.growth.arrive(now_ms, arrived);
        // The server's time does not count against the client.
        if entry.turn == Turn::Server && turn == Turn::Client {
            entry.growth.restart(now_ms);
        }
        entry.turn = turn;
        if !entry.is_evicted {
            assert!(
                entry.bytes <= self.bytes,
                "the bytes of a connection are among all"
            );
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, key: usize) {
        let entry = self.entries.remove(key);
        if !entry.is_evicted {
            self.bytes -= entry.bytes;
        }
    }

    /// Chooses the connections to be closed so that the others hold at most `bytes_max`.
    pub(super) fn evict(&mut self, now_ms: u64, bytes_max: usize) -> Vec<Evicted> {
        let mut evicted = Vec::new();
        // Affordable here: choosing one connection costs as much.
        let counting = self.entries.iter().filter(|(_, entry)| !entry.is_evicted);
        let sum: usize = counting.map(|(_, entry)| entry.bytes).sum();
        assert_eq!(self.bytes, sum, "the bytes are those of the connections");
        while self.bytes > bytes_max {
            let Some(key) = self.choose(now_ms) else {
                break;
            };
            let entry = &mut self.entries[key];
            entry.is_evicted = true;
            self.bytes -= entry.bytes;
            evicted.push(Evicted {
                conn: entry.conn,
                shard: entry.shard,
                bytes: entry.bytes,
                idle_ms: entry.growth.idle_ms(now_ms),
            });
        }
        evicted
    }

    /// The entry to evict next; `None`: none is left. Linear in the number of entries.
    fn choose(&self, now_ms: u64) -> Option<usize> {
        let entries = self.entries.iter();
        let counting = entries.filter(|(_, entry)| !entry.is_evicted);
        let candidates: Vec<_> = counting
            .map(|(key, entry)| Candidate {
                key,
                bytes: entry.bytes,
                idle_ms: entry.growth.idle_ms(now_ms),
                is_peers_turn: entry.turn == Turn::Client,
                group: entry.account.remote,
                owner: entry.account,
            })
            .collect();
        choose(&candidates)
    }
}

#[cfg(test)]
mod tests {
    use corvid_json::unfinished::{PROGRESS_BYTES, STALLED_MS};

    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    const LOCAL: ListenerId = ListenerId(1);
    const NETWORK: ListenerId = ListenerId(2);

    /// A table in virtual time.
    #[derive(Default)]
    struct Play {
        table: Unfinished,
        now_ms: u64,
        conns: u64,
    }

    impl Play {
        /// Adds a connection whose incomplete message has this length.
        fn begin(&mut self, account: Account, bytes: usize) -> usize {
            self.conns += 1;
            let conn = ConnId(self.conns);
            let key = self.table.insert(self.now_ms, conn, 0, account);
            self.table.set(self.now_ms, key, bytes, Turn::Client, bytes);
            key
        }

        /// Lets a message grow.
        fn grow(&mut self, key: usize, by: usize) {
            let bytes = self.table.entries[key].bytes + by;
            self.table.set(self.now_ms, key, bytes, Turn::Client, by);
        }

        fn evict(&mut self, bytes_max: usize) -> usize {
            self.table.evict(self.now_ms, bytes_max).len()
        }

        fn is_evicted(&self, key: usize) -> bool {
            self.table.entries[key].is_evicted
        }
    }

    fn network(text: &str) -> Account {
        Account::new(Some(NETWORK), Some(text.parse().expect("an address")))
    }

    fn local() -> Account {
        Account::new(Some(LOCAL), None)
    }

    #[test]
    fn messages_that_stall_make_room_for_a_longer_one_that_grows() {
        let mut play = Play::default();
        let stalled: Vec<usize> = (0..71)
            .map(|_| play.begin(network("192.0.2.1"), 650 * KIB))
            .collect();
        play.now_ms += 10 * STALLED_MS;
        // Both have the same address, so only time distinguishes them.
        let honest = play.begin(network("192.0.2.1"), 128 * KIB);
        for _ in 0..24 {
            play.now_ms += 10;
            play.grow(honest, 128 * KIB);
            play.evict(46 * MIB);
            assert!(!play.is_evicted(honest));
        }
        let lost = stalled.iter().filter(|key| play.is_evicted(**key)).count();
        assert!((1..=5).contains(&lost), "{lost}: no more than it needs");
    }

    #[test]
    fn a_remote_that_holds_less_than_another_loses_nothing_to_it() {
        let mut play = Play::default();
        let client = play.begin(local(), 3 * MIB);
        for number in 0..200 {
            play.now_ms += 1;
            // Each has its own address, and the newest progress.
            play.begin(network(&format!("192.0.2.{number}")), MIB);
            play.evict(20 * MIB);
        }
        assert!(!play.is_evicted(client));
        assert!(play.table.bytes() <= 20 * MIB);
    }

    #[test]
    fn a_peer_with_many_connections_pays_before_one_with_a_longer_message() {
        let mut play = Play::default();
        let honest = play.begin(network("192.0.2.2"), 3 * MIB);
        let many: Vec<usize> = (0..10)
            .map(|_| play.begin(network("192.0.2.1"), MIB))
            .collect();
        play.now_ms += STALLED_MS / 2;
        assert_eq!(play.evict(12 * MIB), 1);
        assert!(!play.is_evicted(honest));
        assert_eq!(many.iter().filter(|key| play.is_evicted(**key)).count(), 1);
    }

    #[test]
    fn a_message_that_waits_for_the_server_has_not_stalled() {
        let mut play = Play::default();
        let served = play.begin(network("192.0.2.1"), MIB);
        play.table.set(play.now_ms, served, MIB, Turn::Server, 0);
        let stalled = play.begin(local(), MIB);
        play.now_ms += 10 * STALLED_MS;
        assert_eq!(play.evict(MIB), 1);
        assert!(play.is_evicted(stalled) && !play.is_evicted(served));
        // From here it is the client's turn again, and its time starts.
        play.table.set(play.now_ms, served, MIB, Turn::Client, 0);
        let other = play.begin(local(), MIB);
        play.now_ms += STALLED_MS / 2;
        play.grow(other, PROGRESS_BYTES);
        play.now_ms += STALLED_MS - 1;
        assert_eq!(play.evict(MIB + PROGRESS_BYTES), 1);
        assert!(play.is_evicted(served));
    }

    #[test]
    fn whole_messages_give_way_where_there_are_no_others() {
        let mut play = Play::default();
        let keys =
            [1, 2].map(|number| play.begin(network(&format!("192.0.2.{number}")), number * MIB));
        for key in keys {
            let bytes = play.table.entries[key].bytes;
            play.table.set(play.now_ms, key, bytes, Turn::Server, 0);
        }
        assert_eq!(play.evict(2 * MIB), 1);
        assert!(play.is_evicted(keys[1]));
        assert_eq!(play.evict(0), 1);
        assert_eq!(play.evict(0), 0, "none is left");
    }

    #[test]
    fn an_evicted_connection_does_not_count_and_is_not_chosen_twice() {
        let mut play = Play::default();
        let key = play.begin(local(), 2 * MIB);
        let evicted = play.table.evict(5, MIB);
        let expected = Evicted {
            conn: ConnId(1),
            shard: 0,
            bytes: 2 * MIB,
            idle_ms: 5,
        };
        assert_eq!(evicted, [expected]);
        assert_eq!(play.table.bytes(), 0);
        play.grow(key, MIB);
        assert_eq!((play.table.bytes(), play.evict(0)), (0, 0));
        play.table.remove(key);
        assert!(play.table.entries.is_empty());
    }

    #[test]
    fn an_ipv6_peer_owns_its_network() {
        let of = |text: &str| network(text);
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
