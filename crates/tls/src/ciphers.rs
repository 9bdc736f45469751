//! `--ssl-ciphers` and `--ssl-ciphersuites`: OpenSSL's words for the suites that rustls has
//! (docs/spec/cli.md 5.5).
//!
//! A cipher string edits a list from left to right: a word appends the suites it names, `-` removes
//! them, `!` removes them for good, `+` moves them to the end. Words joined by `+` name the suites
//! that they have in common. Words for ciphers that OpenSSL has and rustls lacks (CBC, finite
//! fields, RSA key exchange) name nothing.

use rustls::CipherSuite;
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::ALL_CIPHER_SUITES;

use crate::Error;

/// The suites to offer, in order of preference, for both versions of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CipherChoice {
    tls12: Vec<CipherSuite>,
    tls13: Vec<CipherSuite>,
}

/// A suite of TLS 1.2, and the OpenSSL words that name it.
struct Tls12Suite {
    suite: CipherSuite,
    name: &'static str,
    words: &'static [&'static str],
}

const TLS12: [Tls12Suite; 6] = [
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-ECDSA-AES256-GCM-SHA384",
        words: &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM", "FIPS"],
    },
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-RSA-AES256-GCM-SHA384",
        words: &["aRSA", "AES", "AES256", "AESGCM", "FIPS"],
    },
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-ECDSA-CHACHA20-POLY1305",
        words: &["ECDSA", "aECDSA", "CHACHA20"],
    },
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-RSA-CHACHA20-POLY1305",
        words: &["aRSA", "CHACHA20"],
    },
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-ECDSA-AES128-GCM-SHA256",
        words: &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM", "FIPS"],
    },
    Tls12Suite {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-RSA-AES128-GCM-SHA256",
        words: &["aRSA", "AES", "AES128", "AESGCM", "FIPS"],
    },
];

/// Words that name all of [`TLS12`].
const EVERY: [&str; 8] = [
    "DEFAULT", "HIGH", "ALL", "TLSv1.2", "ECDHE", "EECDH", "kECDHE", "kEECDH",
];

/// OpenSSL's words that name nothing here.
const NOTHING: &[&str] = &[
    "LOW",
    "MEDIUM",
    "EXP",
    "EXPORT",
    "eNULL",
    "NULL",
    "aNULL",
    "COMPLEMENTOFALL",
    "COMPLEMENTOFDEFAULT",
    "kRSA",
    "RSA",
    "kDHE",
    "kEDH",
    "DHE",
    "EDH",
    "DH",
    "ADH",
    "AECDH",
    "aDSS",
    "DSS",
    "PSK",
    "kPSK",
    "aPSK",
    "kECDHEPSK",
    "kDHEPSK",
    "kRSAPSK",
    "SRP",
    "kSRP",
    "aSRP",
    "GOST94",
    "GOST89MAC",
    "aGOST",
    "aGOST01",
    "kGOST",
    "AESCCM",
    "AESCCM8",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "3DES",
    "DES",
    "RC4",
    "RC2",
    "IDEA",
    "SEED",
    "MD5",
    "SHA",
    "SHA1",
    "SHA256",
    "SHA384",
    "CBC",
    "SSLv2",
    "SSLv3",
    "TLSv1",
    "TLSv1.0",
    "SUITEB128",
    "SUITEB192",
];

/// The suites of TLS 1.3, by their only name.
const TLS13: [(&str, CipherSuite); 3] = [
    (
        "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_256_GCM_SHA384,
    ),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_128_GCM_SHA256,
    ),
];

impl Default for CipherChoice {
    fn default() -> CipherChoice {
        CipherChoice {
            tls12: TLS12.iter().map(|known| known.suite).collect(),
            tls13: TLS13.iter().map(|&(_, suite)| suite).collect(),
        }
    }
}

impl CipherChoice {
    /// Applies an OpenSSL cipher string for TLS 1.2. Returns the unknown words.
    ///
    /// # Errors
    /// No word is known: [`Error::NoCipher`]. The choice has not changed.
    ///
    /// ```
    /// use corvid_tls::CipherChoice;
    /// let mut choice = CipherChoice::default();
    /// assert!(choice.set_ciphers("HIGH:!aNULL:!MD5").unwrap().is_empty());
    /// assert!(choice.set_ciphers("no-such-cipher").is_err());
    /// ```
    pub fn set_ciphers(&mut self, text: &str) -> Result<Vec<String>, Error> {
        let mut list: Vec<&Tls12Suite> = Vec::new();
        let mut killed: Vec<CipherSuite> = Vec::new();
        let mut unknown = Vec::new();
        let mut is_any_known = false;
        for word in text
            .split([':', ',', ' ', ';'])
            .filter(|word| !word.is_empty())
        {
            if word.starts_with('@') {
                continue;
            }
            let (edit, name) = match word.as_bytes()[0] {
                edit @ (b'!' | b'-' | b'+') => (edit, &word[1..]),
                _ => (b' ', word),
            };
            // `DEFAULT@SECLEVEL=1`: levels have no effect, because weak suites are never offered.
            let name = name.split_once('@').map_or(name, |(name, _)| name);
            let Some(named) = find(name) else {
                unknown.push(name.to_owned());
                continue;
            };
            is_any_known = true;
            let is_named =
                |known: &&Tls12Suite| named.iter().any(|found| found.suite == known.suite);
            match edit {
                b' ' => {
                    let wanted = named.iter().filter(|found| !killed.contains(&found.suite));
                    for found in wanted {
                        if !list.iter().any(|known| known.suite == found.suite) {
                            list.push(found);
                        }
                    }
                }
                b'+' => {
                    let moved: Vec<_> = list.extract_if(.., |known| is_named(&&**known)).collect();
                    list.extend(moved);
                }
                _ => {
                    list.retain(|known| !is_named(known));
                    if edit == b'!' {
                        killed.extend(named.iter().map(|found| found.suite));
                    }
                }
            }
        }
        if !is_any_known {
            return Err(Error::NoCipher);
        }
        self.tls12 = list.iter().map(|known| known.suite).collect();
        Ok(unknown)
    }

