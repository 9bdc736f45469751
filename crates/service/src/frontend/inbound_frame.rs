//! A JSON text from a client, and its message once parsed.
//!
//! Parsing validates the whole text, and a long text must first be joined from its pieces; both
//! cost time in proportion to its length. Parsing yields only ranges in the text and a few small
//! values, so one thread can parse a text and another handle the message. Nothing here knows
//! sessions.

use std::ops::Range;

use corvid_json::{DEPTH_MAX, Pieces, Reader};
use corvid_monitor::Version;
use corvid_rpc::MessageError;
use corvid_rpc::message::{self, Message};

use super::passed_on;
use crate::message::DatabaseMethod;
use crate::once::{Once, OnceParams};
use crate::relayed_client::RelayedClient;

/// One JSON text.
#[derive(Debug)]
pub struct InboundFrame {
    bytes: Pieces,
    parsed: Option<Parsed>,
    stamp: u64,
}

/// The message in a text.
#[derive(Debug)]
pub(super) enum Parsed {
    /// A request that a database or the shard answers.
    Request(Envelope),
    /// An `echo` request with this canonical id. The result has replaced the request in the frame.
    Echo(Box<[u8]>),
    /// `cancel` of the request with this canonical id.
    Cancel(Vec<u8>),
    /// The reply to a probe, or a notification without meaning here.
    Ignored,
    /// A reply that matches no request.
    UnexpectedReply,
    /// Not a JSON-RPC message, for this reason.
    Malformed(String),
}

/// A request without its bytes.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) method: Method,
    /// The range of the `params` array in the frame.
    pub(super) params: Range<usize>,
    /// The request id, canonical JSON.
    pub(super) id: Box<[u8]>,
    /// The identity of a transaction that must be executed once; `params` are then those of
    /// `transact`.
    pub(super) once: Option<Once>,
    /// The client on whose behalf a relay sends the request.
    pub(super) client: Option<Box<RelayedClient>>,
}

/// A request with its bytes.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) frame: Vec<u8>,
    pub(super) envelope: Envelope,
    /// The stamp of the frame that holds the message.
    pub(super) stamp: u64,
}

impl ParsedRequest {
    /// The raw text of the `params` array.
    pub(super) fn params(&self) -> &[u8] {
        &self.frame[self.envelope.params.clone()]
    }
}

/// Turns a request that must wait back into a frame.
impl From<ParsedRequest> for InboundFrame {
    fn from(request: ParsedRequest) -> InboundFrame {
        InboundFrame {
            bytes: request.frame.into(),
            parsed: Some(Parsed::Request(request.envelope)),
            stamp: request.stamp,
        }
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// A database answers it.
    Database(DatabaseMethod),
    ListDbs,
    GetServerId,
    SetDbChangeAware,
    Lock,
    Steal,
    Unlock,
    /// The history of a database: a thread of its own answers it.
    History(HistoryMethod),
    Unknown,
}

/// The methods about the history of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryMethod {
    ReadHistory,
    SelectAt,
}

impl HistoryMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            HistoryMethod::ReadHistory => "read_history",
            HistoryMethod::SelectAt => "select_at",
        }
    }
}

impl Method {
    /// The name of the method; `unknown` for an unknown one.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Database(method) => method.name(),
            Method::ListDbs => "list_dbs",
            Method::GetServerId => "get_server_id",
            Method::SetDbChangeAware => "set_db_change_aware",
            Method::Lock => "lock",
            Method::Steal => "steal",
            Method::Unlock => "unlock",
            Method::History(method) => method.name(),
            Method::Unknown => "unknown",
        }
    }
}

impl InboundFrame {
    /// A text not parsed yet.
    #[must_use]
    pub fn new(bytes: impl Into<Pieces>) -> InboundFrame {
        InboundFrame {
            bytes: bytes.into(),
            parsed: None,
            stamp: 0,
        }
    }

    /// The same text with a stamp.
    pub(super) fn stamped(self, stamp: u64) -> InboundFrame {
        InboundFrame { stamp, ..self }
    }

    /// The stamp.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// A parsed text that must wait.
    pub(super) fn again(bytes: Vec<u8>, parsed: Parsed) -> InboundFrame {
        InboundFrame {
            bytes: bytes.into(),
            parsed: Some(parsed),
            stamp: 0,
        }
    }

    /// The text's length, bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is parsed.
    pub(super) fn is_parsed(&self) -> bool {
        self.parsed.is_some()
    }

    /// Whether it is parsed and a request.
    pub(super) fn is_request(&self) -> bool {
        self.parsed.as_ref().is_some_and(Parsed::is_request)
    }

