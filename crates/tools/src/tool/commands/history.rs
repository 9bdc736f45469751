//! `history`: which files a database's history has; `history verify` and `history remove`.

use std::fs;

use corvid_history::timeline::parse_name;
use corvid_history::{Files, Timeline, json};
use corvid_json::shown::Shown;
use corvid_log::history::HistoryName;
use corvid_net::{errno, os_name};
use corvid_shell::output::{self, Output};

use super::{Invocation, Outcome};
use crate::failure::{Failure, shown};
use crate::history::Printer;
use crate::tool::answer::Answer;
use crate::tool::history::{self, HistoryFolder, failure};

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
    let mut printer = Printer::new(Output, invocation.options.history.json);
    let mut line = Vec::new();
    for part in history.parts() {
        line.clear();
        json::write_part(&mut line, part).map_err(failure)?;
        printer.line(&line).map_err(Failure::output)?;
    }
    for gap in history.gaps() {
        line.clear();
        json::write_gap(&mut line, gap);
        printer.line(&line).map_err(Failure::output)?;
    }
    Ok(Answer::Yes)
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
        output::line(Shown(gap));
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
    for name in &chosen {
        let path = folder.path(name);
        fs::remove_file(&path).map_err(|error| {
            Failure::new(format!(
                "{}: remove failed ({})",
                shown(&path),
                errno::text(&error)
            ))
        })?;
    }
    mark_gone(&folder, &names, &chosen);
    Ok(Answer::Yes)
}

/// Keeps the number of the newest file taken after its removal, as a server does: no later one
/// shows that it is missing. Best effort.
fn mark_gone(folder: &HistoryFolder, names: &[String], removed: &[&String]) {
    let number = |name: &String| parse_name(name).map_or(0, |(number, _)| number);
    let newest = |names: &mut dyn Iterator<Item = &String>| names.map(number).fold(0, u64::max);
    let gone = newest(&mut removed.iter().copied());
    if gone > newest(&mut names.iter().filter(|name| !removed.contains(name))) {
        let mark = HistoryName::gone(gone).to_string();
        let _ = fs::File::create(folder.path(&mark));
    }
}
