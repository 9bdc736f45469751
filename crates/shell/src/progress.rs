//! Progress of long work, shown on a terminal.
//!
//! Drawn on standard error, when that is a terminal, and only for work that takes longer than a second: scripts and short
//! commands see nothing. For tools; servers are built without it.

use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows nothing.
const HIDDEN: Duration = Duration::from_secs(1);
/// Between two pictures of work of unknown length.
const TICK: Duration = Duration::from_millis(200);
/// Steps between two readings of the clock.
const STRIDE: u64 = 1024;

/// The progress of a piece of work. Ends when it is dropped.
#[derive(Debug)]
pub struct Progress {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    begun: Instant,
    is_shown: Cell<bool>,
    done: Cell<u64>,
    /// The step at which the clock is read next.
    next: Cell<u64>,
    stride: u64,
}

impl Progress {
    /// Work of `total` steps.
    #[must_use]
    pub fn new(what: &'static str, total: u64) -> Progress {
        Progress::begin(what, total, STRIDE, "{msg} {wide_bar} {percent}% {eta}")
    }

    /// Work on `total` bytes, in pieces large enough to read the clock after each; 0 when the total is unknown.
    #[must_use]
    pub fn of_bytes(what: &'static str, total: u64) -> Progress {
        let template = match total {
            0 => "{msg} {spinner} {bytes}",
            _ => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        };
        Progress::begin(what, total, 1, template)
    }

    fn begin(what: &'static str, total: u64, stride: u64, template: &str) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.with_message(what)
        });
        Progress {
            bar,
            begun: Instant::now(),
            is_shown: Cell::new(false),
            done: Cell::new(0),
            next: Cell::new(stride),
            stride,
        }
    }

    /// Adds steps that are done.
    pub fn advance(&self, steps: u64) {
        let Some(bar) = &self.bar else {
            return;
        };
        let done = self.done.get() + steps;
        self.done.set(done);
        if done < self.next.get() {
            return;
        }
        self.next.set(done + self.stride);
        if !self.is_shown.get() {
            if self.begun.elapsed() < HIDDEN {
                return;
            }
            self.is_shown.set(true);
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Work of another process: shows the seconds. Ends when it is dropped.
#[derive(Debug)]
pub struct Spinner {
    /// `None` without a terminal. Dropping the sender ends the thread that draws the first picture.
    drawn: Option<(ProgressBar, Sender<()>, JoinHandle<()>)>,
}

impl Spinner {
    /// Begins.
    #[must_use]
    pub fn new(what: &'static str) -> Spinner {
        if !std::io::stderr().is_terminal() {
            return Spinner { drawn: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {spinner} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let (sender, ended) = mpsc::channel::<()>();
        let shown = bar.clone();
        let thread = thread::spawn(move || {
            if ended.recv_timeout(HIDDEN) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Spinner {
            drawn: Some((bar, sender, thread)),
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((bar, sender, thread)) = self.drawn.take() {
            drop(sender);
            let _ = thread.join();
            bar.finish_and_clear();
        }
    }
}
