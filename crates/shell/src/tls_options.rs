//! The TLS options that all programs share: `-p`, `-c`, `-C` and so on (docs/spec/cli.md 5).

use crate::args::{Arg, Spec};
use corvid_net::tls::{Authority, Settings};

/// A TLS option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named by its option")]
pub enum TlsOption {
    PrivateKey,
    Certificate,
    CaCert,
    BootstrapCaCert,
    PeerCaCert,
    SslProtocols,
    SslCiphers,
    SslCiphersuites,
    SslServerName,
}

/// The heading of these options.
pub const GROUP: &str = "SSL/TLS options (required to use SSL/TLS)";

/// The table of these options, without the server's own; `wrap` converts them to options of the
/// program.
pub fn specs<I: Copy>(wrap: impl Fn(TlsOption) -> I) -> [Spec<I>; 8] {
    let short =
        |name, letter, option| Spec::both(name, letter, Arg::Required, wrap(option)).within(GROUP);
    let long = |name, option| Spec::long(name, Arg::Required, wrap(option)).within(GROUP);
    [
        short("private-key", 'p', TlsOption::PrivateKey)
            .means("FILE", "file with private key (PEM, not encrypted)"),
        short("certificate", 'c', TlsOption::Certificate)
            .means("FILE", "file with certificate for private key")
            .more("Only the first certificate of FILE is used."),
        short("ca-cert", 'C', TlsOption::CaCert)
            .means("FILE", "file with peer CA certificate")
            .more(
                "A peer's certificate must chain to a self-signed certificate in FILE. Host names are not checked. `none` disables \
                verification, so any peer is accepted.",
            ),
        long("bootstrap-ca-cert", TlsOption::BootstrapCaCert)
            .means("FILE", "file with peer CA certificate to read or create")
            .more(
                "If FILE does not exist, the CA certificate of the first peer is trusted and written to FILE; that connection is then closed \
                and opened again.",
            ),
        long("ssl-protocols", TlsOption::SslProtocols)
            .means("PROTOS", "range of protocols, of TLSv1.2 and TLSv1.3 (default: TLSv1.2+)")
            .more("`TLSv1.2-TLSv1.3`, `TLSv1.2+`, or a comma-separated list, which means the range from its lowest to its highest version."),
        long("ssl-ciphers", TlsOption::SslCiphers)
            .means("CIPHERS", "ciphers of TLSv1.2, as OpenSSL names them"),
        long("ssl-ciphersuites", TlsOption::SslCiphersuites)
            .means("SUITES", "ciphersuites of TLSv1.3 and later, separated by colons"),
        long("ssl-server-name", TlsOption::SslServerName)
            .means("NAME", "server name to request (SNI) instead of the host name"),
    ]
}

/// `--peer-ca-cert`, which only servers have.
pub fn peer_spec<I: Copy>(wrap: impl Fn(TlsOption) -> I) -> Spec<I> {
    Spec::long("peer-ca-cert", Arg::Required, wrap(TlsOption::PeerCaCert))
        .means(
            "FILE",
            "additional certificates to send to peers after our own",
        )
        .within(GROUP)
}

impl TlsOption {
    /// Stores the option in `settings`; the last one of its kind wins.
    pub fn apply(self, settings: &mut Settings, value: Option<&str>) {
        let value = value.unwrap_or_default().to_owned();
        let authority = |is_bootstrapped| {
            Some(Authority {
                file: value.clone(),
                is_bootstrapped,
            })
        };
        match self {
            TlsOption::CaCert => settings.authority = authority(false),
            TlsOption::BootstrapCaCert => settings.authority = authority(true),
            TlsOption::PrivateKey => settings.private_key = Some(value),
            TlsOption::Certificate => settings.certificate = Some(value),
            TlsOption::PeerCaCert => settings.peer_authority = Some(value),
            TlsOption::SslProtocols => settings.protocols = Some(value),
            TlsOption::SslCiphers => settings.ciphers = Some(value),
            TlsOption::SslCiphersuites => settings.ciphersuites = Some(value),
            TlsOption::SslServerName => settings.server_name = Some(value),
        }
    }
}
