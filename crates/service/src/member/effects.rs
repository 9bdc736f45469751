//! The effects of a member's thread: connections, the threads around it, and observers. The server has them with sockets and threads, the simulator
//! with queues.
//!
//! Invariant: [`MemberPump`] calls them, in the order of its turn; none of them decides what the member does. Observers change nothing.

use bytes::Bytes;
use corvid_consensus::member::{CommandToken, Repeated, ServerRow};
use corvid_consensus::{ConnectionNumber, Member, Output, PeerMessage, Peers, PeersOutput};
use corvid_rpc::Level;

use super::MemberPump;
use super::file::FileEffects;
use crate::message::ToDatabase;

/// See the module.
pub trait MemberEffects {
    /// The disk and the threads of the file.
    type Storage: FileEffects;

    /// Passes on what has arrived on connections.
    fn receive(&mut self, now_ms: u64, peers: &mut Peers);

    /// Passes on the messages of other threads that have arrived, in order. Together, so that what they propose is stored and sent together.
    fn deliver_mail(&mut self, now_ms: u64, pump: &mut MemberPump<Self::Storage>);

    /// Begins a connection.
    fn dial(&mut self, now_ms: u64, number: ConnectionNumber, address: &str, peers: &mut Peers);

    /// Bytes for a connection, sent by [`MemberEffects::flush`].
    fn write(&mut self, number: ConnectionNumber, bytes: Bytes);

    /// Ends a connection.
    fn close(&mut self, now_ms: u64, number: ConnectionNumber);

    /// Sends as many bytes as the connections take.
    fn flush(&mut self, now_ms: u64, member: &mut Member, peers: &mut Peers);

    /// Whether there is a database; a server that has not joined its cluster yet has none.
    fn has_database(&self) -> bool;

    /// Has the database handle events; all are taken.
    fn post(&mut self, events: &mut Vec<ToDatabase>);

    /// The row of the database in `_Server` has changed.
    fn show_row(&mut self, now_ms: u64, row: ServerRow);

    /// An operator's command is done: its reply or its error.
    fn answer(&mut self, token: CommandToken, outcome: Result<String, String>);

    /// The server has left its cluster.
    fn left(&mut self);

    /// The member cannot go on.
    fn failed(&mut self, reason: String);

    /// A message for the log. Of a repeated kind, only some are to be logged.
    fn log(&mut self, now_ms: u64, level: Level, kind: Option<Repeated>, text: &str);

    /// A message between members for the log. None comes unless the caller has asked the connections for them.
    fn log_traffic(&mut self, text: &str) {
        let _ = text;
    }

    /// Whether outputs are carried out: not any more on a machine that goes down.
    fn goes_on(&mut self) -> bool {
        true
    }

    /// Whether this message is to be sent; a failure that is provoked may suppress it.
    fn may_send(&mut self, message: &PeerMessage) -> bool {
        let _ = message;
        true
    }

    /// An output of the member is about to be carried out.
    fn observe(&mut self, now_ms: u64, output: &Output) {
        let _ = (now_ms, output);
    }

    /// An output of the connections is about to be carried out.
    fn observe_peers(&mut self, now_ms: u64, output: &PeersOutput) {
        let _ = (now_ms, output);
    }

    /// The file has grown so much that the database is about to make a snapshot.
    fn observe_growth(&mut self) {}
}
