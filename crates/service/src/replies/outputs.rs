//! The outputs of one database: bytes for sessions, log writes, jobs, events. Filled while inputs
//! are handled; the [`pump`](crate::pump) takes them.

use std::collections::VecDeque;
use std::sync::Arc;

use corvid_data::WireError;
use corvid_monitor::{Frame, SessionId, SharedBody};
use corvid_rpc::message;

use super::outbox::Outboxes;
use crate::audit::Entry;
use crate::barrier::{Activity, UnderWay};
use crate::client_memory::{self, COUNTED_BYTES, ClientMemory};
use crate::job::garbage::Garbage;
use crate::job::{Job, JobNumber};
use crate::message::{Completion, DatabaseId, Deliver, Event, Piece, Request, message_piece};
use crate::replication::{SourceId, SourceOrder};

/// Collected outputs, each list in order.
#[derive(Debug)]
pub struct Outputs {
    database: DatabaseId,
    /// For shards.
    pub deliveries: VecDeque<Deliver>,
    /// For other threads.
    pub jobs: Vec<Job>,
    /// The number of the last job that has one.
    last_job: u64,
    /// For the main thread.
    pub events: Vec<Event>,
    /// For the audit trail.
    pub audit: Vec<Entry>,
    /// Stamps of transactions whose replies are among the deliveries, except those without a stamp
    /// and those that blocked.
    pub answered: Vec<u64>,
    /// The memory that replies are charged to.
    client_memory: Arc<ClientMemory>,
    /// The outboxes of blocked sessions.
    pub(crate) outboxes: Outboxes,
    /// For the connection with this number to the source of a backup.
    pub source_orders: Vec<(SourceId, u64, SourceOrder)>,
}

impl Outputs {
    pub(crate) fn new(database: DatabaseId) -> Outputs {
        Outputs {
            database,
            deliveries: VecDeque::new(),
            jobs: Vec::new(),
            last_job: 0,
            events: Vec::new(),
            audit: Vec::new(),
            answered: Vec::new(),
            client_memory: Arc::default(),
            outboxes: Outboxes::default(),
            source_orders: Vec::new(),
        }
    }

    /// Reports whether sessions wait here.
    pub(crate) fn report_activity(&self, activity: &mut Activity) {
        let Outputs {
            database: _,
            // The pump takes all of these in the same batch.
            deliveries: _,
            jobs: _,
            events: _,
            audit: _,
            answered: _,
            source_orders: _,
            last_job: _,
            client_memory: _,
            outboxes,
        } = self;
        activity.report(UnderWay::Outboxes, !outboxes.is_empty());
    }

    /// Whether the pump has taken everything.
    pub(crate) fn are_taken(&self) -> bool {
        self.deliveries.is_empty()
            && self.jobs.is_empty()
            && self.events.is_empty()
            && self.audit.is_empty()
            && self.source_orders.is_empty()
    }

    /// The number of the database.
    pub(crate) fn database(&self) -> DatabaseId {
        self.database
    }

    /// The number of the next job that has one.
    pub(crate) fn number_job(&mut self) -> JobNumber {
        self.last_job += 1;
        JobNumber(self.last_job)
    }

    /// Charges replies to this memory from now on.
    pub(crate) fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.client_memory = memory;
    }

    /// Has something freed by the reaper.
    pub(crate) fn free(&mut self, garbage: Garbage) {
        self.jobs.push(Job::Free(garbage));
    }

    /// Ends a request without sending anything.
    pub(crate) fn complete(&mut self, session: SessionId, completion: Completion) {
        self.push(session, Vec::new(), false, completion);
    }

    /// Drops a request of a dismissed session without a reply.
    pub(crate) fn drop_request(&mut self, request: &Request) {
        request.info.miss_cancellation();
        self.end_request(request);
    }

    /// Ends a request without a reply.
    pub(crate) fn end_request(&mut self, request: &Request) {
        self.complete(request.session, Completion::of(request));
    }

    /// Sends updates to a session.
    pub(crate) fn updates(&mut self, session: SessionId, frames: Vec<Frame>) {
        if !frames.is_empty() {
            let pieces = frames.into_iter().map(Piece::Update).collect();
            self.push(session, pieces, true, Completion::None);
        }
    }

    /// Replies with a result, which is JSON.
    pub(crate) fn reply(
        &mut self,
        session: SessionId,
        id: &[u8],
        result: &[u8],
        completion: Completion,
    ) {
        if result.len() > COUNTED_BYTES {
            let text = client_memory::charged_body(&self.client_memory, result);
            self.reply_shared(session, reply_around(id, text), completion);
            return;
        }
        let mut text = Vec::with_capacity(result.len() + id.len() + 32);
        message::write_reply(&mut text, id, result);
        self.push(session, vec![Piece::Message(text)], false, completion);
    }

    /// Sends a finished reply, whose body other sessions may share.
    pub(crate) fn reply_shared(
        &mut self,
        session: SessionId,
        reply: Frame,
        completion: Completion,
    ) {
        self.push(session, vec![Piece::Long(reply)], false, completion);
    }

    /// Replies with an error object.
    pub(crate) fn error(
        &mut self,
        session: SessionId,
        id: &[u8],
        error: &WireError,
        completion: Completion,
    ) {
        self.message(session, error_text(id, error), completion);
    }

    /// Replies with an error of any JSON, such as the bare string `"canceled"`.
    pub(crate) fn error_json(
        &mut self,
        session: SessionId,
        id: &[u8],
        error: &[u8],
        completion: Completion,
    ) {
        let mut text = Vec::new();
        message::write_error_reply(&mut text, id, error);
        self.message(session, text, completion);
    }

    /// Sends a whole message.
    fn message(&mut self, session: SessionId, text: Vec<u8>, completion: Completion) {
        let piece = message_piece(&self.client_memory, text);
        self.push(session, vec![piece], false, completion);
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, session: SessionId, method: &str, params: &[u8]) {
        let mut text = Vec::new();
        message::write_notification(&mut text, method, params);
        self.message(session, text, Completion::None);
    }

    fn push(
        &mut self,
        session: SessionId,
        pieces: Vec<Piece>,
        report_drained: bool,
        completion: Completion,
    ) {
        let deliver = Deliver {
            session,
            database: self.database,
            pieces,
            report_drained,
            completion,
        };
        if let Some(deliver) = self.outboxes.push_delivery(deliver) {
            self.deliveries.push_back(deliver);
        }
    }
}

/// The reply to the request `id` with this error.
pub(crate) fn error_text(id: &[u8], error: &WireError) -> Vec<u8> {
    let (mut json, mut text) = (Vec::new(), Vec::new());
    error.write_json(&mut json);
    message::write_error_reply(&mut text, id, &json);
    text
}

/// The reply to the request `id` with this result.
pub(crate) fn reply_around(id: &[u8], result: SharedBody) -> Frame {
    Frame {
        head: [b"{\"id\":", id, b",\"result\":"].concat(),
        body: result,
        tail: b",\"error\":null}",
    }
}
