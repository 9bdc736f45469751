//! The client: a replica behind a lock, and the session that keeps it up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use corvid::fork::{Lock, LockError};
use corvid::polled;

use corvid::json::Value;
use corvid::{
    Authority, Class, Column, Condition, Credentials, Misuse, Resync, RowId, Settings, Setup,
    TableId,
};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyType};

use crate::change::Watch;
use crate::condition;
use crate::error;
use crate::history::History;
use crate::index::Index;
use crate::logging;
use crate::row::Row;
use crate::row_class::RowClass;
use crate::row_objects::RowObjects;
use crate::schema::Schema;
use crate::session::Session;
use crate::transaction::Transaction;
use crate::value;

/// The state that a client's lock protects.
pub(crate) struct State {
    pub(crate) client: polled::Client,
}

/// A client of one database, without a way to wait.
#[pyclass(frozen, weakref, module = "corvid._native")]
pub(crate) struct Client {
    pub(crate) schema: Schema,
    /// The source of the rows' objects.
    pub(crate) rows: RowObjects,
    /// Columns that programs may not write, though the database lets them.
    pub(crate) read_only: BTreeSet<Column>,
    /// Columns that refer to tables that the client does not know, with the names of these.
    pub(crate) unregistered: BTreeMap<Column, String>,
    state: Lock<State>,
}

impl Client {
    /// Does something under the lock. It must make and destroy no Python object.
    ///
    /// # Panics
    /// An earlier panic has left the client in the middle of something.
    pub(crate) fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> R) -> R {
        match self.lock(py) {
            Ok(mut state) => work(&mut state),
            Err(error) => panic!("{error}"),
        }
    }

    /// The same, without a panic: `None` after one, and in a forked child if a thread of the parent
    /// held the lock.
    pub(crate) fn try_with<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> R,
    ) -> Option<R> {
        self.lock(py).ok().map(|mut state| work(&mut state))
    }

    /// Waits for the lock without the GIL.
    fn lock(&self, py: Python<'_>) -> Result<MutexGuard<'_, State>, LockError> {
        loop {
            match self.state.try_lock()? {
                Some(state) => return Ok(state),
                None => py.detach(|| drop(self.state.lock())),
            }
        }
    }
}

impl Client {
    /// Does all work that needs no waiting, without the GIL.
    fn work(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut polled::Client) -> Result<bool, Misuse> + Send,
    ) -> PyResult<bool> {
        let outcome = py.detach(|| {
            let mut state = match self.state.lock() {
                Ok(state) => state,
                Err(LockError::LeftLocked) => return Err(Misuse::Forked),
                Err(LockError::Poisoned) => panic!("{}", LockError::Poisoned),
            };
            run(&mut state.client)
        });
        outcome.map_err(|misuse| error::usage(py, misuse.to_string()))
    }

    fn send_condition(
        &self,
        py: Python<'_>,
        table: TableId,
        condition: Condition,
    ) -> PyResult<u64> {
        let outcome = self.with(py, |state| state.client.set_condition((table, condition)));
        outcome.map_err(|misuse| error::condition(py, &misuse, self.schema.table_name(table)))
    }
}

/// Describes how a client treats its columns: table, then column, then "read", "write" or
/// "on_demand".
fn class_of(schema: &Schema, columns: &Bound<'_, PyDict>) -> PyResult<Class> {
    let py = columns.py();
    let mut class = Class::new(schema.schema.clone());
    class.set_strict(false);
    for (table, modes) in columns.iter() {
        let table = schema.table_id(py, &table.extract::<String>()?)?;
        class.add_table(table);
        for (column, mode) in modes.cast_into::<PyDict>()?.iter() {
            let column = schema.column_key(py, table, &column.extract::<String>()?)?;
            match mode.extract::<String>()?.as_str() {
                "read" => class.add_column(column),
                "write" => {
                    class.add_column(column);
                    class.omit_alert(column);
                }
                "on_demand" => class.on_demand(column),
                mode => {
                    let text = format!(
                        "unknown mode {mode:?}: expected \"read\", \"write\" or \"on_demand\""
                    );
                    return Err(error::usage(py, text));
                }
            }
        }
    }
    Ok(class)
}

