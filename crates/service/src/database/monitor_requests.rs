//! Monitor requests of one database: the part done when they are executed, and the part done when the commits before them are stored.

use std::sync::Arc;

use corvid_data::WireError;
use corvid_json::Reader;
use corvid_monitor::{
    ConditionChange, ConditionChanged, Frame, Guard, RequestContext, SessionId, SharedBody,
    StartOutcome, Version,
};
use corvid_rpc::message;

use super::DatabaseService;
use super::initial_contents::Joining;
use super::pending::{Answer, Origin};
use crate::client_memory::{self, COUNTED_BYTES, ClientMemory, Retained};
use crate::message::{Completion, Request};
use crate::recording::Tape;
use crate::session_limits;

impl DatabaseService {
    pub(super) fn monitor(&mut self, request: Box<Request>, version: Version) {
        let (session, bytes) = (request.session, request.frame.len());
        if !self.monitor_quota.admits(session, bytes) {
            self.refuse(request, session_limits::exhausted("monitors"));
            return;
        }
        let admission = self.admission(session, bytes);
        if !admission.admits_text(&self.tape, bytes) {
            self.refuse(request, client_memory::exhausted_kept());
            return;
        }
        let begun = self.monitors.begin(
            &mut self.database,
            session,
            version,
            request.params(),
            RequestContext {
                id_in_use: &|id| is_foreign(&request, id),
                admit: &|bytes| admission.admit(&self.tape, bytes),
            },
            self.initial_contents.rows_max,
        );
        let answer = match begun {
            Ok(StartOutcome::Started(started)) => Joining::written(started.id, started.result),
            Ok(StartOutcome::ContentsPending(awaited)) => {
                let joining = self.await_contents(&request, awaited);
                Answer::Joined(Box::new(joining))
            }
            Ok(StartOutcome::Retry(contents)) => {
                self.retry_after_contents(*request, contents);
                return;
            }
            Err(error) => {
                self.refuse(request, error);
                return;
            }
        };
        if let Answer::Joined(joining) = &answer {
            self.monitor_quota.add(session, joining.id.clone(), bytes);
        }
        let info = &request.info;
        self.sessions.entry(session).or_insert_with(|| info.clone());
        self.answer_when_stored(answer, Origin::Client(request));
    }

    pub(super) fn change_condition(&mut self, request: Box<Request>) {
        let (session, bytes) = (request.session, request.frame.len());
        let id = first_param(&request);
        if let Some(id) = &id
            && !self.monitor_quota.admits_change(session, id, bytes)
        {
            self.refuse(request, session_limits::exhausted("conditions"));
            return;
        }
        let admission = self.admission(session, bytes);
        if !admission.admits_text(&self.tape, bytes) {
            self.refuse(request, client_memory::exhausted_kept());
            return;
        }
        let change = self.monitors.change_condition(
            &mut self.database,
            session,
            request.params(),
            RequestContext {
                id_in_use: &|id| is_foreign(&request, id),
                admit: &|bytes| admission.admit(&self.tape, bytes),
            },
        );
        match change {
            // Rows that come into view are as many as those of a monitor that starts, and have its
            // limit.
            Ok(change) if !self.has_room_for(change.len()) => {
                self.refuse(request, client_memory::exhausted());
            }
            Ok(change) => {
                let answer = Answer::ConditionChanged(Box::new(change));
                self.answer_when_stored(answer, Origin::Client(request));
            }
            Err(error) => self.refuse(request, error),
        }
    }

    /// Judges what a session wants to keep with a request of this length.
    fn admission(&self, session: SessionId, bytes: usize) -> Admission {
        Admission {
            memory: self.outputs.client_memory.clone(),
            is_small: self.monitor_quota.is_small(session, bytes),
        }
    }

