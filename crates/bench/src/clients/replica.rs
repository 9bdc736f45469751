//! Our client as a separate process, so that its CPU time and memory are separate from those of the
//! benchmark. It keeps a replica of a whole database, prints a line when the replica is complete,
//! and runs until it is killed.

use std::fs;
use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_driver::blocking::Client;
use corvid_idl::Class;
use corvid_json::Value;
use corvid_shell::output;

use crate::error::Error;

/// The line that is written to standard output when the replica is complete.
pub(super) const SYNCED: &str = "synced";

/// Keeps a replica of the database whose schema is in the file `schema`, from the server at
/// `remote` (`unix:PATH`). Returns only with an error.
pub(crate) fn hold(remote: &str, schema: &Path) -> Result<(), Error> {
    let class = Class::everything(read_schema(schema)?);
    let failed = |error: corvid_driver::Error| Error::Client(error.to_string());
    let mut client = Client::connect(class, remote).map_err(failed)?;
    client.wait_for_contents(None).map_err(failed)?;
    output::report(SYNCED);
    client.wait_until(None, |_| false).map_err(failed)
}

/// Reads a schema file.
pub(super) fn read_schema(path: &Path) -> Result<Arc<Schema>, Error> {
    let json = Value::parse(&fs::read(path)?)?;
    let schema = Schema::from_json(&json).map_err(|error| Error::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Arc::new(schema))
}
