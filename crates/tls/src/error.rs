//! Errors in files and settings, found before a connection.

/// Why a file or a setting cannot be used. Worded to stand behind a file's name in a log line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no certificate in PEM form.
    #[error("no certificate in PEM form")]
    NoCertificate,
    /// The file has no unencrypted private key in PEM form.
    #[error("no unencrypted private key in PEM form")]
    NoKey,
    /// The text between the PEM marks is not base64.
    #[error("bad base64 decode")]
    BadPem,
    /// A certificate is not DER of an X.509 certificate.
    #[error("certificate cannot be parsed")]
    BadCertificate,
    /// A private key of a kind that cannot be used, DSA above all.
    #[error("unsupported private key")]
    UnsupportedKey,
    /// A key below 112 bits of security.
    #[error("ee key too small")]
    WeakKey,
    /// A certificate that is signed with a digest which no longer vouches for anything.
    #[error("ca md too weak")]
    WeakSignature,
    /// The key belongs to another certificate.
    #[error("key values mismatch")]
    KeyMismatch,
    /// A word of a protocol list is not a protocol.
    #[error("{0}: SSL/TLS protocol not recognized")]
    UnknownProtocol(String),
    /// A protocol list without a word.
    #[error("SSL/TLS protocol settings invalid")]
    NoProtocol,
    /// A cipher list that selects nothing.
    #[error("no cipher match")]
    NoCipher,
    /// The settings leave nothing to offer, for example TLS 1.3 alone without its suites.
    #[error("no usable protocol and cipher suite")]
    NothingToOffer,
}
