//! The words of `-v` and `vlog/set`: levels, patterns and the syslog facility.
//!
//! Parsing only; `vlog` applies the result.

use super::{Destination, Level, Module};

/// The setting of one SPEC.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spec {
    /// Set the level of a module (`None`: all) for a destination (`None`: all).
    Level {
        module: Option<Module>,
        destination: Option<Destination>,
        level: Level,
    },
    /// Set the pattern of a destination (`None`: all).
    Pattern {
        destination: Option<Destination>,
        pattern: String,
    },
    /// Set the facility, by number (RFC 5424 6.2.1).
    Facility(u8),
}

/// Why a SPEC is rejected, in the words shown to users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is its message")]
pub enum SpecError {
    #[error("no destination, level, or module \"{0}\"")]
    UnknownWord(String),
    #[error("cannot specify multiple {0}")]
    Multiple(&'static str),
    #[error("missing destination")]
    MissingDestination,
    #[error("unknown destination \"{0}\"")]
    UnknownDestination(String),
    #[error("invalid facility")]
    InvalidFacility,
}

const FACILITIES: [(&str, u8); 23] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("clock", 9),
    ("ftp", 11),
    ("ntp", 12),
    ("audit", 13),
    ("alert", 14),
    ("clock2", 15),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// Splits off the first word of `text`: skips leading separators, and consumes one separator after
/// the word.
fn next_word(text: &str) -> Option<(&str, &str)> {
    const SEPARATORS: [char; 4] = [' ', ',', ':', '\t'];
    let text = text.trim_start_matches(SEPARATORS);
    if text.is_empty() {
        return None;
    }
    Some(text.split_once(SEPARATORS).unwrap_or((text, "")))
}

pub(super) fn parse(spec: &str) -> Result<Spec, SpecError> {
    match next_word(spec) {
        Some((word, rest)) if word.eq_ignore_ascii_case("pattern") => parse_pattern(rest),
        Some((word, rest)) if word.eq_ignore_ascii_case("facility") => parse_facility(rest),
        _ => parse_level(spec),
    }
}

fn parse_pattern(rest: &str) -> Result<Spec, SpecError> {
    let (word, pattern) = next_word(rest).ok_or(SpecError::MissingDestination)?;
    let destination = Destination::parse(word);
    if destination.is_none() && !word.eq_ignore_ascii_case("any") {
        return Err(SpecError::UnknownDestination(word.to_owned()));
    }
    Ok(Spec::Pattern {
        destination,
        pattern: pattern.to_owned(),
    })
}

fn parse_facility(rest: &str) -> Result<Spec, SpecError> {
    let (word, _) = next_word(rest).ok_or(SpecError::InvalidFacility)?;
    FACILITIES
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map(|(_, code)| Spec::Facility(code))
        .ok_or(SpecError::InvalidFacility)
}

fn parse_level(spec: &str) -> Result<Spec, SpecError> {
    let (mut module, mut destination, mut level) = (None, None, None);
    let mut rest = spec;
    while let Some((word, after)) = next_word(rest) {
        rest = after;
        if word.eq_ignore_ascii_case("any") {
            continue;
        }
        let repeated = if let Some(found) = Destination::parse(word) {
            destination.replace(found).map(|_| "destinations")
        } else if let Some(found) = Level::parse(word) {
            level.replace(found).map(|_| "levels")
        } else if let Some(found) = Module::parse(word) {
            module.replace(found).map(|_| "modules")
        } else {
            return Err(SpecError::UnknownWord(word.to_owned()));
        };
        if let Some(what) = repeated {
            return Err(SpecError::Multiple(what));
        }
    }
    Ok(Spec::Level {
        module,
        destination,
        level: level.unwrap_or(Level::Dbg),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(
        module: Option<Module>,
        destination: Option<Destination>,
        level: Level,
    ) -> Result<Spec, SpecError> {
        Ok(Spec::Level {
            module,
            destination,
            level,
        })
    }

    #[test]
    fn missing_parts_mean_all_modules_all_destinations_and_debug() {
        assert_eq!(parse(""), level(None, None, Level::Dbg));
        assert_eq!(parse("raft"), level(Some(Module::Raft), None, Level::Dbg));
        assert_eq!(
            parse("console:OFF"),
            level(None, Some(Destination::Console), Level::Off)
        );
        assert_eq!(
            parse("any jsonrpc,file\tdbg"),
            level(Some(Module::Jsonrpc), Some(Destination::File), Level::Dbg)
        );
    }

    #[test]
    fn errors_have_the_words_of_the_reference() {
        let text = |spec| parse(spec).unwrap_err().to_string();
        assert_eq!(
            text("bogus:info"),
            "no destination, level, or module \"bogus\""
        );
        assert_eq!(text("console:file"), "cannot specify multiple destinations");
        assert_eq!(text("info:dbg"), "cannot specify multiple levels");
        assert_eq!(text("raft:relay"), "cannot specify multiple modules");
        assert_eq!(text("PATTERN"), "missing destination");
        assert_eq!(text("pattern:foo:x"), "unknown destination \"foo\"");
        assert_eq!(text("FACILITY:any"), "invalid facility");
    }

    #[test]
    fn patterns_are_taken_verbatim() {
        let pattern = "%D{%H:%M}|%m, x".to_owned();
        assert_eq!(
            parse("PATTERN:console:%D{%H:%M}|%m, x"),
            Ok(Spec::Pattern {
                destination: Some(Destination::Console),
                pattern: pattern.clone()
            })
        );
        assert_eq!(
            parse("pattern:ANY:%D{%H:%M}|%m, x"),
            Ok(Spec::Pattern {
                destination: None,
                pattern
            })
        );
        assert_eq!(parse("facility:Local3"), Ok(Spec::Facility(19)));
    }
}