    /// Applies a colon-separated list of suites for TLS 1.3; an empty list disables that version.
    /// Returns the unknown names.
    ///
    /// # Errors
    /// No name is known: [`Error::NoCipher`]. The choice has not changed.
    pub fn set_ciphersuites(&mut self, text: &str) -> Result<Vec<String>, Error> {
        let mut suites = Vec::new();
        let mut unknown = Vec::new();
        for name in text.split(':').filter(|name| !name.is_empty()) {
            match TLS13.iter().find(|(known, _)| *known == name) {
                Some((_, suite)) if suites.contains(suite) => {}
                Some((_, suite)) => suites.push(*suite),
                None => unknown.push(name.to_owned()),
            }
        }
        if suites.is_empty() && !unknown.is_empty() {
            return Err(Error::NoCipher);
        }
        self.tls13 = suites;
        Ok(unknown)
    }

    /// The suites for a provider, TLS 1.3 first.
    pub(crate) fn suites(&self) -> Vec<SupportedCipherSuite> {
        let wanted = self.tls13.iter().chain(&self.tls12);
        wanted
            .filter_map(|wanted| {
                ALL_CIPHER_SUITES
                    .iter()
                    .find(|known| known.suite() == *wanted)
            })
            .copied()
            .collect()
    }
}

/// The suites that a word names, in order of preference: a cipher, a group, or the intersection of
/// groups joined by `+`. `None` for a word that neither we nor OpenSSL know.
fn find(name: &str) -> Option<Vec<&'static Tls12Suite>> {
    let mut named: Vec<&Tls12Suite> = TLS12.iter().collect();
    for word in name.split('+') {
        let is_cipher = TLS12.iter().any(|known| known.name == word);
        let is_group = TLS12.iter().any(|known| known.words.contains(&word));
        if EVERY.contains(&word) {
            continue;
        }
        if !is_cipher && !is_group && !NOTHING.contains(&word) {
            return None;
        }
        named.retain(|known| known.name == word || known.words.contains(&word));
    }
    Some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        let mut choice = CipherChoice::default();
        choice.set_ciphers(text).unwrap();
        let name = |suite: &CipherSuite| TLS12.iter().find(|known| known.suite == *suite);
        choice
            .tls12
            .iter()
            .filter_map(|suite| Some(name(suite)?.name))
            .collect()
    }

    #[test]
    fn cipher_strings_edit_a_list() {
        assert_eq!(names("DEFAULT:@SECLEVEL=2").len(), 6);
        assert_eq!(names("HIGH:!aNULL:!MD5").len(), 6);
        assert_eq!(names("DEFAULT@SECLEVEL=1").len(), 6);
        assert_eq!(
            names("ECDHE-RSA-AES256-GCM-SHA384"),
            ["ECDHE-RSA-AES256-GCM-SHA384"]
        );
        assert_eq!(
            names("ECDHE+aRSA+AESGCM:!AES128"),
            ["ECDHE-RSA-AES256-GCM-SHA384"]
        );
        assert_eq!(
            names("CHACHA20:+ECDSA"),
            [
                "ECDHE-RSA-CHACHA20-POLY1305",
                "ECDHE-ECDSA-CHACHA20-POLY1305"
            ]
        );
        assert_eq!(names("ALL:-AES:ECDHE-RSA-AES128-GCM-SHA256").len(), 3);
        assert_eq!(names("!AES:ALL").len(), 2);
        assert!(names("kRSA").is_empty());
    }

    #[test]
    fn unknown_words_are_told_and_a_list_of_them_is_refused() {
        let mut choice = CipherChoice::default();
        let unknown = choice.set_ciphers("AES128-SHA:AESGCM").unwrap();
        assert_eq!(unknown, ["AES128-SHA"]);
        let before = choice.clone();
        assert_eq!(choice.set_ciphers("FOO"), Err(Error::NoCipher));
        assert_eq!(choice, before);
    }

    #[test]
    fn suites_of_tls_1_3_are_listed_by_name() {
        let mut choice = CipherChoice::default();
        let text = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_256_GCM_SHA384";
        assert_eq!(
            choice.set_ciphersuites(text).unwrap(),
            ["TLS_AES_128_CCM_SHA256"]
        );
        assert_eq!(choice.tls13.len(), 2);
        assert_eq!(
            choice.suites()[0].suite(),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        );
        assert_eq!(choice.set_ciphersuites("X"), Err(Error::NoCipher));
        assert!(choice.set_ciphersuites("").unwrap().is_empty());
        assert_eq!(choice.suites().len(), 6);
    }
}
