//! The text of a message, exact for programs and escaped for people.
//!
//! Invariant: a message is one line of text, whatever its caller has put into it. The only
//! exception is the report of a panic, whose lines are this program's own.

use std::borrow::Cow;

use corvid_json::shown::{self, ShownLines};

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Message<'a> {
    /// One line. Newlines in it come from clients, peers or files.
    Line(&'a str),
    /// A line and a backtrace. The caller has escaped the line.
    Trace(&'a str),
}

impl<'a> Message<'a> {
    /// The exact text, without newlines at the end, for forms that quote it.
    pub(super) fn exact(self) -> &'a str {
        let (Message::Line(text) | Message::Trace(text)) = self;
        text.trim_end_matches('\n')
    }

    /// The text for people: without control characters.
    pub(super) fn shown(self) -> Cow<'a, str> {
        match self {
            Message::Line(_) => shown::line(self.exact()),
            Message::Trace(_) => Cow::Owned(ShownLines(self.exact()).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_has_several_lines() {
        let text = "a\n\u{1b}b\n\n";
        assert_eq!(Message::Line(text).shown(), "a\\n\\u001bb");
        assert_eq!(Message::Trace(text).shown(), "a\n\\u001bb");
        assert_eq!(Message::Line(text).exact(), "a\n\u{1b}b");
    }
}
