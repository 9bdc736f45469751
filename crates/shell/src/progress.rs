//! Progress of long work, shown on a terminal.
//!
//! Drawn on standard error, only if that is a terminal and only for work that takes longer than a
//! second: scripts and short commands see nothing. For tools; servers are built without it.

use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less time shows nothing.
const HIDDEN: Duration = Duration::from_secs(1);
/// The time between two redraws.
const TICK: Duration = Duration::from_millis(200);
/// The number of steps between two updates of the position.
const STRIDE: u64 = 1024;

/// The progress of a piece of work. Ends when dropped.
#[derive(Debug)]
pub struct Progress {
    /// `None` without a terminal.
    picture: Option<Picture>,
    done: Cell<u64>,
    /// The step at which the position is updated next.
    next: Cell<u64>,
    stride: u64,
}

impl Progress {
    /// Work of `total` steps.
    #[must_use]
    pub fn new(what: &'static str, total: u64) -> Progress {
        let template = "{msg} {wide_bar} {percent}% {elapsed}";
        Progress::begin(what, total, STRIDE, template)
    }

    /// Work on `total` bytes, in large pieces; 0 if the total is unknown.
    #[must_use]
    pub fn of_bytes(what: &'static str, total: u64) -> Progress {
        let template = match total {
            0 => "{msg} {spinner} {bytes} {elapsed}",
            _ => "{msg} {wide_bar} {bytes}/{total_bytes} {elapsed}",
        };
        Progress::begin(what, total, 1, template)
    }

    fn begin(what: &'static str, total: u64, stride: u64, template: &str) -> Progress {
        Progress {
            picture: Picture::begin(what, Some(total), template),
            done: Cell::new(0),
            next: Cell::new(stride),
            stride,
        }
    }

    /// Adds completed steps.
    pub fn advance(&self, steps: u64) {
        let Some(picture) = &self.picture else {
            return;
        };
        let done = self.done.get() + steps;
        self.done.set(done);
        if done >= self.next.get() {
            self.next.set(done + self.stride);
            picture.bar.set_position(done);
        }
    }
}

/// Work of unknown length, in this process or another: shows the seconds. Ends when dropped.
#[derive(Debug)]
pub struct Spinner {
    _picture: Option<Picture>,
}

impl Spinner {
    /// Begins showing the seconds.
    #[must_use]
    pub fn new(what: &'static str) -> Spinner {
        Spinner {
            _picture: Picture::begin(what, None, "{msg} {spinner} {elapsed}"),
        }
    }
}

/// The line on the terminal. A thread draws it, so it appears even while a single step takes long.
#[derive(Debug)]
struct Picture {
    bar: ProgressBar,
    /// The thread that waits before the first redraw, and the sender that ends its wait when
    /// dropped.
    first: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Picture {
    /// Begins the line; `None` without a terminal.
    fn begin(what: &'static str, total: Option<u64>, template: &str) -> Option<Picture> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
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
        Some(Picture {
            bar,
            first: Some((sender, thread)),
        })
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.first.take() {
            drop(sender);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
