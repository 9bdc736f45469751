//! Errors in files and settings, found before a connection is made.

/// Why a file or a setting cannot be used. Worded to follow a file's name in a log line.
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
    /// A certificate is not the DER of an X.509 certificate.
    #[error("certificate cannot be parsed")]
    BadCertificate,
    /// A private key of an unsupported kind, for example DSA.
    #[error("unsupported private key")]
    UnsupportedKey,
    /// A key with less than 112 bits of security.
    #[error("ee key too small")]
    WeakKey,
    /// A certificate signed with a digest that is no longer secure.
    #[error("ca md too weak")]
    WeakSignature,
    /// The key belongs to another certificate.
    #[error("key values mismatch")]
    KeyMismatch,
    /// A word in a protocol list is not a protocol.
    #[error("{0}: SSL/TLS protocol not recognized")]
    UnknownProtocol(String),
    /// A protocol list has no word.
    #[error("SSL/TLS protocol settings invalid")]
    NoProtocol,
    /// A cipher list selects nothing.
    #[error("no cipher match")]
    NoCipher,
    /// The settings leave nothing to offer: for example, only TLS 1.3 without its suites.
    #[error("no usable protocol and cipher suite")]
    NothingToOffer,
}
