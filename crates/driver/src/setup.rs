//! The settings that a client starts with, besides the class and the remotes.

use std::sync::Arc;
use std::time::Duration;

use corvid_net::tls::Credentials;

/// Settings of a client. Most of them can be changed later, by the methods of [`crate::polled::Client`].
///
/// ```no_run
/// use corvid_driver::blocking::Client;
/// use corvid_driver::{Authority, Credentials, Settings, Setup};
/// # fn connect(class: corvid_idl::Class) -> Result<(), corvid_driver::Error> {
///
/// let credentials = Credentials::new(&Settings {
///     private_key: Some("/etc/ovn/key.pem".into()),
///     certificate: Some("/etc/ovn/cert.pem".into()),
///     authority: Some(Authority { file: "/etc/ovn/ca.pem".into(), is_bootstrapped: false }),
///     ..Settings::default()
/// });
/// let setup = Setup { credentials: Some(credentials), is_leader_only: false, ..Setup::default() };
/// let client = Client::connect_with(class, "ssl:10.0.0.1:6642,ssl:10.0.0.2:6642", &setup)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Setup {
    /// Key, certificate and CA for `ssl:` and `pssl:` remotes.
    pub credentials: Option<Arc<Credentials>>,
    /// Whether the client connects only to the leader of a cluster. True by default; programs that only read need no leader.
    pub is_leader_only: bool,
    /// Whether the client tries to connect for ever; otherwise it tries each remote once. True by default.
    pub is_persistent: bool,
    /// Whether remotes are tried in random order, so that clients spread over servers. True by default.
    pub is_shuffled: bool,
    /// How long the server may be silent before the client probes it; zero never probes. `None`: 5 seconds over a network, never on
    /// this machine.
    pub probe_interval: Option<Duration>,
    /// A lock to ask for: see [`crate::polled::Client::set_lock`].
    pub lock: Option<String>,
    /// Whether a list of remotes that cannot work is an error of the call. True by default. Otherwise each attempt fails, which the log says: for
    /// libraries whose programs may name remotes before they can be used.
    pub are_remotes_checked: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            credentials: None,
            is_leader_only: true,
            is_persistent: true,
            is_shuffled: true,
            probe_interval: None,
            lock: None,
            are_remotes_checked: true,
        }
    }
}
