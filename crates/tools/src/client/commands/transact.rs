//! `transact` and `query`: execute one transaction on a server.

pub(super) mod once;

use bstr::BString;
use corvid_json::{Object, Value};

use super::{Invocation, Prepared, print_json};
use crate::failure::Failure;
use crate::past::Contents;
use crate::session::Session;

pub(crate) fn transact(text: &str) -> Result<Prepared, Failure> {
    let params = parse(text)?;
    Ok(Box::new(move |session, invocation| {
        run_transact(session, &params, invocation)
    }))
}

fn run_transact(
    session: &mut Session,
    params: &Value,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    if invocation.settings.aware == Some(true) {
        session.set_aware(Some(true))?;
    }
    invocation.settings.detach_now();
    let result = once::execute(session, params, invocation)?;
    print(&result, invocation)
}

/// Prints the results. With `--fail`, a rejected transaction is a failure.
fn print(results: &Value, invocation: &Invocation<'_>) -> Result<(), Failure> {
    print_json(results, invocation.settings)?;
    match Failure::refused(results) {
        Some(failure) if invocation.settings.fail => Err(failure),
        _ => Ok(()),
    }
}

/// As [`transact`], with an `abort` at the end. The error of the `abort` is removed from the
/// result. With `--at`, on the contents of a moment.
pub(crate) fn query(text: &str) -> Result<Prepared, Failure> {
    let Value::Array(params) = parse(text)? else {
        return Err(Failure::new("not a valid OVSDB query"));
    };
    Ok(Box::new(move |session, invocation| {
        run_query(session, params, invocation)
    }))
}

fn run_query(
    session: &mut Session,
    mut params: Vec<Value>,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    if let Some(at) = invocation.settings.history.at.as_deref() {
        let operations = params.split_off(1);
        let database = params
            .pop()
            .and_then(|name| name.as_str().map(str::to_owned));
        let instead = "ovsdb-tool --at=MOMENT query FILE TRANSACTION";
        invocation.settings.detach_now();
        let database = database.unwrap_or_default();
        let result = Contents::at(session, &database, Some(at), instead)?.select(operations)?;
        return print(&result, invocation);
    }
    params.push(Value::Object(Object::from([(
        BString::from("op"),
        Value::string("abort"),
    )])));
    let operations = params.len() - 1;
    invocation.settings.detach_now();
    let mut result = session.call("transact", &Value::Array(params))?;
    if let Value::Array(results) = &mut result
        && results.len() == operations
        && results
            .last()
            .and_then(|last| last.get("error"))
            .and_then(Value::as_str)
            == Some("aborted")
    {
        results.pop();
    }
    print(&result, invocation)
}

/// The database that a transaction names.
pub(crate) fn database(text: &str) -> Option<String> {
    let params = parse(text).ok()?;
    let name = params.as_array()?.first()?.as_str()?;
    Some(name.to_string())
}

fn parse(text: &str) -> Result<Value, Failure> {
    let value = Value::parse_text(text.as_bytes())
        .map_err(|error| Failure::new(format!("\"{text}\": {error}")))?;
    let names_database = value
        .as_array()
        .and_then(|params| params.first())
        .is_some_and(|first| first.as_str().is_some());
    if names_database {
        Ok(value)
    } else {
        Err(Failure::new("not a valid OVSDB query"))
    }
}
