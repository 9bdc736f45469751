//! A relay under test: a process without a file, which gets its contents from a source that the
//! benchmark has also started.

use std::time::{Duration, Instant};

use corvid_json::Value;

use crate::cluster;
use crate::error::Error;
use crate::server::Server;
use crate::target::Target;
use crate::workload::Run;

/// The time limit for a relay to get the contents of its source.
const LIMIT: Duration = Duration::from_secs(600);
/// The interval at which the relay is asked whether it serves the database.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Starts a relay of the prepared database at `source`, and waits until it serves the database.
/// Only a program can be started as a relay.
pub(crate) fn start(run: &Run<'_>, source: &Server) -> Result<Server, Error> {
    let Target::Program(program) = run.target else {
        return Err(Error::NeedsProgram);
    };
    let name = cluster::name(run)?;
    let relay = Server::relay(program, &name, source.address(), run.cpu_totals)?;
    let request = format!(r#"{{"id":0,"method":"transact","params":["{name}"]}}"#);
    let began = Instant::now();
    loop {
        // The relay closes older connections at the moment at which it gets contents, so a failed
        // request is repeated.
        let reply = relay.address().request(&request);
        if reply.is_ok_and(|reply| reply.get("error").is_none_or(|it| *it == Value::Null)) {
            return Ok(relay);
        }
        if began.elapsed() > LIMIT {
            return Err(Error::Silent(LIMIT.as_secs()));
        }
        std::thread::sleep(ASK_EVERY);
    }
}
