//! `history`: which files a database's history has; `history verify` and `history remove`.

use std::fs;

use corvid_history::timeline::parse_name;
use corvid_history::{Files, Part, Timeline, json};
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
            true => {
                let mut out = Vec::new();
                json::write_part(&mut out, part).map(|()| shown_json(out))
            }
            false => text(part),
        };
        output::line(line.map_err(failure)?);
    }
    for gap in history.gaps() {
        match invocation.options.json {
            true => {
                let mut out = Vec::new();
                json::write_gap(&mut out, gap);
                output::line(shown_json(out));
            }
            false => output::line(gap),
        }
    }
    Ok(Answer::Yes)
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

/// A line of JSON.
fn shown_json(out: Vec<u8>) -> String {
    String::from_utf8_lossy(&out).into_owned()
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
