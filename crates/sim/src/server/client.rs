//! A client's end of a session: its requests, the replies, and its replica of the database.
//!
//! Invariant: it is an error if a reply has no request, an update does not fit the replica, or the
//! replica shows a commit that no client may see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corvid_data::Uuid;
use corvid_engine::Database;
use corvid_json::Value;
use corvid_monitor::{SessionId, Version};

use super::workload::{MONITORED, Txn, schema_json};
use crate::replica;
use corvid_model::atom::Atom;
use corvid_model::datum::{Datum, no_names};
use corvid_model::monitor::Monitor;
use corvid_model::schema::Schema;
use corvid_model::{Row, Tables};

/// Locks that clients compete for.
pub(crate) const LOCKS: [&str; 2] = ["L", "M"];

/// The subject of a request.
#[derive(Debug)]
enum RequestKind {
    Awareness,
    /// The content with which a replica begins.
    Monitor,
    /// The rows of `_Server`.
    ServerMonitor,
    Transaction {
        number: i64,
        seq_operation: usize,
    },
    Lock {
        is_unlock: bool,
        lock: &'static str,
    },
    Conversion,
}

/// Records the outcomes of transactions, by their numbers.
pub(crate) trait Outcomes {
    /// A client got the reply that its transaction committed as the `seq`-th.
    ///
    /// # Errors
    /// The reply breaks a rule.
    fn acknowledged(&mut self, number: i64, seq: i64) -> Result<(), String>;

    /// A client got an error for its transaction.
    ///
    /// # Errors
    /// The reply breaks a rule.
    fn failed(&mut self, number: i64, error: &Value) -> Result<(), String>;

    /// Whether no client may ever see this transaction.
    fn is_void(&self, number: i64) -> bool;

    /// Returns the index of the entry of a committed transaction in its cluster's log, if it has
    /// one.
    fn index_of(&self, number: i64) -> Option<i64> {
        let _ = number;
        None
    }
}

/// The columns of the monitored tables.
#[derive(Debug)]
pub(crate) struct View {
    schema: Schema,
    monitors: [Monitor; 2],
}

impl View {
    pub(crate) fn new() -> View {
        let json = Value::parse(schema_json(false).as_bytes()).expect("a constant");
        let schema = Schema::read(&json);
        let requests = Value::parse(MONITORED.as_bytes()).expect("a constant");
        let monitors = [false, true].map(|is_v1| Monitor::read(&schema, is_v1, &requests));
        View { schema, monitors }
    }

    fn monitor(&self, version: Version) -> &Monitor {
        &self.monitors[usize::from(version == Version::V1)]
    }

    /// Returns the content of a replica.
    fn content(&self, database: &Database) -> Tables {
        let mut tables = Tables::new();
        for (id, table) in database.schema().iter() {
            let name = table.name.to_string();
            let rows = database.rows(id).map(|row| {
                let cells = table.columns().iter().zip(row.columns.iter());
                let cells = cells.filter_map(|(column, datum)| {
                    let ty = self.schema.tables[&name]
                        .columns
                        .get(column.name.as_str())?;
                    let json = datum.to_json(ty.ty.value.is_some());
                    let datum = Datum::read(&ty.ty, &json, &mut no_names);
                    Some((column.name.to_string(), datum.ok()?))
                });
                (row.uuid, cells.collect::<Row>())
            });
            let rows = rows.collect();
            tables.insert(name, rows);
        }
        tables
    }
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) session: SessionId,
    /// Sent messages that the server has not read yet.
    pub(crate) texts: VecDeque<Vec<u8>>,
    /// The server does not read from the client at present.
    pub(crate) is_paused: bool,
    /// The server has written output to the client and not yet been told that it is drained.
    pub(crate) is_full: bool,
    /// The client does not read, so its output stays in the server.
    pub(crate) is_stalled: bool,
    open: BTreeMap<i64, RequestKind>,
    version: Version,
    replica: Option<Tables>,
    /// This server has sent the database's content to the client.
    is_current: bool,
    /// The last transaction of the replica, for monitors of version 3.
    last_txn: Uuid,
    monitor_id: i64,
    pub(crate) owned: BTreeSet<String>,
    /// Number of the newest tenure of each lock.
    tenures: BTreeMap<String, i64>,
    /// The number of transactions in the replica when it was last looked at in this session.
    seen: i64,
    /// The replica has become older: its number of transactions before and after.
    pub(crate) went_back: Option<(i64, i64)>,
    /// Number of monitors that continued with the changes since the last transaction.
    pub(crate) continued: u64,
    /// The outcome of the conversion that the client requested.
    pub(crate) converted: Option<Result<(), String>>,
    /// The index that `_Server` showed last, if the client monitors `_Server`.
    shown_index: Option<i64>,
}

