//! `salvage`: writes the readable parts of a damaged file to a new one, row by row, and lists the
//! losses.

use std::fmt::Write as _;

use corvid_log::Magic;
use corvid_log::header::LINE_BYTES_MAX;
use corvid_net::os_name;
use corvid_shell::{output, program};

use super::{Invocation, Outcome};
use crate::failure::{Failure, shown};
use crate::schema_file;
use crate::tool::answer::Answer;
use crate::tool::replacement::{Target, Wording};
use crate::tool::salvage;
use crate::uuids::RandomUuids;

/// Writes a standalone database. The damaged file is only read.
pub(super) fn salvage(invocation: &Invocation<'_>) -> Outcome {
    let [source, target, schema @ ..] = invocation.args else {
        return Err(Failure::new("FILE NEW expected"));
    };
    let source = &*os_name::path(source);
    let schema = schema
        .first()
        .map(|name| schema_file::read(&os_name::path(name)));
    let target = Target::lock_new(&os_name::path(target), Wording::Tagged)?;
    let name = shown(source);
    let bytes = std::fs::read(source).map_err(|error| Failure::io(&name, "open failed", &error))?;
    let magic = magic_of(&bytes);
    let mut uuids = RandomUuids::new()?;
    let schema = schema.transpose()?;
    let mut salvaged = salvage::read(source, &bytes, magic, schema, &mut uuids)?;
    let database = salvaged.contents.database(&mut uuids)?;
    let comment = format!("salvaged by ovsdb-tool {}", program::VERSION);
    target.fill(&database, &comment)?;
    let mut text = String::new();
    for line in salvaged.restored.iter().chain(salvaged.contents.losses()) {
        // Writing to a string cannot fail; the same holds below.
        let _ = writeln!(text, "{line}");
    }
    let losses = salvaged.contents.losses().len();
    let _ = writeln!(
        text,
        "{} rows were written; of {} records {} could not be read, {} were restored; losses listed above: {losses}",
        salvaged.contents.rows(),
        salvaged.records + salvaged.lost,
        salvaged.lost,
        salvaged.restored.len(),
    );
    output::print(text);
    Ok(Answer::from(losses == 0))
}

/// The kind of a file whose first line may be damaged.
fn magic_of(bytes: &[u8]) -> Magic {
    let prefix = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    Magic::identify(prefix).unwrap_or_else(|_| {
        let is_member = memchr::memmem::find(bytes, b"\nOVSDB CLUSTER ").is_some();
        if is_member || prefix.starts_with(b"OVSDB CLUSTER") {
            Magic::Clustered
        } else {
            Magic::Standalone
        }
    })
}
