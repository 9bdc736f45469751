//! A progress bar with the server and the workload. It is shown only on a terminal, so that logs
//! contain only results.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The interval at which the bar is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// The progress of a whole command.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The current measurement.
    subject: RefCell<String>,
}

impl Progress {
    /// A bar for `runs` measurements.
    pub(crate) fn new(runs: u64) -> Progress {
        // The bar is drawn on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(runs);
        let template = "{bar:30} {pos}/{len} {elapsed_precise} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Progress {
            bar,
            subject: RefCell::default(),
        }
    }

    /// Shows the current measurement.
    pub(crate) fn show(&self, text: String) {
        self.bar.set_message(text.clone());
        self.subject.replace(text);
    }

    /// Shows the current step of the measurement.
    pub(crate) fn detail(&self, text: &str) {
        self.bar
            .set_message(format!("{}: {text}", self.subject.borrow()));
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Counts a measurement as done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
