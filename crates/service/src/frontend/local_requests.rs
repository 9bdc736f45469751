//! Requests that the shard answers: `list_dbs`, locks, awareness, `echo`, `get_server_id` and
//! unknown methods.

use std::sync::{Arc, MutexGuard, PoisonError};

use corvid_data::WireError;
use corvid_data::members::{self, is_id};
use corvid_json::Value;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::inbound_frame::{InboundFrame, Method, Parsed, ParsedRequest, only_element};
use super::{Close, Frontend, Step, object};
use crate::client_memory;
use crate::locks::{Decision, Locks, Mode, Refused};
use crate::message::{Completion, Piece, ToDatabase, message_piece};
use crate::session_limits::{self, LOCK_NAME_BYTES_MAX};

impl Frontend {
    /// Answers `echo` once the session's earlier requests are complete and its pending updates are
    /// sent. A session without monitors has no updates and is answered at once.
    ///
    /// The reply does not wait for requests of a clustered database, which may be waiting for a
    /// leader. If its probes went unanswered, the client would disconnect without learning the
    /// outcome of those requests.
    pub(super) fn echo(&mut self, id: SessionId, request_id: Box<[u8]>, answer: Vec<u8>) -> Step {
        if self.awaits_cluster(id) {
            if let Some(text) = self.admit_reply(id, &request_id, answer) {
                self.reply_behind_updates(id, text);
            }
            return Step::Done;
        }
        if self.fence(id) {
            return Step::Wait(InboundFrame::again(answer, Parsed::Echo(request_id)));
        }
        if let Some(text) = self.admit_reply(id, &request_id, answer) {
            self.reply_after_notifications(id, text);
        }
        Step::Done
    }

    /// Turns the reply to a request into a piece, charged to the client memory if it is long.
    /// Without room, the piece is an error instead. If the error does not fit either, because the
    /// request's id is long, the session is closed.
    pub(super) fn admit_reply(
        &mut self,
        id: SessionId,
        request_id: &[u8],
        text: Vec<u8>,
    ) -> Option<Piece> {
        if self.memory.has_room_to_repeat(text.len()) {
            return Some(message_piece(&self.memory, text));
        }
        self.memory.refuse();
        drop(text);
        let error = client_memory::exhausted();
        let mut text = Vec::new();
        message::write_error_reply(&mut text, request_id, &object(&error));
        if self.memory.has_room_to_repeat(text.len()) {
            return Some(message_piece(&self.memory, text));
        }
        self.close(id, Close::Disconnect(Arc::from(error.details)));
        None
    }

    /// Whether the requests in flight may be waiting for a cluster's leader, a lock at a relay's
    /// source or a reading of history, and there is room for one more.
    fn awaits_cluster(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let target = session.target.filter(|_| !session.in_flight.is_empty());
        let is_clustered = target.is_some_and(|target| self.served.is_clustered(target));
        let awaits_other = session.lock_request.is_some() || session.history_request.is_some();
        (is_clustered || awaits_other) && session.has_room()
    }

    /// Answers a request that concerns no database once the session's earlier requests are
    /// complete.
    pub(super) fn answer_here(
        &mut self,
        now_ms: u64,
        id: SessionId,
        request: ParsedRequest,
    ) -> Step {
        let Some(session) = self.sessions.get_mut(&id) else {
            return Step::Done;
        };
        if !session.in_flight.is_empty() {
            return Step::Wait(request.into());
        }
        session.last_request = Some((request.envelope.method.name(), now_ms));
        if self.fence(id) {
            return Step::Wait(request.into());
        }
        let mut text = Vec::new();
        let request_id = &request.envelope.id;
        match self.local_result(id, request.envelope.method, request.params()) {
            Ok(Some(result)) => message::write_reply(&mut text, request_id, &result),
            Ok(None) => {
                self.await_lock(id, request.envelope.id);
                return Step::Done;
            }
            Err(error) => message::write_error_reply(&mut text, request_id, &error),
        }
        let Some(text) = self.admit_reply(id, &request.envelope.id, text) else {
            return Step::Done;
        };
        if matches!(request.envelope.method, Method::Lock | Method::Steal) {
            // The new owner must see the changes of the previous owner, which may have committed
            // after the fence above. So the reply waits for another fence, sent after the lock
            // changed hands.
            self.reply_behind_updates(id, text);
        } else {
            self.reply_after_notifications(id, text);
        }
        Step::Done
    }

