//! The conversation of a backup with its source (docs/spec/distribution.md 3.2): one request at a
//! time, then updates without end.
//!
//! Pure: messages come in, steps come out, in order. Keeps the state of the conversation and no
//! rows.

use std::ops::Range;

use corvid_data::{Schema, WireError};
use corvid_json::{ArrayWriter, Kind, Reader, Value, write};
use corvid_rpc::Message;
use corvid_rpc::message::write_request;

use super::{Encoding, Following, LogMessage, ReplicationStatus, mismatches};

/// An effect of an event. [`Range`]s are positions in the event's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this to the source.
    Send(Vec<u8>),
    /// Make the database equal to these contents, then call [`Replication::applied`] or
    /// [`Replication::contents_refused`]. Messages that arrive meanwhile must be queued.
    Contents(Range<usize>, Encoding),
    /// Apply this update. If it does not fit, call [`Replication::update_refused`].
    Update(Range<usize>, Encoding),
    /// Disconnect, and connect again.
    Reconnect,
    /// Disconnect, rest, and connect again.
    Rest,
    /// Log this.
    Log(LogMessage),
}

/// The state of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disconnected,
    /// Waits for the reply to `get_server_id`.
    ServerId,
    /// Waits for the reply to `list_dbs`.
    Databases,
    /// Waits for the reply to `get_schema`.
    Schema,
    /// Waits for the reply to the monitor request.
    Contents(Encoding),
    /// The contents are being applied.
    Applying(Encoding),
    Replicating(Encoding),
    Failed,
}

/// The machine of one database that is a backup.
#[derive(Debug)]
pub struct Replication {
    following: Following,
    /// The database's name, which is also the monitor's id.
    database: String,
    state: State,
    /// The tables and columns of the source, as in the monitor request.
    monitored: Vec<u8>,
    /// Id of the last request.
    request: u64,
    /// The database has been equal to the source at some time.
    was_equal: bool,
    /// The failure of the last attempt; a repeated failure is logged only once.
    failure: Option<LogMessage>,
}

impl Replication {
    /// A machine for the database with this name, not connected yet.
    #[must_use]
    pub fn new(database: &str, following: Following) -> Replication {
        Replication {
            following,
            database: database.to_owned(),
            state: State::Disconnected,
            monitored: Vec::new(),
            request: 0,
            was_equal: false,
            failure: None,
        }
    }

    /// The backup's settings.
    #[must_use]
    pub fn following(&self) -> &Following {
        &self.following
    }

    /// The state, for operators.
    #[must_use]
    pub fn status(&self) -> ReplicationStatus {
        match self.state {
            State::Replicating(_) => ReplicationStatus::Replicating,
            // The failure is shown during the rest and until an attempt succeeds.
            _ if self.failure.is_some() => ReplicationStatus::Failed,
            _ if self.was_equal => ReplicationStatus::Lost,
            _ => ReplicationStatus::Connecting,
        }
    }

    /// The connection is open.
    pub fn connected(&mut self, steps: &mut Vec<Step>) {
        self.state = State::ServerId;
        self.ask("get_server_id", b"[]", steps);
    }

    /// The connection is closed.
    pub fn disconnected(&mut self) {
        self.state = State::Disconnected;
    }

    /// A message has arrived. `local` is this server's schema.
    pub fn receive(&mut self, text: &[u8], local: &Schema, steps: &mut Vec<Step>) {
        if matches!(self.state, State::Disconnected | State::Failed) {
            return;
        }
        match Message::parse(text) {
            Err(error) => self.fail(error.to_string(), steps),
            Ok(Message::Reply { id, result }) if self.is_awaited(id) => {
                self.reply(text, result, local, steps);
            }
            Ok(Message::ErrorReply { id, error }) if self.is_awaited(id) => {
                self.error_reply(error, steps);
            }
            Ok(Message::Notification { method, params }) => {
                if let State::Replicating(encoding) = self.state
                    && *method == *update_method(encoding)
                {
                    match self.updates(params) {
                        Some(updates) => {
                            steps.push(Step::Update(range(text, updates), encoding));
                        }
                        None => self.fail("malformed update".to_owned(), steps),
                    }
                }
            }
            Ok(_) => {}
        }
    }

