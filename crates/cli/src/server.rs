//! The server: its address, the database, and requests over the connection.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use bstr::BString;
use corvid_data::{ColumnId, ColumnType, Datum, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Object, Reader, Value};
use corvid_net::dirs;
use corvid_net::tls::Credentials;
use corvid_rpc::remote::RemoteList;
use corvid_shell::blocking::Connection;
use corvid_shell::output;
use corvid_tools::leader::{self, DatabaseStatus};
use corvid_tools::past::{self, Past};
use corvid_tools::session::{Incoming, Session};

use crate::contents::{Clause, Found, Source};
use crate::failure::{Failure, Kind};
use crate::settings::Settings;
use crate::shell::prompt::Role;
use crate::transaction::{datum_json, operation};

/// The environment variables that name the servers of a database.
const VARIABLES: [(&str, &str); 4] = [
    ("OVN_Northbound", "OVN_NB_DB"),
    ("OVN_Southbound", "OVN_SB_DB"),
    ("OVN_IC_Northbound", "OVN_IC_NB_DB"),
    ("OVN_IC_Southbound", "OVN_IC_SB_DB"),
];

/// Rows that the server reports: tables by name, with rows by UUID.
#[derive(Debug)]
pub(crate) enum Update {
    /// As of `update`: whole new rows.
    Rows(Value),
    /// As of `update2`: what has changed in rows.
    Changes(Value),
}

/// The command that reads the past of a file, where no server can.
const AT_INSTEAD: &str = "ovsdb-tool query --at";

/// A connection, for one database.
pub(crate) struct Server {
    session: Session,
    database: String,
    /// Tables whose changes the server reports.
    watched: Vec<TableId>,
    /// The server reports changes, which somebody must read.
    is_reporting: bool,
    /// A transaction was sent whose result has not arrived.
    is_in_doubt: bool,
    /// The moment to read at; `None`: now.
    at: Option<String>,
    /// The reads of the commands so far.
    reads: Reads,
}

/// The reads so far: each `select` with its rows.
#[derive(Default)]
struct Reads {
    /// The reads, in order.
    done: Vec<(Value, Value)>,
    /// Rows of one moment by the text of their `select`, for commands that run again.
    snapshot: BTreeMap<String, Value>,
    /// A read was not in the snapshot.
    is_beyond: bool,
}

/// The moment to read at; `None`: now.
fn moment(settings: &Settings) -> Result<Option<String>, Failure> {
    let moment = settings.at.as_deref().map(past::moment).transpose();
    moment.map_err(|failure| Failure::usage(failure.to_string()))
}

/// The address: of the command line, of the database's environment variable, or the default.
pub(crate) fn address(settings: &Settings) -> String {
    let default = || format!("unix:{}", dirs::run().join("db.sock").display());
    settings
        .server
        .clone()
        .or_else(|| variable(settings))
        .unwrap_or_else(default)
}

/// The servers of an address.
///
/// # Errors
/// One of them is empty, or a socket has no name. In a list, it would only fail again and again.
pub(crate) fn list(address: &str) -> Result<RemoteList, Failure> {
    let list = RemoteList::parse(address);
    if list.has_empty_remote() {
        return Err(Failure::usage(format!(
            "\"{address}\" has an empty address: a comma stands only between two"
        )));
    }
    match list
        .remotes
        .iter()
        .find(|remote| remote.trim_end() == "unix:")
    {
        Some(_) => Err(Failure::usage(format!(
            "\"{address}\" names no socket: write unix:FILE"
        ))),
        None => Ok(list),
    }
}

/// The servers that the environment variable of the database names.
pub(crate) fn variable(settings: &Settings) -> Option<String> {
    let database = settings.database.as_deref()?;
    let (_, variable) = VARIABLES.iter().find(|(name, _)| *name == database)?;
    std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())
}

impl Server {
    /// Connects.
    ///
    /// # Errors
    /// No server can be reached.
    pub(crate) fn connect(settings: &Settings) -> Result<Server, Failure> {
        let address = address(settings);
        let list = list(&address)?;
        let session = match list.remotes.as_slice() {
            [only] if list.cluster_id.is_none() => {
                Session::open_until(only, &settings.credentials, None)
            }
            _ => {
                let database = settings.database.as_deref();
                leader::connect(&list, database, &settings.credentials, settings.leader_only)
            }
        };
        let session = session.map_err(|failure| Failure::connection(failure.to_string()))?;
        Ok(Server {
            session,
            database: String::new(),
            watched: Vec::new(),
            is_reporting: false,
            is_in_doubt: false,
            at: moment(settings)?,
            reads: Reads::default(),
        })
    }

