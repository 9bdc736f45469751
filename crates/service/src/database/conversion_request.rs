//! A `convert` request (docs/spec/protocol.md 4.15): its checks, the swap of the database, and the replies and notifications after it. The
//! steps between are in `conversion.rs`.

use corvid_data::{Arc, Schema, Tag, Uuid, WireError};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_log::storage::StoreError;

use super::clustered::check_persistence;
use super::conversion::{Conversion, is_conversion_of};
use super::transactions::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::message::{Completion, Event, Request};
use crate::schema_epoch::SchemaEpoch;

impl DatabaseService {
    /// Begins a conversion, while nothing is pending and there is no other.
    pub(super) fn convert(&mut self, now: Now, request: Box<Request>) {
        if self.triggers.find(request.session, &request.id).is_some() {
            let error = WireError::syntax(request.params(), "convert: duplicate request ID");
            self.fail(&request, &error);
            return;
        }
        match self.new_schema(&request) {
            Err(error) => {
                self.audit_refusal(now, &request, &error);
                self.fail(&request, &error);
            }
            // The leader converts.
            Ok(_) if self.is_follower() => self.forward(now, request),
            Ok(schema) => {
                self.conversion = Some(Conversion::new(request, schema));
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
        let Some(mut conversion) = self.conversion.take() else {
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
        self.answer_compactions(&Ok(()));
        let last_txn = match conversion.entry {
            Some(eid) => eid.0,
            None => super::txn_id(self.keeps_history, &mut *self.uuids),
        };
        let schema = self.swap_contents(database, last_txn);
        let request = self.end_conversion(conversion);
        self.audit_conversion(now, &request);
        if !self.ends_forwarded_conversion() {
            self.reply(request, b"{}".to_vec());
        }
        self.cancel_triggers();
        self.outputs
            .events
            .push(Event::Converted(self.id, schema, self.converted));
    }

    /// Serves other contents from now on: cancels the monitors and begins the history with `last_txn`. Returns the schema.
    pub(super) fn swap_contents(&mut self, database: Database, last_txn: Uuid) -> Arc<Schema> {
        let schema = database.schema().clone();
        self.converted = SchemaEpoch(self.tape.number(|| self.epochs.advance().0));
        self.abandon_initial_contents();
        self.once.committed(last_txn);
        let canceled = self.monitors.convert(schema.clone(), last_txn);
        self.push_cancellations(canceled);
        let old = std::mem::replace(&mut self.database, database);
        self.free_database(Some(old));
        self.rebind_watched_columns();
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