/// The id under which `_Server` is monitored.
const SERVER_MONITOR: &str = "server";

impl Client {
    /// Returns a client that continues with the replica of an earlier one.
    pub(crate) fn new(session: SessionId, version: Version, earlier: Option<Client>) -> Client {
        let (replica, last_txn) = match earlier {
            // A client without rows wants all of them.
            Some(earlier) if earlier.version == version && earlier.replica.is_some() => {
                (earlier.replica, earlier.last_txn)
            }
            _ => (None, Uuid::ZERO),
        };
        Client {
            session,
            texts: VecDeque::new(),
            is_paused: false,
            is_full: false,
            is_stalled: false,
            open: BTreeMap::new(),
            version,
            replica,
            is_current: false,
            last_txn,
            monitor_id: 0,
            owned: BTreeSet::new(),
            tenures: BTreeMap::new(),
            seen: 0,
            went_back: None,
            continued: 0,
            converted: None,
            shown_index: None,
        }
    }

    /// Whether the server would read a message from the client.
    pub(crate) fn can_send(&self) -> bool {
        let is_stuck = self.is_stalled && self.is_full;
        !self.texts.is_empty() && !self.is_paused && !is_stuck
    }

    /// Whether the client waits for no reply.
    pub(crate) fn is_content(&self) -> bool {
        self.open.is_empty() && self.texts.is_empty()
    }

    /// Returns the requests without a reply, with their ids.
    pub(crate) fn open_requests(&self) -> Vec<String> {
        let open = self.open.iter();
        open.map(|(id, asked)| format!("{id}: {asked:?}")).collect()
    }

    /// Returns the transactions without a reply.
    pub(crate) fn open_transactions(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.values().filter_map(|asked| match asked {
            RequestKind::Transaction { number, .. } => Some(*number),
            _ => None,
        })
    }

    /// Whether the client waits for the outcome of a conversion.
    pub(crate) fn is_converting(&self) -> bool {
        let mut open = self.open.values();
        open.any(|asked| matches!(asked, RequestKind::Conversion))
    }

    fn ask(&mut self, id: i64, asked: RequestKind, method: &str, params: &str) {
        let text = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.texts.push_back(text.into_bytes());
        self.open.insert(id, asked);
    }

    /// Turns change awareness on and starts the replica.
    pub(crate) fn begin(&mut self, ids: &mut i64) {
        *ids += 1;
        self.ask(
            *ids,
            RequestKind::Awareness,
            "set_db_change_aware",
            "[true]",
        );
        self.start_monitor(ids);
    }

    /// Monitors the index in `_Server`.
    pub(crate) fn watch_server(&mut self, ids: &mut i64) {
        *ids += 1;
        let params = format!(
            r#"["_Server","{SERVER_MONITOR}",{{"Database":[{{"columns":["name","index"]}}]}}]"#
        );
        self.ask(*ids, RequestKind::ServerMonitor, "monitor_cond", &params);
    }

    /// Takes the index from rows of `_Server`, and checks that it never goes back.
    fn see_index(&mut self, updates: &Value) -> Result<(), String> {
        let rows = updates.get("Database").and_then(Value::as_object);
        for row in rows.into_iter().flat_map(|rows| rows.values()) {
            let kinds = ["initial", "insert", "modify"];
            let index = kinds.iter().find_map(|kind| row.get(kind)?.get("index"));
            let Some(index) = index.and_then(Value::as_integer) else {
                continue;
            };
            if self.shown_index.is_some_and(|shown| shown >= index) {
                return Err(format!(
                    "`_Server` shows {index} after {:?}",
                    self.shown_index
                ));
            }
            self.shown_index = Some(index);
        }
        Ok(())
    }

