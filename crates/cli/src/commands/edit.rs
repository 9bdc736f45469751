//! `edit`: a row in the user's editor, one line for each column.
//!
//! The lines have the form of the arguments of `set`. The transaction relies on the values that the
//! editor showed, so it changes nothing if others have changed them meanwhile.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use corvid_data::{ColumnId, TableSchema, Uuid, text};
use corvid_net::errno;
use corvid_shell::{output, program};
use corvid_tools::uuids::RandomUuids;

use super::change::set_column;
use super::{Context, NO_COMMAND};
use crate::contents::Contents;
use crate::failure::{Failure, Kind};
use crate::grammar::chain::Invocation;
use crate::grammar::row_names::RowNames;
use crate::grammar::{names, record};
use crate::server::Server;
use crate::settings::Settings;
use crate::transaction::Transaction;

pub(super) fn edit(
    server: &mut Server,
    invocation: &Invocation,
    settings: &Settings,
) -> Result<(), Failure> {
    server.choose(settings.database.as_deref())?;
    let schema = server.schema()?;
    let id = names::table(&schema, &invocation.args[0])?;
    let table = schema.table(id);
    let random = RandomUuids::new();
    let mut uuids = random.map_err(|failure| Failure::no_match(failure.to_string()))?;
    let mut context = Context {
        contents: Contents::new(&schema, server),
        names: RowNames::new(&mut uuids),
        number: NO_COMMAND,
        must_wait: false,
        warnings: Vec::new(),
    };
    let columns: Vec<ColumnId> = table.iter().map(|(id, _)| id).collect();
    context.contents.want(id, &columns);
    let word = &invocation.args[1];
    let Some(row) = record::get(&mut context.contents, id, word, false)? else {
        return Ok(());
    };
    let mut lines = Vec::new();
    for column in columns {
        let value = context.contents.read(id, row, column)?;
        let described = table.column(column);
        let mut shown = String::new();
        text::write_datum(&mut shown, &value, &described.column_type);
        lines.push((column, format!("{}={shown}", described.name)));
    }
    let path = write(table, row, &lines)?;
    let kept = |failure: Failure| {
        let path = path.display();
        Failure::new(failure.kind, format!("{failure}; your text is in {path}"))
    };
    let edited = run_editor(&path)?;
    let edited = edited.lines().map(str::trim);
    let edited = edited.filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in edited {
        if lines.iter().any(|(_, known)| known == line) {
            continue;
        }
        let column = set_column(&mut context, (id, table), row, line)
            .and_then(|()| crate::grammar::argument::column(table, line))
            .map_err(kept)?;
        context.contents.rely_on_read(id, row, column);
    }
    let comment = format!("{}: edit {} {word}", program::name(), table.name);
    let transaction = Transaction::of(&context.contents, &comment);
    if transaction.operations.is_empty() {
        output::error_line(format_args!("{}: nothing was changed", program::name()));
    } else if !settings.dry_run {
        let sent = server.transact(transaction.operations);
        sent.map_err(|failure| match failure.kind {
            Kind::Conflict => Failure::no_match("others have changed the row meanwhile"),
            _ => failure,
        })
        .map_err(kept)?;
    }
    let _ = fs::remove_file(&path);
    Ok(())
}

/// Writes the lines for the editor into a new file.
fn write(table: &TableSchema, row: Uuid, lines: &[(ColumnId, String)]) -> Result<PathBuf, Failure> {
    let uuid = String::from_utf8_lossy(&row.to_text()).into_owned();
    let mut text = format!(
        "# {} {uuid}\n# Lines that you do not change, or remove, leave their columns as they are.\n",
        table.name
    );
    for (column, line) in lines {
        let mark = if table.column(*column).mutable {
            ""
        } else {
            "# "
        };
        text.push_str(&format!("{mark}{line}\n"));
    }
    let name = format!("corvid-{}-{uuid}.txt", std::process::id());
    let path = env::temp_dir().join(name);
    let failed = |error: std::io::Error| {
        Failure::no_match(format!("{}: {}", path.display(), errno::text(&error)))
    };
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(path)
}

/// Runs the editor of the user, and returns the text that it leaves.
fn run_editor(path: &Path) -> Result<String, Failure> {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    output::flush()?;
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$0\"")])
        .arg(path)
        .status()?;
    if !status.success() {
        let _ = fs::remove_file(path);
        return Err(Failure::no_match(format!(
            "{editor}: the editor failed ({status})"
        )));
    }
    Ok(fs::read_to_string(path)?)
}
