//! The answer to `read_history`: some lines, and how far the reading has come.

use corvid_json::{ArrayWriter, ObjectWriter, write};

use super::{PAGE_BYTES_MAX, ReadingId};

/// A page that is being filled.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// JSON values, separated by commas.
    lines: Vec<u8>,
    warnings: Vec<String>,
    /// The date that the reading has reached, ms since the Unix epoch.
    pub at_ms: Option<i64>,
    /// The part of the bytes that is read, from 0 to 1.
    pub done: f64,
}

impl Page {
    /// Adds a line, a JSON value.
    pub fn push(&mut self, line: &[u8]) {
        if !self.lines.is_empty() {
            self.lines.push(b',');
        }
        self.lines.extend_from_slice(line);
    }

    /// Adds a warning for people.
    pub fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    /// Whether the page would be too long with another line of `bytes`. An empty page never is.
    #[must_use]
    pub fn is_full_for(&self, bytes: usize) -> bool {
        !self.lines.is_empty() && self.lines.len() + bytes >= PAGE_BYTES_MAX
    }

    /// Takes the page as the result of a request and leaves an empty one that is as far.
    #[must_use]
    pub fn take(&mut self, next: Option<ReadingId>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() + 128);
        let mut object = ObjectWriter::new(&mut out);
        let lines = object.member("lines");
        lines.push(b'[');
        lines.append(&mut self.lines);
        lines.push(b']');
        let member = object.member("next");
        match next {
            Some(ReadingId(number)) => {
                write::integer(member, i64::try_from(number).unwrap_or(i64::MAX));
            }
            None => write::null(member),
        }
        let member = object.member("at");
        match self.at_ms {
            Some(at_ms) => write::integer(member, at_ms),
            None => write::null(member),
        }
        let done = if next.is_some() { self.done } else { 1.0 };
        // Four digits are enough for a progress bar.
        let done = (done.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0;
        write::real(object.member("done"), done);
        if !self.warnings.is_empty() {
            let mut warnings = ArrayWriter::new(object.member("warnings"));
            for warning in self.warnings.drain(..) {
                write::string(warnings.element(), warning.as_bytes());
            }
            warnings.end();
        }
        object.end();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(page: &mut Page, next: Option<u64>) -> String {
        String::from_utf8(page.take(next.map(ReadingId))).unwrap()
    }

    #[test]
    fn a_page_has_its_lines_once_and_tells_how_far_the_reading_is() {
        let mut page = Page::default();
        page.push(b"{}");
        page.push(b"[1]");
        page.warn("a file is missing".to_owned());
        (page.at_ms, page.done) = (Some(1_700_000_000_000), 0.25);
        assert_eq!(
            taken(&mut page, Some(7)),
            r#"{"lines":[{},[1]],"next":7,"at":1700000000000,"done":0.25,"warnings":["a file is missing"]}"#
        );
        assert_eq!(
            taken(&mut page, None),
            r#"{"lines":[],"next":null,"at":1700000000000,"done":1}"#
        );
    }

    #[test]
    fn one_line_fits_at_any_length() {
        let mut page = Page::default();
        assert!(!page.is_full_for(10 * PAGE_BYTES_MAX));
        page.push(b"{}");
        assert!(page.is_full_for(PAGE_BYTES_MAX) && !page.is_full_for(100));
    }
}
