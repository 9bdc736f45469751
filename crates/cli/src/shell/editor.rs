//! The line editor: reads lines with history, completion, hints and colours.
//!
//! This file adapts the library to the pure parts of the shell; nothing else names the library.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_net::errno;
use rustyline::completion::{Completer, Pair};
use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Helper};

use super::candidates::{self, Known};
use super::lookup::Lookup;
use super::{cursor, highlight, history, words};
use crate::failure::{Failure, Kind};

/// The outcome of reading a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A statement, of one or more lines.
    Line(String),
    /// Ctrl-C: the input is dropped.
    Cancelled,
    /// Ctrl-D on an empty line, or the terminal is gone.
    End,
}

/// The editor.
pub(crate) struct Editor {
    editor: rustyline::Editor<Assistant, FileHistory>,
    /// Where the history is kept; `None`: nowhere.
    history: Option<PathBuf>,
    knowledge: Rc<RefCell<Knowledge>>,
    is_entered: Arc<AtomicBool>,
}

impl Editor {
    /// An editor with the history of earlier shells.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub(crate) fn new(has_colours: bool) -> Result<Editor, Failure> {
        let colours = match has_colours {
            true => ColorMode::Enabled,
            false => ColorMode::Disabled,
        };
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .bell_style(BellStyle::None)
            .color_mode(colours);
        let config = config
            .max_history_size(history::LINES_MAX)
            .map_err(|error| failure(&error))?;
        let mut editor =
            rustyline::Editor::with_config(config.build()).map_err(|error| failure(&error))?;
        let knowledge = Rc::<RefCell<Knowledge>>::default();
        let is_entered = Arc::<AtomicBool>::default();
        editor.set_helper(Some(Assistant {
            knowledge: Rc::clone(&knowledge),
            is_entered: Arc::clone(&is_entered),
            has_colours,
        }));
        let history = history::file();
        if let Some(file) = &history {
            // A file that is not there yet, or damaged, costs only the history.
            let _ = editor.load_history(file);
        }
        Ok(Editor {
            editor,
            history,
            knowledge,
            is_entered,
        })
    }

    /// Changes what completion and hints know.
    pub(crate) fn know(&self, change: impl FnOnce(&mut Knowledge)) {
        change(&mut self.knowledge.borrow_mut());
    }

    /// Whether the statement is complete, while it is read. From then on the terminal turns Ctrl-C
    /// into a signal for its command.
    pub(crate) fn is_entered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_entered)
    }

    /// Reads a statement.
    ///
    /// # Errors
    /// The terminal fails.
    pub(crate) fn read(&mut self, prompt: &str) -> Result<Input, Failure> {
        self.is_entered.store(false, Ordering::SeqCst);
        match self.editor.readline(prompt) {
            Ok(line) => {
                self.remember(&line);
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Cancelled),
            Err(ReadlineError::Eof) => Ok(Input::End),
            // The window was resized at a bad moment: the prompt appears again.
            Err(ReadlineError::Signal(_)) => Ok(Input::Cancelled),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Adds a line to the history, at once, so that nothing is lost when the shell dies.
    fn remember(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line);
        if let (Ok(true), Some(file)) = (is_new, &self.history) {
            // A full disk costs only the history.
            let _ = self.editor.append_history(file);
        }
    }
}

fn failure(error: &ReadlineError) -> Failure {
    let reason = match error {
        ReadlineError::Io(error) => errno::text(error),
        error => error.to_string(),
    };
    Failure::new(Kind::NoMatch, format!("the terminal fails ({reason})"))
}

/// The knowledge of the assistant; the shell keeps it current.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    /// Names.
    pub known: Known,
    /// Questions about rows.
    pub lookup: Lookup,
}

/// Helps with a line.
struct Assistant {
    knowledge: Rc<RefCell<Knowledge>>,
    is_entered: Arc<AtomicBool>,
    has_colours: bool,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let cursor = cursor::at_end(&line[..position]);
        let Knowledge { known, lookup } = &mut *self.knowledge.borrow_mut();
        let found = candidates::candidates(&cursor, known, lookup);
        let pairs = found.into_iter().map(|candidate| Pair {
            display: candidate.shown,
            replacement: candidate.replacement,
        });
        Ok((cursor.start, pairs.collect()))
    }
}

impl Hinter for Assistant {
    type Hint = Remark;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<Remark> {
        if position < line.len() {
            return None;
        }
        let cursor = cursor::at_end(line);
        candidates::hint(&cursor, &self.knowledge.borrow().known).map(Remark)
    }
}

/// A hint that only informs: no key inserts it.
struct Remark(String);

impl Hint for Remark {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.has_colours {
            true => Cow::Owned(highlight::coloured(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.has_colours {
            true => Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")),
            false => Cow::Borrowed(hint),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.has_colours
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match words::split(context.input()).is_continued() {
            true => ValidationResult::Incomplete,
            false => {
                self.is_entered.store(true, Ordering::SeqCst);
                ValidationResult::Valid(None)
            }
        })
    }
}
