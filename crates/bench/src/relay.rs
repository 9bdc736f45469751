//! A relay under test: a process without a file that has the contents of a source, which the benchmark has started too.

use std::time::{Duration, Instant};

use corvid_json::Value;

use crate::cluster;
use crate::error::Error;
use crate::server::Server;
use crate::target::Target;
use crate::workload::Run;

/// Time limit for a relay to have the contents of its source.
const LIMIT: Duration = Duration::from_secs(600);
/// The interval between questions for its state.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Starts a relay of the prepared database at `source`, and waits until it serves that. Only a program can be started as one.
pub(crate) fn start(run: &Run<'_>, source: &Server) -> Result<Server, Error> {
    let Target::Program(program) = run.target else {
        return Err(Error::NeedsProgram);
    };
    let name = cluster::name(run)?;
    let relay = Server::relay(program, &name, source.address(), run.cpu_totals)?;
    let request = format!(r#"{{"id":0,"method":"transact","params":["{name}"]}}"#);
    let began = Instant::now();
    loop {
        // It closes older connections at the moment when it has contents.
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
