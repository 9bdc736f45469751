//! Why a session failed, in words that users of the reference search for.
//!
//! OpenSSL 3's texts are kept for peers that do not speak TLS or send no certificate. Other texts
//! cannot be matched in full; the names of alerts (above all `alert handshake failure`) and
//! `certificate verify failed` are kept.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error};

/// The error that ended a session. Its text follows `SSL_accept: ` and similar prefixes.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The peer sent JSON instead of TLS.
    PlainJson,
    /// TLS or a certificate is at fault.
    Tls(Error),
}

impl std::error::Error for Fault {}

/// OpenSSL 3's text for bytes that are not TLS.
const WRONG_VERSION: &str = "error:0A00010B:SSL routines::wrong version number";

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::PlainJson => f.write_str(WRONG_VERSION),
            Fault::Tls(Error::AlertReceived(alert)) => {
                write!(f, "ssl/tls alert {}", alert_words(*alert))
            }
            Fault::Tls(Error::InvalidCertificate(why)) => {
                write!(f, "certificate verify failed ({})", certificate_words(why))
            }
            Fault::Tls(Error::NoCertificatesPresented) => {
                f.write_str("error:0A0000C7:SSL routines::peer did not return a certificate")
            }
            Fault::Tls(Error::PeerIncompatible(why)) => write!(f, "no shared parameters ({why:?})"),
            Fault::Tls(Error::InvalidMessage(why)) => write!(f, "{WRONG_VERSION} ({why:?})"),
            Fault::Tls(error) => write!(f, "{error}"),
        }
    }
}

/// The words of an alert: `handshake failure` for `HandshakeFailure`, `unknown ca` for `UnknownCA`.
fn alert_words(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => return "unknown ca".to_owned(),
        AlertDescription::NoCertificate => return "no certificate".to_owned(),
        AlertDescription::BadCertificateStatusResponse => {
            return "bad certificate status response".to_owned();
        }
        _ => {}
    }
    let name = format!("{alert:?}");
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn certificate_words(why: &CertificateError) -> String {
    let words = match why {
        CertificateError::UnknownIssuer => "unable to get issuer certificate",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not yet valid"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "unsuitable certificate purpose"
        }
        CertificateError::BadSignature => "certificate signature failure",
        CertificateError::UnhandledCriticalExtension => "unhandled critical extension",
        CertificateError::ApplicationVerificationFailure => "EE certificate key too weak",
        CertificateError::BadEncoding => "certificate cannot be parsed",
        other => return format!("{other:?}"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_keep_the_words_that_are_searched_for() {
        let text = |alert| Fault::Tls(Error::AlertReceived(alert)).to_string();
        assert!(text(AlertDescription::HandshakeFailure).ends_with("alert handshake failure"));
        assert!(text(AlertDescription::UnknownCA).ends_with("alert unknown ca"));
        assert!(
            text(AlertDescription::CertificateRequired).ends_with("alert certificate required")
        );
        assert_eq!(
            Fault::PlainJson.to_string(),
            "error:0A00010B:SSL routines::wrong version number"
        );
    }
}