    fn start_monitor(&mut self, ids: &mut i64) {
        *ids += 1;
        self.monitor_id = *ids;
        let id = self.monitor_id;
        let params = match self.version {
            Version::V1 | Version::V2 => format!(r#"["A",{id},{MONITORED}]"#),
            Version::V3 => format!(r#"["A",{id},{MONITORED},"{}"]"#, self.last_txn),
        };
        let method = match self.version {
            Version::V1 => "monitor",
            Version::V2 => "monitor_cond",
            Version::V3 => "monitor_cond_since",
        };
        self.ask(id, RequestKind::Monitor, method, &params);
    }

    pub(crate) fn transact(&mut self, ids: &mut i64, txn: &Txn) {
        *ids += 1;
        let asked = RequestKind::Transaction {
            number: txn.number,
            seq_operation: txn.seq_operation(),
        };
        self.ask(*ids, asked, "transact", &txn.params());
    }

    pub(crate) fn lock(&mut self, ids: &mut i64, method: &str, lock: &'static str) {
        *ids += 1;
        let asked = RequestKind::Lock {
            is_unlock: method == "unlock",
            lock,
        };
        self.ask(*ids, asked, method, &format!(r#"["{lock}"]"#));
    }

    pub(crate) fn convert(&mut self, ids: &mut i64, is_wide: bool) {
        *ids += 1;
        let params = format!(r#"["A",{}]"#, schema_json(is_wide));
        self.ask(*ids, RequestKind::Conversion, "convert", &params);
    }

    /// Handles a message from the server.
    pub(crate) fn take(
        &mut self,
        message: &Value,
        view: &View,
        ids: &mut i64,
        outcomes: &mut dyn Outcomes,
    ) -> Result<(), String> {
        let method = message.get("method").and_then(Value::as_str);
        let Some(method) = method else {
            let id = message.get("id").and_then(Value::as_integer);
            let asked = id.and_then(|id| self.open.remove(&id));
            let asked = asked.ok_or("a reply to no request")?;
            return self.take_reply(&asked, message, view, ids, outcomes);
        };
        let params = message.get("params").and_then(Value::as_array);
        let params = params.ok_or("no params")?;
        let first = params.first().ok_or("empty params")?;
        let name = first.as_str().unwrap_or_default();
        let is_mine = first.as_integer() == Some(self.monitor_id);
        if name == SERVER_MONITOR && method == "update2" {
            return self.see_index(&params[1]);
        }
        match method {
            "locked" => self.own(name, ids),
            "stolen" => drop(self.owned.remove(name)),
            "monitor_canceled" if is_mine => {
                self.replica = None;
                self.is_current = false;
                self.start_monitor(ids);
            }
            "update" | "update2" if is_mine => self.apply(view, outcomes, &params[1])?,
            "update3" if is_mine => {
                self.last_txn = uuid(&params[1])?;
                self.apply(view, outcomes, &params[2])?;
            }
            other => return Err(format!("an unexpected notification: {other}")),
        }
        Ok(())
    }

    fn take_reply(
        &mut self,
        asked: &RequestKind,
        message: &Value,
        view: &View,
        ids: &mut i64,
        outcomes: &mut dyn Outcomes,
    ) -> Result<(), String> {
        let error = message.get("error").filter(|error| **error != Value::Null);
        let result = message.get("result").unwrap_or(&Value::Null);
        match asked {
            RequestKind::Transaction {
                number,
                seq_operation,
            } => {
                let results = result.as_array().unwrap_or_default();
                let of_result = results.iter().find_map(|result| result.get("error"));
                match error.or(of_result) {
                    Some(error) => outcomes.failed(*number, error)?,
                    None => {
                        let seq = results
                            .get(*seq_operation)
                            .and_then(|result| result.get("rows"))
                            .and_then(Value::as_array)
                            .and_then(<[Value]>::first)
                            .and_then(|row| row.get("seq"))
                            .and_then(Value::as_integer);
                        let seq = seq.ok_or_else(|| format!("no seq: {message}"))?;
                        outcomes.acknowledged(*number, seq)?;
                        let index = outcomes.index_of(*number);
                        if self.shown_index.is_some() && self.shown_index < index {
                            return Err(format!(
                                "transaction {number} is acknowledged while `_Server` shows {:?} and not {index:?}",
                                self.shown_index
                            ));
                        }
                        if self.is_current && !self.shown_transactions().contains(number) {
                            return Err(format!(
                                "transaction {number} is acknowledged before its update"
                            ));
                        }
                    }
                }
            }
            RequestKind::Conversion => {
                self.converted = Some(match error {
                    Some(error) => Err(error.to_string()),
                    None => Ok(()),
                });
            }
            // The client requested a lock that it waits for, or released a lock that it never
            // requested.
            RequestKind::Lock { .. } if error.is_some() => {}
            _ if error.is_some() => return Err(format!("{asked:?} is refused: {message}")),
            RequestKind::Awareness => {}
            RequestKind::Monitor => self.take_first(view, outcomes, result)?,
            RequestKind::ServerMonitor => self.see_index(result)?,
            RequestKind::Lock { is_unlock, lock } => {
                if *is_unlock {
                    self.owned.remove(*lock);
                } else if result.get("locked") == Some(&Value::Bool(true)) {
                    self.own(lock, ids);
                }
            }
        }
        Ok(())
    }

    /// The server says that the client owns a lock.
    fn own(&mut self, lock: &str, ids: &mut i64) {
        if self.owned.insert(lock.to_owned()) {
            *ids += 1;
            self.tenures.insert(lock.to_owned(), *ids);
        }
    }

    /// Returns the number of the client's last tenure of a lock, as far as the client knows, and
    /// whether the tenure lasts.
    pub(crate) fn tenure(&self, lock: &str) -> (Option<i64>, bool) {
        (self.tenures.get(lock).copied(), self.owned.contains(lock))
    }

    /// Notes whether the replica has become older.
    fn look_back(&mut self) {
        let heads = self.replica.as_ref().and_then(|it| it.get("Head"));
        let heads = heads.into_iter().flat_map(BTreeMap::values);
        let seqs = heads.filter_map(|head| head.get("seq"));
        let seq = seqs.flat_map(Datum::keys).find_map(|atom| match atom {
            Atom::Integer(seq) => Some(*seq),
            _ => None,
        });
        let seq = seq.unwrap_or(0);
        if seq < self.seen {
            self.went_back = Some((self.seen, seq));
        }
        self.seen = seq;
    }

    /// Handles the initial contents of a monitor, or the changes that an earlier client missed.
    fn take_first(
        &mut self,
        view: &View,
        outcomes: &dyn Outcomes,
        result: &Value,
    ) -> Result<(), String> {
        self.is_current = true;
        if self.version != Version::V3 {
            self.replica = Some(Tables::new());
            return self.apply(view, outcomes, result);
        }
        let Some([found, last, updates]) = result.as_array() else {
            return Err("not a triple".to_owned());
        };
        if *found != Value::Bool(true) || self.replica.is_none() {
            self.replica = Some(Tables::new());
        } else {
            self.continued += 1;
        }
        self.last_txn = uuid(last)?;
        self.apply(view, outcomes, updates)
    }

    fn apply(
        &mut self,
        view: &View,
        outcomes: &dyn Outcomes,
        updates: &Value,
    ) -> Result<(), String> {
        let replica = self.replica.as_mut().ok_or("updates before a content")?;
        let monitor = view.monitor(self.version);
        replica::apply(&view.schema, monitor, replica, updates)?;
        self.look_back();
        for number in self.shown_transactions() {
            if outcomes.is_void(number) {
                return Err(format!(
                    "transaction {number} is shown and has never happened"
                ));
            }
        }
        Ok(())
    }

    /// Returns the transactions that this server has sent to the client.
    pub(crate) fn shown_transactions(&self) -> BTreeSet<i64> {
        let replica = self.replica.iter().filter(|_| self.is_current);
        let heads = replica.filter_map(|tables| tables.get("Head"));
        let heads = heads.flat_map(BTreeMap::values);
        let txns = heads.filter_map(|head| head.get("txns"));
        txns.flat_map(Datum::keys)
            .filter_map(|atom| match atom {
                Atom::Integer(number) => Some(*number),
                _ => None,
            })
            .collect()
    }

    /// Checks that the replica equals the database's content.
    pub(crate) fn check_replica(&self, view: &View, database: &Database) -> Result<(), String> {
        let mut replica = self.replica.clone().ok_or("there is no replica")?;
        for name in view.schema.tables.keys() {
            replica.entry(name.clone()).or_default();
        }
        let content = view.content(database);
        if replica == content {
            Ok(())
        } else {
            Err(format!(
                "the replica of a {:?} monitor differs: {replica:?} instead of {content:?}",
                self.version
            ))
        }
    }
}

fn uuid(value: &Value) -> Result<Uuid, String> {
    let uuid = value.as_str().and_then(|text| Uuid::parse(text.as_bytes()));
    uuid.ok_or_else(|| format!("no identity: {value}"))
}
