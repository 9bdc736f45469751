//! `history`: which files a database's history has; `history verify` and `history remove`.

use std::fs;

use corvid_history::timeline::parse_name;
use corvid_history::{Files, Part, Timeline};
use corvid_json::{ObjectWriter, write};
use corvid_net::{errno, os_name};
use corvid_shell::output;

use super::{Invocation, Outcome};
use crate::failure::{Failure, shown};
use crate::tool::answer::Answer;
use crate::tool::history::{self, DiskFile, HistoryFolder, date_text, failure};

/// Lists the files, checks them, or removes some of them.
pub(super) fn history(invocation: &Invocation<'_>) -> Outcome {
    match invocation.args {
        [verb, file] if verb == "verify" => verify(file),
        [verb, file, numbers @ ..] if verb == "remove" && !numbers.is_empty() => {
            remove(file, numbers)
        }
        [_] | [] => list(invocation),
        _ => Err(Failure::new(
            "FILE, verify FILE, or remove FILE NUMBER... expected",
        )),
    }
}

fn list(invocation: &Invocation<'_>) -> Outcome {
    let history = history::open(&invocation.database(0))?;
    for part in history.parts() {
        let line = match invocation.options.json {
            true => json(part),
            false => text(part),
        };
        output::line(line.map_err(failure)?);
    }
    for gap in history.gaps() {
        match invocation.options.json {
            true => output::line(gap_json(gap)),
            false => output::line(gap),
        }
    }
    Ok(Answer::Yes)
}

/// A gap as one object, after those of the files.
fn gap_json(gap: &str) -> String {
    let mut out = Vec::new();
    ObjectWriter::new(&mut out)
        .string("gap", gap.as_bytes())
        .end();
    String::from_utf8_lossy(&out).into_owned()
}

fn text(part: &Part<DiskFile>) -> Result<String, corvid_history::HistoryError> {
    let index = part.index()?;
    let number = part
        .number()
        .map_or("-".to_owned(), |number| number.to_string());
    let dates = match index.dates_ms {
        Some((first_ms, last_ms)) => format!("{} to {}", date_text(first_ms), date_text(last_ms)),
        None => "no dates".to_owned(),
    };
    let bytes = bytes_text(index.bytes);
    let of = match part.is_segment() {
        true => format!("{bytes} of {}", bytes_text(index.text_length)),
        false => bytes,
    };
    let transactions = index.transactions;
    let mut line = format!(
        "{number:>10}  {dates}  {transactions} transactions  {of}  {}",
        part.name()
    );
    let rest = index.text_length - index.good_length;
    if rest > 0 {
        line.push_str(&format!(
            " ({rest} bytes at its end are not a whole record)"
        ));
    }
    Ok(line)
}

/// A number of bytes for people.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = "bytes";
    let mut tenths = bytes.saturating_mul(10);
    for larger in UNITS {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    match unit {
        "bytes" => format!("{bytes} {unit}"),
        _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

fn json(part: &Part<DiskFile>) -> Result<String, corvid_history::HistoryError> {
    let index = part.index()?;
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(number) = part.number() {
        integer(&mut object, "number", number);
    }
    write::string(object.member("file"), part.name().as_bytes());
    write::string(object.member("database"), index.identity.name.as_bytes());
    write::string(
        object.member("schema_version"),
        index.identity.version.as_bytes(),
    );
    write::boolean(object.member("compressed"), part.is_segment());
    integer(&mut object, "bytes", index.bytes);
    integer(&mut object, "text_bytes", index.text_length);
    integer(&mut object, "records", index.records);
    integer(&mut object, "transactions", index.transactions);
    if let Some((first_ms, last_ms)) = index.dates_ms {
        write::integer(object.member("first"), first_ms);
        write::integer(object.member("last"), last_ms);
    }
    object.end();
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn integer(object: &mut ObjectWriter<'_>, name: &str, value: u64) {
    write::integer(
        object.member(name),
        i64::try_from(value).unwrap_or(i64::MAX),
    );
}

/// Checks every file, and whether each continues where the one before it ends.
fn verify(file: &str) -> Outcome {
    let history = history::open(&os_name::path(file))?;
    let mut uuids = crate::uuids::RandomUuids::new()?;
    for part in history.parts() {
        part.verify().map_err(failure)?;
    }
    let problems = history
        .discontinuities(&mut |history, position| {
            let seed = uuids.hash_seed();
            Timeline::state_at(history, position, seed, &mut uuids)
        })
        .map_err(failure)?;
    let gaps = history.gaps().iter().chain(&problems);
    let mut answer = Answer::Yes;
    for gap in gaps {
        output::line(gap);
        answer = Answer::No;
    }
    Ok(answer)
}

/// Removes files of the history, never the database file.
fn remove(file: &str, numbers: &[String]) -> Outcome {
    let folder = HistoryFolder::of(&os_name::path(file));
    let names = folder
        .list()
        .map_err(|error| Failure::new(format!("{}: {error}", folder.shown(None))))?;
    let mut chosen = Vec::new();
    for text in numbers {
        let number: Option<u64> = text.parse().ok();
        let found: Vec<&String> = names
            .iter()
            .filter(|name| parse_name(name).map(|(number, _)| number) == number)
            .collect();
        if number.is_none() || found.is_empty() {
            return Err(Failure::new(format!(
                "{}: there is no segment {text} in its history",
                folder.shown(None)
            )));
        }
        chosen.extend(found);
    }
    for name in chosen {
        let path = folder.path(name);
        fs::remove_file(&path).map_err(|error| {
            Failure::new(format!(
                "{}: remove failed ({})",
                shown(&path),
                errno::text(&error)
            ))
        })?;
    }
    Ok(Answer::Yes)
}
