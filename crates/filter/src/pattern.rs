//! The patterns of `~`: regular expressions, matched anywhere in a text.

use regex_lite::{Regex, RegexBuilder};

/// Limit on the memory of a compiled pattern, bytes.
const SIZE_MAX: usize = 1 << 20;

/// A pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The text is not a regular expression.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        let regex = RegexBuilder::new(text).size_limit(SIZE_MAX).build();
        regex
            .map(Pattern)
            .map_err(|error| format!("{text}: not a pattern: {error}"))
    }

    /// Whether the pattern matches anywhere in the text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}
