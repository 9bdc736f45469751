//! Chooses, from several servers, the first that is reachable, serves the database and is suitable
//! (docs/spec/cli.md 3.1).
//!
//! Each address is tried once, in the order given. A server's row in `_Server` shows whether it is
//! connected to its cluster and leads it. A server without that database is accepted.

use std::sync::Arc;

use bstr::BString;
use corvid_json::{Object, Value};
use corvid_net::tls::Credentials;
use corvid_net::{clock, errno, logging};
use corvid_rpc::backoff::MIN_MS;
use corvid_rpc::log_event::{End, Level, LogEvent};
use corvid_rpc::remote::RemoteList;
use corvid_shell::blocking::Connection;
use corvid_shell::vlog::{self, Module};

use crate::failure::Failure;
use crate::session::Session;

/// Opens a session with the first suitable server. With `database: None`, any reachable server is
/// suitable.
///
/// # Errors
/// No server is suitable: `no servers were available`.
pub fn connect(
    list: &RemoteList,
    database: Option<&str>,
    credentials: &Arc<Credentials>,
    leader_only: bool,
) -> Result<Session, Failure> {
    for remote in &list.remotes {
        let Some(mut session) = attempt(remote, credentials) else {
            continue;
        };
        let refusal = match database {
            None => None,
            Some(database) => refusal(
                &mut session,
                database,
                list.cluster_id.as_deref(),
                leader_only,
            ),
        };
        match refusal {
            None => return Ok(session),
            Some(reason) => {
                vlog::info(
                    Module::OvsdbClient,
                    format_args!("{remote}: {reason}; trying another server"),
                );
                report(remote, &LogEvent::ClosedByClient);
            }
        }
    }
    Err(Failure::new("no servers were available"))
}

fn attempt(remote: &str, credentials: &Arc<Credentials>) -> Option<Session> {
    report(remote, &LogEvent::Connecting);
    match Connection::open_with(remote, Some(clock::mono_ms() + MIN_MS), Some(credentials)) {
        Ok(connection) => {
            report(remote, &LogEvent::Connected);
            Some(Session::over(connection))
        }
        Err(error) => {
            let end = match error.kind() {
                std::io::ErrorKind::TimedOut if error.raw_os_error().is_none() => End::Local,
                _ => End::Failed(errno::text(&error)),
            };
            report(
                remote,
                &LogEvent::AttemptFailed {
                    is_passive: false,
                    end,
                },
            );
            None
        }
    }
}

/// Logs a change of a connection's state.
pub fn report(remote: &str, notice: &LogEvent) {
    let level = match notice.level() {
        Level::Debug => logging::Level::Debug,
        Level::Info => logging::Level::Info,
        Level::Warn => logging::Level::Warn,
        Level::Error => logging::Level::Error,
    };
    logging::log(Module::Reconnect, level, format_args!("{remote}: {notice}"));
}

/// The status of a database in a server's `_Server` database.
#[derive(Debug)]
pub enum DatabaseStatus {
    /// The server does not have a `_Server` database: it is an old version.
    Unknown,
    /// The server does not serve the database.
    Absent,
    /// The database's row.
    Row(Value),
}

/// Queries a server's `_Server` database about `database`.
///
/// # Errors
/// The connection broke.
pub fn database_status(session: &mut Session, database: &str) -> Result<DatabaseStatus, Failure> {
    let clause = ["name", "==", database].map(Value::string).to_vec();
    let select = [
        ("op", Value::string("select")),
        ("table", Value::string("Database")),
        ("where", Value::Array(vec![Value::Array(clause)])),
    ];
    let select: Object = select
        .into_iter()
        .map(|(name, value)| (BString::from(name), value))
        .collect();
    let params = Value::Array(vec![Value::string("_Server"), Value::Object(select)]);
    let Ok(result) = session.transact("transact", &params)? else {
        return Ok(DatabaseStatus::Unknown);
    };
    let rows = result
        .as_array()
        .and_then(|results| results.first())
        .and_then(|result| result.get("rows"));
    Ok(match rows.and_then(Value::as_array).map(<[Value]>::first) {
        None => DatabaseStatus::Unknown,
        Some(None) => DatabaseStatus::Absent,
        Some(Some(row)) => DatabaseStatus::Row(row.clone()),
    })
}

/// Why a server is not suitable for `database`; `None` if it is suitable.
pub fn refusal(
    session: &mut Session,
    database: &str,
    cluster_id: Option<&str>,
    leader_only: bool,
) -> Option<String> {
    let row = match database_status(session, database) {
        Ok(DatabaseStatus::Row(row)) => row,
        Ok(DatabaseStatus::Unknown) => return None,
        Ok(DatabaseStatus::Absent) => {
            return Some(format!("server does not have {database} database"));
        }
        Err(failure) => return Some(failure.to_string()),
    };
    let is = |column: &str| row.get(column).and_then(Value::as_bool).unwrap_or(false);
    let is_member = |wanted: &str| {
        let cid = row
            .get("cid")
            .and_then(Value::as_array)
            .and_then(|uuid| uuid.get(1))
            .and_then(Value::as_str);
        cid.is_some_and(|cid| cid.starts_with(wanted))
    };
    if !cluster_id.is_none_or(is_member) {
        Some("database server belongs to another cluster".to_owned())
    } else if row.get("model").and_then(Value::as_str) == Some("standalone") {
        None
    } else if !is("connected") {
        Some("clustered database server is disconnected from cluster".to_owned())
    } else if leader_only && !is("leader") {
        Some("clustered database server is not cluster leader".to_owned())
    } else {
        None
    }
}
