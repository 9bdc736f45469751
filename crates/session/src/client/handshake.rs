//! From a new connection to the monitor of the database: first `_Server`, then the verdict on the
//! server, the schema, and the newest kind of monitor that the server supports (docs/spec/idl.md
//! 1.6 to 1.8).

use corvid_data::{Arc, Schema, Str, Uuid};
use corvid_json::{ArrayWriter, Reader, Value, write};

use super::{Client, Purpose, State, names};
use crate::decoder::Decoder;
use crate::event::Event;
use crate::failure::Failure;
use crate::plan::{Interest, Plan};
use crate::server_db::{self, ServerDb};
use crate::update::Encoding;

impl Client {
    /// Starts the handshake on an established connection.
    pub(super) fn start(&mut self) {
        // After a canceled monitor, answers to the earlier handshake describe state that is
        // requested again. Answers to the user's requests, about the lock and about the server's id
        // stay valid.
        self.forget(|purpose| {
            !matches!(
                purpose,
                Purpose::User | Purpose::Lock | Purpose::Courtesy | Purpose::ServerId
            )
        });
        self.version = 0;
        self.lagging = None;
        self.server_db = None;
        self.has_server_monitor = false;
        self.conditions.disconnected();
        // Lock and server id belong to the connection, so a canceled monitor does not end them.
        let is_new = self.state == State::Down;
        self.state = State::ServerSchema;
        self.request(
            "get_schema",
            &names(&[server_db::NAME]),
            Purpose::ServerSchema,
        );
        if is_new {
            if self.options.asks_server_id || self.repeatable.has_ids() {
                self.request("get_server_id", b"[]", Purpose::ServerId);
            }
            self.request_lock();
        }
    }

    pub(super) fn request_lock(&mut self) {
        self.lock.unknown();
        if let Some(name) = self.lock.name() {
            let params = names(&[name]);
            self.request("lock", &params, Purpose::Lock);
        }
    }

    /// The schema of `_Server`; `None` if the server has no such database.
    pub(super) fn server_schema(&mut self, result: Option<&[u8]>) {
        let schema = result.and_then(|text| {
            let json = Reader::trusted(text).value().ok()?;
            Schema::from_json(&json).ok()
        });
        let Some(schema) = schema else {
            return self.do_without_server_db();
        };
        let mut log = Vec::new();
        let server_db = ServerDb::new(schema, &mut log);
        log.into_iter().for_each(|message| self.log(message));
        let params = monitor_params(server_db::NAME, &server_db.requests(), None);
        self.server_db = Some(server_db);
        self.state = State::ServerMonitor;
        self.request("monitor_cond", &params, Purpose::ServerMonitor);
    }

    /// The contents of `_Server`; `None` if it cannot be monitored.
    pub(super) fn server_contents(&mut self, result: Option<&[u8]>) {
        let (Some(result), true) = (result, self.server_db.is_some()) else {
            return self.do_without_server_db();
        };
        self.has_server_monitor = true;
        if self.apply_server_updates(&mut Reader::trusted(result)) {
            self.judge();
        }
    }

    /// Accepts a server without `_Server`, unless a cluster id is required.
    fn do_without_server_db(&mut self) {
        self.server_db = None;
        if self.requirements.cluster_id.is_some() {
            return self.retry(Failure::NoCluster);
        }
        self.request_data_schema();
    }

    /// Requests the database's own schema, because the monitor was refused: `_Server` may show
    /// something that the database no longer has. After a conversion, a standalone server of the
    /// reference still shows the schema with which it started.
    pub(super) fn doubt_schema(&mut self) {
        self.is_schema_doubted = true;
        self.request_data_schema();
    }

    fn request_data_schema(&mut self) {
        self.state = State::DataSchema;
        let params = names(&[&self.options.database]);
        self.request("get_schema", &params, Purpose::DataSchema);
    }