    /// Applies a change of conditions, because the commits before it are stored.
    pub(super) fn release_condition(&mut self, request: &Request, change: ConditionChange) {
        let session = request.session;
        let effect_bytes = change.len();
        let Some(changed) = self.monitors.apply(session, change) else {
            return;
        };
        let ConditionChanged {
            mut frames,
            old_id,
            new_id,
        } = changed;
        // Updates that were pending may be long; the rows that the change adds and removes are few.
        self.defer_bodies(session, &mut frames);
        if !frames.is_empty() {
            if effect_bytes > COUNTED_BYTES
                && let Some(effect) = frames.last_mut()
            {
                self.charge_effect(session, effect);
            }
            self.monitors.set_ready(session, false);
            self.outputs.updates(session, frames);
        }
        self.send_updates(session);
        let bytes = request.frame.len();
        self.monitor_quota
            .change(session, &old_id, new_id.clone(), bytes);
        let completion = Completion::MonitorRenamed(old_id, new_id);
        self.outputs.reply(session, &request.id, b"{}", completion);
    }

    /// Charges the update that a change of conditions causes, which comes last. A client that
    /// changes conditions again and again and does not read gets no further ones until it has read.
    fn charge_effect(&mut self, session: SessionId, effect: &mut Frame) {
        if let SharedBody::Whole(text) = &effect.body {
            let bytes = text.len();
            effect.body = client_memory::charged_body(&self.outputs.client_memory, text);
            // The updates ask for a report anyway, which resumes the session.
            self.outputs.outboxes.count_unread(session, bytes);
        }
    }

    /// Ends a monitor, because the replies before its end have left.
    pub(super) fn release_monitor_cancel(&mut self, request: &Request) {
        let session = request.session;
        self.send_updates(session);
        let id = first_param(request).unwrap_or_default();
        if self.monitors.cancel(session, &id) {
            self.monitor_quota.remove(session, &id);
            let completion = Completion::MonitorRemoved(Arc::from(id));
            self.outputs.reply(session, &request.id, b"{}", completion);
        } else {
            let error = b"\"unknown monitor\"";
            self.outputs
                .error_json(session, &request.id, error, Completion::Request);
        }
    }

    /// Removes every monitor. Notifies the sessions that are aware of changes, and the shards in any case.
    pub(super) fn cancel_monitors(&mut self) {
        self.abandon_initial_contents();
        let canceled = self.monitors.remove_all();
        self.push_cancellations(canceled);
    }

    pub(super) fn push_cancellations(&mut self, canceled: Vec<(SessionId, Arc<[u8]>)>) {
        for (session, id) in canceled {
            self.monitor_quota.remove(session, &id);
            match self.sessions.get(&session) {
                Some(info) if self.tape.flag(|| info.is_aware()) => {
                    let params = [b"[", &*id, b"]"].concat();
                    self.outputs.notify(session, "monitor_canceled", &params);
                }
                Some(info) => info.miss_cancellation(),
                None => {}
            }
            self.outputs.complete(session, Completion::MonitorLost(id));
        }
    }
}

/// Whether there is memory for what a request about monitors keeps.
struct Admission {
    memory: Arc<ClientMemory>,
    /// The session keeps so little that it is admitted in any case.
    is_small: bool,
}

impl Admission {
    /// Whether a request is worth parsing: conditions take more than their text.
    fn admits_text(&self, tape: &Tape, bytes: usize) -> bool {
        self.has_room(tape, bytes)
    }

    /// Charges the memory of a subscription.
    fn admit(&self, tape: &Tape, bytes: usize) -> Result<Guard, WireError> {
        if !self.has_room(tape, bytes) {
            return Err(client_memory::exhausted_kept());
        }
        Ok(Arc::new(Retained::new(&self.memory, bytes)))
    }

    fn has_room(&self, tape: &Tape, bytes: usize) -> bool {
        let has_room = self.is_small || tape.flag(|| self.memory.has_room_to_keep(bytes));
        if !has_room {
            self.memory.refuse();
        }
        has_room
    }
}

/// Whether the session has a monitor of this id on another database.
fn is_foreign(request: &Request, id: &[u8]) -> bool {
    let mut foreign = request.foreign_monitors.iter();
    foreign.any(|foreign| **foreign == *id)
}

/// The first parameter as canonical JSON. The rest, which may be long, is not read.
fn first_param(request: &Request) -> Option<Vec<u8>> {
    let mut reader = Reader::trusted(request.params());
    reader.begin_array().ok()?;
    if !reader.next_element().ok()? {
        return None;
    }
    reader.skip().ok().map(message::canonical_id)
}
