//! The effects that [`super::Peers`] asks for, and the numbers of connections.

use bytes::Bytes;
use corvid_log::cluster::{Cid, Sid};
use corvid_rpc::Level;

use crate::message::PeerMessage;

/// A connection of this member, dialled or accepted. Numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(pub u64);

/// An effect, to be carried out in the order of [`super::Peers::next_output`].
#[derive(Debug, PartialEq, Eq)]
pub enum PeersOutput {
    /// Connect to an address (`tcp:HOST:PORT`, `ssl:HOST:PORT`, `unix:PATH` as the list of servers has it), then report
    /// [`super::Peers::connected`] or [`super::Peers::closed`].
    Dial {
        /// The number of the connection to be.
        number: ConnectionNumber,
        /// Where to.
        address: String,
    },
    /// Send bytes, in order. The caller keeps those that the socket does not take, and reports [`super::Peers::written`] as they leave; their
    /// amount is bounded here.
    Write {
        /// An open connection.
        number: ConnectionNumber,
        /// The bytes.
        bytes: Bytes,
    },
    /// Close a connection, or give up the attempt, and forget its unsent bytes. Nothing is to be reported about it any more.
    Close {
        /// The connection.
        number: ConnectionNumber,
    },
    /// Messages can be sent to this server from now on.
    PeerUp(Sid),
    /// Messages to this server are lost from now on; some that were sent before may have been.
    PeerDown(Sid),
    /// There is no connection with this server, and its address refuses new ones: its process is gone.
    PeerRefused(Sid),
    /// A message of an identified server, for [`crate::guard`] and the member.
    Message {
        /// The server.
        from: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// A joining server has learned its cluster from a peer; never repeated.
    LearnedCluster(Cid),
    /// A message that was sent or has arrived, in the form of the log; only after [`super::Peers::show_messages`]. A long one is cut.
    Traffic {
        /// The text, with the connection's name.
        text: String,
    },
    /// A line for the log.
    Log {
        /// Its level.
        level: Level,
        /// The text.
        text: String,
    },
}
