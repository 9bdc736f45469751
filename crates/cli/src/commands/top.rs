//! `top`: what a server does, drawn anew at an interval.
//!
//! On a terminal the picture has a screen of its own, which `q` or Ctrl-C leaves; elsewhere it is
//! text, one picture after the other. [`picture`](crate::top::picture) draws it.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use corvid_json::Value;
use corvid_net::{clock, poll};
use corvid_shell::output;
use corvid_shell::terminal::{Colour, Painted};

use super::servers::{missing, refuse_at, report_notes};
use crate::failure::Failure;
use crate::fleet;
use crate::grammar::chain::Invocation;
use crate::settings::Settings;
use crate::shell::terminal::{self, Screen};
use crate::top::{Readings, picture};
use corvid_tools::status::document;
use corvid_tools::status::source::Source;

/// The interval without `--interval`, and the shortest and the longest one.
const INTERVAL_S: f64 = 1.0;
const INTERVALS_S: std::ops::RangeInclusive<f64> = 0.1..=3_600.0;
/// The width where no terminal limits it.
const COLUMNS: usize = 120;
/// Ctrl-C and Ctrl-D as keys.
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

pub(super) fn top(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    refuse_at(invocation, settings)?;
    let interval = interval(invocation.value("--interval"))?;
    let count = count(invocation.value("--count"))?;
    let fleet = fleet::find_given(invocation, &invocation.args, settings)?;
    report_notes(&fleet);
    let found = fleet
        .looks
        .iter()
        .find_map(|look| Some((look.address.clone(), look.status.as_ref()?.source.clone())));
    let Some((address, source)) = found else {
        let reason = fleet.looks.first().and_then(|look| look.failure.clone());
        let text = reason.or_else(|| missing(&fleet)).unwrap_or_default();
        return Err(Failure::connection(text));
    };
    let watched = Watched { address, source };
    let mut before = watched.read()?;
    let screen = terminal::is_interactive().then(Screen::open);
    let mut drawn = 0;
    loop {
        if wait(interval, screen.is_some()) {
            return Ok(());
        }
        let now = watched.read();
        match &screen {
            Some(screen) => {
                let size = output::terminal_size();
                let (columns, lines) = size.map_or((COLUMNS, 24), |it| (it.columns, it.lines));
                let mut page = Painted::for_output();
                watched.draw(&mut page, &before, &now, columns);
                screen.draw(page.as_str(), lines);
            }
            None => {
                let mut page = Painted::for_output();
                if drawn > 0 {
                    page.end_line();
                }
                watched.draw(&mut page, &before, &now, COLUMNS);
                output::show(&page)?;
                output::flush()?;
            }
        }
        if let Ok(now) = now {
            before = now;
        }
        drawn += 1;
        if Some(drawn) == count || output::reader_is_gone() {
            return Ok(());
        }
    }
}

/// The server that is watched.
struct Watched {
    address: String,
    source: Source,
}

impl Watched {
    fn read(&self) -> Result<Value, Failure> {
        let status = self.source.read();
        let document = status
            .map_err(|reason| Failure::connection(format!("{}: {reason}", self.source)))?
            .document;
        match document::number(&document, "version") {
            Some(_) => Ok(document),
            None => Err(Failure::no_match(format!(
                "{}: this server has no status as JSON, which 'top' needs",
                self.address
            ))),
        }
    }

    /// Adds the picture, or why there is none.
    fn draw(
        &self,
        page: &mut Painted,
        before: &Value,
        now: &Result<Value, Failure>,
        columns: usize,
    ) {
        match now {
            Ok(now) => picture(page, &self.address, &Readings { before, now }, columns),
            Err(failure) => {
                page.part(Colour::Red, &failure.to_string());
                page.end_line();
            }
        }
    }
}

/// Waits for the interval. `true`: the user wants to leave.
fn wait(interval: Duration, has_keys: bool) -> bool {
    let end_ms = clock::mono_ms() + u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    loop {
        let left = Duration::from_millis(end_ms.saturating_sub(clock::mono_ms()));
        let input = io::stdin();
        let keys = has_keys.then(|| (input.as_raw_fd(), poll::events(true, false)));
        match poll::wait(keys, Some(left)) {
            // The command was cancelled.
            Err(_) => return true,
            Ok(0) => return false,
            Ok(_) => {
                let mut bytes = [0; 64];
                match rustix::io::read(&input, &mut bytes) {
                    // The terminal is gone.
                    Ok(0) | Err(_) => return true,
                    Ok(count) => {
                        let leaves = |key: &u8| matches!(*key, b'q' | b'Q' | CTRL_C | CTRL_D);
                        if bytes[..count].iter().any(leaves) {
                            return true;
                        }
                    }
                }
            }
        }
    }
}

fn interval(value: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = value else {
        return Ok(Duration::from_secs_f64(INTERVAL_S));
    };
    let seconds: Option<f64> = text.parse().ok();
    match seconds.filter(|seconds| INTERVALS_S.contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(Failure::usage(format!(
            "--interval: \"{text}\" is not a number of seconds from {} to {}",
            INTERVALS_S.start(),
            INTERVALS_S.end()
        ))),
    }
}

fn count(value: Option<&str>) -> Result<Option<u64>, Failure> {
    let Some(text) = value else {
        return Ok(None);
    };
    match text.parse() {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Err(Failure::usage(format!(
            "--count: \"{text}\" is not a positive number"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_counts_are_checked() {
        assert_eq!(interval(None).unwrap(), Duration::from_secs(1));
        assert_eq!(interval(Some("0.5")).unwrap(), Duration::from_millis(500));
        for text in ["", "x", "0", "-1", "nan", "inf", "1e9"] {
            assert!(interval(Some(text)).is_err(), "{text}");
        }
        assert_eq!(count(Some("3")).unwrap(), Some(3));
        assert!(count(Some("0")).is_err());
    }
}
