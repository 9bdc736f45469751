//! `--ssl-protocols`: the versions of TLS that may be spoken (docs/spec/cli.md 5.5).

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::Error;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

impl Version {
    fn parse(word: &str) -> Option<Version> {
        match word {
            "TLSv1.2" => Some(Version::Tls12),
            "TLSv1.3" => Some(Version::Tls13),
            _ => None,
        }
    }
}

/// A range of versions, including those between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocols {
    min: Version,
    max: Version,
}

impl Default for Protocols {
    fn default() -> Protocols {
        Protocols {
            min: Version::Tls12,
            max: Version::Tls13,
        }
    }
}

impl Protocols {
    /// Parses `A-B`, `A+`, or a list of versions separated by commas or blanks.
    ///
    /// # Errors
    /// [`Error::UnknownProtocol`] with the word at fault, or [`Error::NoProtocol`] if there is no
    /// word.
    ///
    /// ```
    /// use corvid_tls::Protocols;
    /// assert_eq!(Protocols::parse("TLSv1.3-TLSv1.2"), Protocols::parse("TLSv1.2+"));
    /// assert!(Protocols::parse("TLSv1.2,TLSv1.3+").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Protocols, Error> {
        let words: Vec<&str> = text
            .split([',', ' ', '\t'])
            .filter(|word| !word.is_empty())
            .collect();
        if let [word] = words[..]
            && let Some(range) = parse_range(word)
        {
            return Ok(range);
        }
        let versions = words
            .iter()
            .map(|word| {
                Version::parse(word).ok_or_else(|| Error::UnknownProtocol((*word).to_owned()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        match (versions.iter().min(), versions.iter().max()) {
            (Some(&min), Some(&max)) => Ok(Protocols { min, max }),
            _ => Err(Error::NoProtocol),
        }
    }

    /// The versions, newest first.
    #[must_use]
    pub(crate) fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        let all = [(Version::Tls13, &TLS13), (Version::Tls12, &TLS12)];
        all.into_iter()
            .filter(|(version, _)| (self.min..=self.max).contains(version))
            .map(|(_, version)| version)
            .collect()
    }

    /// The range as the log shows it.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match (self.min, self.max) {
            (Version::Tls12, Version::Tls12) => "TLSv1.2 - TLSv1.2",
            (Version::Tls12, Version::Tls13) => "TLSv1.2 - TLSv1.3",
            _ => "TLSv1.3 or later",
        }
    }
}

fn parse_range(word: &str) -> Option<Protocols> {
    if let Some(word) = word.strip_suffix('+') {
        return Some(Protocols {
            min: Version::parse(word)?,
            max: Version::Tls13,
        });
    }
    let (first, last) = word.split_once('-')?;
    let (first, last) = (Version::parse(first)?, Version::parse(last)?);
    Some(Protocols {
        min: first.min(last),
        max: first.max(last),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists() {
        let both = Protocols::default();
        let only = |version| Protocols {
            min: version,
            max: version,
        };
        for text in [
            "TLSv1.2+",
            "TLSv1.2-TLSv1.3",
            "TLSv1.3-TLSv1.2",
            "TLSv1.2,TLSv1.3",
            " TLSv1.3  TLSv1.2 ",
        ] {
            assert_eq!(Protocols::parse(text), Ok(both), "{text}");
        }
        assert_eq!(Protocols::parse("TLSv1.2"), Ok(only(Version::Tls12)));
        assert_eq!(Protocols::parse("TLSv1.3+"), Ok(only(Version::Tls13)));
        assert_eq!(both.versions().len(), 2);
        assert_eq!(only(Version::Tls13).describe(), "TLSv1.3 or later");
    }

    #[test]
    fn what_is_no_protocol_is_refused() {
        let refused = |text: &str| Protocols::parse(text).unwrap_err().to_string();
        for (text, word) in [
            ("bogus", "bogus"),
            ("TLSv1.1", "TLSv1.1"),
            ("TLSv1+", "TLSv1+"),
            ("TLSv1.2,bogus", "bogus"),
            ("TLSv1.2-TLSv1.3,TLSv1.3+", "TLSv1.2-TLSv1.3"),
            ("TLSv1.2+TLSv1.3", "TLSv1.2+TLSv1.3"),
            ("TLSv1.2-TLSv1.3+", "TLSv1.2-TLSv1.3+"),
        ] {
            let expected = format!("{word}: SSL/TLS protocol not recognized");
            assert_eq!(refused(text), expected);
        }
        assert_eq!(refused(" , "), "SSL/TLS protocol settings invalid");
    }
}
