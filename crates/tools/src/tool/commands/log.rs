//! `log` and `diff`: the changes of a database's history.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use corvid_history::filter::matching;
use corvid_history::{Event, Filter, Range, json};
use corvid_shell::output::{self, Output};
use corvid_shell::program;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::history::Printer;
use crate::tool::answer::Answer;
use crate::tool::history::{self, failure, locate, locate_beginning};
use crate::uuids::RandomUuids;

/// Prints the changes of a range, oldest first.
pub(super) fn log(invocation: &Invocation<'_>) -> Outcome {
    let options = &invocation.options.history;
    let history = history::open(&invocation.database(0))?;
    warn(&history);
    let since = options.since.as_deref();
    let until = options.until.as_deref();
    let range = Range {
        since: since
            .map(|text| locate_beginning(&history, text))
            .transpose()?
            .flatten(),
        until: until.map(|text| locate(&history, text)).transpose()?,
    };
    let mut listing = Listing {
        printer: Printer::new(Output, options.json),
        last: options.count.map(|count| (count, VecDeque::new())),
        failed: None,
    };
    history
        .walk(&options.filter, range, &mut |event| listing.event(event))
        .map_err(failure)?;
    listing.finish()?;
    Ok(Answer::Yes)
}

/// Prints the difference between two moments.
pub(super) fn diff(invocation: &Invocation<'_>) -> Outcome {
    let options = &invocation.options.history;
    let [_, from, to] = invocation.args else {
        return Err(Failure::new("FILE FROM TO expected"));
    };
    let history = history::open(&invocation.database(0))?;
    warn(&history);
    let mut uuids = RandomUuids::new()?;
    let mut state = |moment: &str| {
        let position = locate(&history, moment)?;
        let seed = uuids.hash_seed();
        history
            .state_at(position, seed, &mut uuids)
            .map_err(failure)
    };
    let (old, new) = (state(from)?, state(to)?);
    let (changes, tables) = corvid_history::diff(&old, &new);
    let filter = Filter {
        client: None,
        ..options.filter.clone()
    };
    let changes = matching(&filter, changes, new.schema()).map_err(failure)?;
    let mut printer = Printer::new(Output, options.json);
    let mut line = Vec::new();
    for change in &changes {
        line.clear();
        json::write_change(&mut line, change);
        printer.line(&line).map_err(Failure::output)?;
    }
    for table in tables {
        let problem = "its columns differ between the two moments, so its rows are not compared";
        output::error_line(format_args!(
            "{}: table {table}: {problem}",
            program::name()
        ));
    }
    Ok(Answer::Yes)
}

/// Says what is missing in the history.
fn warn(history: &history::OpenHistory) {
    for gap in history.gaps() {
        output::error_line(format_args!("{}: {gap}", program::name()));
    }
}

/// Prints events as they come, or the last ones at the end.
struct Listing {
    printer: Printer<Output>,
    /// The number of events to print, and their lines.
    last: Option<(usize, VecDeque<Vec<u8>>)>,
    failed: Option<std::io::Error>,
}

impl Listing {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        // The contents with which a history begins may be as large as a database, and are not one
        // of the last changes.
        if self.last.is_some() && matches!(event, Event::Begin { .. }) {
            return ControlFlow::Continue(());
        }
        let mut line = Vec::new();
        json::write_event(&mut line, event);
        match &mut self.last {
            Some((count, last)) => {
                if last.len() == *count {
                    last.pop_front();
                }
                last.push_back(line);
            }
            None => {
                if let Err(error) = self.printer.line(&line) {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        match output::reader_is_gone() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        if let Some(error) = self.failed {
            return Err(Failure::output(error));
        }
        let lines = self.last.map(|(_, last)| last).unwrap_or_default();
        for line in lines {
            self.printer.line(&line).map_err(Failure::output)?;
        }
        Ok(())
    }
}