    /// The database is equal to the source now.
    pub fn applied(&mut self) {
        if let State::Applying(encoding) = self.state {
            self.state = State::Replicating(encoding);
            // From here on a lost connection is shown as `Lost`: the rows are complete, only old.
            self.was_equal = true;
            self.failure = None;
        }
    }

    /// The contents do not fit: the attempt has failed.
    pub fn contents_refused(&mut self, error: &WireError, steps: &mut Vec<Step>) {
        self.fail(error.to_string(), steps);
    }

    /// An update does not fit: all contents are fetched again.
    pub fn update_refused(&mut self, error: WireError, steps: &mut Vec<Step>) {
        let message = LogMessage::UpdateFailed(self.database.clone(), error);
        self.start_again(message, steps);
    }

    /// Applied changes could not be stored and have been undone: all contents are fetched again.
    pub fn not_stored(&mut self, steps: &mut Vec<Step>) {
        // The initial contents may be among the undone changes.
        self.was_equal = false;
        let message = LogMessage::NotStored(self.database.clone());
        self.start_again(message, steps);
    }

    fn start_again(&mut self, message: LogMessage, steps: &mut Vec<Step>) {
        // Updates queued after the one that failed may fail too: one reconnect repairs all.
        if self.state != State::Disconnected {
            self.state = State::Disconnected;
            steps.extend([Step::Log(message), Step::Reconnect]);
        }
    }

    fn ask(&mut self, method: &str, params: &[u8], steps: &mut Vec<Step>) {
        self.request += 1;
        let mut text = Vec::new();
        write_request(
            &mut text,
            method,
            params,
            self.request.to_string().as_bytes(),
        );
        steps.push(Step::Send(text));
    }

    fn is_awaited(&self, id: &[u8]) -> bool {
        id == self.request.to_string().as_bytes()
    }

    fn reply(&mut self, text: &[u8], result: &[u8], local: &Schema, steps: &mut Vec<Step>) {
        match self.state {
            State::ServerId => self.server_id(result, steps),
            State::Databases => self.databases(result, steps),
            State::Schema => self.schema(result, local, steps),
            State::Contents(encoding) => {
                if result.first() != Some(&b'{') {
                    self.fail("malformed contents".to_owned(), steps);
                    return;
                }
                // From here the caller queues messages: an update must not be applied before the
                // contents.
                self.state = State::Applying(encoding);
                steps.extend([
                    Step::Log(LogMessage::Resetting(self.database.clone())),
                    Step::Contents(range(text, result), encoding),
                ]);
            }
            State::Disconnected | State::Applying(_) | State::Replicating(_) | State::Failed => {}
        }
    }

    fn server_id(&mut self, result: &[u8], steps: &mut Vec<Step>) {
        let own = self.following.server_id.to_string();
        if Value::parse(result).is_ok_and(|id| id.as_str() == Some(&own)) {
            let why = "Server ID check failed: Self replicating is not allowed";
            self.fail(why.to_owned(), steps);
            return;
        }
        self.state = State::Databases;
        self.ask("list_dbs", b"[]", steps);
    }

    fn databases(&mut self, result: &[u8], steps: &mut Vec<Step>) {
        let names = Value::parse(result).unwrap_or(Value::Null);
        let mut names = names.as_array().unwrap_or_default().iter();
        if !names.any(|name| name.as_str() == Some(&self.database)) {
            let name = &self.database;
            let why = format!("list_dbs failed: {name}: database name is not in the list");
            self.fail(why, steps);
            return;
        }
        self.state = State::Schema;
        let params = Value::Array(vec![Value::string(&self.database)]).to_bytes();
        self.ask("get_schema", &params, steps);
    }

