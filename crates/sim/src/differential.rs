//! The same generated traffic for the Corvid server and the reference server, over Unix sockets,
//! compared message by message.
//!
//! One request at a time. After each one, a barrier request on every connection makes sure that all
//! its effects have arrived. A row whose identity a server chooses gets a common name once both
//! servers have reported it. Requests are written with names and sent with each server's own
//! identities. [`deviations`] lists the documented differences; any other difference is an error.

pub mod compare;
pub mod deviations;
mod side;
mod traffic;
mod weak;

use std::collections::BTreeMap;
use std::io;

use corvid_json::{Object, Value};
use corvid_tests::server::Implementation;

use crate::generator::{Generator, Profile};
use crate::world::dice::Dice;

use compare::Comparison;
use side::{Heard, Side};

/// Connections to each server.
const CONNECTIONS: usize = 3;

/// After this many requests the whole contents are compared, and the generator learns the existing
/// rows.
const SURVEY_INTERVAL: u64 = 4;

/// Whether two servers can be compared further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The contents are the same.
    Continues,
    /// A documented fault of the reference has made its contents differ for good.
    Ends,
}

/// Both servers and their common state.
#[derive(Debug)]
pub struct Differential {
    generator: Generator,
    ours: Side,
    theirs: Side,
    /// Number of requests sent.
    requests: u64,
    /// Number of rows that got a name because the servers chose their identities.
    names: u64,
    /// Requests without a reply, by id.
    open: BTreeMap<u64, traffic::Request>,
    monitors: Vec<traffic::Monitor>,
    /// The monitor requests so far, for reports.
    pub monitor_requests: Vec<String>,
    /// How often each documented deviation occurred.
    pub deviations: BTreeMap<&'static str, usize>,
}

impl Differential {
    /// Generates a schema and starts both servers with it.
    ///
    /// # Errors
    /// A server is not installed or does not start.
    pub fn start(seed: u64) -> io::Result<Differential> {
        let profile = Profile {
            suits_reference: true,
            keeps_reals_exact: true,
            damage_percent: 5,
        };
        let generator = Generator::new(Dice::new(seed), profile);
        let schema = &generator.schema.json;
        Ok(Differential {
            ours: Side::start(Implementation::Corvid, schema)?,
            theirs: Side::start(Implementation::Reference, schema)?,
            generator,
            requests: 0,
            names: 0,
            open: BTreeMap::new(),
            monitors: Vec::new(),
            monitor_requests: Vec::new(),
            deviations: BTreeMap::new(),
        })
    }

