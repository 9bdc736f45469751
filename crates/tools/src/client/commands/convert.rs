//! `convert` and `needs-conversion`: compare a schema file with the schema of a served database,
//! and convert the database to it.

use bstr::BStr;
use corvid_data::Schema;
use corvid_json::Value;
use corvid_net::os_name;
use corvid_shell::vlog::{self, Module};

use super::{Prepared, print_line};
use crate::failure::Failure;
use crate::leader::{self, DatabaseStatus};
use crate::schema_file;
use crate::session::Session;

pub(crate) fn convert(file: &str) -> Result<Prepared, Failure> {
    let schema = schema_file::read(&os_name::path(file))?;
    Ok(Box::new(move |session, invocation| {
        let schema = suitable(session, schema, &invocation.args[0])?;
        session.set_aware(invocation.settings.aware)?;
        let params = Value::Array(vec![Value::string(&*schema.name), schema.to_json()]);
        session.call("convert", &params).map(drop)
    }))
}

pub(crate) fn needs_conversion(file: &str) -> Result<Prepared, Failure> {
    let schema = schema_file::read(&os_name::path(file))?;
    Ok(Box::new(move |session, invocation| {
        let wanted = suitable(session, schema, &invocation.args[0])?;
        let current = session.schema(&wanted.name)?;
        print_line(if wanted.same_as(&current) {
            "no"
        } else {
            "yes"
        })
    }))
}

/// The schema of a file, made suitable for this server: in a cluster every column is persistent.
fn suitable(session: &mut Session, schema: Schema, file: &str) -> Result<Schema, Failure> {
    let is_clustered = match leader::database_status(session, &schema.name)? {
        DatabaseStatus::Row(row) => row.get("model").and_then(Value::as_str) == Some("clustered"),
        // The error of the request itself will say what is wrong.
        DatabaseStatus::Unknown | DatabaseStatus::Absent => false,
    };
    if is_clustered {
        Ok(make_persistent(schema, file)?)
    } else {
        Ok(schema)
    }
}

/// Makes every ephemeral column persistent, and logs a warning.
fn make_persistent(schema: Schema, file: &str) -> Result<Schema, Failure> {
    let ephemeral: Vec<(&str, &str)> = schema
        .tables()
        .iter()
        .flat_map(|table| table.columns().iter().map(move |column| (table, column)))
        .filter(|(_, column)| !column.persistent)
        .map(|(table, column)| (table.name.as_str(), column.name.as_str()))
        .collect();
    let Some((table, column)) = ephemeral.first() else {
        return Ok(schema);
    };
    vlog::warn(
        Module::OvsdbClient,
        format_args!(
            "{file}: changed {} columns in '{}' database from ephemeral to persistent, including '{column}' column in \
             '{table}' table, because clusters do not support ephemeral columns",
            ephemeral.len(),
            schema.name
        ),
    );
    let mut json = schema.to_json();
    for (table, column) in &ephemeral {
        let member =
            ["tables", table, "columns", column]
                .iter()
                .try_fold(&mut json, |value, name| match value {
                    Value::Object(members) => members.get_mut(BStr::new(name)),
                    _ => None,
                });
        if let Some(Value::Object(members)) = member {
            members.remove(BStr::new("ephemeral"));
        }
    }
    Ok(Schema::from_json(&json)?)
}
