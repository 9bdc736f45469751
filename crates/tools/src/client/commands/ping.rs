//! `ping`: lets scripts and health checks test that a server answers and that it serves a database.
//!
//! Each server in a list is tried once, in order; the first suitable one ends the command. Unlike
//! other commands, this one has a time limit for each server, unless `--timeout` or
//! `OVS_CTL_TIMEOUT` limits the whole program.

use std::io::Write;

use corvid_json::Value;
use corvid_net::clock;
use corvid_rpc::remote::RemoteList;
use corvid_shell::output::Output;

use crate::client::selection;
use crate::client::settings::Settings;
use crate::failure::Failure;
use crate::leader;
use crate::session::Session;

/// The time limit for connecting to one server and for all its answers, ms.
const LIMIT_MS: u64 = 5000;

pub(crate) fn ping(settings: &Settings, words: &[String]) -> Result<(), Failure> {
    let default = selection::default_server();
    let (servers, database) = match words {
        [] => (&default, None),
        [word] if selection::is_server(word) => (word, None),
        [database] => (&default, Some(database)),
        [servers, database, ..] => (servers, Some(database)),
    };
    let list = RemoteList::parse(servers);
    let mut failures = Vec::new();
    for server in &list.remotes {
        match answer_ns(server, database.map(String::as_str), &list, settings) {
            Ok(ns) => {
                let ms = ns as f64 / 1e6;
                return Ok(writeln!(Output, "{server}: {ms:.3} ms")?);
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    match failures.is_empty() {
        true => Err(Failure::new("no servers were available")),
        false => Err(Failure::new(failures.join("; "))),
    }
}

/// The time that a suitable server takes to answer an `echo`, ns.
fn answer_ns(
    server: &str,
    database: Option<&str>,
    list: &RemoteList,
    settings: &Settings,
) -> Result<u64, Failure> {
    let deadline_ms = (!settings.has_timeout).then(|| clock::mono_ms() + LIMIT_MS);
    let mut session = Session::open_until(server, &settings.credentials, deadline_ms)?;
    let told = |failure: Failure| Failure::new(format!("{server}: {failure}"));
    if let Some(database) = database {
        serves(&mut session, database, list, settings).map_err(told)?;
    }
    let sent_ns = clock::mono_ns();
    let params = Value::Array(vec![Value::string("ping")]);
    if session.call("echo", &params).map_err(told)? != params {
        return Err(told(Failure::new("the reply to echo is another text")));
    }
    Ok(clock::mono_ns() - sent_ns)
}

/// Checks that the server serves the database, and that other commands would choose this server
/// from a list.
fn serves(
    session: &mut Session,
    database: &str,
    list: &RemoteList,
    settings: &Settings,
) -> Result<(), Failure> {
    // A server without a `_Server` database names its databases only in this list.
    if !session.list_dbs()?.iter().any(|name| name == database) {
        return Err(Failure::new(format!(
            "server does not have {database} database"
        )));
    }
    let cluster_id = list.cluster_id.as_deref();
    match leader::refusal(session, database, cluster_id, settings.leader_only) {
        None => Ok(()),
        Some(reason) => Err(Failure::new(reason)),
    }
}
