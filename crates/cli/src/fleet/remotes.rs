//! Remotes that rows of a database configure: their addresses and probes.
//!
//! The status of a server names the column only, so these rows tell where clients find the members.
//! They are the only contents of databases that are read here.

use std::sync::Arc;

use corvid_json::Value;
use corvid_net::clock;
use corvid_net::tls::Credentials;

use crate::failure::Failure;
use crate::server::Server;
use corvid_tools::status::document;
use corvid_tools::status::reference::object;
use corvid_tools::status::source::LIMIT;

/// The tables whose rows configure remotes: OVN and the hardware gateways, Open vSwitch.
const REMOTE_TABLES: [&str; 2] = ["Connection", "Manager"];
/// Limit on the rows of such a table, bytes.
const ROWS_BYTES_MAX: usize = 1 << 20;

/// A row that configures a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteRow {
    /// The database.
    pub database: String,
    /// The table.
    pub table: &'static str,
    /// The UUID of the row.
    pub uuid: String,
    /// The remote.
    pub target: String,
    /// The probe interval, ms; `None`: the default.
    pub probe_ms: Option<i64>,
}

/// The rows of a database that configure remotes.
///
/// # Errors
/// The server cannot be reached in time.
pub(super) fn remotes(
    address: &str,
    database: &str,
    credentials: &Arc<Credentials>,
) -> Result<Vec<RemoteRow>, Failure> {
    let deadline_ms = clock::mono_ms() + u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX);
    let mut server =
        Server::connect_briefly(address, database, credentials, ROWS_BYTES_MAX, deadline_ms)?;
    let mut found = Vec::new();
    for table in REMOTE_TABLES {
        let columns = ["_uuid", "target", "inactivity_probe"]
            .map(Value::string)
            .to_vec();
        let select = object([
            ("op", Value::string("select")),
            ("table", Value::string(table)),
            ("where", Value::Array(Vec::new())),
            ("columns", Value::Array(columns)),
        ]);
        // Most databases have no such table.
        let Ok(results) = server.execute(vec![select]) else {
            break;
        };
        let rows = results
            .first()
            .and_then(|result| document::list(result, "rows"));
        found.extend(rows.unwrap_or_default().iter().filter_map(|row| {
            Some(RemoteRow {
                database: database.to_owned(),
                table,
                uuid: row.get("_uuid")?.as_array()?.get(1)?.as_str()?.to_owned(),
                target: row.get("target")?.as_str()?.to_owned(),
                probe_ms: row.get("inactivity_probe").and_then(Value::as_integer),
            })
        }));
    }
    Ok(found)
}
