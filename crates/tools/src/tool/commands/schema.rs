//! `db-name`, `db-version`, `db-cksum` and their `schema-` counterparts: print one line about a
//! schema.

use std::path::Path;

use corvid_data::{Arc, Schema};
use corvid_log::Magic;
use corvid_shell::output;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::schema_file;
use crate::tool::answer::Answer;
use crate::tool::cluster_file::ClusterFile;
use crate::tool::database::DatabaseFile;

/// Prints the name of a database's schema. Only this one of these commands accepts clustered files.
pub(super) fn db_name(invocation: &Invocation<'_>) -> Outcome {
    let file = DatabaseFile::open(&invocation.database(0))?;
    match file.magic() {
        Magic::Standalone => print_line(&stored_schema(file)?.name),
        Magic::Clustered => print_line(&ClusterFile::new(file)?.header.name),
    }
}

/// Prints the version of a database's schema, or an empty line if there is none.
pub(super) fn db_version(invocation: &Invocation<'_>) -> Outcome {
    let file = DatabaseFile::open(&invocation.database(0))?;
    print_line(&stored_schema(file)?.version)
}

/// Prints the checksum of a database's schema, or an empty line if there is none.
pub(super) fn db_cksum(invocation: &Invocation<'_>) -> Outcome {
    let file = DatabaseFile::open(&invocation.database(0))?;
    print_line(&stored_schema(file)?.cksum)
}

/// Prints a schema's name.
pub(super) fn schema_name(invocation: &Invocation<'_>) -> Outcome {
    print_line(&schema_file::read(&invocation.schema(0))?.name)
}

/// Prints a schema's version.
pub(super) fn schema_version(invocation: &Invocation<'_>) -> Outcome {
    print_line(&schema_file::read(&invocation.schema(0))?.version)
}

/// Prints a schema's checksum.
pub(super) fn schema_cksum(invocation: &Invocation<'_>) -> Outcome {
    print_line(&schema_file::read(&invocation.schema(0))?.cksum)
}

/// The schema in record 0 of a standalone database. Later records are not read.
pub(super) fn of_database(path: &Path) -> Result<Arc<Schema>, Failure> {
    stored_schema(DatabaseFile::open(path)?)
}

fn stored_schema(file: DatabaseFile) -> Result<Arc<Schema>, Failure> {
    Ok(file.load()?.schema())
}

fn print_line(text: &str) -> Outcome {
    output::line(text);
    Ok(Answer::Yes)
}
