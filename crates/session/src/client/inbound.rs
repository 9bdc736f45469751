//! Messages from the server: answers are matched by id, notifications by method and monitor.
//!
//! Answers without a request in flight, and notifications of other monitors, are ignored: both may
//! remain from before a canceled monitor.

use corvid_json::{Kind, Reader};
use corvid_rpc::Session;
use corvid_rpc::message::{Message, canonical};
use corvid_rpc::session::Received;
use corvid_rpc::wire_log::Direction;

use super::contents::uuid;
use super::handshake::{method, monitor_id};
use super::{Client, Purpose, State};
use crate::event::{Event, RequestId};
use crate::failure::Failure;
use crate::log_message::LogMessage;
use crate::server_db;

impl Client {
    /// Handles one message.
    pub(super) fn message(&mut self, frame: &[u8]) {
        // The contents of an abandoned server may be the reason why it was abandoned. Its link
        // takes no further message from it.
        assert!(
            self.state != State::Retry,
            "an abandoned server is not heard"
        );
        self.show_message(Direction::Received, frame);
        let message = match Message::parse(frame) {
            Ok(message) => message,
            Err(error) => return self.retry(Failure::Malformed(error.log_text())),
        };
        // The link handles probes; this only sorts the messages.
        match Session::new(0, 0).receive(message) {
            Received::Echo(answer) => self.send(answer),
            Received::ProbeReply => {}
            Received::Message(Message::Reply { id, result }) => self.reply(id, Ok(result)),
            Received::Message(Message::ErrorReply { id, error }) => self.reply(id, Err(error)),
            Received::Message(Message::Notification { method, params }) => {
                self.notification(&method, params);
            }
            Received::Message(Message::Request { id, .. }) => {
                let mut answer = Vec::new();
                let error = br#""unknown method""#;
                corvid_rpc::message::write_error_reply(&mut answer, &canonical(id), error);
                self.send(answer);
            }
        }
    }

    fn reply(&mut self, id: &[u8], answer: Result<&[u8], &[u8]>) {
        let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        let Some((id, purpose)) = id.and_then(|id: u64| Some((id, self.pending.remove(&id)?)))
        else {
            return;
        };
        match (purpose, answer) {
            (Purpose::User, answer) => {
                let outcome = self.outcome(id, answer);
                let id = RequestId(id);
                self.events.push_back(Event::Reply { id, outcome });
            }
            (Purpose::Courtesy | Purpose::ServerId, Err(_)) | (Purpose::Courtesy, Ok(_)) => {}
            // An error passes the fence too: the relay sends it after the same updates.
            (Purpose::SourceFence, _) => self.source_fence_passed(id),
            (Purpose::ServerId, Ok(result)) => self.server_id = uuid(result).ok(),
            (Purpose::ServerSchema, answer) => self.server_schema(answer.ok()),
            (Purpose::ServerMonitor, answer) => self.server_contents(answer.ok()),
            (Purpose::DataSchema, Ok(result)) => self.data_schema(result),
            (Purpose::DataSchema, Err(error)) => self.refused("get_schema", error),
            (Purpose::DataMonitor(version), Ok(result)) => self.contents(version, result),
            (Purpose::DataMonitor(version), Err(error)) => self.monitor_refused(version, error),
            (Purpose::Conditions, Ok(_)) => self.conditions.acknowledged(),
            (Purpose::Conditions, Err(error)) => self.conditions_refused(error),
            (Purpose::Lock, Ok(result)) => self.lock_answered(result),
            (Purpose::Lock, Err(error)) => self.lock_refused(error),
        }
    }

    /// Handles the refusal of a monitor request. Only a server that does not know the method gets
    /// an older one. Any other error concerns the arguments: an older method would drop the
    /// conditions, or be refused as well.
    fn monitor_refused(&mut self, version: u8, error: &[u8]) {
        if version > 1 && is_unknown_method(error) {
            self.request_contents(version - 1);
        } else if self.has_server_monitor && !self.is_schema_doubted {
            self.doubt_schema();
        } else {
            self.refused(method(version), error);
        }
    }

    /// Handles the refusal of changed conditions: the earlier ones are sent again, and the session
    /// continues with them.
    fn conditions_refused(&mut self, error: &[u8]) {
        let text = String::from_utf8_lossy(error);
        if !self.conditions.refused(&text) {
            return self.refused("monitor_cond_change", error);
        }
        self.log(LogMessage::ConditionsRefused {
            database: self.options.database.clone(),
            error: text.into_owned(),
        });
    }

    fn lock_refused(&mut self, error: &[u8]) {
        let name = self.lock.name().unwrap_or_default().to_owned();
        let error = String::from_utf8_lossy(error).into_owned();
        self.lock.refused(error.clone());
        self.log(LogMessage::LockRefused { name, error });
    }

    fn refused(&mut self, method: &'static str, error: &[u8]) {
        let error = String::from_utf8_lossy(error).into_owned();
        self.retry(if error.contains("\"unknown database\"") {
            Failure::NoSuchDatabase
        } else {
            Failure::Refused { method, error }
        });
    }

