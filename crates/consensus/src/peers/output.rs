//! The outputs of [`super::Peers`], and the numbers of connections.

use bytes::Bytes;
use corvid_log::cluster::{Cid, Sid};
use corvid_rpc::Level;

use crate::message::PeerMessage;

/// Identifies a connection of this member, dialled or accepted. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(pub u64);

/// An output, to be executed in the order of [`super::Peers::next_output`].
#[derive(Debug, PartialEq, Eq)]
pub enum PeersOutput {
    /// Connect to an address (`tcp:HOST:PORT`, `ssl:HOST:PORT` or `unix:PATH`, as in the list of
    /// servers), then report [`super::Peers::connected`] or [`super::Peers::closed`].
    Dial {
        /// The number of the future connection.
        number: ConnectionNumber,
        /// The address to dial.
        address: String,
    },
    /// Send bytes, in order. The caller keeps those that the socket does not accept, and reports
    /// [`super::Peers::written`] as they leave. Their amount is bounded here.
    Write {
        /// An open connection.
        number: ConnectionNumber,
        /// The bytes.
        bytes: Bytes,
    },
    /// Close a connection, or abandon the attempt, and drop its unsent bytes. Report nothing more
    /// about it.
    Close {
        /// The connection.
        number: ConnectionNumber,
    },
    /// Messages can be sent to this server from now on.
    PeerUp(Sid),
    /// Messages to this server are lost from now on; earlier ones may have been.
    PeerDown(Sid),
    /// No connection to this server exists, and its address refuses new ones: its process is gone.
    PeerRefused(Sid),
    /// A message from an identified server, for [`crate::guard`] and the member.
    Message {
        /// The server.
        from: Sid,
        /// The message.
        message: PeerMessage,
    },
    /// A joining server has learned its cluster's id from a peer. Reported once.
    LearnedCluster(Cid),
    /// A message that was sent or received, rendered for the log; only after
    /// [`super::Peers::show_messages`]. Long ones are cut.
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
