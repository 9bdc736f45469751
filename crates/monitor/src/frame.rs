//! An outgoing message in pieces: a small head of its own, and a body that all clients of a group
//! share.
//!
//! Invariant: a shared body is never copied or changed. This crate builds frames, and the shards
//! write them to sockets.

use std::any::Any;
use std::sync::{Arc, Weak};

use corvid_data::Uuid;

use crate::Version;
use crate::deferred_body::DeferredBody;

/// A value that lives as long as the bytes of a text. It accounts for their memory.
pub type Guard = Arc<dyn Any + Send + Sync>;

/// A text that many messages share. Cloning it increments a reference count.
#[derive(Clone, Debug)]
pub enum SharedBody {
    /// One piece.
    Whole(Arc<[u8]>),
    /// Several pieces, to be sent one after the other: initial contents, which can be long.
    Pieces(Arc<[Arc<[u8]>]>),
    /// Several pieces, with a value that lives as long as any of them.
    Guarded(Arc<[Arc<[u8]>]>, Guard),
    /// A text that may not be written yet.
    Deferred(Arc<dyn DeferredBody>),
}

/// A body that some message may still hold.
#[derive(Clone, Debug)]
pub(crate) enum WeakBody {
    Whole(Weak<[u8]>),
    Pieces(Weak<[Arc<[u8]>]>),
    Deferred(Weak<dyn DeferredBody>),
}

impl WeakBody {
    /// The body, if some message still holds it.
    pub(crate) fn upgrade(&self) -> Option<SharedBody> {
        match self {
            WeakBody::Whole(text) => text.upgrade().map(SharedBody::Whole),
            WeakBody::Pieces(pieces) => pieces.upgrade().map(SharedBody::Pieces),
            WeakBody::Deferred(text) => text.upgrade().map(SharedBody::Deferred),
        }
    }
}

impl SharedBody {
    /// A weak reference to the body; `None` for a body with a guard.
    pub(crate) fn downgrade(&self) -> Option<WeakBody> {
        match self {
            SharedBody::Whole(text) => Some(WeakBody::Whole(Arc::downgrade(text))),
            SharedBody::Pieces(pieces) => Some(WeakBody::Pieces(Arc::downgrade(pieces))),
            SharedBody::Guarded(..) => None,
            SharedBody::Deferred(text) => Some(WeakBody::Deferred(Arc::downgrade(text))),
        }
    }

    /// The pieces, in order. Writes them first if necessary.
    #[must_use]
    pub fn pieces(&self) -> &[Arc<[u8]>] {
        match self {
            SharedBody::Whole(text) => std::slice::from_ref(text),
            SharedBody::Pieces(pieces) | SharedBody::Guarded(pieces, _) => pieces,
            SharedBody::Deferred(text) => text.pieces(),
        }
    }

    /// The value that lives as long as the pieces.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        match self {
            SharedBody::Guarded(_, guard) => Some(guard),
            _ => None,
        }
    }

    /// The text, if it is deferred.
    #[must_use]
    pub fn deferred(&self) -> Option<&Arc<dyn DeferredBody>> {
        match self {
            SharedBody::Deferred(text) => Some(text),
            _ => None,
        }
    }

    /// The body, if it is not written yet.
    #[must_use]
    pub fn unwritten(&self) -> Option<&Arc<dyn DeferredBody>> {
        match self {
            SharedBody::Deferred(text) if !text.is_written() => Some(text),
            _ => None,
        }
    }

    /// Replaces a written deferred body by its pieces. Returns its source, which may take long to
    /// free.
    pub fn detach_source(&mut self) -> Option<Arc<dyn DeferredBody>> {
        let SharedBody::Deferred(text) = self else {
            return None;
        };
        let text = text.clone();
        let pieces = text.pieces().into();
        *self = match text.guard() {
            Some(guard) => SharedBody::Guarded(pieces, guard),
            None => SharedBody::Pieces(pieces),
        };
        Some(text)
    }

    /// Whether both are the same memory.
    #[must_use]
    pub fn ptr_eq(&self, other: &SharedBody) -> bool {
        match (self, other) {
            (SharedBody::Whole(one), SharedBody::Whole(other)) => Arc::ptr_eq(one, other),
            (
                SharedBody::Pieces(one) | SharedBody::Guarded(one, _),
                SharedBody::Pieces(other) | SharedBody::Guarded(other, _),
            ) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl From<Arc<[u8]>> for SharedBody {
    fn from(text: Arc<[u8]>) -> SharedBody {
        SharedBody::Whole(text)
    }
}

/// One JSON-RPC message. Its text is `head`, `body` and `tail`, one after the other.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Everything before the body: method, monitor id, transaction id.
    pub head: Vec<u8>,
    /// Encoded once per group and version.
    pub body: SharedBody,
    /// Everything after the body, usually `]}`.
    pub tail: &'static [u8],
}

impl Frame {
    /// An `update`, `update2` or `update3` notification for the monitor `id` (canonical JSON). Only
    /// [`Version::V3`] uses `last_txn`.
    pub(crate) fn update(version: Version, id: &[u8], last_txn: Uuid, body: SharedBody) -> Frame {
        let mut head = Vec::with_capacity(80 + id.len());
        head.extend_from_slice(b"{\"id\":null,\"method\":\"");
        head.extend_from_slice(match version {
            Version::V1 => b"update".as_slice(),
            Version::V2 => b"update2",
            Version::V3 => b"update3",
        });
        head.extend_from_slice(b"\",\"params\":[");
        head.extend_from_slice(id);
        head.push(b',');
        if version == Version::V3 {
            write_uuid(&mut head, last_txn);
            head.push(b',');
        }
        Frame {
            head,
            body,
            tail: b"]}",
        }
    }

    /// The whole text, copied into one buffer.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        join(&self.head, &self.body, self.tail)
    }
}

