//! Progress on a terminal: which server and workload, how far. Silent elsewhere, so that logs hold results only.

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a whole command.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// `runs` measurements are to come.
    pub(crate) fn new(runs: u64) -> Progress {
        // The bar draws on standard error, and only when that is a terminal.
        let bar = ProgressBar::new(runs);
        let template = "{wide_bar} {pos}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Says what is done now.
    pub(crate) fn say(&self, text: String) {
        self.0.set_message(text);
    }

    /// One measurement is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