    /// Leaves the session's lock request in flight until the relay's source decides.
    fn await_lock(&mut self, id: SessionId, request_id: Box<[u8]>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.in_flight.begin(0);
            // No database has the request, so every later request except `echo` waits until the
            // source has decided.
            session.target = None;
            session.lock_request = Some(request_id);
        }
    }

    /// The result as JSON; `None` if the answer comes later. An error is JSON too.
    fn local_result(
        &mut self,
        id: SessionId,
        method: Method,
        params: &[u8],
    ) -> Result<Option<Vec<u8>>, Vec<u8>> {
        let result = match method {
            Method::Lock => return self.lock(id, "lock", Mode::Lock, params),
            Method::Steal => return self.lock(id, "steal", Mode::Steal, params),
            Method::ListDbs => {
                Ok(Value::Array(self.served.names().map(Value::string).collect()).to_bytes())
            }
            Method::GetServerId => Ok(format!("\"{}\"", self.server_id).into_bytes()),
            Method::SetDbChangeAware => self.set_aware(id, params).map_err(|error| object(&error)),
            Method::Unlock => self.unlock(id, params),
            Method::Database(_) | Method::History(_) | Method::Unknown => {
                Err(b"\"unknown method\"".to_vec())
            }
        };
        result.map(Some)
    }

    fn set_aware(&mut self, id: SessionId, params: &[u8]) -> Result<Vec<u8>, WireError> {
        let aware = match only_element(params) {
            Some(b"true") => true,
            Some(b"false") => false,
            _ => {
                let details = "set_db_change_aware: true or false parameter expected";
                return Err(WireError::syntax(params, details));
            }
        };
        if let Some(session) = self.sessions.get(&id) {
            session.info.set_aware(aware, self.epochs.current());
        }
        Ok(b"{}".to_vec())
    }

    fn lock(
        &mut self,
        id: SessionId,
        method: &str,
        mode: Mode,
        params: &[u8],
    ) -> Result<Option<Vec<u8>>, Vec<u8>> {
        let name = self.lock_name(id, method, params)?;
        // One critical section: no change of the session's locks falls between the two calls.
        let (notifications, outcome) = {
            let mut table = self.lock_table();
            (table.take_notifications(id), table.lock(id, &name, mode))
        };
        // Changes of the session's locks before this request are notified before the reply, later
        // ones after it.
        self.queue_notifications(id, notifications);
        let (decision, notified) = outcome.map_err(|refused| match refused {
            Refused::TooMany => object(&session_limits::exhausted("locks")),
            Refused::AlreadyRequested | Refused::NotRequested => object(&WireError::syntax(
                params,
                format!("must issue \"unlock\" before new \"{method}\""),
            )),
        })?;
        self.pass_on_locks(notified);
        Ok(match decision {
            Decision::Owned => Some(locked(true)),
            Decision::Waiting => Some(locked(false)),
            Decision::AtSource => None,
        })
    }

    fn unlock(&mut self, id: SessionId, params: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let name = self.lock_name(id, "unlock", params)?;
        let (notifications, outcome) = {
            let mut table = self.lock_table();
            (table.take_notifications(id), table.unlock(id, &name))
        };
        self.queue_notifications(id, notifications);
        let notified = outcome.map_err(|_: Refused| {
            object(&WireError::syntax(
                params,
                "unlock: \"unlock\" without \"lock\" or \"steal\"",
            ))
        })?;
        self.pass_on_locks(notified);
        Ok(b"{}".to_vec())
    }

    /// The lock's name, after the checks that all three methods share.
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
        let name = only_element(params).and_then(members::string);
        match name.map(|name| String::from_utf8(name.into_owned())) {
            Some(Ok(name)) if name.len() > LOCK_NAME_BYTES_MAX => Err(object(
                &session_limits::exhausted("letters in the name of a lock"),
            )),
            Some(Ok(name)) if is_id(name.as_bytes()) => Ok(name),
            _ => Err(object(&WireError::syntax(
                params,
                format!("{method} request params must be <id>"),
            ))),
        }
    }

    pub(super) fn lock_table(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fences the session: the databases that it monitors send the updates of all commits so far.
    /// Returns true if the reply must wait for that.
    ///
    /// The caller queues the message and tries again. Example: `list_dbs` of a session that
    /// monitors `a` and `b` sends two fences and waits; when both are passed it comes back here
    /// with `is_fenced` set, and is answered.
    pub(super) fn fence(&mut self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        if !session.in_flight.is_empty() {
            return true;
        }
        if std::mem::take(&mut session.is_fenced) {
            return false;
        }
        let databases = session.monitored();
        session.is_fenced = !databases.is_empty();
        // A request of any database waits until the fences have been passed.
        session.target = None;
        for database in databases {
            session.in_flight.begin(0);
            let fence = ToDatabase::Fence(id, Completion::Request);
            self.outputs.to_databases.push((database, fence));
        }
        session.is_fenced
    }

    pub(super) fn send_error(&mut self, id: SessionId, request_id: &[u8], error: &[u8]) {
        let mut text = Vec::with_capacity(error.len() + request_id.len() + 32);
        message::write_error_reply(&mut text, request_id, error);
        if let Some(text) = self.admit_reply(id, request_id, text) {
            self.outputs.send.push((id, text));
        }
    }
}

