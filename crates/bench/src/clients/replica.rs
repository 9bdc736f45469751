//! Our client as a process of its own, so that its CPU time and memory can be told from those of who measures: it holds everything
//! of a database, says when it has all of it, and goes on holding it until it is killed.

use std::fs;
use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_driver::blocking::Client;
use corvid_idl::Class;
use corvid_json::Value;

use crate::error::Error;

/// What is written to the standard output then.
pub(super) const SYNCED: &str = "synced";

/// Holds the database of the schema in that file, from the server at `remote` (`unix:PATH`). Ends only with an error.
pub(crate) fn hold(remote: &str, schema: &Path) -> Result<(), Error> {
    let class = Class::everything(read_schema(schema)?);
    let failed = |error: corvid_driver::Error| Error::Client(error.to_string());
    let mut client = Client::connect(class, remote).map_err(failed)?;
    client.wait_for_contents(None).map_err(failed)?;
    println!("{SYNCED}");
    client.wait_until(None, |_| false).map_err(failed)
}

/// The schema in a file that holds nothing else.
pub(super) fn read_schema(path: &Path) -> Result<Arc<Schema>, Error> {
    let json = Value::parse(&fs::read(path)?)?;
    let schema = Schema::from_json(&json).map_err(|error| Error::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Arc::new(schema))
}