    /// The generated schema, for reports.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.generator.schema.json
    }

    /// Sends one generated request to both servers and compares the effects.
    ///
    /// # Errors
    /// An undocumented difference, or a broken connection.
    pub fn step(&mut self) -> Result<Progress, String> {
        let Err(problem) = self.compare_one() else {
            return Ok(Progress::Continues);
        };
        let in_context = |error: String| format!("{problem}\nafter it: {error}");
        if self.reference_dangles().map_err(in_context)? {
            let reason = "the reference keeps a weak reference to a deleted row in a row that the deletion touches otherwise (docs/spec/protocol.md 5.12)";
            *self.deviations.entry(reason).or_default() += 1;
            return Ok(Progress::Ends);
        }
        Err(problem)
    }

    fn compare_one(&mut self) -> Result<(), String> {
        if self.generator.dice.chance(2) {
            return self.break_a_connection();
        }
        let request = self.generate();
        self.send(request)?;
        if self.requests.is_multiple_of(SURVEY_INTERVAL) {
            self.survey()?;
        }
        Ok(())
    }

    fn send(&mut self, request: traffic::Request) -> Result<(), String> {
        self.requests += 1;
        let id = self.requests;
        let mut message = Object::new();
        message.insert("method".into(), Value::string(&request.method));
        message.insert("params".into(), request.params.clone());
        let is_notification = request.method == "cancel";
        let json_id = Value::Integer(id as i64);
        message.insert(
            "id".into(),
            if is_notification {
                Value::Null
            } else {
                json_id
            },
        );
        let message = Value::Object(message);
        let connection = request.connection;
        let shown = format!("request on connection {connection}: {message}");
        if request.method.starts_with("monitor") {
            self.monitor_requests.push(shown.clone());
        }
        let is_awaited = request.is_awaited;
        if !is_notification {
            self.open.insert(id, request);
        }
        let awaited = is_awaited.then_some(id);
        let in_words = |error: io::Error| format!("{shown}: {error}");
        let theirs = self
            .theirs
            .exchange(connection, &message, awaited)
            .map_err(|error| format!("reference: {}", in_words(error)))?;
        let ours = self
            .ours
            .exchange(connection, &message, awaited)
            .map_err(in_words)?;
        self.compare(id, &ours, &theirs)
            .map_err(|problem| format!("{shown}\n{problem}"))
    }

    fn compare(&mut self, request: u64, ours: &[Heard], theirs: &[Heard]) -> Result<(), String> {
        for (connection, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            let ids: Vec<u64> = ours
                .replies
                .keys()
                .chain(theirs.replies.keys())
                .copied()
                .collect();
            for id in &ids {
                if let (Some(ours), Some(theirs)) = (ours.replies.get(id), theirs.replies.get(id)) {
                    self.learn(ours, theirs);
                }
            }
            for id in ids {
                let Some(request) = self.open.remove(&id) else {
                    continue;
                };
                let (Some(ours), Some(theirs)) = (ours.replies.get(&id), theirs.replies.get(&id))
                else {
                    return Err(format!(
                        "connection {connection}: only one replied to {id}: {ours:?}, reference: {theirs:?}"
                    ));
                };
                self.comparison().reply(&request, ours, theirs)?;
                self.record(&request, ours);
            }
        }
        // A satisfied wait causes a second commit, which servers may report with the first or after
        // it.
        let has_several = ours
            .iter()
            .any(|heard| heard.replies.keys().any(|id| *id != request));
        for (ours, theirs) in ours.iter().zip(theirs) {
            self.comparison().notifications(
                &ours.notifications,
                &theirs.notifications,
                has_several,
            )?;
        }
        Ok(())
    }

    fn comparison(&mut self) -> Comparison<'_> {
        Comparison {
            ours: &self.ours.known,
            theirs: &self.theirs.known,
            deviations: &mut self.deviations,
        }
    }

    /// Names each row whose identity is in both results.
    fn learn(&mut self, ours: &Value, theirs: &Value) {
        let elements = |reply: &Value| -> Vec<Value> {
            reply
                .get("result")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .to_vec()
        };
        let uuid = |element: &Value| {
            Some(
                element
                    .get("uuid")?
                    .as_array()?
                    .get(1)?
                    .as_str()?
                    .to_owned(),
            )
        };
        for (ours, theirs) in elements(ours).iter().zip(&elements(theirs)) {
            let (Some(ours), Some(theirs)) = (uuid(ours), uuid(theirs)) else {
                continue;
            };
            if ours != theirs {
                self.names += 1;
                let name = format!("#{}#", self.names);
                self.ours.learn(&ours, &name);
                self.theirs.learn(&theirs, &name);
            }
        }
    }

    /// Compares the whole contents, and tells the generator the existing rows.
    fn survey(&mut self) -> Result<(), String> {
        let tables: Vec<String> = self.generator.schema.tables.keys().cloned().collect();
        let select = |table: &String| {
            let text = format!(r#"{{"op":"select","table":"{table}","where":[]}}"#);
            Value::parse(text.as_bytes()).expect("valid JSON")
        };
        let mut params = vec![Value::string("Gen")];
        params.extend(tables.iter().map(select));
        self.send(traffic::Request::new(0, "transact", Value::Array(params)))?;
        let Some(reply) = self.theirs.last_reply.take() else {
            return Err("no contents".to_owned());
        };
        let reply = self.theirs.known.value(&reply);
        let results = reply
            .get("result")
            .and_then(Value::as_array)
            .unwrap_or_default();
        for (table, result) in tables.iter().zip(results) {
            let rows = result
                .get("rows")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter();
            let uuids =
                rows.filter_map(|row| Some(row.get("_uuid")?.as_array()?[1].as_str()?.to_owned()));
            self.generator.set_rows(table, uuids.collect());
        }
        Ok(())
    }

    /// Whether the reference has a weak reference to a row that does not exist, and our server has
    /// none.
    fn reference_dangles(&mut self) -> Result<bool, String> {
        let schema = &self.generator.schema;
        let dangles = |side: &mut Side| -> io::Result<bool> {
            Ok(weak::has_dangling(schema, &side.contents(schema)?))
        };
        let in_words = |error: io::Error| error.to_string();
        let theirs = dangles(&mut self.theirs).map_err(in_words)?;
        Ok(theirs && !dangles(&mut self.ours).map_err(in_words)?)
    }

    /// Sends malformed messages on separate connections, which both servers must close.
    fn break_a_connection(&mut self) -> Result<(), String> {
        let text = self.unacceptable();
        let in_words = |error: io::Error| format!("{text}: {error}");
        let ours = self.ours.outcome_of(&text).map_err(in_words)?;
        let theirs = self.theirs.outcome_of(&text).map_err(in_words)?;
        if ours == theirs {
            Ok(())
        } else {
            Err(format!("{text}: {ours:?}, reference: {theirs:?}"))
        }
    }
}
