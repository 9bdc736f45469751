//! What the command line, or the columns that it names, say about TLS: names of files and texts, nothing read yet.

/// Settings of TLS; `None` is what was not given.
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

/// Whom to believe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// A file, or `none` for everybody.
    pub file: String,
    /// Whether the file, while it does not exist, is made of what the first server sends.
    pub is_bootstrapped: bool,
}