    /// A second connection to a server for quick questions: it fails after this number of bytes, or
    /// at this time (monotonic ms).
    ///
    /// # Errors
    /// The server cannot be reached in this time.
    pub(crate) fn connect_briefly(
        remote: &str,
        database: &str,
        credentials: &Arc<Credentials>,
        bytes_max: usize,
        deadline_ms: u64,
    ) -> Result<Server, Failure> {
        let connection = Connection::open_with(remote, Some(deadline_ms), Some(credentials))?;
        Ok(Server {
            session: Session::over(connection.limited_to(bytes_max)).until(Some(deadline_ms)),
            database: database.to_owned(),
            watched: Vec::new(),
            is_reporting: false,
            is_in_doubt: false,
            at: None,
            reads: Reads::default(),
        })
    }

    /// Begins to read for a new command line: the reads of the one before, and its moment, are
    /// forgotten.
    ///
    /// # Errors
    /// The moment of `--at` is not one.
    pub(crate) fn begin_reading(&mut self, settings: &Settings) -> Result<(), Failure> {
        self.at = moment(settings)?;
        self.forget_reads();
        Ok(())
    }

    /// The address of the connected server.
    #[must_use]
    pub(crate) fn remote(&self) -> &str {
        self.session.name()
    }

    /// The descriptor that becomes readable when the server sends something.
    #[must_use]
    pub(crate) fn fd(&self) -> RawFd {
        self.session.fd()
    }