    /// Applies an update of `_Server`. Returns false if the session has left the server because of
    /// it.
    pub(super) fn apply_server_updates(&mut self, reader: &mut Reader<'_>) -> bool {
        let Some(server_db) = &mut self.server_db else {
            return true;
        };
        let mut log = Vec::new();
        let outcome = server_db
            .decoder
            .read(reader, Encoding::Differences, &mut log)
            .map_err(|error| Failure::Malformed(error.to_string()))
            .and_then(|updates| server_db.apply(&updates));
        log.into_iter().for_each(|message| self.log(message));
        outcome.map_err(|failure| self.retry(failure)).is_ok()
    }

    /// Judges whether the server is suitable, for the first time on this connection or after a
    /// canceled monitor.
    fn judge(&mut self) {
        let Some(server_db) = &self.server_db else {
            return;
        };
        match server_db.judge(&self.requirements) {
            Err(failure) if self.stays(&failure) => {}
            Err(failure) => self.retry(failure),
            Ok(accepted) => {
                // The contents are requested from here on, so none can be missing.
                self.lost_relay.come_home();
                // Never decreases: a member with a lower index was refused as stale.
                self.requirements.index_min = accepted.index.or(self.requirements.index_min);
                self.shown_schema = Some(accepted.schema.clone());
                if self.is_schema_doubted {
                    self.request_data_schema();
                } else {
                    self.use_schema_text(&accepted.schema);
                }
            }
        }
    }

    /// Judges whether the server is still suitable, after a change of `_Server` or of the
    /// requirements.
    pub(super) fn judge_again(&mut self) {
        let Some(server_db) = self.server_db.as_ref().filter(|_| self.has_server_monitor) else {
            return;
        };
        match server_db.judge(&self.requirements) {
            Err(failure) if self.stays(&failure) => {}
            Err(failure) => self.retry(failure),
            // The handshake stopped at the lost relay before it requested contents; it continues
            // here.
            Ok(_) if self.has_source_again() => self.judge(),
            Ok(accepted) => {
                self.requirements.index_min = accepted.index.or(self.requirements.index_min);
                self.look_at_schema(accepted.schema);
            }
        }
    }

    /// Handles the schema that `_Server` shows. A conversion may have happened between the schema
    /// that the client has and its monitor, so nothing else announces it. The client starts over
    /// if what it monitors would differ.
    fn look_at_schema(&mut self, shown: Str) {
        let is_monitored = matches!(self.state, State::DataMonitor | State::Monitoring);
        if self.shown_schema.as_ref() == Some(&shown) || !is_monitored {
            return;
        }
        let schema = Value::parse(shown.as_bytes()).map_err(|error| error.to_string());
        let schema = schema.and_then(|json| read_schema(&json));
        // Recorded before the comparison: each text is parsed once, whether it differs or not.
        self.shown_schema = Some(shown);
        let (Ok(schema), Some(decoder)) = (schema, &self.decoder) else {
            return;
        };
        let present = decoder.plan();
        let is_unchanged = match &self.options.interest {
            // A relay has the schema for its own clients, constraints included.
            Interest::All => schema.to_json() == present.schema().to_json(),
            // Missing columns are logged when the client has started over.
            Interest::Tables(_) => {
                Plan::new(&self.options.interest, schema, &mut Vec::new()).has_types_of(present)
            }
        };
        if !is_unchanged {
            for database in [self.options.database.clone(), server_db::NAME.to_owned()] {
                let params = [b"[", &monitor_id(&database)[..], b"]"].concat();
                self.request("monitor_cancel", &params, Purpose::Courtesy);
            }
            self.begin_anew();
        }
    }

    /// The database's monitor has ended and its schema may have changed: starts from the top.
    pub(super) fn begin_anew(&mut self) {
        self.is_schema_doubted = true;
        self.events.push_back(Event::MonitorEnded);
        self.start();
    }

    fn use_schema_text(&mut self, text: &Str) {
        let is_known = self.schema_text.as_ref() == Some(text);
        if let (true, Some(decoder)) = (is_known, &self.decoder) {
            let schema = decoder.plan().schema().clone();
            return self.use_schema(schema);
        }
        let schema = Value::parse(text.as_bytes()).map_err(|error| error.to_string());
        let read = schema.and_then(|json| read_schema(&json));
        if self.take_schema(read) {
            self.schema_text = Some(text.clone());
        }
    }

