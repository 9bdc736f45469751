//! A transaction whose outcome is looked for after a lost connection.
//!
//! The program makes one attempt. If the server is Corvid, the transaction has an id
//! (docs/reference/wire-extensions.md, `transact_once`). When the connection is lost before the
//! reply, the program connects again for a while and asks for the outcome under that id. It asks
//! only: it has seen no commit, so no server executes the transaction because of the question. If
//! nobody knows the outcome, the failure is that of the lost connection.

use std::time::Duration;

use corvid_data::Uuid;
use corvid_data::uuid::UuidSource;
use corvid_json::Value;
use corvid_net::clock;
use corvid_session::once;
use corvid_shell::signals;

use crate::client::commands::Invocation;
use crate::failure::Failure;
use crate::session::Session;
use crate::uuids::RandomUuids;

/// How long the program looks for the outcome, ms.
const LOOKING_MS: u64 = 10_000;
/// The time between attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);

/// Executes a transaction, given by the parameters of `transact`; returns its results.
pub(in crate::client::commands) fn execute(
    session: &mut Session,
    params: &Value,
    invocation: &Invocation<'_>,
) -> Result<Value, Failure> {
    if !executes_ids(session)? {
        return session.call("transact", params);
    }
    let id = once::transaction_id(RandomUuids::new()?.fresh());
    let reply = session.transact("transact_once", &question(id, None, params));
    let reply = match reply {
        Ok(reply) => reply,
        Err(failure) => look_for(id, params, invocation).ok_or(failure)?,
    };
    reply.map_err(|error| Failure::returned_error(&error))
}

/// Whether the server executes ids once.
fn executes_ids(session: &mut Session) -> Result<bool, Failure> {
    Ok(session.server_id()?.is_some_and(once::is_announced))
}

fn question(id: Uuid, after: Option<Uuid>, params: &Value) -> Value {
    let text = |id: Uuid| Value::string(&*id.to_string());
    let after = after.map_or(Value::Null, text);
    Value::Array(vec![text(id), after, params.clone()])
}

/// The server's reply to the transaction with this id, if a server knows it.
fn look_for(id: Uuid, params: &Value, invocation: &Invocation<'_>) -> Option<Result<Value, Value>> {
    let deadline_ms = clock::mono_ms() + LOOKING_MS;
    // No commit has the id zero.
    let question = question(id, Some(Uuid::ZERO), params);
    while clock::mono_ms() < deadline_ms {
        signals::run();
        if let Ok(mut session) = invocation.servers.connect(Some(deadline_ms))
            && let Ok(is_known) = executes_ids(&mut session)
        {
            // A server of the reference cannot know it.
            if !is_known {
                return None;
            }
            if let Ok(reply) = session.transact("transact_once", &question) {
                let is_unknown = reply.as_ref().is_err_and(is_canceled);
                return (!is_unknown).then_some(reply);
            }
        }
        std::thread::sleep(PAUSE);
    }
    None
}

fn is_canceled(error: &Value) -> bool {
    error.get("error").unwrap_or(error).as_str() == Some("canceled")
}