fn join(head: &[u8], body: &SharedBody, tail: &[u8]) -> Vec<u8> {
    let body = body.pieces().iter().map(|piece| &**piece);
    let all: Vec<&[u8]> = [head].into_iter().chain(body).chain([tail]).collect();
    all.concat()
}

/// The text around the contents in the reply to a monitor request.
#[derive(Clone, Debug)]
pub struct ResultHead {
    head: Vec<u8>,
    is_since: bool,
}

impl ResultHead {
    /// The head for `monitor` and `monitor_cond`: empty.
    pub(crate) fn plain() -> ResultHead {
        ResultHead {
            head: Vec::new(),
            is_since: false,
        }
    }

    /// The head for `monitor_cond_since`: `[FOUND, LAST-TXN, BODY]`.
    pub(crate) fn since(found: bool, last_txn: Uuid) -> ResultHead {
        let mut head = Vec::with_capacity(48);
        head.extend_from_slice(if found { b"[true," } else { b"[false," });
        write_uuid(&mut head, last_txn);
        head.push(b',');
        ResultHead {
            head,
            is_since: true,
        }
    }

    /// The result with these contents.
    #[must_use]
    pub fn with(self, body: SharedBody) -> MonitorResult {
        MonitorResult { head: self, body }
    }
}

/// The result of a monitor request. Its JSON text is `head`, `body` and `tail`, one after the
/// other.
#[derive(Clone, Debug)]
pub struct MonitorResult {
    head: ResultHead,
    body: SharedBody,
}

impl MonitorResult {
    /// The reply to the request `id` (raw JSON). The body stays shared: the contents of a database
    /// may be hundreds of megabytes long, and hundreds of clients may request them at once.
    #[must_use]
    pub fn into_reply(self, id: &[u8]) -> Frame {
        let mut head = Vec::with_capacity(32 + id.len() + self.head.head.len());
        head.extend_from_slice(b"{\"id\":");
        head.extend_from_slice(id);
        head.extend_from_slice(b",\"result\":");
        head.extend_from_slice(&self.head.head);
        Frame {
            head,
            body: self.body,
            tail: if self.head.is_since {
                b"],\"error\":null}"
            } else {
                b",\"error\":null}"
            },
        }
    }

    /// Length of the body in bytes; 0 for a long body, which is accounted for elsewhere.
    #[must_use]
    pub fn whole_len(&self) -> usize {
        match &self.body {
            SharedBody::Whole(text) => text.len(),
            SharedBody::Pieces(_) | SharedBody::Guarded(..) | SharedBody::Deferred(_) => 0,
        }
    }

    /// The result alone as JSON text, copied into one buffer.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let tail: &[u8] = if self.head.is_since { b"]" } else { b"" };
        join(&self.head.head, &self.body, tail)
    }
}

fn write_uuid(out: &mut Vec<u8>, uuid: Uuid) {
    out.push(b'"');
    out.extend_from_slice(&uuid.to_text());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TXN: Uuid = Uuid([0x11; 16]);

    #[test]
    fn heads_differ_by_version_only() {
        let text = |version| {
            let frame = Frame::update(
                version,
                b"[\"m\",1]",
                TXN,
                SharedBody::Whole(Arc::from(&b"{\"T\":1}"[..])),
            );
            String::from_utf8(frame.to_bytes()).expect("text")
        };
        assert_eq!(
            text(Version::V1),
            r#"{"id":null,"method":"update","params":[["m",1],{"T":1}]}"#
        );
        assert_eq!(
            text(Version::V2),
            r#"{"id":null,"method":"update2","params":[["m",1],{"T":1}]}"#
        );
        assert_eq!(
            text(Version::V3),
            r#"{"id":null,"method":"update3","params":[["m",1],"11111111-1111-1111-1111-111111111111",{"T":1}]}"#
        );
    }

    #[test]
    fn results_become_replies_around_the_same_body() {
        let body = SharedBody::Whole(Arc::from(&b"{}"[..]));
        let plain = ResultHead::plain().with(body.clone());
        assert_eq!(plain.to_bytes(), b"{}");
        let reply = plain.into_reply(b"7");
        assert!(reply.body.ptr_eq(&body));
        assert_eq!(reply.to_bytes(), br#"{"id":7,"result":{},"error":null}"#);
        let halves = [Arc::from(&b"{"[..]), Arc::from(&b"}"[..])];
        let since = ResultHead::since(true, TXN).with(SharedBody::Pieces(Arc::from(halves)));
        assert_eq!(
            since.to_bytes(),
            br#"[true,"11111111-1111-1111-1111-111111111111",{}]"#
        );
        assert_eq!(
            since.into_reply(b"\"x\"").to_bytes(),
            br#"{"id":"x","result":[true,"11111111-1111-1111-1111-111111111111",{}],"error":null}"#
        );
    }
}
