//! TLS for OVSDB connections: what the reference does with OpenSSL, done with rustls, without
//! sockets or files.
//!
//! Bytes of files and the time go in; configurations for connections come out ([`Config`]). A
//! [`Session`] turns ciphertext into plaintext and back for the owner of the socket. Peers are
//! judged by their chain and never by their name ([`verify`]), in both directions, by the rules
//! that deployments with certificates from `ovs-pki` rely on.
//!
//! Called by `net`, which reads the files, watches them, and runs sessions over sockets. The crate
//! knows nothing of paths, OVSDB or logging.

pub mod authorities;
pub mod certificate;
mod chain;
pub mod ciphers;
pub mod config;
mod der;
mod error;
pub mod fault;
pub mod identity;
mod name;
mod path;
pub mod pem;
pub mod protocols;
pub mod session;
pub mod verify;

pub use authorities::Authorities;
pub use certificate::Certificate;
pub use ciphers::CipherChoice;
pub use config::{Config, Material, Trust};
pub use error::Error;
pub use fault::Fault;
pub use identity::Identity;
pub use protocols::Protocols;
pub use session::Session;

/// The source of the time that certificate dates are compared with.
pub use rustls::time_provider::TimeProvider as Clock;

/// The accepting side of a [`Config`].
pub use rustls::ServerConfig;

/// A certificate as it crosses the wire, and seconds since 1970 as a [`Clock`] gives them.
pub use rustls::pki_types::{CertificateDer, UnixTime};