    fn lock_answered(&mut self, result: &[u8]) {
        let json = Reader::trusted(result).value().ok();
        match json.and_then(|json| json.get("locked")?.as_bool()) {
            Some(is_locked) => {
                self.lock.answered(is_locked);
                if is_locked {
                    self.events.push_back(Event::Locked);
                }
            }
            None => {
                let reason = "lock reply does not have a boolean \"locked\"".to_owned();
                self.retry(Failure::Malformed(reason));
            }
        }
    }

    fn notification(&mut self, method: &[u8], params: &[u8]) {
        let handled = match method {
            b"update" => self.update(params, 1),
            b"update2" => self.update(params, 2),
            b"update3" => self.update(params, 3),
            b"monitor_canceled" => self.canceled(params),
            b"locked" => self.lock_notified(params, true),
            b"stolen" => self.lock_notified(params, false),
            _ => Ok(()),
        };
        if let Err(reason) = handled {
            self.retry(Failure::Malformed(reason));
        }
    }

    fn update(&mut self, params: &[u8], version: u8) -> Result<(), String> {
        let broken = |error: corvid_json::Error| error.to_string();
        let mut reader = Reader::trusted(params);
        reader.begin_array().map_err(broken)?;
        let id = element(&mut reader)?;
        if is_monitor(id, server_db::NAME) {
            if version == 2 && self.has_server_monitor {
                expect_element(&mut reader)?;
                if self.apply_server_updates(&mut reader) {
                    self.judge_again();
                }
            }
            return Ok(());
        }
        // Before the reply to the monitor request, an update can only come from a monitor that was
        // canceled: a server sends the reply first.
        let is_ours = is_monitor(id, &self.options.database);
        let follows = self.state == State::Monitoring || self.is_holding();
        if !is_ours || version != self.version || !follows {
            return Ok(());
        }
        self.data_update(&mut reader, version)
    }

    fn lock_notified(&mut self, params: &[u8], is_locked: bool) -> Result<(), String> {
        let json = Reader::trusted(params).value();
        let json = json.map_err(|error| error.to_string())?;
        let Some([name]) = json.as_array() else {
            return Err("params of a lock notification must be a name".to_owned());
        };
        let Some(name) = name.as_str() else {
            return Ok(());
        };
        if self.lock.name() != Some(name) {
            self.events.push_back(Event::LockNotification {
                name: name.to_owned(),
                is_locked,
            });
        } else if self.lock.notified(name, is_locked) {
            self.events.push_back(Event::Locked);
        }
        Ok(())
    }

    /// A monitor has ended because the database was converted or removed: starts from the top. The
    /// other monitor is canceled too, because both are requested again.
    fn canceled(&mut self, params: &[u8]) -> Result<(), String> {
        let mut reader = Reader::trusted(params);
        reader.begin_array().map_err(|error| error.to_string())?;
        let id = element(&mut reader)?;
        let database = self.options.database.clone();
        let is_data = is_monitor(id, &database);
        let is_server = is_monitor(id, server_db::NAME);
        let has_data_monitor = matches!(self.state, State::DataMonitor | State::Monitoring);
        if !(is_data && has_data_monitor || is_server) {
            return Ok(());
        }
        let other = if is_data {
            self.has_server_monitor.then_some(server_db::NAME)
        } else {
            has_data_monitor.then_some(database.as_str())
        };
        if let Some(other) = other {
            let mut params = vec![b'['];
            params.extend_from_slice(&monitor_id(other));
            params.push(b']');
            self.request("monitor_cancel", &params, Purpose::Courtesy);
        }
        if is_data {
            self.begin_anew();
        } else {
            self.events.push_back(Event::MonitorEnded);
            self.start();
        }
        Ok(())
    }
}

/// Whether a server refuses a request because it does not know the method (docs/spec/protocol.md
/// 8.1). The reference sends a bare string; other servers send an error object.
fn is_unknown_method(error: &[u8]) -> bool {
    let Ok(error) = Reader::trusted(error).value() else {
        return false;
    };
    let kind = error.get("error").unwrap_or(&error);
    kind.as_str() == Some("unknown method")
}

/// Whether a monitor id is the one under which this database is monitored.
fn is_monitor(id: &[u8], database: &str) -> bool {
    let ours = monitor_id(database);
    id == ours || canonical(id) == ours
}

/// Moves to the next element of an array, which must exist.
pub(super) fn expect_element(reader: &mut Reader<'_>) -> Result<(), String> {
    match reader.next_element() {
        Ok(true) => Ok(()),
        Ok(false) => Err("params are too short".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The text of the next element of an array, which must exist.
pub(super) fn element<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], String> {
    expect_element(reader)?;
    reader.skip().map_err(|error| error.to_string())
}

/// Enters an array.
pub(super) fn begin_array(reader: &mut Reader<'_>) -> Result<(), String> {
    match reader.peek() {
        Ok(Kind::Array) => reader.begin_array().map_err(|error| error.to_string()),
        _ => Err("array expected".to_owned()),
    }
}
