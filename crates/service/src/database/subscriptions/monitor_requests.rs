//! Monitor requests of one database: the part done when they are executed, and the part done when
//! the commits before them are stored.

use std::sync::Arc;

use corvid_data::{Arc as DataArc, Schema, Uuid, WireError};
use corvid_engine::Database;
use corvid_json::Reader;
use corvid_monitor::{
    ConditionChange, ConditionChanged, Frame, Guard, RequestContext, SessionId, SharedBody,
    StartOutcome, Version, no_past,
};
use corvid_rpc::message;

use super::{MonitorQuota, PastSource, Subscriptions};
use crate::client_memory::{self, COUNTED_BYTES, Retained};
use crate::environment::Environment;
use crate::message::{Completion, Request};
use crate::replies::{Answer, Joining, Outputs};
use crate::session_limits;

/// A request for a monitor that was executed.
pub(in super::super) enum Begun {
    /// The monitor has joined. The answer leaves when the commits before it are stored.
    Joined(Box<Request>, Answer),
    /// The request fails with this error.
    Refused(Box<Request>, WireError),
    /// The request is executed anew when contents of an earlier moment are written, or a search
    /// has ended.
    Waits,
}

impl Subscriptions {
    /// Executes a request for a monitor.
    pub(in super::super) fn begin(
        &mut self,
        request: Box<Request>,
        version: Version,
        database: &mut Database,
        source: PastSource,
        (outputs, environment): (&mut Outputs, &Environment),
    ) -> Begun {
        let (session, bytes) = (request.session, request.frame.len());
        if !self.quota.admits(session, bytes) {
            return Begun::Refused(request, session_limits::exhausted("monitors"));
        }
        let admission = Admission {
            environment,
            is_small: self.quota.is_small(session, bytes),
        };
        if !admission.admits_text(bytes) {
            return Begun::Refused(request, client_memory::exhausted_kept());
        }
        let absences = &self.absences;
        let begun = self.monitors.begin(
            database,
            session,
            version,
            request.params(),
            RequestContext {
                id_in_use: &|id| is_foreign(&request, id),
                admit: &|bytes| admission.admit(bytes),
                past: &|txn, tables| absences.answer(source, txn, tables),
            },
            self.contents.rows_max,
        );
        let answer = match begun {
            Ok(StartOutcome::Started(started)) => Joining::written(started.id, started.result),
            Ok(StartOutcome::ContentsPending(awaited)) => {
                let joining = self.await_contents(&request, awaited, outputs, environment);
                Answer::Joined(Box::new(joining))
            }
            Ok(StartOutcome::Retry(contents)) => {
                self.retry_after_contents(*request, contents, outputs);
                return Begun::Waits;
            }
            Ok(StartOutcome::AwaitsPast(txn, tables)) => {
                let schema = database.schema();
                self.await_past(*request, (txn, tables), source, schema, outputs);
                return Begun::Waits;
            }
            Err(error) => return Begun::Refused(request, error),
        };
        if let Answer::Joined(joining) = &answer {
            self.quota.add(session, joining.id.clone(), bytes);
        }
        let info = &request.info;
        self.sessions.entry(session).or_insert_with(|| info.clone());
        Begun::Joined(request, answer)
    }

    /// Executes a change of conditions, which takes effect when it is applied.
    ///
    /// # Errors
    /// That of the reply.
    pub(in super::super) fn change_condition(
        &mut self,
        request: &Request,
        database: &mut Database,
        environment: &Environment,
    ) -> Result<ConditionChange, WireError> {
        let (session, bytes) = (request.session, request.frame.len());
        let id = first_param(request);
        if let Some(id) = &id
            && !self.quota.admits_change(session, id, bytes)
        {
            return Err(session_limits::exhausted("conditions"));
        }
        let admission = Admission {
            environment,
            is_small: self.quota.is_small(session, bytes),
        };
        if !admission.admits_text(bytes) {
            return Err(client_memory::exhausted_kept());
        }
        let change = self.monitors.change_condition(
            database,
            session,
            request.params(),
            RequestContext {
                id_in_use: &|id| is_foreign(request, id),
                admit: &|bytes| admission.admit(bytes),
                past: &no_past,
            },
        )?;
        // Rows that come into view are as many as those of a monitor that starts, and have its
        // limit.
        if !environment.has_room_for(change.len()) {
            return Err(client_memory::exhausted());
        }
        Ok(change)
    }

