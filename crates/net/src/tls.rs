//! TLS for streams: files, settings and sockets around the sessions of `corvid-tls`.
//!
//! [`Credentials`] are the keys and certificates of a process, kept up to date with their files.
//! [`stream`](crate::stream) and [`listener`](crate::listener) use them for `ssl:` and `pssl:`.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod bootstrap;
#[cfg(feature = "tls")]
mod carrier;
#[cfg(feature = "tls")]
mod credentials;
#[cfg(feature = "tls")]
mod file;
mod missing;
#[cfg(feature = "tls")]
mod settings;

#[cfg(not(feature = "tls"))]
pub use absent::{Carrier, Credentials};
#[cfg(feature = "tls")]
pub use carrier::Carrier;
#[cfg(feature = "tls")]
pub use credentials::Credentials;
pub use missing::MissingPart;
#[cfg(feature = "tls")]
pub use settings::{Authority, Settings};

/// The accepting side of TLS, as [`Credentials::for_accepting`] gives it.
#[cfg(feature = "tls")]
pub use corvid_tls::ServerConfig;

#[cfg(feature = "tls")]
use crate::logging::RateLimit;

/// The rate limit of messages that peers can provoke.
#[cfg(feature = "tls")]
static PEER_LIMIT: RateLimit = RateLimit::new(10, 25);