    /// Answers what the server has sent while no command runs: its probes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn answer_probes(&mut self) -> Result<(), Failure> {
        loop {
            match self.session.poll() {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => {}
                Err(failure) => return Err(Failure::connection(failure.to_string())),
            }
        }
    }

    /// Whether more has arrived than a brief connection may receive.
    #[must_use]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.session.is_exhausted()
    }

    /// Whether the server keeps reporting changes of rows, so that the connection should be closed
    /// when nobody reads it.
    #[must_use]
    pub(crate) fn is_reporting(&self) -> bool {
        self.is_reporting
    }

    /// Whether a transaction was sent whose result has not arrived: it may be committed.
    #[must_use]
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// As [`Server::databases`], by this time (monotonic ms).
    ///
    /// # Errors
    /// As for [`Server::databases`], or the time has passed.
    pub(crate) fn databases_by(&mut self, deadline_ms: u64) -> Result<Vec<String>, Failure> {
        self.session.set_deadline(Some(deadline_ms));
        let names = self.databases();
        self.session.set_deadline(None);
        names
    }

    /// The schema of a database, by this time (monotonic ms).
    ///
    /// # Errors
    /// As for [`Server::schema`], or the time has passed.
    pub(crate) fn schema_by(
        &mut self,
        database: &str,
        deadline_ms: u64,
    ) -> Result<Schema, Failure> {
        self.session.set_deadline(Some(deadline_ms));
        let schema = self.session.schema(database);
        self.session.set_deadline(None);
        schema.map_err(|failure| Failure::connection(failure.to_string()))
    }

    /// The role of the server for a database, if it tells one by this time (monotonic ms).
    ///
    /// # Errors
    /// The connection broke, or the time has passed.
    pub(crate) fn role(
        &mut self,
        database: &str,
        deadline_ms: u64,
    ) -> Result<Option<Role>, Failure> {
        self.session.set_deadline(Some(deadline_ms));
        let status = leader::database_status(&mut self.session, database);
        self.session.set_deadline(None);
        let status = status.map_err(|failure| Failure::connection(failure.to_string()))?;
        let DatabaseStatus::Row(row) = status else {
            return Ok(None);
        };
        let is = |column: &str| row.get(column).and_then(Value::as_bool).unwrap_or(false);
        let model = row.get("model").and_then(Value::as_str);
        Ok(Role::of(model, is("leader"), is("connected")))
    }

    /// Chooses the database: the wanted one, or the only one.
    ///
    /// # Errors
    /// There is no such database.
    pub(crate) fn choose(&mut self, wanted: Option<&str>) -> Result<(), Failure> {
        self.database = database(&mut self.session, wanted)?;
        Ok(())
    }

    /// The name of the chosen database.
    #[must_use]
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// The databases that the server serves, sorted.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn databases(&mut self) -> Result<Vec<String>, Failure> {
        let names = self.session.list_dbs();
        names.map_err(|failure| Failure::connection(failure.to_string()))
    }

    /// The schema of the database.
    ///
    /// # Errors
    /// The connection broke, or the reply is not a schema.
    pub(crate) fn schema(&mut self) -> Result<Schema, Failure> {
        if let Some(moment) = &self.at {
            return Past::of(&mut self.session, &self.database, AT_INSTEAD)
                .and_then(|mut past| past.schema_at(moment))
                .map_err(|failure| Failure::no_match(failure.to_string()));
        }
        self.session
            .schema(&self.database)
            .map_err(|failure| Failure::connection(failure.to_string()))
    }

    /// The schema of the database as the server sent it.
    ///
    /// # Errors
    /// The connection broke, or the server refused.
    pub(crate) fn schema_json(&mut self) -> Result<Value, Failure> {
        let params = Value::Array(vec![Value::string(&self.database)]);
        let schema = self.session.call("get_schema", &params);
        schema.map_err(|failure| Failure::connection(failure.to_string()))
    }

    /// Executes a transaction, and returns the results of its operations, of which none is an
    /// error. A `wait` that failed is a [`Kind::Conflict`].
    ///
    /// # Errors
    /// The connection broke, or the server refused.
    pub(crate) fn transact(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, Failure> {
        Server::check(self.execute(operations)?)
    }

    /// As [`Server::transact`], for a transaction with changes. If it fails without a result,
    /// [`Server::is_in_doubt`] tells that it may be committed.
    ///
    /// # Errors
    /// As for [`Server::transact`].
    pub(crate) fn commit(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, Failure> {
        self.is_in_doubt = true;
        let results = self.execute(operations);
        let is_answered = !matches!(&results, Err(failure) if failure.kind == Kind::Connection);
        self.is_in_doubt = !is_answered;
        Server::check(results?)
    }

    /// The results of operations that only read, now or at the moment of `--at`.
    ///
    /// # Errors
    /// As for [`Server::transact`].
    fn read(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, Failure> {
        let Some(moment) = &self.at else {
            return self.transact(operations);
        };
        let results = Past::of(&mut self.session, &self.database, AT_INSTEAD)
            .and_then(|mut past| past.select_at(moment, operations))
            .map_err(|failure| Failure::no_match(failure.to_string()))?;
        match results {
            Value::Array(results) => Server::check(results),
            _ => Err(strange("results that are not an array")),
        }
    }

    /// Executes a transaction, and returns the results of its operations, errors among them.
    ///
    /// # Errors
    /// The connection broke, or the server refused the request as a whole.
    pub(crate) fn execute(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, Failure> {
        let mut params = vec![Value::string(&self.database)];
        params.extend(operations);
        let reply = self
            .session
            .transact("transact", &Value::Array(params))
            .map_err(|failure| Failure::connection(failure.to_string()))?;
        match reply {
            Ok(Value::Array(results)) => Ok(results),
            Ok(other) | Err(other) => Err(Failure::new(
                Kind::Refused,
                format!("transaction returned error: {other}"),
            )),
        }
    }

    /// The results, if none of them is an error.
    ///
    /// # Errors
    /// One is.
    pub(crate) fn check(results: Vec<Value>) -> Result<Vec<Value>, Failure> {
        match results
            .iter()
            .find_map(|result| Some((result, result.get("error")?)))
        {
            None => Ok(results),
            Some((result, tag)) => {
                let kind = match tag.as_str() {
                    Some("timed out") => Kind::Conflict,
                    _ => Kind::Refused,
                };
                Err(Failure::new(kind, format!("transaction error: {result}")))
            }
        }
    }

    /// Asks the server to report the rows of a table that satisfy all clauses, and their changes.
    /// A server without conditional monitoring reports all rows. Returns the present rows.
    ///
    /// # Errors
    /// The connection broke, or the server refused.
    pub(crate) fn monitor(
        &mut self,
        schema: &Schema,
        table: TableId,
        columns: &[ColumnId],
        clauses: &[Clause],
    ) -> Result<Update, Failure> {
        self.is_reporting = true;
        let table = schema.table(table);
        let names = columns
            .iter()
            .map(|id| Value::string(&*table.column(*id).name));
        let mut request = Object::from([(BString::from("columns"), Value::Array(names.collect()))]);
        let params = |request: Object| {
            let requests =
                Object::from([(BString::from(table.name.as_bytes()), Value::Object(request))]);
            Value::Array(vec![
                Value::string(&self.database),
                Value::Null,
                Value::Object(requests),
            ])
        };
        let plain = params(request.clone());
        if !clauses.is_empty() {
            request.insert(BString::from("where"), clauses_json(table, clauses));
        }
        let conditional = params(request);
        let broken =
            |failure: corvid_tools::failure::Failure| Failure::connection(failure.to_string());
        let reply = self
            .session
            .transact("monitor_cond", &conditional)
            .map_err(broken)?;
        if let Ok(rows) = reply {
            return Ok(Update::Changes(rows));
        }
        let rows = self.session.call("monitor", &plain).map_err(broken)?;
        Ok(Update::Rows(rows))
    }

    /// Waits for the next update of [`Server::monitor`]. `None`: nobody reads standard output any
    /// more.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn next_update(&mut self) -> Result<Option<Update>, Failure> {
        loop {
            let incoming = self.session.poll();
            match incoming.map_err(|failure| Failure::connection(failure.to_string()))? {
                Some(Incoming::Notification(method, mut params)) if params.len() == 2 => {
                    match method.as_str() {
                        "update" => return Ok(Some(Update::Rows(params.remove(1)))),
                        "update2" => return Ok(Some(Update::Changes(params.remove(1)))),
                        _ => {}
                    }
                }
                Some(_) => {}
                None if output::await_input(self.session.fd())? => {}
                None => return Ok(None),
            }
        }
    }

    /// Waits until a row of these tables has changed since the last read. The first call for a
    /// table only asks the server to report its changes, and returns at once.
    ///
    /// # Errors
    /// The connection broke, or the server refused to report.
    pub(crate) fn wait_for_change(
        &mut self,
        schema: &Schema,
        tables: &[TableId],
    ) -> Result<(), Failure> {
        let broken =
            |failure: corvid_tools::failure::Failure| Failure::connection(failure.to_string());
        let new: Vec<TableId> = tables
            .iter()
            .copied()
            .filter(|table| !self.watched.contains(table))
            .collect();
        if !new.is_empty() {
            self.is_reporting = true;
            let requests = new.iter().map(|id| {
                let select = Value::Object(Object::from([(
                    BString::from("initial"),
                    Value::Bool(false),
                )]));
                let request = Value::Object(Object::from([(BString::from("select"), select)]));
                (BString::from(schema.table(*id).name.as_bytes()), request)
            });
            let params = vec![
                Value::string(&self.database),
                Value::Integer(i64::try_from(self.watched.len()).unwrap_or(i64::MAX)),
                Value::Object(requests.collect::<Object>()),
            ];
            self.session
                .call("monitor", &Value::Array(params))
                .map_err(broken)?;
            self.watched.extend(new);
            return Ok(());
        }
        // A notification that arrived between two reads may concern the first of them.
        if self.session.take_dropped() > 0 {
            return Ok(());
        }
        loop {
            if let Incoming::Notification(..) = self.session.receive().map_err(broken)? {
                break;
            }
        }
        // The next read sees the changes of other notifications that have arrived.
        while self.session.poll().map_err(broken)?.is_some() {}
        Ok(())
    }

    /// Forgets what was read, and the notifications that arrived so far: the next read sees what
    /// they announced.
    pub(crate) fn forget_reads(&mut self) {
        self.session.take_dropped();
        self.reads = Reads::default();
    }

    /// Whether everything that was read is as at one moment. If not, it is read again in one
    /// transaction, from which commands that run again get their rows.
    ///
    /// # Errors
    /// The connection broke, or the server refused.
    pub(crate) fn reads_are_of_one_moment(&mut self) -> Result<bool, Failure> {
        let Reads {
            done, is_beyond, ..
        } = std::mem::take(&mut self.reads);
        // One transaction has read all of it.
        if done.len() < 2 || !is_beyond {
            return Ok(true);
        }
        let selects = done.iter().map(|(select, _)| select.clone());
        let results = self.read(selects.collect())?;
        let mut is_same = true;
        for ((select, before), result) in done.into_iter().zip(results) {
            let rows = rows_of(result)?;
            is_same &= sorted(&before) == sorted(&rows);
            self.reads.snapshot.insert(select.to_string(), rows);
        }
        Ok(is_same)
    }
}

impl Source for Server {
    fn select(
        &mut self,
        table: &TableSchema,
        clauses: &[Clause],
        columns: &[ColumnId],
    ) -> Result<Vec<Found>, Failure> {
        let names = columns
            .iter()
            .map(|id| Value::string(&*table.column(*id).name));
        let select = operation(
            "select",
            [
                ("table", Value::string(&*table.name)),
                ("where", clauses_json(table, clauses)),
                (
                    "columns",
                    Value::Array(
                        std::iter::once(Value::string("_uuid"))
                            .chain(names)
                            .collect(),
                    ),
                ),
            ],
        );
        let rows = match self.reads.snapshot.get(&select.to_string()) {
            Some(rows) => rows.clone(),
            None => {
                let mut results = self.read(vec![select.clone()])?;
                self.reads.is_beyond = true;
                rows_of(results.pop().unwrap_or(Value::Null))?
            }
        };
        let of = |row: &Value| found(row, table, columns);
        let found = rows.as_array().into_iter().flatten().map(of).collect();
        self.reads.done.push((select, rows));
        found
    }
}

/// Clauses as the server takes them.
fn clauses_json(table: &TableSchema, clauses: &[Clause]) -> Value {
    let clauses = clauses.iter().map(|clause| {
        let column = table.column(clause.column);
        Value::Array(vec![
            Value::string(&*column.name),
            Value::string(clause.function.name()),
            datum_json(&clause.argument, column.column_type.is_map()),
        ])
    });
    Value::Array(clauses.collect())
}

/// The rows of a result.
fn rows_of(result: Value) -> Result<Value, Failure> {
    match result {
        Value::Object(mut members) => members.remove("rows".as_bytes()),
        _ => None,
    }
    .filter(|rows| rows.as_array().is_some())
    .ok_or_else(|| strange("a `select` without rows"))
}

/// Rows in an order that does not depend on the server.
fn sorted(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    let mut texts: Vec<String> = rows.map(ToString::to_string).collect();
    texts.sort();
    texts
}

/// A row of a result.
fn found(row: &Value, table: &TableSchema, columns: &[ColumnId]) -> Result<Found, Failure> {
    let value = |name: &str, column_type: &ColumnType| -> Result<Datum, Failure> {
        let json = row
            .get(name)
            .ok_or_else(|| strange("a row that lacks a column"))?;
        datum(json, column_type)
    };
    let of = |id: &ColumnId| {
        let column = table.column(*id);
        value(&column.name, &column.column_type)
    };
    let uuid = of(&ColumnId::UUID)?;
    Ok(Found {
        uuid: uuid.as_uuid().unwrap_or(Uuid::ZERO),
        values: columns.iter().map(of).collect::<Result<_, _>>()?,
    })
}

/// Whether a value is one of a type, constraints included.
#[must_use]
pub(crate) fn fits(value: &Datum, is_map: bool, column_type: &ColumnType) -> bool {
    let json = datum_json(value, is_map).to_bytes();
    wire::read_datum(&mut Reader::new(&json), column_type, None).is_ok()
}

/// A difference that the server sent.
///
/// # Errors
/// It is not one of the type.
pub(crate) fn difference(json: &Value, column_type: &ColumnType) -> Result<Datum, Failure> {
    let any = ColumnType {
        min: 0,
        max: match column_type.is_composite() {
            true => ColumnType::UNLIMITED,
            false => column_type.max,
        },
        ..column_type.clone()
    };
    datum(json, &any)
}

/// A value that the server sent.
///
/// # Errors
/// It is not one of the type.
pub(crate) fn datum(json: &Value, column_type: &ColumnType) -> Result<Datum, Failure> {
    wire::read_datum_unconstrained(&mut Reader::new(&json.to_bytes()), column_type, None)
        .map_err(|error| strange(&error.to_string()))
}

pub(crate) fn strange(what: &str) -> Failure {
    Failure::new(
        Kind::Refused,
        format!("the server's reply is not valid: {what}"),
    )
}

/// The database: the wanted one, or the only one.
fn database(session: &mut Session, wanted: Option<&str>) -> Result<String, Failure> {
    let served = session
        .list_dbs()
        .map_err(|failure| Failure::connection(failure.to_string()))?;
    if let Some(wanted) = wanted {
        if served.iter().any(|name| name == wanted) {
            return Ok(wanted.to_owned());
        }
        let failure = Failure::usage(format!("server does not have {wanted} database"));
        return Err(failure.suggesting(wanted, served.iter().map(String::as_str)));
    }
    let own: Vec<&str> = served
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with('_'))
        .collect();
    match own.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(Failure::usage("the server serves no database")),
        several => Err(Failure::usage(format!(
            "the server serves several databases, choose one with --database: {}",
            several.join(", ")
        ))),
    }
}