    /// Applies a change of conditions, because the commits before it are stored.
    pub(in super::super) fn release_condition(
        &mut self,
        request: &Request,
        change: ConditionChange,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
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
        outputs.defer_bodies(session, &mut frames, &mut self.monitors, environment);
        if !frames.is_empty() {
            if effect_bytes > COUNTED_BYTES
                && let Some(effect) = frames.last_mut()
            {
                charge_effect(session, effect, outputs, environment);
            }
            self.monitors.set_ready(session, false);
            outputs.updates(session, frames);
        }
        self.send_updates(session, outputs, environment);
        let bytes = request.frame.len();
        self.quota.change(session, &old_id, new_id.clone(), bytes);
        let completion = Completion::MonitorRenamed(old_id, new_id);
        outputs.reply(session, &request.id, b"{}", completion);
    }

    /// Ends a monitor, because the replies before its end have left.
    pub(in super::super) fn release_cancel(
        &mut self,
        request: &Request,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let session = request.session;
        self.send_updates(session, outputs, environment);
        let id = first_param(request).unwrap_or_default();
        if self.monitors.cancel(session, &id) {
            self.quota.remove(session, &id);
            let completion = Completion::MonitorRemoved(Arc::from(id));
            outputs.reply(session, &request.id, b"{}", completion);
        } else {
            let error = b"\"unknown monitor\"";
            outputs.error_json(session, &request.id, error, Completion::Request);
        }
    }

    /// Removes every monitor, because the database is removed.
    pub(in super::super) fn cancel_all(
        &mut self,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let canceled = self.monitors.remove_all();
        self.push_cancellations(canceled, outputs, environment);
    }

    /// Removes every monitor, because the schema changes. The history begins with `last_txn`.
    pub(in super::super) fn convert(
        &mut self,
        schema: DataArc<Schema>,
        last_txn: Uuid,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let canceled = self.monitors.convert(schema, last_txn);
        self.push_cancellations(canceled, outputs, environment);
    }

    /// Notifies sessions that their monitors have ended: those that are aware of changes, and the
    /// shards in any case.
    fn push_cancellations(
        &mut self,
        canceled: Vec<(SessionId, Arc<[u8]>)>,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        // Those that are not notified count no more either: monitors whose replies have not left.
        self.quota = MonitorQuota::default();
        for (session, id) in canceled {
            match self.sessions.get(&session) {
                Some(info) if environment.is_aware(info) => {
                    let params = [b"[", &*id, b"]"].concat();
                    outputs.notify(session, "monitor_canceled", &params);
                }
                Some(info) => info.miss_cancellation(),
                None => {}
            }
            outputs.complete(session, Completion::MonitorLost(id));
        }
    }
}

/// Charges the update that a change of conditions causes, which comes last. A client that changes
/// conditions again and again and does not read gets no further ones until it has read.
fn charge_effect(
    session: SessionId,
    effect: &mut Frame,
    outputs: &mut Outputs,
    environment: &Environment,
) {
    if let SharedBody::Whole(text) = &effect.body {
        let bytes = text.len();
        effect.body = client_memory::charged_body(environment.memory(), text);
        // The updates ask for a report anyway, which resumes the session.
        outputs.outboxes.count_unread(session, bytes);
    }
}

/// Whether there is memory for what a request about monitors keeps.
struct Admission<'a> {
    environment: &'a Environment,
    /// The session keeps so little that it is admitted in any case.
    is_small: bool,
}

impl Admission<'_> {
    /// Whether a request is worth parsing: conditions take more than their text.
    fn admits_text(&self, bytes: usize) -> bool {
        self.environment.has_room_to_keep(self.is_small, bytes)
    }

    /// Charges the memory of a subscription.
    fn admit(&self, bytes: usize) -> Result<Guard, WireError> {
        if !self.admits_text(bytes) {
            return Err(client_memory::exhausted_kept());
        }
        Ok(Arc::new(Retained::new(self.environment.memory(), bytes)))
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
