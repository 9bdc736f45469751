//! `dbs` and `raw`: the protocol without a schema.

use corvid_json::Value;
use corvid_shell::output;

use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::server::Server;
use crate::settings::Settings;

pub(super) fn dbs(
    server: &mut Server,
    _invocation: &Invocation,
    _settings: &Settings,
) -> Result<(), Failure> {
    for name in server.databases()? {
        output::line(output::part(&name));
    }
    Ok(())
}

pub(super) fn raw(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
) -> Result<(), Failure> {
    let text = &invocation.args[0];
    let parsed = Value::parse_text(text.as_bytes())
        .map_err(|error| Failure::usage(format!("\"{text}\": {error}")))?;
    let mut operations = match parsed {
        Value::Array(operations) => operations,
        one @ Value::Object(_) => vec![one],
        _ => return Err(Failure::usage("the operations are not a JSON array")),
    };
    match operations
        .first()
        .and_then(Value::as_str)
        .map(str::to_owned)
    {
        Some(database) => {
            server.choose(Some(&database))?;
            operations.remove(0);
        }
        None => server.choose(settings.database.as_deref())?,
    }
    let results = server.execute(operations)?;
    print_json(&Value::Array(results.clone()), settings);
    Server::check(results)?;
    Ok(())
}

/// Prints JSON on one line, or indented with `--pretty`; nothing with `--quiet`.
pub(crate) fn print_json(value: &Value, settings: &Settings) {
    if settings.quiet {
        return;
    }
    let mut bytes = Vec::new();
    match settings.style.pretty {
        true => value.write_pretty(&mut bytes),
        false => value.write(&mut bytes),
    }
    output::line(String::from_utf8_lossy(&bytes));
}