    fn schema(&mut self, result: &[u8], local: &Schema, steps: &mut Vec<Step>) {
        let parsed = Value::parse(result)
            .map_err(|error| error.to_string())
            .and_then(|json| Schema::from_json(&json).map_err(|error| error.to_string()));
        let source = match parsed {
            Ok(source) => source,
            Err(why) => return self.fail(format!("get_schema failed: {why}"), steps),
        };
        let name = || self.database.clone();
        let mut messages = Vec::new();
        let differs = source.to_json() != local.to_json();
        if differs {
            messages.push(LogMessage::OtherSchema(name()));
        }
        let found = mismatches(local, &source);
        let is_good = found.is_empty();
        messages.extend(found.into_iter().map(LogMessage::Mismatch));
        // Refused before anything is monitored: contents that do not fit would have to be thrown
        // away.
        if !is_good {
            let last = LogMessage::CannotBeReplicated(name());
            self.fail_with(messages, last, steps);
            return;
        }
        if differs {
            messages.push(LogMessage::CanBeReplicated(name()));
        }
        steps.extend(messages.into_iter().map(Step::Log));
        self.monitored = self.requests(&source);
        // A row that only excluded tables refer to at the source is deleted earlier here. Later
        // updates of it can be skipped if they are values; a difference would not fit.
        let encoding = if self.following.excluded.is_empty() {
            Encoding::Differences
        } else {
            Encoding::Values
        };
        self.monitor(encoding, steps);
    }

    fn monitor(&mut self, encoding: Encoding, steps: &mut Vec<Step>) {
        self.state = State::Contents(encoding);
        let name = Value::string(&self.database).to_bytes();
        let params = [
            b"[".as_slice(),
            &name,
            b",",
            &name,
            b",",
            &self.monitored,
            b"]",
        ]
        .concat();
        self.ask(monitor_method(encoding), &params, steps);
    }

    /// The monitor request: all columns of all tables that are not excluded.
    fn requests(&self, source: &Schema) -> Vec<u8> {
        let tables = source
            .tables()
            .iter()
            .filter(|table| !self.following.excluded.contains(&table.name));
        let mut text = b"{".to_vec();
        for table in tables {
            if text.len() > 1 {
                text.push(b',');
            }
            write::string(&mut text, table.name.as_bytes());
            text.extend_from_slice(b":[{\"columns\":");
            let mut columns = ArrayWriter::new(&mut text);
            for column in table.columns() {
                write::string(columns.element(), column.name.as_bytes());
            }
            columns.end();
            text.extend_from_slice(b"}]");
        }
        text.push(b'}');
        text
    }

    /// Handles an error reply. An old source, or one configured so, does not support conditional
    /// monitoring: values are requested then.
    fn error_reply(&mut self, error: &[u8], steps: &mut Vec<Step>) {
        let method = match self.state {
            State::ServerId => "get_server_id",
            State::Databases => "list_dbs",
            State::Schema => "get_schema",
            State::Contents(Encoding::Differences) if is_unknown_method(error) => {
                self.monitor(Encoding::Values, steps);
                return;
            }
            State::Contents(_) => "monitor",
            State::Disconnected | State::Applying(_) | State::Replicating(_) | State::Failed => {
                return;
            }
        };
        let why = format!("{method} failed: {}", String::from_utf8_lossy(error));
        self.fail(why, steps);
    }

    /// The updates in the `params` of a notification of this machine's monitor; `None` if
    /// malformed.
    fn updates<'t>(&self, params: &'t [u8]) -> Option<&'t [u8]> {
        let mut reader = Reader::trusted(params);
        reader.begin_array().ok()?;
        reader.next_element().ok()?.then_some(())?;
        (&*reader.string().ok()? == self.database.as_bytes()).then_some(())?;
        reader.next_element().ok()?.then_some(())?;
        (reader.peek().ok()? == Kind::Object).then_some(())?;
        reader.skip().ok()
    }

    fn fail(&mut self, why: String, steps: &mut Vec<Step>) {
        self.fail_with(Vec::new(), LogMessage::Failed(why), steps);
    }

    /// Stops the attempt until the rest is over. Logs the failure if it differs from the last one.
    fn fail_with(&mut self, details: Vec<LogMessage>, last: LogMessage, steps: &mut Vec<Step>) {
        self.state = State::Failed;
        if self.failure.as_ref() != Some(&last) {
            steps.extend(details.into_iter().map(Step::Log));
            steps.push(Step::Log(last.clone()));
            self.failure = Some(last);
        }
        steps.push(Step::Rest);
    }
}

/// The monitor method that yields this encoding of updates.
fn monitor_method(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Values => "monitor",
        Encoding::Differences => "monitor_cond",
    }
}

/// The method of update notifications in this encoding.
fn update_method(encoding: Encoding) -> &'static [u8] {
    match encoding {
        Encoding::Values => b"update",
        Encoding::Differences => b"update2",
    }
}

