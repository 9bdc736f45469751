//! An outgoing message in pieces: a small head of its own and a body shared by all clients of a group.

use std::sync::Arc;

/// One JSON-RPC message; its text is `head`, `body`, `tail` one after the other.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Up to the body: method, monitor id, transaction id.
    pub head: Vec<u8>,
    /// Encoded once per group and version.
    pub body: Arc<[u8]>,
    /// After the body, usually `]}`.
    pub tail: &'static [u8],
}
