//! Monitor requests of one database.

use std::sync::Arc;

use corvid_json::Reader;
use corvid_monitor::{Begun, SessionId, Version};
use corvid_rpc::message;

use super::DatabaseService;
use crate::message::{Handled, Request};
use crate::quota;

impl DatabaseService {
    pub(super) fn monitor(&mut self, request: Box<Request>, version: Version) {
        let in_use = |id: &[u8]| {
            request
                .foreign_monitors
                .iter()
                .any(|foreign| **foreign == *id)
        };
        let (session, bytes) = (request.session, request.frame.len());
        if !self.kept.admits(session, bytes) {
            self.fail(&request, &quota::exhausted("monitors"));
            return;
        }
        let begun = self.monitors.begin(
            &mut self.database,
            request.session,
            version,
            request.params(),
            &in_use,
            self.first_answers.rows_max,
        );
        if begun.is_ok() {
            self.sessions
                .entry(request.session)
                .or_insert_with(|| request.info.clone());
        }
        match begun {
            Ok(Begun::Started(started)) => {
                self.kept.add(session, started.id.clone(), bytes);
                self.send_updates(request.session);
                let reply = started.result.into_reply(&request.id);
                self.outputs.reply_shared(
                    request.session,
                    reply,
                    Handled::MonitorAdded(started.id),
                );
                self.count_reply(&request);
            }
            Ok(Begun::Awaited(awaited)) => {
                self.kept.add(session, awaited.id.clone(), bytes);
                self.await_contents(*request, awaited);
            }
            Ok(Begun::Later(contents)) => self.put_off(*request, contents),
            Err(error) => self.fail(&request, &error),
        }
    }

    pub(super) fn change_condition(&mut self, request: &Request) {
        let in_use = |id: &[u8]| {
            request
                .foreign_monitors
                .iter()
                .any(|foreign| **foreign == *id)
        };
        let old_id: Option<Arc<[u8]>> = first_param(request).map(Arc::from);
        let (session, bytes) = (request.session, request.frame.len());
        if let Some(id) = &old_id
            && !self.kept.admits_change(session, id, bytes)
        {
            self.fail(request, &quota::exhausted("conditions"));
            return;
        }
        match self.monitors.change_condition(
            &mut self.database,
            request.session,
            request.params(),
            &in_use,
        ) {
            Ok(changed) => {
                self.outputs.updates(request.session, changed.frames);
                self.send_updates(request.session);
                let handled = match old_id {
                    Some(old_id) => {
                        let new_id = changed.new_id;
                        self.kept.change(session, &old_id, new_id.clone(), bytes);
                        Handled::MonitorRenamed(old_id, new_id)
                    }
                    None => Handled::Yes,
                };
                self.outputs
                    .reply(request.session, &request.id, b"{}", handled);
            }
            Err(error) => self.fail(request, &error),
        }
    }

    pub(super) fn cancel_monitor(&mut self, request: &Request) {
        self.send_updates(request.session);
        let id = first_param(request).unwrap_or_default();
        if self.monitors.cancel(request.session, &id) {
            self.kept.remove(request.session, &id);
            let handled = Handled::MonitorRemoved(Arc::from(id));
            self.outputs
                .reply(request.session, &request.id, b"{}", handled);
        } else {
            self.outputs.error_json(
                request.session,
                &request.id,
                b"\"unknown monitor\"",
                Handled::Yes,
            );
        }
    }

    /// Removes every monitor and tells the sessions that want to know, and the shards in any case.
    pub(super) fn cancel_monitors(&mut self) {
        self.give_up_first_answers();
        let canceled = self.monitors.remove_all();
        self.tell_canceled(canceled);
    }

    pub(super) fn tell_canceled(&mut self, canceled: Vec<(SessionId, Arc<[u8]>)>) {
        for (session, id) in canceled {
            self.kept.remove(session, &id);
            match self.sessions.get(&session) {
                Some(info) if info.is_aware() => {
                    let params = [b"[", &*id, b"]"].concat();
                    self.outputs.notify(session, "monitor_canceled", &params);
                }
                Some(info) => info.miss_cancellation(),
                None => {}
            }
            self.outputs.handled(session, Handled::MonitorLost(id));
        }
    }
}

/// The first parameter as canonical JSON. What follows it, which may be long, is not read.
fn first_param(request: &Request) -> Option<Vec<u8>> {
    let mut reader = Reader::trusted(request.params());
    reader.begin_array().ok()?;
    if !reader.next_element().ok()? {
        return None;
    }
    reader.skip().ok().map(message::canonical_id)
}
