//! Settings of TLS from the command line, or from columns that it names: names of files and texts. Nothing is read here.

/// Settings of TLS; `None`: not given.
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

/// The authority that peers' certificates must lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// A file, or `none` to accept every peer.
    pub file: String,
    /// Whether a missing file is written from the certificate of the first server.
    pub is_bootstrapped: bool,
}
