//! A `convert` request (docs/spec/protocol.md 4.15): its checks, the way to its end, the swap of
//! the database, and the replies and notifications after it. The steps between are in
//! `conversion.rs`.

use corvid_data::{Arc, Schema, Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_log::storage::StoreError;

use super::clustered::check_persistence;
use super::conversion::{Conversion, Parts, Step, is_conversion_of};
use super::transactions::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::job::garbage::Garbage;
use crate::job::{Carried, JobNumber, JobResult};
use crate::message::{Completion, Event, Request};
use crate::recording::Setting;

impl DatabaseService {
    /// Sets the number of bytes of records during a conversion after which all inputs wait.
    pub fn set_conversion_bytes_max(&mut self, bytes: usize) {
        let setting = Setting::ConversionBytesMax;
        self.environment.record_setting(setting, bytes as u64);
        self.conversions.bytes_max = bytes;
    }

    /// Takes all steps of the conversion that can be taken. Called when a step may have become possible.
    pub(super) fn advance_conversion(&mut self, now: Now) {
        while let Some(conversion) = &mut self.conversions.current {
            let mut parts = Parts {
                database: &self.database,
                file: &mut self.file,
                outputs: &mut self.outputs,
                environment: &mut self.environment,
            };
            match conversion.step(now, self.pending.is_empty(), &mut parts) {
                Step::Taken => {}
                Step::Waits => return,
                Step::Complete => {
                    if !self.propose_conversion(now) {
                        self.finish_conversion(now, Ok(()));
                    }
                    return;
                }
            }
        }
    }

    /// Handles the result of a job.
    pub(super) fn handle_job_done(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let Some(done) = self.finish_replacement(now, number, done) else {
            return;
        };
        let current = self.conversions.current.as_mut();
        let Some(conversion) = current.filter(|conversion| conversion.awaits(number)) else {
            self.free_result(done);
            return;
        };
        let mut parts = Parts {
            database: &self.database,
            file: &mut self.file,
            outputs: &mut self.outputs,
            environment: &mut self.environment,
        };
        if let Err(error) = conversion.take_result(done, &mut parts) {
            self.give_up_conversion(now, Some(&error));
            return;
        }
        self.advance_conversion(now);
        self.resume(now);
    }

    /// The new file holds everything that it was given.
    pub(super) fn continue_conversion(&mut self, now: Now) {
        if let Some(conversion) = &mut self.conversions.current {
            conversion.mark_written();
        }
        self.advance_conversion(now);
        self.resume(now);
    }

    /// Ends the conversion with nothing changed. Replies with the error, if the session is still there.
    pub(super) fn give_up_conversion(&mut self, now: Now, error: Option<&WireError>) {
        if let (Some(request), Some(error)) = (self.drop_conversion(), error) {
            self.fail_conversion(&request, error);
        }
        self.resume_after_conversion(now);
    }

    /// Drops the conversion, which must not be swapping, and returns its request.
    pub(super) fn drop_conversion(&mut self) -> Option<Box<Request>> {
        let mut conversion = self.conversions.current.take()?;
        assert!(conversion.is_cancelable(), "a swap is waited for");
        let database = conversion.take_database();
        self.free_database(database);
        self.file.abandon_conversion();
        Some(self.end_conversion(conversion))
    }

    /// Resumes the inputs and compactions that waited for the conversion.
    fn resume_after_conversion(&mut self, now: Now) {
        self.compact_wanted(now);
        self.resume(now);
    }

    /// Puts the inputs that waited for the end before all others at the barrier.
    pub(super) fn end_conversion(&mut self, conversion: Conversion) -> Box<Request> {
        let (queued, request) = conversion.into_inputs();
        self.barrier_queue.push_first(queued);
        request
    }

    /// Has a database freed by the reaper.
    pub(super) fn free_database(&mut self, database: Option<Database>) {
        if let Some(database) = database {
            self.outputs.free(Garbage::database(database));
        }
    }

    /// Frees a result that is not needed any more.
    fn free_result(&mut self, done: JobResult) {
        if let JobResult::Converted(Ok(converted))
        | JobResult::CarriedOver(Ok(Carried { converted, .. })) = done
        {
            self.free_database(Some(converted.into_database()));
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
                self.conversions.current = Some(Conversion::new(request, schema));
                self.advance_conversion(now);
            }
        }
    }

    /// Checks a request, in order; returns the schema to convert to.
    pub(super) fn new_schema(&self, request: &Request) -> Result<Arc<Schema>, WireError> {
        let name = self.database.schema().name.clone();
        if !request.info.role.is_empty() {
            let client = request.info.client_id.as_deref().unwrap_or("(null)");
            let role = &request.info.role;
            return Err(WireError::new(
                Tag::PermissionError,
                format!(
                    "RBAC rules for client \"{client}\" role \"{role}\" prohibit \"convert\" of database {name} \
                     (only the root role may convert databases)"
                ),
            ));
        }
        if request.info.read_only || !self.model.accepts_client_writes() {
            return Err(conversion_not_allowed(&name));
        }
        let params = Value::parse(request.params())
            .map_err(|error| WireError::new(Tag::InternalError, error.to_string()))?;
        let Some([_, schema]) = params.as_array() else {
            return Err(WireError::syntax(request.params(), "array expected"));
        };
        let schema = Schema::from_json(schema)?;
        // A relay's source judges that.
        if self.model.cluster().is_some() && !self.model.is_relay() {
            check_persistence(&schema)?;
        }
        if schema.name != name {
            return Err(WireError::new(
                Tag::InvalidParameters,
                format!(
                    "new schema name ({}) does not match database name ({name})",
                    schema.name
                ),
            ));
        }
        Ok(Arc::new(schema))
    }

    /// The new file is in place, or has failed: swaps the database, and notifies sessions in the order of docs/spec/protocol.md 4.15.
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
                self.end_conversion(conversion);
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
        let schema = self.swap_contents(database, last_txn);
        let request = self.end_conversion(conversion);
        let audit = &self.observers.audit;
        let entry = audit.of_conversion(self.database.schema(), now, &request);
        self.outputs.audit.extend(entry);
        if !self.ends_forwarded_conversion() {
            self.reply(request, b"{}".to_vec());
        }
        self.cancel_triggers();
        self.outputs
            .events
            .push(Event::Converted(self.id, schema, self.conversions.epoch));
    }

    /// Serves other contents from now on: cancels the monitors and begins the history with `last_txn`. Returns the schema.
    pub(super) fn swap_contents(&mut self, database: Database, last_txn: Uuid) -> Arc<Schema> {
        let schema = database.schema().clone();
        self.conversions.epoch = self.environment.begin_epoch();
        self.abandon_initial_contents();
        self.executor.once.committed(last_txn);
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        self.subscriptions
            .convert(schema.clone(), last_txn, outputs, environment);
        let old = std::mem::replace(&mut self.database, database);
        self.free_database(Some(old));
        let columns = &mut self.observers.watched_columns;
        self.outputs.events.extend(columns.rebind(&self.database));
        schema
    }

    /// The client has canceled its conversion.
    pub(super) fn cancel_conversion(&mut self, now: Now) {
        if let Some(request) = self.drop_conversion() {
            self.cancel_request(&request, Completion::Request);
        }
        self.resume_after_conversion(now);
    }
}

/// The error of a conversion that is given up (docs/spec/storage.md 11.2).
pub(super) fn canceled_because(reason: &str) -> WireError {
    let details = format!("database conversion canceled because {reason}");
    WireError::new(Tag::Canceled, details)
}
