//! The text of messages between members (docs/spec/distribution.md 1.13): JSON-RPC notifications with one object.
//!
//! ```text
//! {"id":null,"method":"append_entries","params":[{"cluster":C,"to":B,"from":A,"term":3,..,"entries":[{"term":3,BODY},..]}]}
//! ```
//!
//! The framing, the common members and `hello_request` are the reference's; every other method is our own, so a member of the reference and
//! one of ours refuse each other at the first message. The comment of `hello_request` announces the codec ([`CODEC`]).
//!
//! A long message is sent in parts: `part` messages with pieces of its text, as strings ([`encode_part`]).
//!
//! The texts of log entries, transactions and results are spliced in and cut out as bytes. A text that arrives is validated in the pass that
//! reads it, and what was cut out shares its memory. Nobody trusts what was decoded here to be sensible: [`crate::guard`] checks values,
//! this module only forms. Called by [`crate::peers`].

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

/// The codec and its version, the `comment` of our `hello_request`. Members with another one refuse each other.
pub const CODEC: &str = "corvid 1";

/// The method of a message, for the log.
pub(crate) fn method_name(message: &PeerMessage) -> &'static str {
    method::Method::of(message).name()
}

/// The common members of a message that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The cluster, when it is known.
    pub cluster: Option<Cid>,
    /// The receiver; in `hello_request` only when it is known.
    pub to: Option<Sid>,
    /// The sender.
    pub from: Sid,
}

/// The receiver of a message, for the check that it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// The member.
    pub sid: Sid,
    /// Its cluster; `None`: a joining server that accepts any.
    pub cid: Option<Cid>,
}

/// A text that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The first message of a connection.
    Hello {
        /// The sender.
        from: Sid,
        /// Its cluster, when it knows it.
        cluster: Option<Cid>,
        /// The address at which it listens.
        address: String,
        /// Its codec; `None`: a member of the reference.
        codec: Option<String>,
    },
    /// Any later one.
    Message {
        /// The sender.
        from: Sid,
        /// Its cluster, when it knows it.
        cluster: Option<Cid>,
        /// The message.
        message: PeerMessage,
    },
    /// A part of a long message.
    Part {
        /// The sender.
        from: Sid,
        /// Its bytes.
        bytes: Bytes,
        /// The message ends with it.
        is_last: bool,
    },
    /// An `echo` request, or the reply to one.
    Echo(Message<'a>),
}

/// Why a text is refused. Displays as the reference logs it, behind the connection's name.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No JSON-RPC message.
    #[error("{}", .0.log_text())]
    Envelope(#[from] MessageError),
    /// A message of another form.
    #[error("{0}")]
    Message(#[from] WireError),
    /// A method of the reference that we do not have.
    #[error("ovsdb error: unknown method {0}")]
    ReferenceMethod(&'static str),
}