/// The credentials in these files; `None` without any.
fn credentials_of(
    private_key: Option<String>,
    certificate: Option<String>,
    ca_cert: Option<String>,
) -> Option<Arc<Credentials>> {
    let has_files = private_key.is_some() || certificate.is_some() || ca_cert.is_some();
    let settings = Settings {
        private_key,
        certificate,
        authority: ca_cert.map(|file| Authority {
            file,
            is_bootstrapped: false,
        }),
        ..Settings::default()
    };
    has_files.then(|| Credentials::new(&settings))
}

/// Classes by the names of tables. Those of tables that the schema does not have are for other
/// versions of it.
fn row_classes_of(
    schema: &Schema,
    classes: Option<&Bound<'_, PyDict>>,
) -> PyResult<BTreeMap<TableId, Py<PyType>>> {
    let mut found = BTreeMap::new();
    for (name, class) in classes.into_iter().flat_map(PyDictMethods::iter) {
        let class = class.cast_into::<PyType>()?;
        if !class.is_subclass_of::<Row>()? {
            let text = format!("{class} is not a row class: derive it from corvid.Row");
            return Err(error::usage(class.py(), text));
        }
        if let Some(table) = schema.schema.table_id(&name.extract::<String>()?) {
            found.insert(table, class.unbind());
        }
    }
    Ok(found)
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (schema, remotes, columns, *, leader_only=true, retry=true, shuffle=true, probe_interval=None, lock=None,
                        private_key=None, certificate=None, ca_cert=None, check_remotes=true, row_classes=None,
                        live_rows=None, read_only=None, unregistered=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        schema: &Schema,
        remotes: &str,
        columns: &Bound<'_, PyDict>,
        leader_only: bool,
        retry: bool,
        shuffle: bool,
        probe_interval: Option<f64>,
        lock: Option<String>,
        private_key: Option<String>,
        certificate: Option<String>,
        ca_cert: Option<String>,
        check_remotes: bool,
        row_classes: Option<&Bound<'_, PyDict>>,
        live_rows: Option<Py<PyAny>>,
        read_only: Option<Vec<(String, String)>>,
        unregistered: Option<Vec<(String, String, String)>>,
    ) -> PyResult<Client> {
        let setup = Setup {
            credentials: credentials_of(private_key, certificate, ca_cert),
            is_leader_only: leader_only,
            is_persistent: retry,
            is_shuffled: shuffle,
            probe_interval: probe_interval
                .map(|seconds| duration(py, seconds))
                .transpose()?,
            lock,
            are_remotes_checked: check_remotes,
        };
        let class = class_of(schema, columns)?;
        let mut client = polled::Client::connect_with(class, remotes, &setup)
            .map_err(|error| error::connecting(py, &error))?;
        let rows = match live_rows {
            None => RowObjects::handles(row_classes_of(schema, row_classes)?),
            Some(make) => {
                // Programs of `ovs` see the state after each message, and all rows anew after a
                // reconnection.
                client.idl_mut().session().set_messages_max(1);
                client.idl_mut().set_resync(Resync::Reload);
                RowObjects::live(make)
            }
        };
        let key = |table: &str, column: &str| {
            let table = schema.table_id(py, table)?;
            schema.column_key(py, table, column)
        };
        let read_only = read_only.unwrap_or_default().into_iter();
        let read_only = read_only.map(|(table, column)| key(&table, &column));
        let unregistered = unregistered.unwrap_or_default().into_iter();
        let unregistered =
            unregistered.map(|(table, column, target)| Ok((key(&table, &column)?, target)));
        Ok(Client {
            schema: schema.clone(),
            rows,
            read_only: read_only.collect::<PyResult<_>>()?,
            unregistered: unregistered.collect::<PyResult<_>>()?,
            state: Lock::new(State { client }),
        })
    }

    /// Sets the files for TLS, from the next connection on.
    #[pyo3(signature = (private_key=None, certificate=None, ca_cert=None))]
    fn set_tls_files(
        &self,
        py: Python<'_>,
        private_key: Option<String>,
        certificate: Option<String>,
        ca_cert: Option<String>,
    ) {
        let credentials = credentials_of(private_key, certificate, ca_cert);
        self.with(py, |state| state.client.set_credentials(credentials));
    }

    /// Whether each message of the session is logged at level DEBUG, from now on.
    fn show_messages(&self, py: Python<'_>, shows_messages: bool) {
        if shows_messages {
            logging::show_debug();
        }
        self.with(py, |state| {
            let session = state.client.idl_mut().session();
            session.show_messages(shows_messages);
        });
    }

    /// Does all work that needs no waiting. Returns whether something changed.
    fn run(&self, py: Python<'_>) -> PyResult<bool> {
        self.work(py, polled::Client::run)
    }

    /// As `run`, but returns as soon as something has changed: call it again until it returns
    /// False.
    fn run_until_change(&self, py: Python<'_>) -> PyResult<bool> {
        self.work(py, polled::Client::run_until_change)
    }

    /// Raises `UsageError` in a process that was forked after the client began to connect.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, |client| client.check_process().map(|()| false))?;
        Ok(())
    }

    /// The events to wait for: descriptor, readable, writable, seconds.
    fn wait(&self, py: Python<'_>) -> (Option<i32>, bool, bool, Option<f64>) {
        let wait = self.with(py, |state| state.client.wait());
        let seconds = wait.timeout.map(|timeout| timeout.as_secs_f64());
        (wait.fd, wait.readable, wait.writable, seconds)
    }

    /// Ends the session.
    fn close(&self, py: Python<'_>) {
        // In a forked child there is nothing to close.
        self.try_with(py, |state| {
            let now_ms = state.client.now_ms();
            state
                .client
                .idl_mut()
                .session()
                .set_remote(now_ms, "", false);
            // Has the connection closed.
            let _ = state.client.wait();
        });
    }

    #[getter]
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    /// The schema of the last server.
    fn server_schema(&self, py: Python<'_>) -> Option<Schema> {
        let schema = self.with(py, |state| state.client.idl().server_schema().cloned())?;
        Some(Schema { schema })
    }

    #[getter]
    fn seqno(&self, py: Python<'_>) -> u64 {
        self.with(py, |state| state.client.idl().change_seqno())
    }

    #[getter]
    fn session(&self, py: Python<'_>) -> Session {
        self.with(py, |state| Session::of(&state.client.session()))
    }

    fn set_remotes(&self, py: Python<'_>, remotes: &str) -> PyResult<()> {
        let outcome = self.with(py, |state| state.client.set_remotes(remotes));
        outcome.map_err(|error| error::remote(py, error.to_string()))
    }

    fn set_leader_only(&self, py: Python<'_>, leader_only: bool) {
        self.with(py, |state| state.client.set_leader_only(leader_only));
    }

    #[pyo3(signature = (interval))]
    fn set_probe_interval(&self, py: Python<'_>, interval: Option<f64>) -> PyResult<()> {
        let interval = interval.map(|seconds| duration(py, seconds)).transpose()?;
        self.with(py, |state| state.client.set_probe_interval(interval));
        Ok(())
    }

    #[pyo3(signature = (name))]
    fn set_lock(&self, py: Python<'_>, name: Option<&str>) -> PyResult<()> {
        let outcome = self.with(py, |state| state.client.set_lock(name));
        outcome.map_err(|misuse| error::usage(py, misuse.to_string()))
    }

    fn reconnect(&self, py: Python<'_>) {
        self.with(py, |state| state.client.reconnect());
    }

    /// The rows of a table.
    fn rows(slf: &Bound<'_, Client>, table: &str) -> PyResult<Vec<Py<Row>>> {
        let (py, client) = (slf.py(), slf.get());
        let table = client.schema.table_id(py, table)?;
        let rows: Vec<RowId> = client.with(py, |state| state.client.idl().rows(table).collect());
        rows_of(slf, &rows)
    }

    fn row_count(&self, py: Python<'_>, table: &str) -> PyResult<usize> {
        let table = self.schema.table_id(py, table)?;
        Ok(self.with(py, |state| state.client.idl().row_count(table)))
    }

    /// A row by UUID.
    fn row(
        slf: &Bound<'_, Client>,
        table: &str,
        uuid: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<Row>>> {
        let (py, client) = (slf.py(), slf.get());
        let table = client.schema.table_id(py, table)?;
        let uuid = value::uuid_of(uuid)?;
        let row = client.with(py, |state| state.client.idl().row(table, uuid));
        row.map(|row| Row::object(py, slf.as_unbound(), row))
            .transpose()
    }

    /// Opens a transaction.
    fn begin(slf: &Bound<'_, Client>) -> PyResult<Transaction> {
        Transaction::begin(slf)
    }

    /// An index over columns, of which those with a leading "-" descend.
    fn add_index(
        slf: &Bound<'_, Client>,
        table: &str,
        columns: &Bound<'_, PyAny>,
    ) -> PyResult<Index> {
        let columns: Vec<String> = columns.extract()?;
        Index::add(slf, table, &columns)
    }

    /// Sets the condition of a table: clauses of column, function and value, or `None` for all
    /// rows. Returns the number to wait for.
    #[pyo3(signature = (table, clauses))]
    fn set_condition(
        &self,
        py: Python<'_>,
        table: &str,
        clauses: Option<Vec<(String, String, Bound<'_, PyAny>)>>,
    ) -> PyResult<u64> {
        let table = self.schema.table_id(py, table)?;
        let condition = condition::condition_of(py, &self.schema, table, clauses)?;
        self.send_condition(py, table, condition)
    }

    /// As `set_condition`, with a condition as JSON: an array of clauses and booleans.
    fn set_condition_json(&self, py: Python<'_>, table: &str, json: &str) -> PyResult<u64> {
        let table = self.schema.table_id(py, table)?;
        let condition = Value::parse(json.as_bytes()).ok();
        let condition = condition.and_then(|value| Condition::from_json(&value));
        let condition =
            condition.ok_or_else(|| error::usage(py, format!("{json} is not a condition")))?;
        self.send_condition(py, table, condition)
    }

    /// The server's error, if the number is that of the last change of conditions that it refused.
    fn condition_refusal(&self, py: Python<'_>, promise: u64) -> Option<String> {
        self.with(py, |state| {
            let refusal = state.client.idl().condition_refusal(promise);
            refusal.map(str::to_owned)
        })
    }

    fn set_cluster_id(&self, py: Python<'_>, cluster_id: Option<String>) {
        self.with(py, |state| {
            let now_ms = state.client.now_ms();
            let session = state.client.idl_mut().session();
            session.set_cluster_id(now_ms, cluster_id);
        });
    }

    /// The list of remotes.
    #[getter]
    fn remotes(&self, py: Python<'_>) -> Vec<String> {
        self.with(py, |state| {
            state.client.idl().session_state().remotes().to_vec()
        })
    }

    /// The id of the last transaction that the contents include.
    #[getter]
    fn last_id(&self, py: Python<'_>) -> String {
        self.with(py, |state| {
            state.client.idl().session_state().last_id().to_string()
        })
    }

    /// Grows whenever rows were dropped without a notification.
    #[getter]
    fn resync_epoch(&self, py: Python<'_>) -> u64 {
        self.with(py, |state| state.client.idl().resync_epoch())
    }

    /// The object of a row is not that of the row any more.
    fn forget_row(&self, row: &Row) {
        self.rows.forget(row.id);
    }

    /// The class of a table's rows: `base` with an attribute for each column.
    fn row_class<'py>(
        &self,
        table: &str,
        base: &Bound<'py, PyType>,
    ) -> PyResult<Bound<'py, PyType>> {
        let table = self.schema.table_id(base.py(), table)?;
        let py = base.py();
        let derive = || RowClass::derive(base, &self.schema, table);
        Ok(self.rows.class_of(py, table, derive)?.class(py))
    }

    /// No row has an object any more.
    fn forget_rows(&self) {
        self.rows.clear();
    }

    /// Whether the replica has a row.
    fn has_row(&self, py: Python<'_>, table: &str, uuid: &Bound<'_, PyAny>) -> PyResult<bool> {
        let table = self.schema.table_id(py, table)?;
        let uuid = value::uuid_of(uuid)?;
        Ok(self.with(py, |state| state.client.idl().row(table, uuid).is_some()))
    }

    /// The UUIDs of a table's rows.
    fn uuids<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let table = self.schema.table_id(py, table)?;
        let rows: Vec<RowId> = self.with(py, |state| state.client.idl().rows(table).collect());
        let uuids = rows.into_iter();
        uuids
            .map(|row| value::uuid_to_python(py, row.uuid))
            .collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.rows.traverse(&visit)
    }

    fn __clear__(&self) {
        self.rows.clear_all();
    }

    #[getter]
    fn condition_seqno(&self, py: Python<'_>) -> u64 {
        self.with(py, |state| state.client.idl().condition_seqno())
    }

    /// Collects the changes of tables from now on.
    fn watch(slf: &Bound<'_, Client>, tables: &Bound<'_, PyAny>) -> PyResult<Watch> {
        let tables: Vec<String> = tables.extract()?;
        Watch::begin(slf, &tables)
    }

    /// Asks for values on demand: of a column of a row, of a column of all rows, or of all columns
    /// on demand of a table.
    #[pyo3(signature = (table, column, row))]
    fn fetch(
        &self,
        py: Python<'_>,
        table: &str,
        column: Option<&str>,
        row: Option<&Row>,
    ) -> PyResult<u64> {
        let table = self.schema.table_id(py, table)?;
        let column = column.map(|name| self.schema.column_key(py, table, name));
        let column = column.transpose()?;
        let begun = self.with(py, |state| {
            let idl = state.client.idl_mut();
            match (row, column) {
                (Some(row), Some(column)) => idl.fetch_row(row.id, column),
                (None, Some(column)) => idl.fetch_column(column),
                (_, None) => idl.fetch_table(table),
            }
        });
        let id = begun.map_err(|error| error::fetch(py, error))?;
        Ok(id.0)
    }

    /// Whether a fetch has ended, and the error if it failed.
    fn fetch_outcome(&self, py: Python<'_>, fetch: u64) -> (bool, Option<String>) {
        use corvid::FetchOutcome;
        let id = corvid::FetchId(fetch);
        let outcome = self.with(py, |state| state.client.idl_mut().take_fetch_outcome(id));
        match outcome {
            Some(FetchOutcome::Pending) => (false, None),
            Some(FetchOutcome::Success) => (true, None),
            Some(FetchOutcome::RowGone) | None => (true, Some("the row is gone".to_owned())),
            Some(FetchOutcome::Error(text)) => (true, Some(text)),
            Some(FetchOutcome::Disconnected) => (true, Some("the connection was lost".to_owned())),
        }
    }

    /// Begins to read the history: what to read, and the members of the question.
    #[pyo3(signature = (read, members, newest))]
    fn read_history(
        slf: &Bound<'_, Client>,
        read: &str,
        members: Vec<(String, String)>,
        newest: Option<usize>,
    ) -> PyResult<History> {
        History::read(slf, read, members, newest)
    }

    /// Begins to query the contents at a moment; the operations are a JSON array.
    fn select_at(slf: &Bound<'_, Client>, moment: &str, operations: &str) -> PyResult<History> {
        History::select(slf, moment, operations)
    }

    /// Counters of the client, by name.
    fn metrics(&self, py: Python<'_>) -> Vec<(&'static str, u64)> {
        self.with(py, |state| {
            let metrics = state.client.idl().metrics();
            metrics.named().collect()
        })
    }
}

/// Rows as Python objects.
pub(crate) fn rows_of(client: &Bound<'_, Client>, rows: &[RowId]) -> PyResult<Vec<Py<Row>>> {
    (client.get().rows).objects(client.py(), client.as_unbound(), rows)
}

fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| error::usage(py, format!("expected a time in seconds, not {seconds}")))
}
