//! Requests: those of the user, and the one way in which all of the session's are sent.
//!
//! Invariant: each request has an id of its own, and each id that is not answered has a purpose.

use corvid_json::write;
use corvid_rpc::message;

use super::{Client, Purpose};
use crate::event::RequestId;

/// Requests of the user.
impl Client {
    /// Sends a request of any method; `params` is a JSON array. Returns `None`, and sends nothing,
    /// unless the contents are current. The answer, an [`Event::Reply`], follows the request's
    /// updates.
    pub fn send_request(&mut self, method: &str, params: &[u8]) -> Option<RequestId> {
        self.is_monitoring()
            .then(|| RequestId(self.request(method, params, Purpose::User)))
    }

    /// Sends a transaction; `operations` is a comma-separated list of JSON values. Returns `None`,
    /// and sends nothing, unless the contents are current. With
    /// [`Client::set_transaction_ids`], a server that supports it executes the transaction once,
    /// and its reply arrives although the connection was lost meanwhile.
    pub fn transact(&mut self, operations: &[u8]) -> Option<RequestId> {
        if !self.is_monitoring() {
            return None;
        }
        let mut params = Vec::with_capacity(operations.len() + self.options.database.len() + 8);
        params.push(b'[');
        write::string(&mut params, self.options.database.as_bytes());
        if !operations.is_empty() {
            params.push(b',');
            params.extend_from_slice(operations);
        }
        params.push(b']');
        Some(self.send_transaction(params))
    }

    /// Asks the server to cancel a request if it is still blocked; its answer arrives anyway.
    pub fn cancel_request(&mut self, id: RequestId) {
        self.cancel_transaction(id.0);
        if self.pending.get(&id.0) == Some(&Purpose::User) {
            let mut text = Vec::new();
            message::write_notification(&mut text, "cancel", format!("[{}]", id.0).as_bytes());
            self.send(text);
        }
    }

    /// Drops the answer to a request, which is executed nevertheless. A transaction that waits to
    /// be sent again is not sent.
    pub fn forget_request(&mut self, id: RequestId) {
        self.forget_transaction(id.0);
        if self.pending.get(&id.0) == Some(&Purpose::User) {
            self.pending.remove(&id.0);
        }
    }
}

/// Requests of the session.
impl Client {
    /// Sends a request; returns its id.
    pub(super) fn request(&mut self, method: &str, params: &[u8], purpose: Purpose) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_request_as(id, method, params, purpose);
        id
    }

    /// Sends a request under this id.
    pub(super) fn send_request_as(
        &mut self,
        id: u64,
        method: &str,
        params: &[u8],
        purpose: Purpose,
    ) {
        let mut text = Vec::with_capacity(params.len() + method.len() + 48);
        message::write_request(&mut text, method, params, id.to_string().as_bytes());
        let before = self.pending.insert(id, purpose);
        assert!(before.is_none(), "an answer belongs to one request");
        self.send(text);
    }
}