fn is_unknown_method(error: &[u8]) -> bool {
    let error = Value::parse(error).unwrap_or(Value::Null);
    let text = error.get("error").unwrap_or(&error);
    text.as_str() == Some("unknown method")
}

/// The range of `part` in `text`.
fn range(text: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::{Exclusions, SourceId};
    use corvid_data::{Tag, Uuid};
    use expect_test::{Expect, expect};

    const TABLES: &str = r#"{"T":{"columns":{"n":{"type":"integer"},"e":{"type":"integer","ephemeral":true}}},
        "U":{"columns":{"n":{"type":"integer"}}}}"#;

    fn schema(version: &str, tables: &str) -> String {
        format!(r#"{{"name":"D","version":"{version}","tables":{tables}}}"#)
    }

    /// A backup with these tables excluded, and a transcript of its steps.
    struct Play {
        replication: Replication,
        local: Schema,
        transcript: String,
    }

    impl Play {
        fn new(excluded: &str) -> Play {
            let following = Following {
                id: SourceId(1),
                excluded: Exclusions::of("D", excluded),
                server_id: Uuid::ZERO,
            };
            let local = Value::parse(schema("1.0.0", TABLES).as_bytes()).unwrap();
            Play {
                replication: Replication::new("D", following),
                local: Schema::from_json(&local).unwrap(),
                transcript: String::new(),
            }
        }

        fn record(&mut self, text: &str, steps: Vec<Step>) {
            for step in steps {
                let line = match step {
                    Step::Send(bytes) => format!("> {}", String::from_utf8_lossy(&bytes)),
                    Step::Contents(range, _) => format!("contents {}", &text[range]),
                    Step::Update(range, encoding) => format!("{encoding:?} {}", &text[range]),
                    Step::Reconnect => "reconnect".to_owned(),
                    Step::Rest => "rest".to_owned(),
                    Step::Log(message) => format!("{:?}: {message}", message.level()),
                };
                self.transcript.push_str(&line);
                self.transcript.push('\n');
            }
            let status = self.replication.status();
            self.transcript.push_str(&format!("  {status:?}\n"));
        }

        fn connect(&mut self) {
            let mut steps = Vec::new();
            self.replication.connected(&mut steps);
            self.record("", steps);
        }

        fn receive(&mut self, text: &str) {
            self.transcript.push_str(&format!("< {text}\n"));
            let mut steps = Vec::new();
            self.replication
                .receive(text.as_bytes(), &self.local, &mut steps);
            self.record(text, steps);
        }

        /// The source answers the last request.
        fn answer(&mut self, result: &str) {
            let id = self.replication.request;
            self.receive(&format!(r#"{{"id":{id},"result":{result},"error":null}}"#));
        }

        /// The source answers all requests up to the monitor request.
        fn reach_monitor(&mut self) {
            self.connect();
            self.answer(r#""11111111-1111-4111-8111-111111111111""#);
            self.answer(r#"["_Server","D"]"#);
            self.transcript.clear();
            self.answer(&schema("1.0.0", TABLES));
        }

        fn expect(self, expected: &Expect) {
            expected.assert_eq(&self.transcript);
        }
    }

    #[test]
    fn requests_come_one_after_the_other_and_then_updates() {
        let mut play = Play::new("");
        play.connect();
        play.answer(r#""11111111-1111-4111-8111-111111111111""#);
        play.answer(r#"["_Server","D"]"#);
        play.answer(&schema("1.0.0", TABLES));
        play.answer(r#"{"T":{}}"#);
        play.replication.applied();
        play.receive(r#"{"id":null,"method":"update2","params":["D",{"T":{"x":1}}]}"#);
        play.receive(r#"{"id":null,"method":"locked","params":["x"]}"#);
        play.replication.disconnected();
        play.connect();
        play.expect(&expect![[r#"
            > {"id":1,"method":"get_server_id","params":[]}
              Connecting
            < {"id":1,"result":"11111111-1111-4111-8111-111111111111","error":null}
            > {"id":2,"method":"list_dbs","params":[]}
              Connecting
            < {"id":2,"result":["_Server","D"],"error":null}
            > {"id":3,"method":"get_schema","params":["D"]}
              Connecting
            < {"id":3,"result":{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"n":{"type":"integer"},"e":{"type":"integer","ephemeral":true}}},
                    "U":{"columns":{"n":{"type":"integer"}}}}},"error":null}
            > {"id":4,"method":"monitor_cond","params":["D","D",{"T":[{"columns":["e","n"]}],"U":[{"columns":["n"]}]}]}
              Connecting
            < {"id":4,"result":{"T":{}},"error":null}
            Info: D: Monitor reply received. Resetting the database.
            contents {"T":{}}
              Connecting
            < {"id":null,"method":"update2","params":["D",{"T":{"x":1}}]}
            Differences {"T":{"x":1}}
              Replicating
            < {"id":null,"method":"locked","params":["x"]}
              Replicating
            > {"id":5,"method":"get_server_id","params":[]}
              Lost
        "#]]);
    }

    #[test]
    fn with_excluded_tables_values_are_requested() {
        let mut play = Play::new("D:U");
        play.reach_monitor();
        play.answer("{}");
        play.replication.applied();
        play.receive(r#"{"id":null,"method":"update","params":["D",{}]}"#);
        play.expect(&expect![[r#"
            < {"id":3,"result":{"name":"D","version":"1.0.0","tables":{"T":{"columns":{"n":{"type":"integer"},"e":{"type":"integer","ephemeral":true}}},
                    "U":{"columns":{"n":{"type":"integer"}}}}},"error":null}
            > {"id":4,"method":"monitor","params":["D","D",{"T":[{"columns":["e","n"]}]}]}
              Connecting
            < {"id":4,"result":{},"error":null}
            Info: D: Monitor reply received. Resetting the database.
            contents {}
              Connecting
            < {"id":null,"method":"update","params":["D",{}]}
            Values {}
              Replicating
        "#]]);
    }

    #[test]
    fn a_source_without_conditional_monitoring_is_asked_for_values() {
        let mut play = Play::new("");
        play.reach_monitor();
        play.transcript.clear();
        play.receive(r#"{"id":4,"error":"unknown method"}"#);
        play.receive(r#"{"id":5,"error":{"error":"syntax error","details":"x"}}"#);
        play.expect(&expect![[r#"
            < {"id":4,"error":"unknown method"}
            > {"id":5,"method":"monitor","params":["D","D",{"T":[{"columns":["e","n"]}],"U":[{"columns":["n"]}]}]}
              Connecting
            < {"id":5,"error":{"error":"syntax error","details":"x"}}
            Error: unexpected ovsdb error: monitor failed: {"error":"syntax error","details":"x"}
            rest
              Failed
        "#]]);
    }

    #[test]
    fn a_failure_is_logged_once_and_tried_again() {
        let mut play = Play::new("");
        for _ in 0..2 {
            play.connect();
            play.answer(r#""00000000-0000-0000-0000-000000000000""#);
            play.replication.disconnected();
        }
        play.connect();
        play.answer(r#""11111111-1111-4111-8111-111111111111""#);
        play.answer(r#"["_Server","E"]"#);
        play.connect();
        play.answer(r#""11111111-1111-4111-8111-111111111111""#);
        play.answer(r#"["D"]"#);
        play.answer(&schema(
            "2.0.0",
            r#"{"T":{"columns":{"n":{"type":"string"}}},"X":{"columns":{"x":{"type":"real"}}}}"#,
        ));
        play.expect(&expect![[r#"
            > {"id":1,"method":"get_server_id","params":[]}
              Connecting
            < {"id":1,"result":"00000000-0000-0000-0000-000000000000","error":null}
            Error: unexpected ovsdb error: Server ID check failed: Self replicating is not allowed
            rest
              Failed
            > {"id":2,"method":"get_server_id","params":[]}
              Failed
            < {"id":2,"result":"00000000-0000-0000-0000-000000000000","error":null}
            rest
              Failed
            > {"id":3,"method":"get_server_id","params":[]}
              Failed
            < {"id":3,"result":"11111111-1111-4111-8111-111111111111","error":null}
            > {"id":4,"method":"list_dbs","params":[]}
              Failed
            < {"id":4,"result":["_Server","E"],"error":null}
            Error: unexpected ovsdb error: list_dbs failed: D: database name is not in the list
            rest
              Failed
            > {"id":5,"method":"get_server_id","params":[]}
              Failed
            < {"id":5,"result":"11111111-1111-4111-8111-111111111111","error":null}
            > {"id":6,"method":"list_dbs","params":[]}
              Failed
            < {"id":6,"result":["D"],"error":null}
            > {"id":7,"method":"get_schema","params":["D"]}
              Failed
            < {"id":7,"result":{"name":"D","version":"2.0.0","tables":{"T":{"columns":{"n":{"type":"string"}}},"X":{"columns":{"x":{"type":"real"}}}}},"error":null}
            Info: D: Schema version mismatch, checking if D can still be replicated or not.
            Info: Column n mismatch in local db schema table T.
            Info: Table X not present in the local db schema
            Info: D cannot be replicated.
            rest
              Failed
        "#]]);
    }

    #[test]
    fn a_schema_of_another_version_may_fit() {
        let mut play = Play::new("");
        play.connect();
        play.answer(r#""11111111-1111-4111-8111-111111111111""#);
        play.answer(r#"["D"]"#);
        play.transcript.clear();
        play.answer(&schema(
            "2.0.0",
            r#"{"T":{"columns":{"n":{"type":"integer"}}}}"#,
        ));
        play.expect(&expect![[r#"
            < {"id":3,"result":{"name":"D","version":"2.0.0","tables":{"T":{"columns":{"n":{"type":"integer"}}}}},"error":null}
            Info: D: Schema version mismatch, checking if D can still be replicated or not.
            Info: D can be replicated.
            > {"id":4,"method":"monitor_cond","params":["D","D",{"T":[{"columns":["n"]}]}]}
              Connecting
        "#]]);
    }

    #[test]
    fn another_schema_of_the_same_version_is_logged_too() {
        let mut play = Play::new("");
        play.connect();
        play.answer(r#""11111111-1111-4111-8111-111111111111""#);
        play.answer(r#"["D"]"#);
        play.transcript.clear();
        play.answer(&schema("1.0.0", "{}"));
        play.expect(&expect![[r#"
            < {"id":3,"result":{"name":"D","version":"1.0.0","tables":{}},"error":null}
            Info: D: Schema version mismatch, checking if D can still be replicated or not.
            Info: D can be replicated.
            > {"id":4,"method":"monitor_cond","params":["D","D",{}]}
              Connecting
        "#]]);
    }

    #[test]
    fn after_an_update_that_does_not_fit_everything_is_fetched_again() {
        let mut play = Play::new("");
        play.reach_monitor();
        play.answer("{}");
        play.replication.applied();
        play.transcript.clear();
        let mut steps = Vec::new();
        let error = WireError::new(Tag::ConsistencyViolation, "row x is inserted and exists");
        play.replication.update_refused(error, &mut steps);
        play.record("", steps);
        // Messages of the old connection are ignored.
        play.receive(r#"{"id":null,"method":"update2","params":["D",{}]}"#);
        let mut steps = Vec::new();
        play.replication.connected(&mut steps);
        play.replication.not_stored(&mut steps);
        play.record("", steps);
        play.expect(&expect![[r#"
            Warn: D: an update of the active server does not fit (consistency violation: row x is inserted and exists); fetching everything again
            reconnect
              Lost
            < {"id":null,"method":"update2","params":["D",{}]}
              Lost
            > {"id":5,"method":"get_server_id","params":[]}
            Warn: D: what the active server sent could not be stored; fetching everything again
            reconnect
              Connecting
        "#]]);
    }

    #[test]
    fn a_malformed_message_ends_the_attempt() {
        for text in [
            "[]",
            r#"{"id":4,"result":[]}"#,
            r#"{"id":4,"result":[],"error":null}"#,
        ] {
            let mut play = Play::new("");
            play.reach_monitor();
            play.receive(text);
            assert!(
                play.transcript.ends_with("rest\n  Failed\n"),
                "{}",
                play.transcript
            );
        }
        let mut play = Play::new("");
        play.reach_monitor();
        play.answer("{}");
        play.replication.applied();
        play.receive(r#"{"id":null,"method":"update2","params":["E",{}]}"#);
        assert!(
            play.transcript.ends_with("rest\n  Failed\n"),
            "{}",
            play.transcript
        );
    }
}
