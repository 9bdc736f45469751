//! `lock`, `steal` and `unlock`: send one request, then print the notifications about this
//! session's locks until the process ends (docs/spec/cli.md 3.8). In the background, the control
//! socket accepts more requests.

use std::io::Write;

use corvid_json::Value;
use corvid_shell::output::{self, Output};
use corvid_shell::unixctl::{Command, Outcome};

use super::{Invocation, print_json, print_line};
use crate::client::settings::Settings;
use crate::client::watch::{Control, Progress, Watch};
use crate::failure::Failure;
use crate::session::{Incoming, RequestId, Session};

pub(crate) fn lock(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    run("lock", session, invocation)
}

pub(crate) fn steal(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    run("steal", session, invocation)
}

pub(crate) fn unlock(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    run("unlock", session, invocation)
}

fn run(method: &str, session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let mut watch = Watch::begin(invocation.settings, &[1])?;
    watch.add_commands([
        Command::new("lock", "LOCK", 1..=1, "request a lock", |control, args| {
            request(control, "lock", args)
        }),
        Command::new("steal", "LOCK", 1..=1, "take a lock", |control, args| {
            request(control, "steal", args)
        }),
        Command::new(
            "unlock",
            "LOCK",
            1..=1,
            "release a lock",
            |control, args| request(control, "unlock", args),
        ),
    ]);
    let first = session.send(
        method,
        &Value::Array(vec![Value::string(&invocation.args[0])]),
    )?;
    watch.run(session, |incoming| {
        print(incoming, first, invocation.settings)
    })
}

/// Queues a request about the lock that a control command names.
fn request(control: &mut Control, method: &'static str, args: &[String]) -> Outcome {
    let lock = Value::Array(vec![Value::string(&args[0])]);
    control.requests.push((method, lock));
    Ok(String::new())
}

fn print(incoming: Incoming, first: RequestId, settings: &Settings) -> Result<Progress, Failure> {
    match incoming {
        Incoming::Reply(_, Ok(result)) => print_json(&result, settings)?,
        Incoming::Reply(id, Err(error)) if id == first => {
            return Err(Failure::returned_error(&error));
        }
        // The control socket has already answered its client, and the locks that this session owns
        // have not changed.
        Incoming::Reply(_, Err(error)) => print_json(&error, settings)?,
        Incoming::Notification(method, params) => {
            print_line(output::part(&method))?;
            print_json(&Value::Array(params), settings)?;
        }
    }
    Output.flush()?;
    Ok(Progress::Ready)
}
