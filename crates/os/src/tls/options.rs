//! The options of TLS that all programs share: `-p`, `-c`, `-C` and their kin (cli.md 5).

use super::settings::{Authority, Settings};
use crate::args::{Arg, Spec};

/// One of these options.
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

/// What `--help` says about these options; only a server takes `--peer-ca-cert`.
pub const HELP: &str = "
SSL/TLS options (required to use SSL/TLS):
  -p, --private-key=FILE  file with private key
  -c, --certificate=FILE  file with certificate for private key
  -C, --ca-cert=FILE      file with peer CA certificate
  --bootstrap-ca-cert=FILE  file with peer CA certificate to read or create
  --ssl-protocols=PROTOS  list or range of SSL/TLS protocols to enable
  --ssl-ciphers=CIPHERS   list of ciphers to enable with TLSv1.2
  --ssl-ciphersuites=SUITES  list of ciphersuites to enable with TLSv1.3 and later
  --ssl-server-name=NAME  name to ask servers for (SNI)
";

/// The table of these options, without the server's own; `wrap` makes them options of the program.
pub fn specs<I>(wrap: impl Fn(TlsOption) -> I) -> [Spec<I>; 8] {
    let short = |name, letter, option| Spec::both(name, letter, Arg::Required, wrap(option));
    let long = |name, option| Spec::long(name, Arg::Required, wrap(option));
    [
        short("private-key", 'p', TlsOption::PrivateKey),
        short("certificate", 'c', TlsOption::Certificate),
        short("ca-cert", 'C', TlsOption::CaCert),
        long("bootstrap-ca-cert", TlsOption::BootstrapCaCert),
        long("ssl-protocols", TlsOption::SslProtocols),
        long("ssl-ciphers", TlsOption::SslCiphers),
        long("ssl-ciphersuites", TlsOption::SslCiphersuites),
        long("ssl-server-name", TlsOption::SslServerName),
    ]
}

/// `--peer-ca-cert`, which only a server takes.
pub fn peer_spec<I>(wrap: impl Fn(TlsOption) -> I) -> Spec<I> {
    Spec::long("peer-ca-cert", Arg::Required, wrap(TlsOption::PeerCaCert))
}

impl Settings {
    /// Notes one option; the last one of its kind counts.
    pub fn apply(&mut self, option: TlsOption, value: Option<&str>) {
        let value = value.unwrap_or_default().to_owned();
        let authority = |is_bootstrapped| {
            Some(Authority {
                file: value.clone(),
                is_bootstrapped,
            })
        };
        match option {
            TlsOption::CaCert => self.authority = authority(false),
            TlsOption::BootstrapCaCert => self.authority = authority(true),
            TlsOption::PrivateKey => self.private_key = Some(value),
            TlsOption::Certificate => self.certificate = Some(value),
            TlsOption::PeerCaCert => self.peer_authority = Some(value),
            TlsOption::SslProtocols => self.protocols = Some(value),
            TlsOption::SslCiphers => self.ciphers = Some(value),
            TlsOption::SslCiphersuites => self.ciphersuites = Some(value),
            TlsOption::SslServerName => self.server_name = Some(value),
        }
    }
}
