//! Rows of a file that refer to themselves in a column that should refer to a row of another table.
//! They are logged, and served as they are.

use corvid_engine::{Database, OwnReference};
use corvid_shell::vlog::{self, Module};

/// The number of rows that are logged individually; the rest are only counted.
const NAMED_MAX: usize = 20;

/// Logs the self-references in `database`, which was read from the file `name`.
pub(super) fn warn(database: &Database, name: &str) {
    let found = database.own_references();
    for own in found.iter().take(NAMED_MAX) {
        let line = describe(database, own);
        vlog::warn(Module::OvsdbServer, format_args!("{name}: {line}"));
    }
    if found.len() > NAMED_MAX {
        let more = found.len() - NAMED_MAX;
        vlog::warn(
            Module::OvsdbServer,
            format_args!("{name}: {more} more strong references hold the UUID of their own row"),
        );
    }
}

fn describe(database: &Database, own: &OwnReference) -> String {
    let schema = database.schema();
    let table = schema.table(own.table);
    format!(
        "table {} column {} row {} holds the UUID of its own row as a strong reference to table {}; it is kept and refers to nothing",
        table.name,
        table.column(own.column).name,
        own.uuid,
        schema.table(own.target).name,
    )
}
