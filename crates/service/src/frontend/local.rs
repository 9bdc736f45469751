//! Requests that are answered on the shard: list_dbs, locks, awareness, echo, get_server_id, and unknown methods.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use bstr::ByteSlice;
use corvid_data::WireError;
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::session::PendingNotice;
use super::{Frontend, Step, object, shard_of};
use crate::locks::{Locks, Mode, Notice, Refused};
use crate::message::{Handled, Piece, ToDatabase, ToShard};

impl Frontend {
    /// Answers a request that no database is concerned with, once the session's earlier ones are handled.
    pub(super) fn answer_here(
        &mut self,
        id: SessionId,
        method: &[u8],
        frame: Vec<u8>,
        params: Range<usize>,
        request_id: &[u8],
    ) -> Step {
        let Some(session) = self.sessions.get(&id) else {
            return Step::Done;
        };
        if !session.under_way.is_empty() {
            return Step::Wait(frame);
        }
        let params = &frame[params];
        if method == b"echo" {
            self.send_result(id, request_id, &message::canonical(params));
            return Step::Done;
        }
        if self.fence(id) {
            return Step::Wait(frame);
        }
        match self.local_result(id, method, params) {
            Ok(result) => self.send_result(id, request_id, &result),
            Err(error) => self.send_error(id, request_id, &error),
        }
        Step::Done
    }

    /// The result, or the error as JSON.
    fn local_result(
        &mut self,
        id: SessionId,
        method: &[u8],
        params: &[u8],
    ) -> Result<Vec<u8>, Vec<u8>> {
        match method {
            b"list_dbs" => {
                Ok(Value::Array(self.directory.names().map(Value::string).collect()).to_bytes())
            }
            b"get_server_id" => Ok(format!("\"{}\"", self.server_id).into_bytes()),
            b"set_db_change_aware" => self.set_aware(id, params).map_err(|error| object(&error)),
            b"lock" => self.lock(id, "lock", Mode::Lock, params),
            b"steal" => self.lock(id, "steal", Mode::Steal, params),
            b"unlock" => self.unlock(id, params),
            _ => Err(b"\"unknown method\"".to_vec()),
        }
    }

    fn set_aware(&mut self, id: SessionId, params: &[u8]) -> Result<Vec<u8>, WireError> {
        let aware = match Value::parse(params).as_ref().ok().and_then(Value::as_array) {
            Some([Value::Bool(aware)]) => *aware,
            _ => {
                let details = "set_db_change_aware: true or false parameter expected";
                return Err(WireError::syntax(params, details));
            }
        };
        if let Some(session) = self.sessions.get(&id) {
            session.info.set_aware(aware);
        }
        Ok(b"{}".to_vec())
    }

    fn lock(
        &mut self,
        id: SessionId,
        method: &str,
        mode: Mode,
        params: &[u8],
    ) -> Result<Vec<u8>, Vec<u8>> {
        let name = self.lock_name(id, method, params)?;
        let (owned, notices) = self.lock_table().lock(id, &name, mode).map_err(|_| {
            object(&WireError::syntax(
                params,
                format!("must issue \"unlock\" before new \"{method}\""),
            ))
        })?;
        self.notify_lock_holders(notices);
        Ok(format!("{{\"locked\":{owned}}}").into_bytes())
    }

    fn unlock(&mut self, id: SessionId, params: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let name = self.lock_name(id, "unlock", params)?;
        let notices = self.lock_table().unlock(id, &name).map_err(|_: Refused| {
            object(&WireError::syntax(
                params,
                "unlock: \"unlock\" without \"lock\" or \"steal\"",
            ))
        })?;
        self.notify_lock_holders(notices);
        Ok(b"{}".to_vec())
    }

    /// The lock's name, after the checks common to the three methods.
    fn lock_name(&self, id: SessionId, method: &str, params: &[u8]) -> Result<String, Vec<u8>> {
        if self
            .sessions
            .get(&id)
            .is_some_and(|session| session.info.read_only)
        {
            return Err(
                b"\"lock and unlock methods not allowed, DB server is read only.\"".to_vec(),
            );
        }
        let value = Value::parse(params).ok();
        match value.as_ref().and_then(Value::as_array) {
            Some([name]) if name.as_str().is_some_and(is_id) => {
                Ok(name.as_str().unwrap_or_default().to_owned())
            }
            _ => Err(object(&WireError::syntax(
                params,
                format!("{method} request params must be <id>"),
            ))),
        }
    }

    pub(super) fn lock_table(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells sessions, here or on other shards, that a lock changed hands.
    pub(super) fn notify_lock_holders(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            let shard = shard_of(notice.session);
            if shard == self.shard {
                self.notice(&notice);
            } else {
                self.outputs
                    .to_shards
                    .push((shard, ToShard::Notice(notice)));
            }
        }
    }

    /// Tells a session of a lock, after the updates of everything that was committed before.
    pub(super) fn notice(&mut self, notice: &Notice) {
        let Some(session) = self.sessions.get_mut(&notice.session) else {
            return;
        };
        let params = Value::Array(vec![Value::string(&notice.lock)]).to_bytes();
        let mut text = Vec::new();
        message::write_notification(&mut text, notice.method, &params);
        let awaits = session.monitored();
        if awaits.is_empty() && session.notices.is_empty() {
            self.outputs
                .send
                .push((notice.session, Piece::Message(text)));
            return;
        }
        self.outputs
            .to_databases
            .extend(awaits.iter().map(|database| {
                (
                    *database,
                    ToDatabase::Fence(notice.session, Handled::Notice),
                )
            }));
        session.notices.push_back(PendingNotice { awaits, text });
    }

    /// Makes sure that every update of commits before now precedes the reply to come: asks the databases that the session
    /// monitors for them first. True when the reply must wait for that.
    pub(super) fn fence(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if !session.under_way.is_empty() {
            return true;
        }
        if std::mem::take(&mut session.is_fenced) {
            return false;
        }
        let databases = session.monitored();
        session.is_fenced = !databases.is_empty();
        session.target = None;
        for database in databases {
            session.under_way.begin(0);
            let fence = ToDatabase::Fence(id, Handled::Yes);
            self.outputs.to_databases.push((database, fence));
        }
        session.is_fenced
    }

    fn send_result(&mut self, id: SessionId, request_id: &[u8], result: &[u8]) {
        let mut text = Vec::with_capacity(result.len() + request_id.len() + 32);
        message::write_reply(&mut text, request_id, result);
        self.outputs.send.push((id, Piece::Message(text)));
    }

    pub(super) fn send_error(&mut self, id: SessionId, request_id: &[u8], error: &[u8]) {
        let mut text = Vec::with_capacity(error.len() + request_id.len() + 32);
        message::write_error_reply(&mut text, request_id, error);
        self.outputs.send.push((id, Piece::Message(text)));
    }
}

/// `[A-Za-z_][A-Za-z0-9_]*`
fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .first()
        .is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && bytes.is_utf8()
}
