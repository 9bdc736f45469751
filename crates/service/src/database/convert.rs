//! Online schema conversion (protocol.md 4.15): checked, written as a new file, then swapped in.

use corvid_data::{Arc, Schema, Tag, WireError};
use corvid_engine::Database;
use corvid_json::Value;

use super::rewrites::Purpose;
use super::transact::conversion_not_allowed;
use super::{DatabaseService, Now};
use crate::message::{Content, Event, Request, StoreError};

/// A conversion whose new file is being written; everything else waits for it.
pub(super) struct Conversion {
    request: Request,
    database: Database,
}

impl DatabaseService {
    pub(super) fn convert(&mut self, now: Now, request: Request) {
        if self.triggers.find(request.session, &request.id).is_some() {
            let error = WireError::syntax(request.params(), "convert: duplicate request ID");
            self.fail(&request, &error);
            return;
        }
        match self.converted(&request) {
            Err(error) => self.fail(&request, &error),
            Ok(database) => {
                let snapshot = database.snapshot();
                self.conversion = Some(Conversion { request, database });
                if self.growth.is_some() {
                    self.give_up_compaction();
                    let content = Content {
                        snapshot,
                        comment: "converted by ovsdb-server",
                        date_ms: now.wall_ms,
                        with_tail: false,
                    };
                    self.rewrite(Purpose::Conversion, content);
                } else {
                    self.finish_conversion(Ok(()));
                }
            }
        }
    }

    /// The checks, in order, and the converted content.
    fn converted(&mut self, request: &Request) -> Result<Database, WireError> {
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
        if request.info.read_only || self.options.read_only {
            return Err(conversion_not_allowed(&name));
        }
        let params = Value::parse(request.params())
            .map_err(|error| WireError::new(Tag::InternalError, error.to_string()))?;
        let Some([_, schema]) = params.as_array() else {
            return Err(WireError::syntax(request.params(), "array expected"));
        };
        let schema = Schema::from_json(schema)?;
        if schema.name != name {
            return Err(WireError::new(
                Tag::InvalidParameters,
                format!(
                    "new schema name ({}) does not match database name ({name})",
                    schema.name
                ),
            ));
        }
        self.database.convert(Arc::new(schema), &mut *self.uuids)
    }

    /// The new file is in place (or is not): swap, then tell everybody, in the order of protocol.md 4.15.
    pub(super) fn finish_conversion(&mut self, result: Result<(), StoreError>) {
        let Some(Conversion {
            request, database, ..
        }) = self.conversion.take()
        else {
            return;
        };
        if let Err(error) = result {
            self.fail(&request, &error.to_wire());
            return;
        }
        // The new file has no history either.
        self.answer_compactions(&Ok(()));
        let schema = database.schema().clone();
        let last_txn = if self.options.history {
            self.uuids.fresh()
        } else {
            corvid_data::Uuid::ZERO
        };
        let canceled = self.monitors.convert(schema.clone(), last_txn);
        self.tell_canceled(canceled);
        self.database = database;
        self.follow_again();
        self.reply(request, b"{}".to_vec());
        self.cancel_triggers();
        self.outputs
            .events
            .push(Event::Converted(self.options.id, schema));
    }
}