    /// Handles the reply with the database's schema.
    pub(super) fn data_schema(&mut self, result: &[u8]) {
        self.schema_text = None;
        let json = Reader::trusted(result).value();
        let read = json
            .map_err(|error| error.to_string())
            .and_then(|json| read_schema(&json));
        self.take_schema(read);
    }

    /// Continues with the schema that was read, or else with the client's own. Returns true if it
    /// was the one read.
    fn take_schema(&mut self, read: Result<Arc<Schema>, String>) -> bool {
        match (read, self.options.schema.clone()) {
            (Ok(schema), _) => {
                self.use_schema(schema);
                return true;
            }
            (Err(_), Some(own)) => self.use_schema(own),
            (Err(reason), None) => self.retry(Failure::SchemaUnreadable(reason)),
        }
        false
    }

    /// Requests the contents. The request continues from `last_id` if that is known and the
    /// monitored tables are the same at the server.
    fn use_schema(&mut self, schema: Arc<Schema>) {
        let mut log = Vec::new();
        let plan = Plan::new(&self.options.interest, schema, &mut log);
        log.into_iter().for_each(|message| self.log(message));
        let is_carried_on = (self.decoder.as_ref())
            .is_some_and(|before| plan.is_same(before.plan()))
            && !self.conditions.has_lost_change();
        // Called in any case: it also adapts the conditions to this server.
        let are_conditions_kept = self.conditions.restrict(&plan);
        // A change of conditions whose connection was lost may have been applied or not, so the
        // rows here may follow either: only full contents are certain.
        if !is_carried_on || !are_conditions_kept {
            self.last_id = Uuid::ZERO;
        }
        self.decoder = Some(Decoder::new(Arc::new(plan), self.options.is_strict));
        let version = match self.has_server_monitor {
            true => self.options.version_max,
            // A server without `_Server` does not know `monitor_cond_since`.
            false => self.options.version_max.min(2),
        };
        self.request_contents(version);
        if self.has_server_monitor && self.options.is_change_aware {
            self.request("set_db_change_aware", b"[true]", Purpose::Courtesy);
        }
    }

    /// Sends the monitor request of this version.
    pub(super) fn request_contents(&mut self, version: u8) {
        let Some(decoder) = &self.decoder else {
            return;
        };
        // Only version 3 can continue; an older method brings full contents.
        if version < 3 {
            self.last_id = Uuid::ZERO;
        }
        if self.last_id == Uuid::ZERO {
            self.conditions.carry_all();
        }
        // A request that continues carries the conditions that the present rows follow, not newer
        // ones: changes since `last_id` add up only with rows selected in the same way. Newer
        // conditions are sent once the contents are complete.
        let conditions = (version >= 2).then_some(&self.conditions);
        let requests = decoder.plan().requests(conditions);
        let last_id = (version >= 3).then_some(self.last_id);
        let params = monitor_params(&self.options.database, &requests, last_id);
        self.state = State::DataMonitor;
        self.request(method(version), &params, Purpose::DataMonitor(version));
    }
}

/// The method of the monitor request of this version.
pub(super) fn method(version: u8) -> &'static str {
    match version {
        0 | 1 => "monitor",
        2 => "monitor_cond",
        _ => "monitor_cond_since",
    }
}

/// The id under which a database is monitored.
pub(super) fn monitor_id(database: &str) -> Vec<u8> {
    names(&["monid", database])
}

fn monitor_params(database: &str, requests: &[u8], last_id: Option<Uuid>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut array = ArrayWriter::new(&mut out);
    write::string(array.element(), database.as_bytes());
    array.element().extend_from_slice(&monitor_id(database));
    array.element().extend_from_slice(requests);
    if let Some(last_id) = last_id {
        write::string(array.element(), &last_id.to_text());
    }
    array.end();
    out
}

fn read_schema(json: &Value) -> Result<Arc<Schema>, String> {
    Schema::from_json(json)
        .map(Arc::new)
        .map_err(|error| error.to_string())
}