/// The result of a lock request.
pub(super) fn locked(is_owner: bool) -> Vec<u8> {
    format!("{{\"locked\":{is_owner}}}").into_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use corvid_data::Uuid;

    use super::*;
    use crate::client_memory::ClientMemory;
    use crate::message::{DatabaseId, Deliver, SessionInfo, ToShard};
    use crate::schema_epoch::SchemaEpochs;
    use crate::served_databases::ServedDatabases;

    const CLIENT: SessionId = SessionId(7);
    const CLUSTERED: DatabaseId = DatabaseId(3);
    const STANDALONE: DatabaseId = DatabaseId(4);

    fn frontend() -> Frontend {
        let locks = Arc::new(Mutex::new(Locks::new()));
        let mut served = ServedDatabases::default();
        served.insert_clustered("C", CLUSTERED, None);
        served.insert("S", STANDALONE);
        let epochs = SchemaEpochs::default();
        let mut frontend = Frontend::new(0, Arc::new(served), locks, epochs, Uuid::ZERO);
        frontend.opened(CLIENT, SessionInfo::new(false, String::new(), None));
        frontend
    }

    fn send(frontend: &mut Frontend, text: &str) {
        frontend.frame(0, CLIENT, text.as_bytes().to_vec());
    }

    fn complete(frontend: &mut Frontend, database: DatabaseId, completion: Completion) {
        let deliver = Deliver {
            session: CLIENT,
            database,
            pieces: Vec::new(),
            completion,
            report_drained: false,
        };
        frontend.message(0, ToShard::Deliver(deliver));
    }

    fn sent(frontend: &mut Frontend) -> usize {
        frontend.outputs.send.drain(..).count()
    }

    const TO_CLUSTERED: &str = r#"{"id":1,"method":"transact","params":["C"]}"#;
    const TO_STANDALONE: &str = r#"{"id":1,"method":"transact","params":["S"]}"#;
    const ECHO: &str = r#"{"id":"echo","method":"echo","params":[]}"#;

    #[test]
    fn echo_waits_for_requests_of_a_standalone_database_only() {
        let mut frontend = frontend();
        send(&mut frontend, TO_STANDALONE);
        send(&mut frontend, ECHO);
        assert_eq!(sent(&mut frontend), 0);
        complete(&mut frontend, STANDALONE, Completion::Request);
        assert_eq!(sent(&mut frontend), 1);
        send(&mut frontend, TO_CLUSTERED);
        send(&mut frontend, ECHO);
        assert_eq!(sent(&mut frontend), 1);
    }

    #[test]
    fn an_echo_without_room_is_refused_and_one_whose_id_is_long_ends_the_session() {
        let mut frontend = frontend();
        let memory = Arc::new(ClientMemory::new(150_000));
        frontend.set_client_memory(memory.clone());
        let long = "x".repeat(100_000);
        let echo = format!(r#"{{"id":"e","method":"echo","params":["{long}"]}}"#);
        send(&mut frontend, &echo);
        let unread: Vec<_> = frontend.outputs.send.drain(..).collect();
        let held = memory.held();
        assert!(unread.len() == 1 && held > 100_000);
        send(&mut frontend, &echo);
        let [(CLIENT, Piece::Message(refusal))] = &frontend.outputs.send[..] else {
            panic!("{:?}", frontend.outputs.send)
        };
        let refusal = String::from_utf8_lossy(refusal);
        assert!(refusal.contains(r#""error":"resources exhausted""#));
        assert_eq!((memory.held(), memory.refused()), (held, 1));
        // A short reply still fits.
        send(&mut frontend, ECHO);
        assert_eq!(sent(&mut frontend), 2);
        assert_eq!(frontend.outputs.close, []);
        // The id is so long that not even a refusal fits.
        send(
            &mut frontend,
            &format!(r#"{{"id":"{long}","method":"list_dbs","params":[]}}"#),
        );
        assert_eq!((sent(&mut frontend), frontend.outputs.close.len()), (0, 1));
        drop(unread);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_session_that_began_before_its_shard_heard_of_a_removal_is_closed() {
        let mut frontend = frontend();
        let removed = Arc::new(ServedDatabases::default());
        frontend.message(0, ToShard::ServedDatabases(removed));
        // The session is of the epoch that the removal began.
        let epoch = SchemaEpochs::default().current();
        frontend.message(0, ToShard::DisconnectUnaware(Arc::from("removed"), epoch));
        assert_eq!(frontend.outputs.close.len(), 1, "its messages are ignored");
    }

    #[test]
    fn an_exiting_server_gives_pending_replies_and_calls_no_database_unknown() {
        let mut frontend = frontend();
        send(&mut frontend, TO_STANDALONE);
        let mut ending = ServedDatabases::default();
        ending.set_exiting();
        frontend.message(0, ToShard::ServedDatabases(Arc::new(ending)));
        send(&mut frontend, TO_CLUSTERED);
        assert_eq!(sent(&mut frontend), 0);
        complete(&mut frontend, STANDALONE, Completion::Request);
        assert_eq!(sent(&mut frontend), 0, "{:?}", frontend.outputs.send);
    }

    #[test]
    fn echo_that_overtakes_a_request_comes_behind_updates() {
        let mut frontend = frontend();
        let monitor = Completion::MonitorAdded(Arc::from(&b"\"m\""[..]));
        send(&mut frontend, TO_CLUSTERED);
        complete(&mut frontend, CLUSTERED, monitor);
        send(&mut frontend, TO_CLUSTERED);
        frontend.outputs.to_databases.clear();
        send(&mut frontend, ECHO);
        assert_eq!(sent(&mut frontend), 0);
        let [(CLUSTERED, ToDatabase::Fence(CLIENT, fence))] = &*frontend.outputs.to_databases
        else {
            panic!("{:?}", frontend.outputs.to_databases)
        };
        let fence = fence.clone();
        complete(&mut frontend, CLUSTERED, fence);
        assert_eq!(sent(&mut frontend), 1);
        assert_eq!(frontend.status(CLIENT).map(|it| it.requests), Some(1));
    }
}
