//! Progress on a terminal: which server and workload, how far. Silent elsewhere, so that logs hold results only.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the bar is drawn while nothing else happens.
const TICK: Duration = Duration::from_secs(1);

/// The progress of a whole command.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// What is measured now.
    subject: RefCell<String>,
}

impl Progress {
    /// `runs` measurements are to come.
    pub(crate) fn new(runs: u64) -> Progress {
        // The bar draws on standard error, and only when that is a terminal.
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

    /// Says what is done now.
    pub(crate) fn say(&self, text: String) {
        self.bar.set_message(text.clone());
        self.subject.replace(text);
    }

    /// Says what part of it is done now.
    pub(crate) fn detail(&self, text: &str) {
        self.bar
            .set_message(format!("{}: {text}", self.subject.borrow()));
    }

    /// Prints while the bar is out of the way.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// One measurement is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
