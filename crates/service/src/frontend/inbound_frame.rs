//! A text of a client, and what it says once somebody has read it.
//!
//! Reading validates the whole text, which takes as long as it is; what it yields are places in the text and a few small values, so
//! that a text can be read by one thread and acted upon by another. So does putting a long one together from the pieces in which it
//! arrived. Nothing here knows of sessions.

use std::ops::Range;

use corvid_json::{Pieces, Value};
use corvid_monitor::Version;
use corvid_rpc::message::{self, Message};

use crate::message::DatabaseMethod;

/// One JSON text.
#[derive(Debug)]
pub struct InboundFrame {
    bytes: Pieces,
    parsed: Option<Parsed>,
    stamp: u64,
}

/// What a text says.
#[derive(Debug)]
pub(super) enum Parsed {
    /// It wants an answer.
    Request(Envelope),
    /// An `echo` request; this answers it.
    Echo(Vec<u8>),
    /// `cancel` of the request with this canonical id.
    Cancel(Vec<u8>),
    /// The client lives: the answer to a probe, or a notification that means nothing here.
    Ignored,
    /// A reply that nobody asked for.
    UnexpectedReply,
    /// No JSON-RPC message; the words say why.
    Malformed(String),
}

/// A request but for its text.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) method: Method,
    /// Where the `params` array stands.
    pub(super) params: Range<usize>,
    /// Canonical.
    pub(super) id: Box<[u8]>,
}

/// A request with its text.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) frame: Vec<u8>,
    pub(super) envelope: Envelope,
    /// That of its text.
    pub(super) stamp: u64,
}

impl ParsedRequest {
    /// The raw text of the `params` array.
    pub(super) fn params(&self) -> &[u8] {
        &self.frame[self.envelope.params.clone()]
    }
}

/// For what is to be acted upon later.
impl From<ParsedRequest> for InboundFrame {
    fn from(request: ParsedRequest) -> InboundFrame {
        InboundFrame {
            bytes: request.frame.into(),
            parsed: Some(Parsed::Request(request.envelope)),
            stamp: request.stamp,
        }
    }
}

/// What a request asks for.
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
    Unknown,
}

impl Method {
    /// The name of the method; `unknown` for one that there is not.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Database(method) => method.name(),
            Method::ListDbs => "list_dbs",
            Method::GetServerId => "get_server_id",
            Method::SetDbChangeAware => "set_db_change_aware",
            Method::Lock => "lock",
            Method::Steal => "steal",
            Method::Unlock => "unlock",
            Method::Unknown => "unknown",
        }
    }
}

impl InboundFrame {
    /// A text that was not read yet.
    #[must_use]
    pub fn new(bytes: impl Into<Pieces>) -> InboundFrame {
        InboundFrame {
            bytes: bytes.into(),
            parsed: None,
            stamp: 0,
        }
    }

    /// The same, marked.
    pub(super) fn stamped(self, stamp: u64) -> InboundFrame {
        InboundFrame { stamp, ..self }
    }

    /// What it is marked with.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// A text that was read and is to be acted upon later.
    pub(super) fn again(bytes: Vec<u8>, parsed: Parsed) -> InboundFrame {
        InboundFrame {
            bytes: bytes.into(),
            parsed: Some(parsed),
            stamp: 0,
        }
    }

    /// Its length, bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it was read.
    pub(super) fn is_read(&self) -> bool {
        self.parsed.is_some()
    }

    /// Reads it, if nobody has.
    pub fn parse(&mut self) {
        if self.parsed.is_none() {
            let bytes = std::mem::take(&mut self.bytes).into_bytes();
            self.parsed = Some(Parsed::parse(&bytes));
            self.bytes = bytes.into();
        }
    }

    /// Its bytes and what they say.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, Parsed) {
        self.parse();
        let parsed = self.parsed.take().unwrap_or(Parsed::Ignored);
        (self.bytes.into_bytes(), parsed)
    }
}

impl Parsed {
    fn parse(bytes: &[u8]) -> Parsed {
        match Message::parse(bytes) {
            Ok(Message::Request { method, params, id }) => {
                let id = message::canonical_id(id);
                if &*method == b"echo" {
                    let mut answer = Vec::with_capacity(params.len() + id.len() + 32);
                    message::write_reply(&mut answer, &id, &message::canonical(params));
                    return Parsed::Echo(answer);
                }
                Parsed::Request(Envelope {
                    method: Method::of(&method),
                    params: range_in(bytes, params),
                    id: id.into(),
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
            b"transact" => Method::Database(DatabaseMethod::Transact),
            b"convert" => Method::Database(DatabaseMethod::Convert),
            b"get_schema" => Method::Database(DatabaseMethod::GetSchema),
            b"monitor" => Method::Database(DatabaseMethod::Monitor(Version::V1)),
            b"monitor_cond" => Method::Database(DatabaseMethod::Monitor(Version::V2)),
            b"monitor_cond_since" => Method::Database(DatabaseMethod::Monitor(Version::V3)),
            b"monitor_cond_change" => Method::Database(DatabaseMethod::MonitorCondChange),
            b"monitor_cancel" => Method::Database(DatabaseMethod::MonitorCancel),
            b"list_dbs" => Method::ListDbs,
            b"get_server_id" => Method::GetServerId,
            b"set_db_change_aware" => Method::SetDbChangeAware,
            b"lock" => Method::Lock,
            b"steal" => Method::Steal,
            b"unlock" => Method::Unlock,
            _ => Method::Unknown,
        }
    }

    /// What it is to a server that does without conditional monitoring.
    pub(super) fn without_conditions(self) -> Method {
        match self {
            Method::Database(DatabaseMethod::Monitor(Version::V2 | Version::V3)) => Method::Unknown,
            other => other,
        }
    }
}

/// Canonical text of the only element of an array.
pub(super) fn only_param(params: &[u8]) -> Option<Vec<u8>> {
    match Value::parse(params).ok()?.as_array()? {
        [only] => Some(only.to_bytes()),
        _ => None,
    }
}

/// Where a slice of `frame` stands in it.
fn range_in(frame: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - frame.as_ptr() as usize;
    start..start + part.len()
}
