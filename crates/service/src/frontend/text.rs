//! A text of a client, and what it says once somebody has read it.
//!
//! Reading validates the whole text, which takes as long as it is; what it yields are places in the text and a few small values, so
//! that a text can be read by one thread and acted upon by another. So does putting a long one together from the pieces in which it
//! arrived. Nothing here knows of sessions.

use std::ops::Range;

use corvid_json::{Pieces, Value};
use corvid_monitor::Version;
use corvid_rpc::message::{self, Message};

use crate::message::Method;

/// One JSON text.
#[derive(Debug)]
pub struct Text {
    bytes: Pieces,
    said: Option<Said>,
    stamp: u64,
}

/// What a text says.
#[derive(Debug)]
pub(super) enum Said {
    /// It wants an answer.
    Request(Parts),
    /// An `echo` request; this answers it.
    Echo(Vec<u8>),
    /// `cancel` of the request with this canonical id.
    Cancel(Vec<u8>),
    /// The client lives: the answer to a probe, or a notification that means nothing here.
    Nothing,
    /// A reply that nobody asked for.
    Reply,
    /// No JSON-RPC message; the words say why.
    Bad(String),
}

/// A request but for its text.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) asked: Asked,
    /// Where the `params` array stands.
    pub(super) params: Range<usize>,
    /// Canonical.
    pub(super) id: Box<[u8]>,
}

/// A request with its text.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) frame: Vec<u8>,
    pub(super) parts: Parts,
    /// That of its text.
    pub(super) stamp: u64,
}

impl Asking {
    /// The raw text of the `params` array.
    pub(super) fn params(&self) -> &[u8] {
        &self.frame[self.parts.params.clone()]
    }
}

/// For what is to be acted upon later.
impl From<Asking> for Text {
    fn from(asking: Asking) -> Text {
        Text {
            bytes: asking.frame.into(),
            said: Some(Said::Request(asking.parts)),
            stamp: asking.stamp,
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A database answers it.
    Database(Method),
    ListDbs,
    GetServerId,
    SetDbChangeAware,
    Lock,
    Steal,
    Unlock,
    Unknown,
}

impl Asked {
    /// The name of the method; `unknown` for one that there is not.
    pub(super) fn name(self) -> &'static str {
        match self {
            Asked::Database(method) => method.name(),
            Asked::ListDbs => "list_dbs",
            Asked::GetServerId => "get_server_id",
            Asked::SetDbChangeAware => "set_db_change_aware",
            Asked::Lock => "lock",
            Asked::Steal => "steal",
            Asked::Unlock => "unlock",
            Asked::Unknown => "unknown",
        }
    }
}

impl Text {
    /// A text that was not read yet.
    #[must_use]
    pub fn new(bytes: impl Into<Pieces>) -> Text {
        Text {
            bytes: bytes.into(),
            said: None,
            stamp: 0,
        }
    }

    /// The same, marked.
    pub(super) fn stamped(self, stamp: u64) -> Text {
        Text { stamp, ..self }
    }

    /// What it is marked with.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// A text that was read and is to be acted upon later.
    pub(super) fn again(bytes: Vec<u8>, said: Said) -> Text {
        Text {
            bytes: bytes.into(),
            said: Some(said),
            stamp: 0,
        }
    }

    /// Its length, bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it was read.
    pub(super) fn is_read(&self) -> bool {
        self.said.is_some()
    }

    /// Reads it, if nobody has.
    pub fn read(&mut self) {
        if self.said.is_none() {
            let bytes = std::mem::take(&mut self.bytes).into_bytes();
            self.said = Some(Said::read(&bytes));
            self.bytes = bytes.into();
        }
    }

    /// Its bytes and what they say.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, Said) {
        self.read();
        let said = self.said.take().unwrap_or(Said::Nothing);
        (self.bytes.into_bytes(), said)
    }
}

impl Said {
    fn read(bytes: &[u8]) -> Said {
        match Message::parse(bytes) {
            Ok(Message::Request { method, params, id }) => {
                let id = message::canonical_id(id);
                if &*method == b"echo" {
                    let mut answer = Vec::with_capacity(params.len() + id.len() + 32);
                    message::write_reply(&mut answer, &id, &message::canonical(params));
                    return Said::Echo(answer);
                }
                Said::Request(Parts {
                    asked: Asked::of(&method),
                    params: range_in(bytes, params),
                    id: id.into(),
                })
            }
            Ok(Message::Notification { method, params }) if &*method == b"cancel" => {
                only_param(params).map_or(Said::Nothing, Said::Cancel)
            }
            Ok(Message::Notification { .. }) => Said::Nothing,
            Ok(Message::Reply { id, .. }) if message::is_probe_id(id) => Said::Nothing,
            Ok(Message::Reply { .. } | Message::ErrorReply { .. }) => Said::Reply,
            Err(error) => Said::Bad(error.log_text()),
        }
    }
}

impl Asked {
    fn of(method: &[u8]) -> Asked {
        match method {
            b"transact" => Asked::Database(Method::Transact),
            b"convert" => Asked::Database(Method::Convert),
            b"get_schema" => Asked::Database(Method::GetSchema),
            b"monitor" => Asked::Database(Method::Monitor(Version::V1)),
            b"monitor_cond" => Asked::Database(Method::Monitor(Version::V2)),
            b"monitor_cond_since" => Asked::Database(Method::Monitor(Version::V3)),
            b"monitor_cond_change" => Asked::Database(Method::MonitorCondChange),
            b"monitor_cancel" => Asked::Database(Method::MonitorCancel),
            b"list_dbs" => Asked::ListDbs,
            b"get_server_id" => Asked::GetServerId,
            b"set_db_change_aware" => Asked::SetDbChangeAware,
            b"lock" => Asked::Lock,
            b"steal" => Asked::Steal,
            b"unlock" => Asked::Unlock,
            _ => Asked::Unknown,
        }
    }

    /// What it is to a server that does without conditional monitoring.
    pub(super) fn without_conditions(self) -> Asked {
        match self {
            Asked::Database(Method::Monitor(Version::V2 | Version::V3)) => Asked::Unknown,
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
