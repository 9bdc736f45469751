//! TLS settings from the command line, or from the columns that it names: file names and texts.
//! Nothing is read here.

/// TLS settings; `None`: not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `--private-key`: a file.
    pub private_key: Option<String>,
    /// `--certificate`: a file.
    pub certificate: Option<String>,
    /// `--ca-cert` or `--bootstrap-ca-cert`, whichever came last.
    pub authority: Option<Authority>,
    /// `--peer-ca-cert`: a file.
    pub peer_authority: Option<String>,
    /// `--ssl-protocols`
    pub protocols: Option<String>,
    /// `--ssl-ciphers`
    pub ciphers: Option<String>,
    /// `--ssl-ciphersuites`
    pub ciphersuites: Option<String>,
    /// `--ssl-server-name`
    pub server_name: Option<String>,
}

/// The authority that must have issued peers' certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// A file, or `none` to accept every peer.
    pub file: String,
    /// Whether a missing file is written from the first server's certificate.
    pub is_bootstrapped: bool,
}
