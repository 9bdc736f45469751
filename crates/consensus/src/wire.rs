//! The text of messages between members (docs/spec/distribution.md 1.13): JSON-RPC notifications
//! with one object.
//!
//! ```text
//! {"id":null,"method":"append_entries","params":[{"cluster":C,"to":B,"from":A,"term":3,..,
//!     "entries":[{"term":3,BODY},..]}]}
//! ```
//!
//! The framing, the common members and `hello_request` are the reference's. Every other method is
//! Corvid's own, so a member of the reference and one of Corvid refuse each other at the first
//! message. The comment of `hello_request` announces the codec ([`CODEC`]).
//!
//! A long message is sent in parts: `part` messages with pieces of its text, as strings
//! ([`encode_part`]).
//!
//! The texts of log entries, transactions and results are spliced in and cut out as bytes. An
//! arriving text is validated in the same pass that reads it, and the parts cut out share its
//! memory. This module checks only form; [`crate::guard`] checks values. [`crate::peers`] calls
//! this module.

mod chunk;
mod decode;
mod encode;
mod entries;
mod method;
mod splices;
mod transactions;

#[cfg(test)]
mod generate;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use corvid_data::WireError;
use corvid_log::cluster::{Cid, Sid};
use corvid_rpc::{Message, MessageError};
use thiserror::Error;

pub use decode::decode;
pub use encode::{encode, encode_hello, encode_part, encode_shared};
pub use splices::MessageText;

use crate::message::PeerMessage;

/// The codec and its version, sent as the `comment` of `hello_request`. Members with different
/// codecs refuse each other.
pub const CODEC: &str = "corvid 1";

/// The method of a message, for the log.
pub(crate) fn method_name(message: &PeerMessage) -> &'static str {
    method::Method::of(message).name()
}

/// The common members of an outgoing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender's cluster, if known.
    pub cluster: Option<Cid>,
    /// The receiver; `hello_request` may lack it.
    pub to: Option<Sid>,
    /// The sender.
    pub from: Sid,
}

/// The receiver of an incoming message, to check that the message is addressed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// The member's id.
    pub sid: Sid,
    /// The member's cluster; `None` for a joining server, which accepts any.
    pub cid: Option<Cid>,
}

/// A decoded incoming text.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The first message of a connection.
    Hello {
        /// The sender.
        from: Sid,
        /// The sender's cluster, if it knows it.
        cluster: Option<Cid>,
        /// The address at which the sender listens.
        address: String,
        /// The sender's codec; `None` for a member of the reference.
        codec: Option<String>,
    },
    /// Any later message.
    Message {
        /// The sender.
        from: Sid,
        /// The sender's cluster, if it knows it.
        cluster: Option<Cid>,
        /// The message.
        message: PeerMessage,
    },
    /// A part of a long message.
    Part {
        /// The sender.
        from: Sid,
        /// The bytes of the part.
        bytes: Bytes,
        /// Whether the message ends with this part.
        is_last: bool,
    },
    /// An `echo` request, or the reply to one.
    Echo(Message<'a>),
}

/// Why a text is refused. Displays as the reference logs it, after the connection's name.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not a JSON-RPC message.
    #[error("{}", .0.log_text())]
    Envelope(#[from] MessageError),
    /// A message with the wrong form.
    #[error("{0}")]
    Message(#[from] WireError),
    /// A method of the reference that Corvid does not support.
    #[error("ovsdb error: unknown method {0}")]
    ReferenceMethod(&'static str),
}
