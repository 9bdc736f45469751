//! Requests of clients but for the execution of transactions: the route of each method, `cancel`,
//! and a `convert` (docs/spec/protocol.md 4.15) with its checks, the way to its end, the swap of
//! the database, and the replies and notifications after it. The steps between are in
//! `conversion.rs`.
//!
//! A request is executed again when commits that it may have seen could not be stored. The clients
//! of those commits get `I/O error`. All later requests are executed again in the same order. They
//! get new positions; replies of the storage about the old positions find no entry and are ignored.

use corvid_data::{Arc, Schema, Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_log::cluster::Eid;
use corvid_log::storage::{LogPosition, StoreError};
use corvid_monitor::{SessionId, Version};

use super::clustered::Clustered;
use super::conversion::{Conversions, Parts, Step, is_conversion_of, schema_of};
use super::subscriptions::Begun;
use super::{DatabaseService, Now};
use crate::client_memory;
use crate::executor::{changed_sessions, unstored_reply};
use crate::job::garbage::Garbage;
use crate::job::{JobNumber, JobResult};
use crate::message::{
    Completion, Control, ControlAnswer, DatabaseMethod, Event, Request, ToDatabase,
};
use crate::replies::{Answer, Origin, Pending, Reason};
use crate::tape::Setting;

impl DatabaseService {
    pub(super) fn execute_request(&mut self, now: Now, request: Box<Request>) {
        if self.is_dismissed(&request.info) {
            self.drop_request(&request);
            return;
        }
        match request.method {
            DatabaseMethod::Transact => self.transact(now, request),
            DatabaseMethod::Convert => self.convert(now, request),
            DatabaseMethod::GetSchema => {
                let schema = self.database.schema().to_json().to_bytes();
                if self.environment.has_room_for_schema(schema.len()) {
                    self.reply(request, schema);
                } else {
                    self.refuse(request, client_memory::exhausted());
                }
            }
            DatabaseMethod::Monitor(version) => self.begin_monitor(request, version),
            DatabaseMethod::MonitorCondChange => self.change_condition(request),
            DatabaseMethod::MonitorCancel => {
                self.answer_when_stored(Answer::MonitorCanceled, Origin::Client(request));
            }
        }
    }

    fn begin_monitor(&mut self, request: Box<Request>, version: Version) {
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        let database = &mut self.database;
        let subscriptions = &mut self.subscriptions;
        match subscriptions.begin(request, version, database, outputs, environment) {
            Begun::Joined(request, answer) => {
                self.answer_when_stored(answer, Origin::Client(request));
            }
            Begun::Refused(request, error) => self.refuse(request, error),
            Begun::Waits => {}
        }
    }

    pub(super) fn change_condition(&mut self, request: Box<Request>) {
        let (database, environment) = (&mut self.database, &self.environment);
        let subscriptions = &mut self.subscriptions;
        let answer = match subscriptions.change_condition(&request, database, environment) {
            Ok(change) => Answer::ConditionChanged(Box::new(change)),
            Err(error) => Answer::Error(Box::new(error)),
        };
        self.answer_when_stored(answer, Origin::Client(request));
    }

    /// A `cancel`: completes like a request, after the reply to the canceled request.
    pub(super) fn cancel(&mut self, now: Now, session: SessionId, id: Box<[u8]>) {
        if self.conversions.is_asked_by(session, &id) {
            self.cancel_conversion();
        } else if !self.cancel_waiting(now, session, &id) {
            let seqno = self.executor.triggers.find(session, &id);
            if let Some(trigger) = seqno.and_then(|seqno| self.executor.triggers.remove(seqno)) {
                let origin = Origin::Client(trigger.request);
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
        }
        self.answer_when_stored(Answer::Nothing, Origin::Cancel(session, id));
    }

    /// Cancels a request that no leader has. False if there is no such request.
    pub(super) fn cancel_waiting(&mut self, now: Now, session: SessionId, id: &[u8]) -> bool {
        let Some((upstream, mut parts)) = self.following(now) else {
            return false;
        };
        let forwarding = &mut upstream.forwarding;
        let Some(entry) = forwarding.take_canceled(session, id, &mut parts) else {
            return false;
        };
        let request = entry.request;
        self.cancel_request(&request, Completion::of(&request));
        if let Some((upstream, mut parts)) = self.following(now) {
            let was_blocked = request.blocked;
            upstream
                .forwarding
                .end_forward(session, was_blocked, &mut parts);
        }
        true
    }

    /// Answers with a snapshot, when everything that it contains is stored.
    pub(super) fn take_snapshot(&mut self, control: Control) {
        if let Control::Snapshot(token) = control {
            let snapshot = ControlAnswer::Snapshot(Some(self.database.snapshot()));
            let event = Event::Answered(token, snapshot);
            let answer = Answer::Event(Box::new(event));
            self.answer_when_stored(answer, Origin::Control(control));
        }
    }

    /// The records up to `last`, which were written together, could not be stored.
    pub(super) fn undo_unstored(&mut self, now: Now, last: LogPosition, error: &StoreError) {
        let undone = self.pending.take_failed(last);
        if undone.is_empty() {
            return;
        }
        // First of all the rows: everything below reads them, or has requests executed on them.
        let affected = self.executor.undo(&undone, &mut self.database);
        // Entries before the failed ones no longer wait for a record.
        self.release();
        // Replies that are made from here on see the tables without the failed commits.
        assert!(self.pending.is_empty(), "nothing is pending across an undo");
        self.subscriptions.undo(&undone, &mut self.outputs);
        let commits = undone.iter().filter_map(|entry| entry.commit.as_ref());
        self.file
            .undo(commits.map(|commit| commit.record_bytes), error);
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        let sessions = changed_sessions(&undone);
        let mut requeued = Vec::new();
        // In their order, so replies keep it. For example, of A (its record has failed), B (a reply
        // that has seen A) and C (a later commit), A is answered with an error, then B and C are
        // executed again, without A.
        for entry in undone {
            if entry.is_recorded_by(last) {
                self.observers.counts.store_failures += 1;
                let schema = self.database.schema();
                let audited = self.observers.audit.of_unstored(schema, &entry, error);
                self.outputs.audit.extend(audited);
                if let (Origin::Source, Some(backup)) = (&entry.origin, self.model.source_mut()) {
                    backup.undo();
                } else if let Some(reply) = unstored_reply(entry, error) {
                    self.pending.push(reply);
                }
            } else {
                requeued.extend(self.execute_again(now, entry));
            }
        }
        // Before the later requests of their sessions.
        for request in requeued.into_iter().rev() {
            self.outputs.outboxes.put_back(request);
        }
        self.release();
        // Blocked transactions come last: the replies of the requests above were pending before.
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Executes an input again. Returns it if it must wait in the outbox of its session, before the
    /// later requests of that session.
    pub(super) fn execute_again_unless_blocked(
        &mut self,
        now: Now,
        input: ToDatabase,
    ) -> Option<ToDatabase> {
        if let Some(session) = self.awaited_session(&input) {
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let is_retry = matches!(&input, ToDatabase::Request(request) if request.blocked);
        if !is_retry && self.outputs.outboxes.must_queue(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request) => self.execute_request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Control(control) => self.take_snapshot(control),
            _ => unreachable!("only these are pending"),
        }
        None
    }

    /// Executes the request of an undone entry again. Returns the request if it must wait for an
    /// earlier one of its session, whose reply may be deferred this time.
    fn execute_again(&mut self, now: Now, entry: Pending) -> Option<ToDatabase> {
        match (entry.origin, entry.answer) {
            // This reply does not depend on the state.
            (origin, Answer::Canceled) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
            // A closed session has no monitors, and must not get any. Its refused requests count
            // too: a duplicate of a monitor would be admitted now that the monitor is gone.
            (Origin::Client(request), _)
                if request.method.is_about_monitors()
                    && self.environment.is_closed(&request.info) => {}
            (Origin::Client(request), _) => {
                return self.execute_again_unless_blocked(now, ToDatabase::Request(request));
            }
            (Origin::Cancel(session, id), _) => self.cancel(now, session, id),
            (Origin::Server(params), _) => self.transact_as_server(now, &params),
            (Origin::Control(control), _) => self.take_snapshot(control),
            (Origin::Source, _) => {
                if let Some(backup) = self.model.source_mut() {
                    backup.undo();
                }
            }
            (Origin::Forwarded(_) | Origin::Member(_), _) => {
                unreachable!("no record of a clustered database fails here")
            }
        }
        None
    }

    /// Answers an input that was sent before its sender knew of the removal.
    pub(super) fn refuse_removed(&mut self, input: ToDatabase) {
        match input {
            ToDatabase::Request(request) if self.is_dismissed(&request.info) => {
                self.drop_request(&request);
            }
            ToDatabase::Request(request) => {
                let method = request.method.name();
                let name = &self.database.schema().name;
                let details = format!("{method} request specifies unknown database {name}");
                let error =
                    WireError::new(Tag::UnknownDatabase, details).with_fragment(request.params());
                match request.method {
                    // These name no database. Their monitors are gone, and the reply says so.
                    DatabaseMethod::MonitorCancel => self.release_monitor_cancel(&request),
                    DatabaseMethod::MonitorCondChange => self.change_condition(request),
                    _ => self.fail(&request, &error),
                }
            }
            ToDatabase::Fence(session, answer) => self.outputs.complete(session, answer),
            ToDatabase::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
            ToDatabase::Control(control) => {
                let name = &self.database.schema().name;
                self.outputs.events.extend(control.refused(name));
            }
            ToDatabase::Source(..)
            | ToDatabase::Drained(_)
            | ToDatabase::Closed(_)
            | ToDatabase::LockClaims
            | ToDatabase::Storage(_)
            | ToDatabase::Member(_)
            | ToDatabase::Relay(_)
            | ToDatabase::Installed(_)
            | ToDatabase::JobDone(..) => {}
        }
    }

    /// Sets the number of bytes of records during a conversion after which all inputs wait.
    pub fn set_conversion_bytes_max(&mut self, bytes: usize) {
        let setting = Setting::ConversionBytesMax;
        self.environment.record_setting(setting, bytes as u64);
        self.conversions.bytes_max = bytes;
    }

    /// The conversions, and the parts that they use.
    fn converting(&mut self) -> (&mut Conversions, Parts<'_>) {
        let parts = Parts {
            database: &self.database,
            file: &mut self.file,
            outputs: &mut self.outputs,
            environment: &mut self.environment,
            barrier_queue: &mut self.barrier_queue,
        };
        (&mut self.conversions, parts)
    }

    /// Takes all steps of the conversion that can be taken. Called when a step may have become
    /// possible.
    pub(super) fn advance_conversion(&mut self, now: Now) {
        loop {
            let is_all_stored = self.pending.is_empty();
            let (conversions, mut parts) = self.converting();
            match conversions.step(now, is_all_stored, &mut parts) {
                Step::Taken => {}
                Step::Waits => return,
                Step::Complete => return self.complete_conversion(now),
            }
        }
    }

    /// The conversion lacks nothing: swaps the contents, or has the cluster decide when.
    fn complete_conversion(&mut self, now: Now) {
        let Some(member) = self.model.member_mut() else {
            self.finish_conversion(now, Ok(()));
            return;
        };
        let environment = &mut self.environment;
        let current = self.conversions.current.as_mut();
        let proposed = current.map(|it| member.propose_conversion(now, it, environment));
        // Members would refuse its entry.
        if let Some(Err(error)) = proposed
            && let Some((_, request)) = self.take_conversion()
        {
            self.fail_conversion(&request, &error);
        }
    }

    /// Takes the result of a job of the conversion.
    pub(super) fn take_job_result(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let (conversions, mut parts) = self.converting();
        match conversions.take_result(number, done, &mut parts) {
            Ok(true) => self.advance_conversion(now),
            Ok(false) => {}
            Err(error) => self.give_up_conversion(Some(&error)),
        }
    }

    /// The new file holds everything that it was given.
    pub(super) fn continue_conversion(&mut self, now: Now) {
        if let Some(conversion) = &mut self.conversions.current {
            conversion.mark_written();
        }
        self.advance_conversion(now);
    }

    /// Ends the conversion with nothing changed. Replies with the error, if the session is still
    /// there.
    pub(super) fn give_up_conversion(&mut self, error: Option<&WireError>) {
        if let (Some(request), Some(error)) = (self.drop_conversion(), error) {
            self.fail_conversion(&request, error);
        }
        self.compact_wanted();
    }

    /// Drops the conversion, which must not be swapping, and returns its request.
    pub(super) fn drop_conversion(&mut self) -> Option<Box<Request>> {
        let (conversions, mut parts) = self.converting();
        conversions.drop_current(&mut parts)
    }

    /// Takes the conversion, which is given up here: the entry that it was proposed as, and its
    /// request.
    pub(super) fn take_conversion(&mut self) -> Option<(Option<Eid>, Box<Request>)> {
        let (conversions, mut parts) = self.converting();
        conversions.take_current(&mut parts)
    }

    /// A conversion has failed with nothing changed.
    pub(super) fn fail_conversion(&mut self, request: &Request, error: &WireError) {
        let member = self.model.member_mut();
        if !member.is_some_and(|member| member.fail_conversion(error)) {
            self.fail(request, error);
        }
    }

    /// Begins the compaction that was asked for during another rewrite, when its turn comes.
    pub(super) fn compact_wanted(&mut self) {
        if let Some(token) = self.file.take_wanted() {
            let compact = ToDatabase::Control(Control::Compact(token));
            self.barrier_queue.push(compact);
        }
    }

    /// Has a database freed by the reaper.
    pub(super) fn free_database(&mut self, database: Option<Database>) {
        if let Some(database) = database {
            self.outputs.free(Garbage::database(database));
        }
    }

    /// Begins a conversion, while nothing is pending and there is no other.
    pub(super) fn convert(&mut self, now: Now, request: Box<Request>) {
        if self
            .executor
            .triggers
            .find(request.session, &request.id)
            .is_some()
        {
            let error = WireError::syntax(request.params(), "convert: duplicate request ID");
            self.fail(&request, &error);
            return;
        }
        match self.new_schema(&request) {
            Err(error) => {
                let (audit, schema) = (&self.observers.audit, self.database.schema());
                let entry = audit.of_refused_conversion(schema, now, &request, &error);
                self.outputs.audit.extend(entry);
                self.fail(&request, &error);
            }
            // The leader converts.
            Ok(_) if self.model.is_follower() => self.forward(now, request),
            Ok(schema) => {
                self.conversions.begin(request, schema);
                self.advance_conversion(now);
            }
        }
    }

    /// Checks a request; returns the schema to convert to.
    pub(super) fn new_schema(&self, request: &Request) -> Result<Arc<Schema>, WireError> {
        let name = &self.database.schema().name;
        // The source of a relay judges columns itself.
        let is_clustered = self.model.member().is_some();
        let is_writable = self.model.accepts_client_writes();
        schema_of(request, name, is_writable, is_clustered)
    }

    /// The new file is in place, or has failed: swaps the database, and notifies sessions in the
    /// order of docs/spec/protocol.md 4.15.
    pub(super) fn finish_conversion(&mut self, now: Now, result: Result<(), StoreError>) {
        let Some(mut conversion) = self.conversions.current.take() else {
            return;
        };
        let database = match (result, conversion.take_database()) {
            (Ok(()), Some(database)) => database,
            (result, database) => {
                assert!(result.is_err(), "the database of a file in place is here");
                self.free_database(database);
                if let Err(error) = result {
                    self.fail_conversion(&conversion.request, &error.to_wire());
                }
                conversion.end(&mut self.converting().1);
                return;
            }
        };
        debug_assert!(
            is_conversion_of(&self.database, &database),
            "a conversion is that of the moment of its swap"
        );
        // The new file has no history either.
        let answers = self.file.answer_compactions(&Ok(()));
        self.outputs.events.extend(answers);
        let last_txn = match conversion.entry {
            Some(eid) => eid.0,
            None => self.environment.txn_id(self.subscriptions.keeps_history()),
        };
        self.swap_contents(database, last_txn);
        let (_, request) = conversion.end(&mut self.converting().1);
        let audit = &self.observers.audit;
        let entry = audit.of_conversion(self.database.schema(), now, &request);
        self.outputs.audit.extend(entry);
        let member = self.model.member_mut();
        if !member.is_some_and(Clustered::ends_forwarded_conversion) {
            self.reply(request, b"{}".to_vec());
        }
        self.end_swap();
    }

    /// The contents have another schema, and the request for it is answered: cancels what waits for
    /// rows of the old one, and has the sessions closed that do not know the new one.
    pub(super) fn end_swap(&mut self) {
        self.cancel_triggers();
        let schema = self.database.schema().clone();
        self.outputs
            .events
            .push(Event::Converted(self.id, schema, self.conversions.epoch));
    }

    /// Serves other contents from now on: cancels the monitors and begins the history with
    /// `last_txn`.
    pub(super) fn swap_contents(&mut self, database: Database, last_txn: Uuid) {
        let schema = database.schema().clone();
        self.conversions.epoch = self.environment.begin_epoch();
        self.abandon_initial_contents();
        self.executor.once.committed(last_txn);
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        self.subscriptions
            .convert(schema, last_txn, outputs, environment);
        let old = std::mem::replace(&mut self.database, database);
        self.free_database(Some(old));
        let columns = &mut self.observers.watched_columns;
        self.outputs.events.extend(columns.rebind(&self.database));
    }

    /// The client has canceled its conversion.
    fn cancel_conversion(&mut self) {
        if let Some(request) = self.drop_conversion() {
            self.cancel_request(&request, Completion::Request);
        }
        self.compact_wanted();
    }
}