    /// Parses the text, unless it is parsed already.
    pub fn parse(&mut self) {
        if self.parsed.is_none() {
            let mut bytes = std::mem::take(&mut self.bytes).into_bytes();
            self.parsed = Some(Parsed::parse(&mut bytes));
            self.bytes = bytes.into();
        }
    }

    /// The text's bytes and its message; parses it first if needed.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, Parsed) {
        self.parse();
        let parsed = self.parsed.take().unwrap_or(Parsed::Ignored);
        (self.bytes.into_bytes(), parsed)
    }
}

impl Parsed {
    /// Whether the message is a request, which gets a reply.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Parsed::Request(_) | Parsed::Echo(_))
    }

    /// Parses a text. The reply to an `echo` replaces the text, so only one of them is in memory.
    fn parse(text: &mut Vec<u8>) -> Parsed {
        let bytes = text.as_slice();
        let message = match Message::parse(bytes) {
            // A relay wraps its clients' transactions. One that was nested as deeply as allowed is
            // deeper now, so it gets that many levels more.
            Err(MessageError::Syntax(error)) if passed_on::wraps_transaction(bytes) => {
                let depth_max = DEPTH_MAX + passed_on::ONCE_LEVELS;
                match Message::parse_nested(bytes, depth_max) {
                    Ok(Message::Request { method, params, id }) if &*method == b"transact_once" => {
                        Ok(Message::Request { method, params, id })
                    }
                    _ => Err(MessageError::Syntax(error)),
                }
            }
            message => message,
        };
        match message {
            Ok(Message::Request { method, params, id }) => {
                let id = message::canonical_id(id);
                if &*method == b"echo" {
                    let mut answer = Vec::with_capacity(params.len() + id.len() + 32);
                    message::write_reply(&mut answer, &id, &message::canonical(params));
                    *text = answer;
                    return Parsed::Echo(id.into());
                }
                // Without valid parameters, `transact_once` is an unknown method, as it is for a
                // server that does not support it.
                let once = match &*method {
                    b"transact_once" => OnceParams::parse(params),
                    _ => None,
                };
                let (method, once) = match once {
                    Some(once) => (Method::Database(DatabaseMethod::Transact), once),
                    None => (Method::of(&method), OnceParams::plain(params)),
                };
                Parsed::Request(Envelope {
                    method,
                    params: range_in(bytes, once.params),
                    id: id.into(),
                    once: once.once,
                    client: once.client,
                })
            }
            Ok(Message::Notification { method, params }) if &*method == b"cancel" => {
                only_param(params).map_or(Parsed::Ignored, Parsed::Cancel)
            }
            Ok(Message::Notification { .. }) => Parsed::Ignored,
            Ok(Message::Reply { id, .. }) if message::is_probe_id(id) => Parsed::Ignored,
            Ok(Message::Reply { .. } | Message::ErrorReply { .. }) => Parsed::UnexpectedReply,
            Err(error) => Parsed::Malformed(error.log_text()),
        }
    }
}

impl Method {
    fn of(method: &[u8]) -> Method {
        match method {
            b"list_dbs" => Method::ListDbs,
            b"get_server_id" => Method::GetServerId,
            b"set_db_change_aware" => Method::SetDbChangeAware,
            b"lock" => Method::Lock,
            b"steal" => Method::Steal,
            b"unlock" => Method::Unlock,
            b"read_history" => Method::History(HistoryMethod::ReadHistory),
            b"select_at" => Method::History(HistoryMethod::SelectAt),
            name => DatabaseMethod::of(name).map_or(Method::Unknown, Method::Database),
        }
    }

    /// The method as seen by a server without conditional monitoring.
    pub(super) fn without_conditions(self) -> Method {
        match self {
            Method::Database(DatabaseMethod::Monitor(Version::V2 | Version::V3)) => Method::Unknown,
            other => other,
        }
    }
}

/// Canonical text of the only element of an array.
pub(super) fn only_param(params: &[u8]) -> Option<Vec<u8>> {
    only_element(params).map(message::canonical)
}

/// The raw text of the only element of an array.
pub(super) fn only_element(params: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(params);
    reader.begin_array().ok()?;
    let is_there = reader.next_element().ok()?;
    let only = is_there.then(|| reader.skip().ok()).flatten()?;
    let is_only = !reader.next_element().ok()?;
    is_only.then_some(only)
}

/// The range of a part of `frame`.
fn range_in(frame: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - frame.as_ptr() as usize;
    start..start + part.len()
}
