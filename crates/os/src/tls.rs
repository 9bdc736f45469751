//! TLS for streams: files, settings and sockets around the sessions of `corvid-tls`.
//!
//! [`Credentials`] is what a process shows of itself and whom it believes, kept up to date with the files; [`options`] are the
//! command line for it. [`stream`](crate::stream) and [`listener`](crate::listener) take it along to open `ssl:` and `pssl:`.

mod bootstrap;
mod carrier;
mod credentials;
mod file;
pub mod options;
mod settings;

pub use carrier::Carrier;
pub use credentials::Credentials;
pub use settings::{Authority, Settings};

use crate::vlog::RateLimit;

/// For what peers can provoke.
static PEER_LIMIT: RateLimit = RateLimit::new(10, 25);
