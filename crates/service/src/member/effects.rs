//! The effects of a member's thread: connections, other threads and observers. The server
//! implements them with sockets and threads, the simulator with queues.
//!
//! Invariant: [`MemberPump`] calls them in the order of its turn; none of them decides what the
//! member does. Observers change nothing.

use bytes::Bytes;
use corvid_consensus::member::{CommandToken, Repeated, ServerRow};
use corvid_consensus::{ConnectionNumber, Member, Output, PeerMessage, Peers, PeersOutput};
use corvid_rpc::Level;

use super::MemberPump;
use super::file::FileEffects;
use crate::message::ToDatabase;

/// The effects that [`MemberPump`] carries outputs out with.
pub trait MemberEffects {
    /// The disk and the threads of the file.
    type Storage: FileEffects;

    /// Hands over what has arrived on connections.
    fn receive(&mut self, now_ms: u64, peers: &mut Peers);

    /// Delivers the messages of other threads that have arrived, in order and all at once, so their
    /// proposals are stored and sent together.
    fn deliver_mail(&mut self, now_ms: u64, pump: &mut MemberPump<Self::Storage>);

    /// Starts a connection to this address.
    fn dial(&mut self, now_ms: u64, number: ConnectionNumber, address: &str, peers: &mut Peers);

    /// Queues bytes for a connection; [`MemberEffects::flush`] sends them.
    fn write(&mut self, number: ConnectionNumber, bytes: Bytes);

    /// Closes a connection.
    fn close(&mut self, now_ms: u64, number: ConnectionNumber);

    /// Sends as many bytes as the connections accept.
    fn flush(&mut self, now_ms: u64, member: &mut Member, peers: &mut Peers);

    /// Whether there is a database; a server that has not joined its cluster yet has none.
    fn has_database(&self) -> bool;

    /// Posts these events to the database and leaves the list empty.
    fn post(&mut self, events: &mut Vec<ToDatabase>);

    /// Shows this row of the database in `_Server`.
    fn show_row(&mut self, now_ms: u64, row: ServerRow);

    /// Answers an operator's command with its reply or its error.
    fn answer(&mut self, token: CommandToken, outcome: Result<String, String>);

    /// The server has left its cluster.
    fn left(&mut self);

    /// The member has failed and cannot continue, for this reason.
    fn failed(&mut self, reason: String);

    /// Logs a message. Messages of a repeated `kind` are rate-limited.
    fn log(&mut self, now_ms: u64, level: Level, kind: Option<Repeated>, text: &str);

    /// Logs a message between members. Not called unless the caller has made the connections report
    /// traffic.
    fn log_traffic(&mut self, text: &str) {
        let _ = text;
    }

    /// Whether outputs are still carried out; false on a machine that is going down.
    fn goes_on(&mut self) -> bool {
        true
    }

    /// Whether to send this message; failure injection may suppress it.
    fn may_send(&mut self, message: &PeerMessage) -> bool {
        let _ = message;
        true
    }

    /// This output of the member is about to be carried out.
    fn observe(&mut self, now_ms: u64, output: &Output) {
        let _ = (now_ms, output);
    }

    /// This output of the connections is about to be carried out.
    fn observe_peers(&mut self, now_ms: u64, output: &PeersOutput) {
        let _ = (now_ms, output);
    }

    /// The file has grown so much that the database is about to make a snapshot.
    fn observe_growth(&mut self) {}
}
